//! Facts about a mirror set, from its JSON.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::finding::{ClusterObject, RegistryFinding, RegistryProblem, shown_name};
use super::location::{ImageLocation, ImageScope};
use crate::members::{Shape, difference, misshapen, unknown_members};
use crate::names::objects::CLUSTER;
use crate::names::registries::{
    ALLOW_SOURCE, CONFIG_GROUP, CONFIG_VERSION, CONTENT_SOURCE_POLICY_GROUP,
    CONTENT_SOURCE_POLICY_KIND, CONTENT_SOURCE_POLICY_VERSION, DIGEST_MIRROR_SET_KIND,
    IMAGE_CONFIG_KIND, IMAGE_GROUP, NEVER_SOURCE, TAG_MIRROR_SET_KIND,
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
    /// Fields of its source and mirrors that are written with `http://`.
    pub(super) plain: BTreeSet<String>,
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
    version: &'static str,
    /// The list in `spec`.
    list: &'static str,
    /// Whether it is for tags.
    tags: bool,
    shape: Shape,
}

/// A kind with at most so many other letters is taken for a misspelt one.
const LETTERS_THAT_DIFFER: usize = 3;

/// The kinds in the order of their precedence for sets of the same age.
const KINDS: [Kind; 3] = [
    Kind {
        name: DIGEST_MIRROR_SET_KIND,
        group: CONFIG_GROUP,
        version: CONFIG_VERSION,
        list: "imageDigestMirrors",
        tags: false,
        shape: DIGEST_MIRRORS,
    },
    Kind {
        name: TAG_MIRROR_SET_KIND,
        group: CONFIG_GROUP,
        version: CONFIG_VERSION,
        list: "imageTagMirrors",
        tags: true,
        shape: TAG_MIRRORS,
    },
    Kind {
        name: CONTENT_SOURCE_POLICY_KIND,
        group: CONTENT_SOURCE_POLICY_GROUP,
        version: CONTENT_SOURCE_POLICY_VERSION,
        list: "repositoryDigestMirrors",
        tags: false,
        shape: SOURCE_POLICIES,
    },
];

/// The members of an entry.
const ENTRY: Shape = Shape::Object(&[
    ("source", Shape::Any),
    ("mirrors", Shape::List(&Shape::Any)),
    ("mirrorSourcePolicy", Shape::Any),
]);

/// The members of an entry of an ImageContentSourcePolicy, of which the API server drops all others.
const POLICY_ENTRY: Shape =
    Shape::Object(&[("source", Shape::Any), ("mirrors", Shape::List(&Shape::Any))]);

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

impl Kind {
    fn version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }
}

/// What is wrong with an object that has the name of a kind that says something of registries, but another group,
/// version or name than those that count; `None` if it counts, or is of another kind.
///
/// ```
/// use wmco_core::registries::misplaced;
///
/// let set = serde_json::json!({"kind": "ImageTagMirrorSet", "apiVersion": "v1", "metadata": {"name": "ours"}});
/// let finding = misplaced(&set).unwrap();
/// assert!(finding.to_string().ends_with("write `apiVersion: config.openshift.io/v1`"));
/// ```
pub fn misplaced(object: &Value) -> Option<RegistryFinding> {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    let found = text("/kind")?;
    let of = |kind: &Kind| (kind.name, kind.version());
    let config = (IMAGE_CONFIG_KIND, format!("{CONFIG_GROUP}/{CONFIG_VERSION}"));
    let mut kinds = KINDS.iter().map(of).chain([config]);
    let name = text("/metadata/name").unwrap_or_default();
    let uid = || text("/metadata/uid").map(str::to_owned);
    let Some((kind, right)) = kinds.find(|(kind, _)| *kind == found) else {
        let group = text("/apiVersion").and_then(|version| version.split('/').next());
        let is_meant = |kind: &&Kind| {
            group == Some(kind.group) && difference(kind.name, found) <= LETTERS_THAT_DIFFER
        };
        let meant =
            KINDS.iter().filter(is_meant).min_by_key(|kind| difference(kind.name, found))?;
        let problem = RegistryProblem::OtherKind { right: meant.name };
        let object = ClusterObject { kind: meant.name, name: shown_name(name), uid: uid() };
        return Some(RegistryFinding { object, field: "kind".to_owned(), problem, registry: None });
    };
    let is_config = kind == IMAGE_CONFIG_KIND;
    let group = text("/apiVersion").and_then(|version| version.split('/').next());
    // Images of the image registry are of the same kind.
    let (field, problem) = if is_config && group == Some(IMAGE_GROUP) {
        return None;
    } else if !is_version(object, &right) {
        ("apiVersion", RegistryProblem::OtherVersion { right })
    } else if is_config && !matches!(name, "" | CLUSTER) {
        ("metadata.name", RegistryProblem::OtherName { right: CLUSTER })
    } else {
        return None;
    };
    let object = ClusterObject { kind, name: shown_name(name), uid: uid() };
    Some(RegistryFinding { object, field: field.to_owned(), problem, registry: None })
}

