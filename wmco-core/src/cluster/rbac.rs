//! The rights of WICD. Source: `spec/operator.md`, sections 4.2 and 10.2.

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

use crate::names::{self, objects::WICD};

/// Name of the ClusterRole and the bindings of WICD's certificates.
pub const WICD_NODES: &str = "system-wicd-nodes";

const RBAC_GROUP: &str = "rbac.authorization.k8s.io";
const CERTIFICATES_GROUP: &str = "certificates.k8s.io";
const EVENTS_GROUP: &str = "events.k8s.io";

/// The two bindings that the operator itself keeps.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
pub enum BindingKind {
    /// In the operator's namespace.
    RoleBinding,
    /// For the whole cluster.
    ClusterRoleBinding,
}

/// What of a binding is compared.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Binding {
    /// Name of the role.
    pub role: String,
    /// All subjects, as kind, namespace and name.
    pub subjects: Vec<(String, String, String)>,
}

impl BindingKind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::RoleBinding, Self::ClusterRoleBinding];
}

impl fmt::Display for BindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Binding {
    /// The binding that WICD needs when the operator lives in `namespace`.
    pub fn wanted(namespace: &str) -> Self {
        let subject = ("ServiceAccount".to_owned(), namespace.to_owned(), WICD.to_owned());
        Self { role: WICD.to_owned(), subjects: vec![subject] }
    }

    /// The compared part of an existing binding.
    pub fn found(role: &RoleRef, subjects: Option<&[Subject]>) -> Self {
        let subject =
            |s: &Subject| (s.kind.clone(), s.namespace.clone().unwrap_or_default(), s.name.clone());
        let subjects = subjects.unwrap_or_default().iter().map(subject).collect();
        Self { role: role.name.clone(), subjects }
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

/// The manifests that an installation in `namespace` brings along for WICD: the ServiceAccount that
/// it is before it has a certificate, the rights of both identities, and the bindings of
/// certificates. The operator itself makes those of the ServiceAccount.
///
/// ConfigMaps of the namespace alone may be read, since some hold credentials, as those of a proxy.
pub fn shipped(namespace: &str) -> Vec<Value> {
    let certificates = rule(
        CERTIFICATES_GROUP,
        &["certificatesigningrequests"],
        &["create", "get", "list", "watch"],
    );
    let node_writes = ["get", "list", "patch", "update", "watch"];
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
            rule("", &["nodes", "nodes/status"], &node_writes),
            certificates,
            rule(EVENTS_GROUP, &["events"], &["create", "patch"]),
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

/// WICD's certificates.
fn group() -> Subject {
    Subject {
        api_group: Some(RBAC_GROUP.into()),
        kind: "Group".into(),
        name: names::WICD_NODES_GROUP.into(),
        namespace: None,
    }
}

fn role_ref(kind: &str, name: &str) -> RoleRef {
    RoleRef { api_group: RBAC_GROUP.into(), kind: kind.into(), name: name.into() }
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
