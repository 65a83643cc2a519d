//! A rule of the operator's rights.

use k8s_openapi::api::rbac::v1::PolicyRule;

/// A rule of the operator's rights.
///
/// ```
/// use wmco_core::manifests::GRANTS;
///
/// let evicts = GRANTS.iter().find(|grant| grant.resources == ["pods/eviction"]);
/// assert_eq!(evicts.map(|grant| grant.parts), Some(&["instance"][..]));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Grant {
    /// Scope of the rule.
    pub place: Place,
    /// Modules of the operator's program that need it.
    pub parts: &'static [&'static str],
    /// Purpose of the rule.
    pub why: &'static str,
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Resources, as `pods` or `pods/eviction`.
    pub resources: &'static [&'static str],
    /// The objects.
    pub names: Names,
    /// Verbs.
    pub verbs: &'static [&'static str],
}

/// Scope of a rule.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Place {
    /// In the whole cluster.
    Cluster,
    /// In the operator's namespace.
    Own,
    /// In this namespace.
    Elsewhere(&'static str),
}

/// The objects of a rule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Names {
    /// All objects.
    Any,
    /// The operator's namespace itself.
    OwnNamespace,
    /// The objects with these names.
    Only(&'static [&'static str]),
}

impl Grant {
    /// The RBAC rule for an operator in `namespace`.
    pub fn rule(&self, namespace: &str) -> PolicyRule {
        let list = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        PolicyRule {
            api_groups: Some(vec![self.group.to_owned()]),
            resources: Some(list(self.resources)),
            resource_names: match self.names {
                Names::Any => None,
                Names::OwnNamespace => Some(vec![namespace.to_owned()]),
                Names::Only(names) => Some(list(names)),
            },
            verbs: list(self.verbs),
            ..PolicyRule::default()
        }
    }

    /// The modules that need the rule and its purpose, as a comment.
    pub fn because(&self) -> String {
        format!("{}: {}", self.parts.join(", "), self.why)
    }
}
