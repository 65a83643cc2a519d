//! Facts about a mirror set, from its JSON.

use jiff::Timestamp;
use serde_json::Value;

use super::finding::{ClusterObject, RegistryFinding, RegistryProblem};
use super::location::{ImageLocation, ImageScope};
use crate::names::registries::{
    ALLOW_SOURCE, CONTENT_SOURCE_POLICY_KIND, DIGEST_MIRROR_SET_KIND, NEVER_SOURCE,
    TAG_MIRROR_SET_KIND,
};

/// The mirrors in an ImageDigestMirrorSet, an ImageTagMirrorSet or an ImageContentSourcePolicy.
///
/// Invalid parts are ignored and [reported](super::Registries::findings).
///
/// ```
/// use wmco_core::registries::MirrorSetFacts;
///
/// assert!(MirrorSetFacts::of(&serde_json::json!({"kind": "ImageTagMirrorSet"})).is_some());
/// assert_eq!(MirrorSetFacts::of(&serde_json::json!({"kind": "Node"})), None);
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MirrorSetFacts {
    pub(super) object: ClusterObject,
    /// Orders the sets: the oldest one comes first.
    pub(super) created: Option<Timestamp>,
    pub(super) rank: usize,
    pub(super) entries: Vec<MirrorEntry>,
    pub(super) findings: Vec<RegistryFinding>,
}

/// An entry with a usable source.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct MirrorEntry {
    /// Its field in the object.
    pub(super) field: String,
    pub(super) source: ImageLocation,
    /// Valid mirrors, with their index in the list.
    pub(super) mirrors: Vec<(usize, ImageLocation)>,
    /// Whether the list has any item, valid or not.
    pub(super) has_mirrors: bool,
    /// Whether the source must not be asked.
    pub(super) never: bool,
    /// Whether mirrors may resolve tags.
    pub(super) tags: bool,
}

/// The kinds in the order of their precedence for sets of the same age: kind, list in `spec`, and whether it is for
/// tags.
const KINDS: [(&str, &str, bool); 3] = [
    (DIGEST_MIRROR_SET_KIND, "imageDigestMirrors", false),
    (TAG_MIRROR_SET_KIND, "imageTagMirrors", true),
    (CONTENT_SOURCE_POLICY_KIND, "repositoryDigestMirrors", false),
];

impl MirrorSetFacts {
    /// Reads the facts from `object`; `None` if it is of another kind.
    pub fn of(object: &Value) -> Option<Self> {
        let found = object.get("kind")?.as_str()?;
        let (rank, (kind, list, tags)) =
            KINDS.into_iter().enumerate().find(|(_, (kind, ..))| *kind == found)?;
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
        let name = text("/metadata/name").unwrap_or_default().to_owned();
        let uid = text("/metadata/uid").map(str::to_owned);
        let mut facts = Self {
            object: ClusterObject { kind, name, uid },
            created: text("/metadata/creationTimestamp").and_then(|time| time.parse().ok()),
            rank,
            entries: Vec::new(),
            findings: Vec::new(),
        };
        if kind == CONTENT_SOURCE_POLICY_KIND {
            facts.tell("kind".into(), RegistryProblem::Deprecated);
        }
        let field = format!("spec.{list}");
        let entries = object.pointer(&format!("/spec/{list}")).unwrap_or(&Value::Null);
        for (number, entry) in facts.list(&field, entries).iter().enumerate() {
            if let Some(entry) = facts.entry(format!("{field}[{number}]"), entry, tags) {
                facts.entries.push(entry);
            }
        }
        Some(facts)
    }

    fn entry(&mut self, field: String, entry: &Value, tags: bool) -> Option<MirrorEntry> {
        let part = |name: &str| entry.get(name).unwrap_or(&Value::Null);
        let never = match part("mirrorSourcePolicy") {
            Value::Null => false,
            Value::String(policy) if policy == NEVER_SOURCE => true,
            Value::String(policy) if policy == ALLOW_SOURCE || policy.is_empty() => false,
            other => {
                let text = other.as_str().map_or_else(|| other.to_string(), str::to_owned);
                let problem = RegistryProblem::UnknownPolicy { text };
                self.tell(format!("{field}.mirrorSourcePolicy"), problem);
                false
            }
        };
        let at = format!("{field}.source");
        let source = match self.location(at.clone(), part("source"))? {
            ImageScope::Location(source) => source,
            ImageScope::Domain(_) => {
                self.tell(at, RegistryProblem::DomainSource);
                return None;
            }
        };
        let at = format!("{field}.mirrors");
        let listed = self.list(&at, part("mirrors"));
        let mut mirrors = Vec::with_capacity(listed.len());
        for (number, mirror) in listed.iter().enumerate() {
            let at = format!("{at}[{number}]");
            match self.location(at.clone(), mirror) {
                Some(ImageScope::Location(mirror)) => mirrors.push((number, mirror)),
                Some(ImageScope::Domain(_)) => {
                    let text = mirror.as_str().unwrap_or_default().to_owned();
                    let reason = super::BadLocation::Host;
                    self.tell(at, RegistryProblem::BadLocation { text, reason });
                }
                None => {}
            }
        }
        let has_mirrors = match part("mirrors") {
            Value::Null => false,
            Value::Array(items) => !items.is_empty(),
            _ => true,
        };
        if never && !has_mirrors {
            self.tell(at, RegistryProblem::NeverWithoutMirrors);
        }
        Some(MirrorEntry { field, source, mirrors, has_mirrors, never, tags })
    }

    fn location(&mut self, field: String, value: &Value) -> Option<ImageScope> {
        let Some(text) = value.as_str() else {
            self.tell(field, RegistryProblem::WrongShape { expected: "a text" });
            return None;
        };
        match text.parse() {
            Ok(scope) => Some(scope),
            Err(reason) => {
                self.tell(field, RegistryProblem::BadLocation { text: text.to_owned(), reason });
                None
            }
        }
    }

    fn list<'a>(&mut self, field: &str, value: &'a Value) -> &'a [Value] {
        match value {
            Value::Array(items) => items,
            Value::Null => &[],
            _ => {
                self.tell(field.to_owned(), RegistryProblem::WrongShape { expected: "a list" });
                &[]
            }
        }
    }

    fn tell(&mut self, field: String, problem: RegistryProblem) {
        self.findings.push(RegistryFinding { object: self.object.clone(), field, problem });
    }
}
