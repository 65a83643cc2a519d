//! Decides what the operator's own objects in the cluster need.
//!
//! [`reconcile`] compares the objects that it owns as they should be ([`Desired`]) with what is
//! there ([`Observed`]) and returns what to do. Objects that cannot be changed are replaced: the
//! services ConfigMap in one step, since daemons miss it meanwhile, others by a delete now and a
//! create in the pass that the delete event starts. The Secrets with user data have a
//! [`reconcile`](user_data::reconcile) of their own, since they need nothing of what these need.
//!
//! # Guarantees
//! - The services ConfigMap of a version that a node carries or is told to carry is kept, since the
//!   daemon there still needs it. Source: `spec/operator.md`, section 6.2.
//!
//! # Not here
//! What is in the services ConfigMap (`wmco-services`), Nodes ([`node`](crate::node)).

pub mod rbac;
pub mod user_data;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::names::objects;
use crate::protocol::ServicesData;
use crate::secret::Secret;

/// What the operator wants to own.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Desired<'a> {
    /// Operator version.
    pub version: &'a str,
    /// Data of this version's services ConfigMap.
    pub services: &'a ServicesData,
    /// Where the cluster runs, as [`platforms`](crate::names::platforms) spells it.
    pub platform: &'a str,
}

/// What there is.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Observed {
    /// ConfigMaps of our namespace whose name starts like a services ConfigMap's.
    pub services: BTreeMap<String, ServicesConfigMap>,
    /// Every version that a node carries or is told to carry.
    pub node_versions: BTreeSet<String>,
    /// The Secret named like WICD.
    pub token: Option<TokenSecret>,
    /// The bindings that the operator keeps, where they exist.
    pub bindings: BTreeMap<rbac::BindingKind, FoundBinding>,
}

/// A binding as it is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FoundBinding {
    /// What it says.
    pub binding: rbac::Binding,
    /// Which one was seen.
    pub revision: Revision,
}

/// A services ConfigMap as it is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ServicesConfigMap {
    /// Its data.
    pub data: ServicesData,
    /// Whether it is immutable, as it should be.
    pub immutable: bool,
    /// Which one was seen.
    pub revision: Revision,
}

/// One state of one object.
#[derive(Clone, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Revision {
    /// Another one when the object was deleted and created again.
    pub uid: Option<String>,
    /// Another one after every change.
    pub resource_version: Option<String>,
}

/// WICD's token Secret as far as it matters.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TokenSecret {
    /// Type of the Secret.
    pub type_: String,
    /// The ServiceAccount that its annotation names.
    pub account: Option<String>,
}

/// What to do now.
#[derive(Clone, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
#[must_use = "a plan does nothing until an executor runs it"]
pub struct Plan {
    /// The steps, in order; they do not depend on each other.
    pub steps: Vec<Step>,
}

/// One action with its reason.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Step {
    /// The side effect.
    pub action: Action,
    /// Why it is due.
    pub because: Because,
}

/// One side effect. Idempotent: "is there already" and "is gone already" are success.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// Create this version's services ConfigMap.
    CreateServices {
        /// Its name.
        name: String,
        /// Its data.
        #[serde(skip)]
        data: ServicesData,
    },
    /// Delete this version's services ConfigMap if it is still the one that was seen, and create the
    /// right one at once. Nothing is done when it is another one by now: that is looked at anew. When
    /// it is gone already, or the operator dies in between, what is missing is created.
    ReplaceServices {
        /// Its name.
        name: String,
        /// What was seen.
        found: Revision,
        /// Its data from now on.
        #[serde(skip)]
        data: ServicesData,
    },
    /// Delete a services ConfigMap.
    DeleteServices {
        /// Its name.
        name: String,
    },
    /// Create WICD's token Secret; the cluster fills it.
    CreateToken,
    /// Delete WICD's token Secret.
    DeleteToken,
    /// Create a binding.
    CreateBinding(rbac::BindingKind),
    /// Delete a binding if it is still the one that was seen. What it is now starts the next pass.
    DeleteBinding {
        /// Which one.
        kind: rbac::BindingKind,
        /// What was seen.
        found: Revision,
    },
    /// Create the Secret with user data.
    CreateUserData {
        /// Its namespace.
        namespace: String,
        /// The text in it.
        #[serde(skip)]
        text: Secret,
    },
    /// Change the text in the Secret with user data if that is still the one that was seen. What it is now
    /// starts the next pass.
    ChangeUserData {
        /// Its namespace.
        namespace: String,
        /// What was seen.
        found: Revision,
        /// Its text from now on.
        #[serde(skip)]
        text: Secret,
    },
    /// Delete the Secret with user data, which cannot be changed, if it is still the one that was seen, and
    /// create the right one at once. As [`Self::ReplaceServices`].
    ReplaceUserData {
        /// Its namespace.
        namespace: String,
        /// What was seen.
        found: Revision,
        /// All of its data from now on.
        #[serde(skip)]
        data: BTreeMap<String, Secret>,
    },
}

