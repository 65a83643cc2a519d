//! Settings for images, from the cluster's object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::finding::{ClusterObject, RegistryFinding, RegistryProblem};
use super::location::{ImageLocation, ImageScope};
use crate::members::{Shape, misshapen, unknown_members};
use crate::names::objects::CLUSTER;
use crate::names::registries::IMAGE_CONFIG_KIND;

/// The settings of `image.config.openshift.io/cluster` for registries: `spec.registrySources`.
///
/// Without `additionalTrustedCA`: on Windows nodes the whole host trusts those authorities, see
/// [`ca_bundle`](crate::ca_bundle).
///
/// ```
/// use wmco_core::registries::ImageConfigFacts;
///
/// let sources = serde_json::json!({"insecureRegistries": ["lab.example:5000"]});
/// let config = serde_json::json!({"kind": "Image", "spec": {"registrySources": sources}});
/// assert_ne!(ImageConfigFacts::of(&config), ImageConfigFacts::default());
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ImageConfigFacts {
    /// Registries as they are written: trust is not widened to their other names.
    pub(super) insecure: ScopeSet,
    /// Registries in their canonical form.
    blocked: ScopeSet,
    /// Whole registries of both lists, as written, and all names of those that are blocked.
    pub(super) registries: Vec<ImageLocation>,
    pub(super) findings: Vec<RegistryFinding>,
    uid: Option<String>,
}

/// Locations with everything below them, and domains.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct ScopeSet {
    domains: BTreeSet<String>,
    /// Paths by registry in lower case.
    locations: BTreeMap<String, BTreeSet<String>>,
}

/// The list of registries that are not to be asked.
const BLOCKED: &str = "blockedRegistries";

/// The members of the settings for images.
const SHAPE: Shape = Shape::Object(&[
    ("apiVersion", Shape::Any),
    ("kind", Shape::Any),
    ("metadata", Shape::Any),
    (
        "spec",
        Shape::Object(&[
            ("additionalTrustedCA", Shape::Object(&[("name", Shape::Any)])),
            ("allowedRegistriesForImport", Shape::Any),
            ("externalRegistryHostnames", Shape::Any),
            ("imageStreamImportMode", Shape::Any),
            (
                "registrySources",
                Shape::Object(&[
                    ("allowedRegistries", Shape::List(&Shape::Any)),
                    ("blockedRegistries", Shape::List(&Shape::Any)),
                    ("containerRuntimeSearchRegistries", Shape::List(&Shape::Any)),
                    ("insecureRegistries", Shape::List(&Shape::Any)),
                ]),
            ),
        ]),
    ),
    ("status", Shape::Any),
]);

impl ImageConfigFacts {
    /// Reads the settings from `object`.
    pub fn of(object: &Value) -> Self {
        let uid = object.pointer("/metadata/uid").and_then(Value::as_str).map(str::to_owned);
        let mut facts = Self { uid, ..Self::default() };
        for unknown in unknown_members(object, &SHAPE) {
            facts.tell(unknown.path, RegistryProblem::UnknownMember { right: unknown.right });
        }
        for wrong in misshapen(object, &SHAPE) {
            facts.tell(wrong.path, RegistryProblem::WrongShape { expected: wrong.expected });
        }
        facts.insecure = facts.scopes(object, "insecureRegistries");
        facts.blocked = facts.scopes(object, BLOCKED);
        for (list, problem) in [
            ("allowedRegistries", RegistryProblem::AllowedNotEnforced),
            ("containerRuntimeSearchRegistries", RegistryProblem::SearchNotDone),
        ] {
            if !facts.texts(object, list).is_empty() {
                facts.tell(field(list), problem);
            }
        }
        facts
    }

