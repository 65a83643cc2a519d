//! Reconciles the operator's own objects in the cluster.
//!
//! [`reconcile`] compares the desired objects ([`Desired`]) with the existing ones ([`Observed`]) and returns the
//! steps to take. Immutable objects are replaced: the services ConfigMap in one step, because daemons need it all
//! the time; others by a delete now and a create in the pass that the delete event starts. The Secrets with user
//! data have their own [`reconcile`](user_data::reconcile), because they need no other input of these.
//!
//! # Guarantees
//! - The services ConfigMap of a version that a node has or is to get is kept, because the daemon there needs it.
//!   Source: `docs/contract/lifecycle.md`, LIFE22.
//!
//! # Not here
//! The content of the services ConfigMap (`wmco-services`), and Nodes ([`node`](crate::node)).

pub mod monitoring;
mod own_object;
pub mod rbac;
pub mod user_data;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub use own_object::OwnObject;

use schemars::JsonSchema;
use serde::Serialize;

use crate::names::objects;
use crate::protocol::ServicesData;
use crate::secret::Secret;

/// The objects that the operator owns, as they should be.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Desired<'a> {
    /// Operator version.
    pub version: &'a str,
    /// Data of this version's services ConfigMap.
    pub services: &'a ServicesData,
    /// The cluster's platform, as [`platforms`](crate::names::platforms) spells it.
    pub platform: &'a str,
    /// Whether nodes use a proxy, and so need the cluster's trusted CAs.
    pub proxy: bool,
}

/// The existing objects.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Observed {
    /// ConfigMaps of the operator's namespace whose name starts like a services ConfigMap's.
    pub services: BTreeMap<String, ServicesConfigMap>,
    /// Every version that a node has or is to get.
    pub node_versions: BTreeSet<String>,
    /// The Secret with WICD's name.
    pub token: Option<FoundTokenSecret>,
    /// The existing bindings that the operator manages.
    pub bindings: BTreeMap<rbac::BindingKind, FoundBinding>,
    /// The ConfigMap of trusted CAs.
    pub trusted_ca: Option<TrustedCa>,
}

/// The relevant part of the ConfigMap of trusted CAs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TrustedCa {
    /// Whether its label asks the cluster to inject the CAs.
    pub asks: bool,
}

/// An existing binding.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FoundBinding {
    /// The compared part of the binding.
    pub binding: rbac::Binding,
    /// The observed revision.
    pub revision: Revision,
}

/// An existing services ConfigMap.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ServicesConfigMap {
    /// Its data.
    pub data: ServicesData,
    /// Whether it is immutable, as required.
    pub immutable: bool,
    /// The observed revision.
    pub revision: Revision,
}

/// Identifies one state of an object.
#[derive(Clone, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Revision {
    /// Changes if the object is deleted and created again.
    pub uid: Option<String>,
    /// Changes with every write.
    pub resource_version: Option<String>,
}

/// The relevant part of WICD's token Secret.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FoundTokenSecret {
    /// Type of the Secret.
    pub type_: String,
    /// The ServiceAccount that its annotation names.
    pub account: Option<String>,
}

/// The steps to take now.
#[derive(Clone, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
#[must_use = "a plan does nothing until an executor runs it"]
pub struct Plan {
    /// The steps in order; they do not depend on each other.
    pub steps: Vec<Step>,
}

/// An action with its reason.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Step {
    /// The action.
    pub action: Action,
    /// Why the action is due.
    pub because: Because,
}

/// A side effect. Idempotent: an object that already exists or is already deleted counts as success.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// Creates this version's services ConfigMap.
    CreateServices {
        /// Its name.
        name: String,
        /// Its data.
        #[serde(skip)]
        data: ServicesData,
    },
    /// Deletes this version's services ConfigMap if it still has the observed revision, and creates the right one
    /// at once. If it has another revision, nothing is done, and the next pass decides again. If it is already
    /// deleted, or the operator stops in between, the next pass creates the missing ConfigMap.
    ReplaceServices {
        /// Its name.
        name: String,
        /// The observed revision.
        found: Revision,
        /// The new data.
        #[serde(skip)]
        data: ServicesData,
    },
    /// Deletes a services ConfigMap.
    DeleteServices {
        /// Its name.
        name: String,
    },
    /// Creates WICD's token Secret; the cluster fills it.
    CreateToken,
    /// Deletes WICD's token Secret.
    DeleteToken,
    /// Creates the ConfigMap of trusted CAs; the cluster fills it.
    CreateTrustedCa,
    /// Restores the label of the ConfigMap of trusted CAs; other labels and its data stay.
    LabelTrustedCa,
    /// Creates a binding.
    CreateBinding(rbac::BindingKind),
    /// Deletes a binding if it still has the observed revision. A newer revision starts the next pass.
    DeleteBinding {
        /// The binding.
        kind: rbac::BindingKind,
        /// The observed revision.
        found: Revision,
    },
    /// Creates the ServiceMonitor of the exporters on nodes.
    CreateServiceMonitor,
    /// Changes the differing fields of the ServiceMonitor, if it still has the observed revision.
    ChangeServiceMonitor {
        /// The observed revision.
        found: Revision,
    },
    /// Creates the Secret with user data.
    CreateUserData {
        /// Its namespace.
        namespace: String,
        /// The user data.
        #[serde(skip)]
        text: Secret,
    },
    /// Changes the text in the Secret with user data, if it still has the observed revision. A newer revision
    /// starts the next pass.
    ChangeUserData {
        /// Its namespace.
        namespace: String,
        /// The observed revision.
        found: Revision,
        /// The new text.
        #[serde(skip)]
        text: Secret,
    },
    /// Deletes the Secret with user data, which is immutable or of another type, if it still has the observed
    /// revision, and creates the right one at once. Otherwise like [`Self::ReplaceServices`].
    ReplaceUserData {
        /// Its namespace.
        namespace: String,
        /// The observed revision.
        found: Revision,
        /// The new data, complete.
        #[serde(skip)]
        data: BTreeMap<String, Secret>,
    },
}