/// Why a step is due.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Because {
    /// It is not there.
    Missing,
    /// It is not as it should be.
    Differs,
    /// Its data says something else.
    #[serde(rename_all = "camelCase")]
    DiffersIn {
        /// Under these keys. What stands there can be secret.
        keys: Vec<String>,
    },
    /// It is right but not immutable.
    Mutable,
    /// A machine that starts with it would let in other keys.
    OtherKeys,
    /// Its type is another one.
    Type,
    /// No node needs it any more.
    Outdated,
}

/// Returns what to do now.
pub fn reconcile(desired: &Desired<'_>, observed: &Observed, namespace: &str) -> Plan {
    let mut plan = Plan::default();
    services(desired, observed, &mut plan);
    match &observed.token {
        None => plan.push(Action::CreateToken, Because::Missing),
        Some(token) if !token.is_ours() => plan.push(Action::DeleteToken, Because::Differs),
        Some(_) => {}
    }
    for &kind in rbac::BindingKind::on(desired.platform) {
        match observed.bindings.get(&kind) {
            None => plan.push(Action::CreateBinding(kind), Because::Missing),
            Some(found) if found.binding != kind.wanted(namespace) => {
                let found = found.revision.clone();
                plan.push(Action::DeleteBinding { kind, found }, Because::Differs);
            }
            Some(_) => {}
        }
    }
    plan
}

fn services(desired: &Desired<'_>, observed: &Observed, plan: &mut Plan) {
    let name = services_name(desired.version);
    match observed.services.get(&name) {
        None => {
            let data = desired.services.clone();
            plan.push(Action::CreateServices { name: name.clone(), data }, Because::Missing);
        }
        Some(found) => {
            if let Some(because) = found.unlike(desired.services) {
                let (found, data) = (found.revision.clone(), desired.services.clone());
                plan.push(Action::ReplaceServices { name: name.clone(), found, data }, because);
            }
        }
    }
    for other in observed.services.keys().filter(|other| **other != name) {
        let version = other.strip_prefix(objects::SERVICES_CONFIG_MAP_PREFIX).unwrap_or_default();
        if !observed.node_versions.contains(version) {
            plan.push(Action::DeleteServices { name: other.clone() }, Because::Outdated);
        }
    }
}

impl ServicesConfigMap {
    /// In what it is not as it should be, if in anything.
    fn unlike(&self, desired: &ServicesData) -> Option<Because> {
        let keys = self.data.differing_keys(desired);
        match (keys.is_empty(), self.immutable) {
            (false, _) => Some(Because::DiffersIn { keys }),
            (true, false) => Some(Because::Mutable),
            (true, true) => None,
        }
    }
}

/// Name of the services ConfigMap of `version`.
pub fn services_name(version: &str) -> String {
    format!("{}{version}", objects::SERVICES_CONFIG_MAP_PREFIX)
}

impl TokenSecret {
    fn is_ours(&self) -> bool {
        self.type_ == objects::SERVICE_ACCOUNT_TOKEN_TYPE
            && self.account.as_deref() == Some(objects::WICD)
    }
}

impl Plan {
    fn push(&mut self, action: Action, because: Because) {
        self.steps.push(Step { action, because });
    }
}

