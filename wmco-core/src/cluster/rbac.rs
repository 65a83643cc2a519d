//! The rights of WICD. Source: `docs/contract/cluster.md`, CLU13 and CLU34.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::names::{self, objects::WICD, platforms};

/// Name of the ClusterRole and the bindings of WICD's certificates.
pub const WICD_NODES: &str = "system-wicd-nodes";

/// Name of the ClusterRole and the ClusterRoleBinding for Azure's cloud node manager, which uses WICD's kubeconfig.
pub const CLOUD_NODE_MANAGER: &str = "windows-cloud-node-manager";

pub(super) const RBAC_GROUP: &str = "rbac.authorization.k8s.io";
const CERTIFICATES_GROUP: &str = "certificates.k8s.io";
const EVENTS_GROUP: &str = "events.k8s.io";

/// The bindings that the operator itself manages.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
pub enum BindingKind {
    /// WICD's binding in the operator's namespace.
    RoleBinding,
    /// WICD's binding for the whole cluster.
    ClusterRoleBinding,
    /// The cloud node manager's binding, on Azure.
    CloudNodeManager,
}

/// The compared part of a binding.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Binding {
    /// The role, as kind and name.
    pub role: (String, String),
    /// All subjects, as kind, namespace and name.
    pub subjects: Vec<(String, String, String)>,
}

impl BindingKind {
    /// The bindings that a cluster on this platform needs.
    pub fn on(platform: &str) -> &'static [Self] {
        match platform {
            platforms::AZURE => {
                &[Self::RoleBinding, Self::ClusterRoleBinding, Self::CloudNodeManager]
            }
            _ => &[Self::RoleBinding, Self::ClusterRoleBinding],
        }
    }

    /// Name of the binding.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RoleBinding | Self::ClusterRoleBinding => WICD,
            Self::CloudNodeManager => CLOUD_NODE_MANAGER,
        }
    }

    /// The binding as it should be, for an operator in `namespace`.
    pub fn wanted(self, namespace: &str) -> Binding {
        match self {
            Self::RoleBinding => {
                let wanted = role_binding(namespace);
                Binding::found(&wanted.role_ref, wanted.subjects.as_deref())
            }
            Self::ClusterRoleBinding => {
                let wanted = cluster_role_binding(namespace);
                Binding::found(&wanted.role_ref, wanted.subjects.as_deref())
            }
            Self::CloudNodeManager => {
                let wanted = cloud_node_manager_binding(namespace);
                Binding::found(&wanted.role_ref, wanted.subjects.as_deref())
            }
        }
    }
}

impl fmt::Display for BindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Binding {
    /// The compared part of an existing binding.
    pub fn found(role: &RoleRef, subjects: Option<&[Subject]>) -> Self {
        let subject =
            |s: &Subject| (s.kind.clone(), s.namespace.clone().unwrap_or_default(), s.name.clone());
        let subjects = subjects.unwrap_or_default().iter().map(subject).collect();
        Self { role: (role.kind.clone(), role.name.clone()), subjects }
    }
}

/// WICD's RoleBinding in `namespace`.
pub fn role_binding(namespace: &str) -> RoleBinding {
    RoleBinding {
        metadata: meta(WICD, Some(namespace)),
        role_ref: role_ref("Role", WICD),
        subjects: Some(vec![account(namespace)]),
    }
}

/// WICD's ClusterRoleBinding for the ServiceAccount in `namespace`.
pub fn cluster_role_binding(namespace: &str) -> ClusterRoleBinding {
    ClusterRoleBinding {
        metadata: meta(WICD, None),
        role_ref: role_ref("ClusterRole", WICD),
        subjects: Some(vec![account(namespace)]),
    }
}

/// Binding for Azure's cloud node manager on the nodes. It uses WICD's kubeconfig, which holds the ServiceAccount's
/// token, or a certificate if the Go operator wrote it. Source: `docs/contract/wicd.md`, WICD91.
pub fn cloud_node_manager_binding(namespace: &str) -> ClusterRoleBinding {
    ClusterRoleBinding {
        metadata: meta(CLOUD_NODE_MANAGER, None),
        role_ref: role_ref("ClusterRole", CLOUD_NODE_MANAGER),
        subjects: Some(vec![account(namespace), group()]),
    }
}