/// Why a step is due.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Because {
    /// The object does not exist.
    Missing,
    /// The object differs from the desired one.
    Differs,
    /// The object's data differs.
    #[serde(rename_all = "camelCase")]
    DiffersIn {
        /// The differing keys. Values are left out, because they may be secret.
        keys: Vec<String>,
    },
    /// The data is right, but the object is not immutable.
    Mutable,
    /// New machines with this user data would accept other keys.
    OtherKeys,
    /// The object has another type.
    Type,
    /// No node needs the object any more.
    Outdated,
}

/// Returns the steps to take now.
pub fn reconcile(desired: &Desired<'_>, observed: &Observed, namespace: &str) -> Plan {
    let mut plan = Plan::default();
    services(desired, observed, &mut plan);
    match &observed.token {
        None => plan.push(Action::CreateToken, Because::Missing),
        Some(token) if !token.is_ours() => plan.push(Action::DeleteToken, Because::Differs),
        Some(_) => {}
    }
    // Without a proxy it stays as it is: other components may use it.
    match observed.trusted_ca {
        _ if !desired.proxy => {}
        None => plan.push(Action::CreateTrustedCa, Because::Missing),
        Some(TrustedCa { asks: false }) => plan.push(Action::LabelTrustedCa, Because::Differs),
        Some(TrustedCa { asks: true }) => {}
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
    let name = objects::services_name(desired.version);
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
    /// The difference from the desired ConfigMap, if there is one.
    fn unlike(&self, desired: &ServicesData) -> Option<Because> {
        let keys = self.data.differing_keys(desired);
        match (keys.is_empty(), self.immutable) {
            (false, _) => Some(Because::DiffersIn { keys }),
            (true, false) => Some(Because::Mutable),
            (true, true) => None,
        }
    }
}

impl FoundTokenSecret {
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
            Self::CreateTrustedCa => "create-trusted-ca",
            Self::LabelTrustedCa => "label-trusted-ca",
            Self::CreateBinding(_) => "create-binding",
            Self::DeleteBinding { .. } => "delete-binding",
            Self::CreateServiceMonitor => "create-service-monitor",
            Self::ChangeServiceMonitor { .. } => "change-service-monitor",
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
            Action::CreateToken
            | Action::DeleteToken
            | Action::CreateTrustedCa
            | Action::LabelTrustedCa
            | Action::CreateServiceMonitor
            | Action::ChangeServiceMonitor { .. } => {}
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
            services: [(objects::services_name("2.0.0"), ours)].into(),
            node_versions: BTreeSet::new(),
            token: Some(FoundTokenSecret {
                type_: objects::SERVICE_ACCOUNT_TOKEN_TYPE.into(),
                account: Some(objects::WICD.into()),
            }),
            bindings: rbac::BindingKind::on("None").iter().map(|k| (*k, bound(*k, "ns"))).collect(),
            trusted_ca: Some(TrustedCa { asks: true }),
        }
    }

    #[track_caller]
    fn check(given: fn(&mut Observed), expected: &[&str]) {
        let mut observed = settled();
        given(&mut observed);
        let desired =
            Desired { version: "2.0.0", services: &data("[]"), platform: "None", proxy: true };
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
                "create-trusted-ca, because it is missing",
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
        let desired =
            Desired { version: "2.0.0", services: &desired, platform: "None", proxy: true };
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
        let name = objects::services_name("2.0.0");
        observed.services.insert(name.clone(), seen(data("[1]")));
        let services = data("[]");
        let desired =
            Desired { version: "2.0.0", services: &services, platform: "None", proxy: true };
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
                    o.services.insert(objects::services_name(version), old);
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
    fn trusted_cas_are_asked_for_with_a_proxy_only() {
        check(
            |o| o.trusted_ca = Some(TrustedCa { asks: false }),
            &["label-trusted-ca, because it differs"],
        );
        for trusted_ca in [None, Some(TrustedCa { asks: false })] {
            let services = data("[]");
            let desired =
                Desired { version: "2.0.0", services: &services, platform: "None", proxy: false };
            let observed = Observed { trusted_ca, ..settled() };
            assert_eq!(reconcile(&desired, &observed, "ns"), Plan::default());
        }
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
        let desired =
            Desired { version: "2.0.0", services: &data("[]"), platform: "None", proxy: true };
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
            let desired =
                Desired { version: "2.0.0", services: &data("[]"), platform, proxy: true };
            let plan = reconcile(&desired, &settled(), "ns");
            let steps: Vec<String> = plan.steps.iter().map(ToString::to_string).collect();
            assert_eq!(steps, expected, "{platform:?}");
        }
    }
}