impl Action {
    /// Short stable name for logs, metric labels and tests.
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::CreateServices { .. } => "create-services",
            Self::ReplaceServices { .. } => "replace-services",
            Self::DeleteServices { .. } => "delete-services",
            Self::CreateToken => "create-token",
            Self::DeleteToken => "delete-token",
            Self::CreateBinding(_) => "create-binding",
            Self::DeleteBinding { .. } => "delete-binding",
            Self::CreateUserData { .. } => "create-user-data",
            Self::ChangeUserData { .. } => "change-user-data",
            Self::ReplaceUserData { .. } => "replace-user-data",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.action.verb())?;
        match &self.action {
            Action::CreateServices { name, .. }
            | Action::ReplaceServices { name, .. }
            | Action::DeleteServices { name } => {
                write!(f, " {name}")?;
            }
            Action::CreateBinding(kind) | Action::DeleteBinding { kind, .. } => {
                write!(f, " {kind}")?;
            }
            Action::CreateUserData { namespace, .. }
            | Action::ChangeUserData { namespace, .. }
            | Action::ReplaceUserData { namespace, .. } => write!(f, " {namespace}")?,
            Action::CreateToken | Action::DeleteToken => {}
        }
        match &self.because {
            Because::Missing => f.write_str(", because it is missing"),
            Because::Differs => f.write_str(", because it differs"),
            Because::DiffersIn { keys } => write!(f, ", because it differs in {}", keys.join(", ")),
            Because::Mutable => f.write_str(", because it can be changed"),
            Because::OtherKeys => f.write_str(", because it lets in other keys"),
            Because::Type => f.write_str(", because it is of another type"),
            Because::Outdated => f.write_str(", because no node needs it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(services: &str) -> ServicesData {
        ServicesData([("services".to_owned(), services.to_owned())].into())
    }

    fn seen(data: ServicesData) -> ServicesConfigMap {
        ServicesConfigMap { data, immutable: true, revision: revision() }
    }

    fn revision() -> Revision {
        Revision { uid: Some("u".into()), resource_version: Some("7".into()) }
    }

    fn bound(kind: rbac::BindingKind, namespace: &str) -> FoundBinding {
        FoundBinding { binding: kind.wanted(namespace), revision: revision() }
    }

    fn settled() -> Observed {
        let ours = seen(data("[]"));
        Observed {
            services: [(services_name("2.0.0"), ours)].into(),
            node_versions: BTreeSet::new(),
            token: Some(TokenSecret {
                type_: objects::SERVICE_ACCOUNT_TOKEN_TYPE.into(),
                account: Some(objects::WICD.into()),
            }),
            bindings: rbac::BindingKind::on("None").iter().map(|k| (*k, bound(*k, "ns"))).collect(),
        }
    }

    #[track_caller]
    fn check(given: fn(&mut Observed), expected: &[&str]) {
        let mut observed = settled();
        given(&mut observed);
        let desired = Desired { version: "2.0.0", services: &data("[]"), platform: "None" };
        let plan = reconcile(&desired, &observed, "ns");
        assert_eq!(plan.steps.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn settled_cluster_needs_nothing() {
        check(|_| {}, &[]);
    }

    #[test]
    fn everything_is_made_once() {
        check(
            |o| *o = Observed::default(),
            &[
                "create-services windows-services-2.0.0, because it is missing",
                "create-token, because it is missing",
                "create-binding RoleBinding, because it is missing",
                "create-binding ClusterRoleBinding, because it is missing",
            ],
        );
    }

    #[test]
    fn other_white_space_is_no_difference() {
        check(|o| o.services.values_mut().for_each(|s| s.data = data(" [ ] ")), &[]);
    }

    #[test]
    fn other_content_is_replaced() {
        check(
            |o| o.services.values_mut().for_each(|s| s.data = data("[1]")),
            &["replace-services windows-services-2.0.0, because it differs in services"],
        );
    }

    #[test]
    fn unreadable_content_differs() {
        check(
            |o| o.services.values_mut().for_each(|s| s.data = data("[")),
            &["replace-services windows-services-2.0.0, because it differs in services"],
        );
    }

    #[test]
    fn keys_that_differ_are_told_and_values_never() {
        let with = |proxy: &str| {
            let environment = format!(r#"{{"HTTPS_PROXY":"http://{proxy}@proxy"}}"#);
            let mut data = data("[]");
            data.0.insert(objects::ENVIRONMENT_KEY.to_owned(), environment);
            data.0.insert(objects::WATCHED_KEY.to_owned(), format!(r#"["{proxy}"]"#));
            data
        };
        let mut observed = settled();
        let found = observed.services.values_mut().next().unwrap();
        found.data = with("old-user:old-password");
        let desired = with("user:password");
        let desired = Desired { version: "2.0.0", services: &desired, platform: "None" };
        let plan = reconcile(&desired, &observed, "ns");
        let texts = [
            plan.steps.iter().map(ToString::to_string).collect(),
            format!("{plan:?} {observed:?} {desired:?}"),
            serde_json::to_string(&plan).unwrap(),
        ];
        for text in texts {
            assert!(text.contains("environmentVars") && text.contains("watched"), "{text}");
            assert!(!text.contains("user") && !text.contains("password"), "{text}");
        }
    }

    #[test]
    fn only_what_was_seen_is_replaced_and_by_what_is_desired() {
        let mut observed = settled();
        let name = services_name("2.0.0");
        observed.services.insert(name.clone(), seen(data("[1]")));
        let services = data("[]");
        let desired = Desired { version: "2.0.0", services: &services, platform: "None" };
        let Plan { steps } = reconcile(&desired, &observed, "ns");
        let found = seen(ServicesData::default()).revision;
        let action = Action::ReplaceServices { name: name.clone(), found, data: services.clone() };
        let because = Because::DiffersIn { keys: vec!["services".into()] };
        assert_eq!(steps, [Step { action, because }]);
        // The operator dies after the deletion.
        observed.services.remove(&name);
        let Plan { steps } = reconcile(&desired, &observed, "ns");
        let action = Action::CreateServices { name, data: services.clone() };
        assert_eq!(steps, [Step { action, because: Because::Missing }]);
    }

    #[test]
    fn mutable_config_map_is_replaced() {
        check(
            |o| o.services.values_mut().for_each(|s| s.immutable = false),
            &["replace-services windows-services-2.0.0, because it can be changed"],
        );
    }

    #[test]
    fn old_version_is_kept_while_a_node_carries_it() {
        check(
            |o| {
                for version in ["1.0.0", "0.9.0"] {
                    let old = seen(data("[]"));
                    o.services.insert(services_name(version), old);
                }
                o.node_versions.insert("1.0.0".into());
            },
            &["delete-services windows-services-0.9.0, because no node needs it"],
        );
    }

    #[test]
    fn token_of_another_account_is_deleted() {
        check(|o| o.token.as_mut().unwrap().account = None, &["delete-token, because it differs"]);
    }

    #[test]
    fn binding_to_another_subject_is_deleted() {
        check(
            |o| {
                let kind = rbac::BindingKind::ClusterRoleBinding;
                o.bindings.insert(kind, bound(kind, "elsewhere"));
            },
            &["delete-binding ClusterRoleBinding, because it differs"],
        );
    }

    #[test]
    fn binding_to_a_role_of_another_kind_is_deleted() {
        check(
            |o| {
                let found = o.bindings.get_mut(&rbac::BindingKind::RoleBinding).unwrap();
                found.binding.role.0 = "ClusterRole".into();
            },
            &["delete-binding RoleBinding, because it differs"],
        );
    }

    #[test]
    fn only_the_binding_that_was_seen_is_deleted() {
        let mut observed = settled();
        let kind = rbac::BindingKind::RoleBinding;
        observed.bindings.insert(kind, bound(kind, "elsewhere"));
        let desired = Desired { version: "2.0.0", services: &data("[]"), platform: "None" };
        let Plan { steps } = reconcile(&desired, &observed, "ns");
        let action = Action::DeleteBinding { kind, found: revision() };
        assert_eq!(steps, [Step { action, because: Because::Differs }]);
    }

    #[test]
    fn cloud_node_manager_is_bound_on_azure_only() {
        for (platform, expected) in [
            ("Azure", &["create-binding CloudNodeManager, because it is missing"][..]),
            ("AWS", &[]),
            ("", &[]),
        ] {
            let desired = Desired { version: "2.0.0", services: &data("[]"), platform };
            let plan = reconcile(&desired, &settled(), "ns");
            let steps: Vec<String> = plan.steps.iter().map(ToString::to_string).collect();
            assert_eq!(steps, expected, "{platform:?}");
        }
    }
}
