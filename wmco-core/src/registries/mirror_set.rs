//! Facts about a mirror set, from its JSON.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::finding::{ClusterObject, RegistryFinding, RegistryProblem};
use super::location::{ImageLocation, ImageScope};
use crate::members::{Shape, unknown_members};
use crate::names::registries::{
    ALLOW_SOURCE, CONFIG_GROUP, CONTENT_SOURCE_POLICY_GROUP, CONTENT_SOURCE_POLICY_KIND,
    DIGEST_MIRROR_SET_KIND, NEVER_SOURCE, TAG_MIRROR_SET_KIND,
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
    /// Indexes of mirrors that are written with `http://`.
    pub(super) plain: BTreeSet<usize>,
    /// Whether the list has any item, valid or not.
    pub(super) has_mirrors: bool,
    /// Whether the source must not be asked.
    pub(super) never: bool,
    /// Whether mirrors may resolve tags.
    pub(super) tags: bool,
}

/// A kind of mirror set.
struct Kind {
    name: &'static str,
    group: &'static str,
    /// The list in `spec`.
    list: &'static str,
    /// Whether it is for tags.
    tags: bool,
    shape: Shape,
}

/// The kinds in the order of their precedence for sets of the same age.
const KINDS: [Kind; 3] = [
    Kind {
        name: DIGEST_MIRROR_SET_KIND,
        group: CONFIG_GROUP,
        list: "imageDigestMirrors",
        tags: false,
        shape: DIGEST_MIRRORS,
    },
    Kind {
        name: TAG_MIRROR_SET_KIND,
        group: CONFIG_GROUP,
        list: "imageTagMirrors",
        tags: true,
        shape: TAG_MIRRORS,
    },
    Kind {
        name: CONTENT_SOURCE_POLICY_KIND,
        group: CONTENT_SOURCE_POLICY_GROUP,
        list: "repositoryDigestMirrors",
        tags: false,
        shape: SOURCE_POLICIES,
    },
];

/// The members of an entry.
const ENTRY: Shape = Shape::Object(&[
    ("source", Shape::Any),
    ("mirrors", Shape::Any),
    ("mirrorSourcePolicy", Shape::Any),
]);

/// The members of an entry of an ImageContentSourcePolicy, of which the API server drops all others.
const POLICY_ENTRY: Shape = Shape::Object(&[("source", Shape::Any), ("mirrors", Shape::Any)]);

/// The members of an ImageDigestMirrorSet.
const DIGEST_MIRRORS: Shape = Shape::Object(&[
    ("apiVersion", Shape::Any),
    ("kind", Shape::Any),
    ("metadata", Shape::Any),
    ("spec", Shape::Object(&[("imageDigestMirrors", Shape::List(&ENTRY))])),
    ("status", Shape::Any),
]);

/// The members of an ImageTagMirrorSet.
const TAG_MIRRORS: Shape = Shape::Object(&[
    ("apiVersion", Shape::Any),
    ("kind", Shape::Any),
    ("metadata", Shape::Any),
    ("spec", Shape::Object(&[("imageTagMirrors", Shape::List(&ENTRY))])),
    ("status", Shape::Any),
]);

/// The members of an ImageContentSourcePolicy.
const SOURCE_POLICIES: Shape = Shape::Object(&[
    ("apiVersion", Shape::Any),
    ("kind", Shape::Any),
    ("metadata", Shape::Any),
    ("spec", Shape::Object(&[("repositoryDigestMirrors", Shape::List(&POLICY_ENTRY))])),
    ("status", Shape::Any),
]);

impl MirrorSetFacts {
    /// Reads the facts from `object`; `None` if it is of another kind. One without a group is of the usual one.
    pub fn of(object: &Value) -> Option<Self> {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
        let (found, version) = (text("/kind")?, text("/apiVersion"));
        let is_of = |kind: &Kind| {
            let group = version.and_then(|version| version.split('/').next());
            kind.name == found && group.is_none_or(|group| group == kind.group)
        };
        let (rank, &Kind { name: kind, list, tags, ref shape, .. }) =
            KINDS.iter().enumerate().find(|(_, kind)| is_of(kind))?;
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
        let unknown = unknown_members(object, shape);
        if matches!(entries, Value::Null) || entries.as_array().is_some_and(Vec::is_empty) {
            // What stands at the wrong place is told below.
            if unknown.is_empty() {
                facts.tell(field.clone(), RegistryProblem::NoEntries);
            }
        }
        for unknown in unknown {
            facts.tell(unknown.path, RegistryProblem::UnknownMember { right: unknown.right });
        }
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
            // It has no such member.
            _ if self.object.kind == CONTENT_SOURCE_POLICY_KIND => false,
            Value::Null => false,
            Value::String(policy) if policy == NEVER_SOURCE => true,
            Value::String(policy) if policy == ALLOW_SOURCE || policy.is_empty() => false,
            other => {
                let text = other.as_str().map_or_else(|| other.to_string(), str::to_owned);
                let problem = RegistryProblem::UnknownPolicy { text };
                self.tell(format!("{field}.mirrorSourcePolicy"), problem);
                // Whoever wrote one wanted something else than what holds without.
                true
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
        let mut plain = BTreeSet::new();
        for (number, mirror) in listed.iter().enumerate() {
            let at = format!("{at}[{number}]");
            if mirror.as_str().is_some_and(|text| text.starts_with("http://")) {
                plain.insert(number);
            }
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
        Some(MirrorEntry { field, source, mirrors, plain, has_mirrors, never, tags })
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