/// Manifests for WICD that an installation in `namespace` needs: the ServiceAccount that WICD uses before it has a
/// certificate, the rights of both identities, and the bindings for certificates. The operator itself creates the
/// other bindings ([`BindingKind`]).
///
/// WICD may read ConfigMaps of this namespace only, because some ConfigMaps hold credentials, such as those of a
/// proxy.
pub fn shipped(namespace: &str) -> Vec<Value> {
    let certificates = rule(
        CERTIFICATES_GROUP,
        &["certificatesigningrequests"],
        &["create", "get", "list", "watch"],
    );
    let account =
        ServiceAccount { metadata: meta(WICD, Some(namespace)), ..ServiceAccount::default() };
    let role = Role {
        metadata: meta(WICD, Some(namespace)),
        rules: Some(vec![rule("", &["configmaps"], &["get", "list", "watch"])]),
    };
    let of_account = ClusterRole {
        metadata: labelled(meta(WICD, None)),
        rules: Some(vec![
            rule("", &["nodes"], &["get", "list", "patch", "update"]),
            certificates.clone(),
        ]),
        ..ClusterRole::default()
    };
    let of_certificates = ClusterRole {
        metadata: labelled(meta(WICD_NODES, None)),
        rules: Some(vec![
            rule("", &["nodes"], &["get", "list", "patch", "update", "watch"]),
            certificates,
            rule(EVENTS_GROUP, &["events"], &["create", "patch"]),
        ]),
        ..ClusterRole::default()
    };
    // A writer of a node's status decides which addresses its certificate may have, so these rights are granted
    // only where they are needed.
    let of_cloud_node_manager = ClusterRole {
        metadata: labelled(meta(CLOUD_NODE_MANAGER, None)),
        rules: Some(vec![
            rule("", &["nodes"], &["get", "list", "patch", "update", "watch"]),
            rule("", &["nodes/status"], &["patch"]),
        ]),
        ..ClusterRole::default()
    };
    let binding = RoleBinding {
        metadata: labelled(meta(WICD_NODES, Some(namespace))),
        role_ref: role_ref("Role", WICD),
        subjects: Some(vec![group()]),
    };
    let cluster_binding = ClusterRoleBinding {
        metadata: labelled(meta(WICD_NODES, None)),
        role_ref: role_ref("ClusterRole", WICD_NODES),
        subjects: Some(vec![group()]),
    };
    vec![
        json!(account),
        json!(role),
        json!(of_account),
        json!(of_certificates),
        json!(of_cloud_node_manager),
        json!(binding),
        json!(cluster_binding),
    ]
}

fn account(namespace: &str) -> Subject {
    Subject {
        api_group: None,
        kind: "ServiceAccount".into(),
        name: WICD.into(),
        namespace: Some(namespace.into()),
    }
}

/// The group of WICD's certificates.
fn group() -> Subject {
    Subject {
        api_group: Some(RBAC_GROUP.into()),
        kind: "Group".into(),
        name: names::WICD_NODES_GROUP.into(),
        namespace: None,
    }
}

#[expect(clippy::useless_conversion, reason = "from Kubernetes 1.36 on the group may be absent")]
fn role_ref(kind: &str, name: &str) -> RoleRef {
    RoleRef { api_group: RBAC_GROUP.to_owned().into(), kind: kind.into(), name: name.into() }
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let list = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(list(resources)),
        verbs: list(verbs),
        ..PolicyRule::default()
    }
}

fn meta(name: &str, namespace: Option<&str>) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: namespace.map(str::to_owned),
        ..ObjectMeta::default()
    }
}

fn labelled(meta: ObjectMeta) -> ObjectMeta {
    let labels = [
        ("app.kubernetes.io/name", names::objects::OPERATOR),
        ("app.kubernetes.io/part-of", "wicd"),
    ];
    let labels: BTreeMap<_, _> = labels.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    ObjectMeta { labels: Some(labels), ..meta }
}