/// Whether `object` is of this API version, or of none.
fn is_version(object: &Value, right: &str) -> bool {
    let found = object.get("apiVersion").filter(|version| !version.is_null());
    found.is_none_or(|version| version.as_str() == Some(right))
}

impl MirrorSetFacts {
    /// Reads the facts from `object`; `None` if it is of another kind. One without an API version is of the usual one.
    pub fn of(object: &Value) -> Option<Self> {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
        let found = text("/kind")?;
        let is_of = |kind: &Kind| kind.name == found && is_version(object, &kind.version());
        let (rank, &Kind { name: kind, list, tags, ref shape, .. }) =
            KINDS.iter().enumerate().find(|(_, kind)| is_of(kind))?;
        let name = shown_name(text("/metadata/name").unwrap_or_default());
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
        let (unknown, misshapen) = (unknown_members(object, shape), misshapen(object, shape));
        if matches!(entries, Value::Null) || entries.as_array().is_some_and(Vec::is_empty) {
            // What stands at the wrong place is told below.
            if unknown.is_empty() && misshapen.is_empty() {
                facts.tell(field.clone(), RegistryProblem::NoEntries);
            }
        }
        for unknown in unknown {
            facts.tell(unknown.path, RegistryProblem::UnknownMember { right: unknown.right });
        }
        for wrong in misshapen {
            facts.tell(wrong.path, RegistryProblem::WrongShape { expected: wrong.expected });
        }
        for (number, entry) in items(entries).iter().enumerate() {
            let before = facts.findings.len();
            if let Some(entry) = facts.entry(format!("{field}[{number}]"), entry, tags) {
                for finding in facts.findings.iter_mut().skip(before) {
                    finding.registry = Some(entry.source.canonical());
                }
                facts.entries.push(entry);
            }
        }
        Some(facts)
    }

    /// Reads an entry; that a part is of another type was told before.
    fn entry(&mut self, field: String, entry: &Value, tags: bool) -> Option<MirrorEntry> {
        if !entry.is_object() && !entry.is_null() {
            return None;
        }
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
        let mut plain = BTreeSet::new();
        if is_plain(part("source")) {
            plain.insert(at.clone());
        }
        if part("source").is_null() {
            self.tell(at, RegistryProblem::NoSource);
            return None;
        }
        let source = match self.location(at.clone(), part("source"))? {
            ImageScope::Location(source) => source,
            ImageScope::Domain(_) => {
                self.tell(at, RegistryProblem::DomainSource);
                return None;
            }
        };
        let at = format!("{field}.mirrors");
        let listed = items(part("mirrors"));
        let mut mirrors = Vec::with_capacity(listed.len());
        for (number, mirror) in listed.iter().enumerate() {
            let at = format!("{at}[{number}]");
            if is_plain(mirror) {
                plain.insert(at.clone());
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
        match (never, has_mirrors) {
            (true, false) => self.tell(at, RegistryProblem::NeverWithoutMirrors),
            (false, false) => self.tell(at, RegistryProblem::NoMirrors),
            (true | false, true) => {}
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

    fn tell(&mut self, field: String, problem: RegistryProblem) {
        let object = self.object.clone();
        self.findings.push(RegistryFinding { object, field, problem, registry: None });
    }
}

/// Whether a location is written with `http://`.
fn is_plain(location: &Value) -> bool {
    let scheme = location.as_str().and_then(|text| text.split_once("://"));
    scheme.is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("http"))
}

/// The items of a list, none of any other value.
fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