    /// The texts of a list, each with its field.
    fn texts<'a>(&mut self, object: &'a Value, list: &str) -> Vec<(String, &'a str)> {
        let found = object.pointer(&format!("/spec/registrySources/{list}"));
        let items = found.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut texts = Vec::new();
        for (number, item) in items.iter().enumerate() {
            let at = format!("{}[{number}]", field(list));
            match item.as_str() {
                Some(text) => texts.push((at, text)),
                None => self.tell(at, RegistryProblem::WrongShape { expected: "a text" }),
            }
        }
        texts
    }

    /// Whether `location` is blocked, by whatever name of its registry.
    pub(super) fn blocks(&self, location: &ImageLocation) -> bool {
        self.blocked.covers(&location.canonical())
    }

    fn scopes(&mut self, object: &Value, list: &str) -> ScopeSet {
        let mut scopes = ScopeSet::default();
        for (field, text) in self.texts(object, list) {
            let before = self.findings.len();
            let Some(scope) = self.scope(list, field, text) else { continue };
            if let ImageScope::Location(location) = &scope {
                for finding in self.findings.iter_mut().skip(before) {
                    finding.registry = Some(location.canonical());
                }
            }
            match scope {
                ImageScope::Location(location) if list == BLOCKED => {
                    if location.path().is_empty() {
                        self.registries.extend(location.names());
                    }
                    scopes.insert(ImageScope::Location(location.canonical()));
                }
                ImageScope::Location(location) => {
                    if location.path().is_empty() {
                        self.registries.push(location.clone());
                    }
                    scopes.insert(ImageScope::Location(location));
                }
                domain @ ImageScope::Domain(_) => scopes.insert(domain),
            }
        }
        scopes
    }

    fn scope(&mut self, list: &str, field: String, text: &str) -> Option<ImageScope> {
        match text.parse() {
            Ok(scope) => {
                match &scope {
                    ImageScope::Domain(_) if list == BLOCKED => {
                        self.tell(field, RegistryProblem::DomainNotBlocked);
                    }
                    ImageScope::Domain(_) => self.tell(field, RegistryProblem::DomainInPart),
                    ImageScope::Location(location) if !location.path().is_empty() => {
                        self.tell(field, RegistryProblem::PartOfRegistry);
                    }
                    ImageScope::Location(location) if location.folder().is_none() => {
                        let registry = location.host().to_owned();
                        self.tell(field, RegistryProblem::UnusableFolder { registry });
                    }
                    ImageScope::Location(location) if location.is_only_a_server() => {
                        let problem = match list {
                            BLOCKED => RegistryProblem::BlockedHub,
                            _ => RegistryProblem::NeverLookedUp,
                        };
                        self.tell(field, problem);
                    }
                    ImageScope::Location(location)
                        if !location.has_port() && !location.is_hub() =>
                    {
                        let registry = location.host().to_owned();
                        let problem = match list {
                            BLOCKED => RegistryProblem::BlockedAtOnePort { registry },
                            _ => RegistryProblem::InsecureAtOnePort { registry },
                        };
                        self.tell(field, problem);
                    }
                    ImageScope::Location(_) => {}
                }
                Some(scope)
            }
            Err(reason) => {
                self.tell(field, RegistryProblem::BadLocation { text: text.to_owned(), reason });
                None
            }
        }
    }

    fn tell(&mut self, field: String, problem: RegistryProblem) {
        let (name, uid) = (CLUSTER.to_owned(), self.uid.clone());
        let object = ClusterObject { kind: IMAGE_CONFIG_KIND, name, uid };
        self.findings.push(RegistryFinding { object, field, problem, registry: None });
    }
}

fn field(list: &str) -> String {
    format!("spec.registrySources.{list}")
}

impl ScopeSet {
    fn insert(&mut self, scope: ImageScope) {
        match scope {
            ImageScope::Domain(domain) => {
                self.domains.insert(domain);
            }
            ImageScope::Location(location) => {
                let paths = self.locations.entry(location.host_key()).or_default();
                paths.insert(location.path().to_owned());
            }
        }
    }

    /// Whether all of `location` is in the set. A registry without a port stands for all of its ports, as on Linux
    /// nodes.
    pub(super) fn covers(&self, location: &ImageLocation) -> bool {
        let host = location.host_key();
        let name = host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name);
        let paths = [Some(host.as_str()), Some(name).filter(|name| *name != host)];
        let mut paths = paths.into_iter().flatten().filter_map(|host| self.locations.get(host));
        let domains = name.match_indices('.').filter_map(|(at, _)| name.get(at + 1..));
        paths.any(|paths| prefixes(location.path()).any(|prefix| paths.contains(prefix)))
            || domains.into_iter().any(|domain| self.domains.contains(domain))
    }
}

/// `path` and all its parents, up to the empty path.
pub(super) fn prefixes(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| {
        let (parent, _) = path.split_at(path.rfind('/').unwrap_or_default());
        (!path.is_empty()).then_some(parent)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(scopes: &[&str]) -> ScopeSet {
        let mut set = ScopeSet::default();
        for scope in scopes {
            set.insert(scope.parse().unwrap());
        }
        set
    }

    #[test]
    fn a_location_covers_all_below_and_nothing_beside() {
        let covers = |scope: &str, text: &str| set(&[scope]).covers(&text.parse().unwrap());
        for (scope, text) in [
            ("a.test", "a.test/x/y"),
            ("a.test", "A.test:5000/x"),
            ("a.test/x", "a.test/x/y"),
            ("a.test/x", "a.test/x"),
            ("*.test", "a.b.test:80/x"),
        ] {
            assert!(covers(scope, text), "{scope} {text}");
        }
        for (scope, text) in [
            ("a.test/x", "a.test"),
            ("a.test/x", "a.test/xy"),
            ("a.test:5000", "a.test/x"),
            ("a.test", "b.a.test"),
            ("*.a.test", "a.test"),
            ("*.a.test", "ba.test"),
        ] {
            assert!(!covers(scope, text), "{scope} {text}");
        }
    }
}
