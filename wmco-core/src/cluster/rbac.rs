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

use crate::names::{self, objects::WICD};

/// Name of ClusterRole and ClusterRoleBinding of WICD's certificates.
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

/// What an installation brings along for WICD.
#[derive(Clone, Debug)]
pub struct Shipped {
    /// WICD's identity before it has a certificate.
    pub account: ServiceAccount,
    /// Its rights in the operator's namespace.
    pub role: Role,
    /// Its rights in the cluster, and those of its certificates.
    pub cluster_roles: [ClusterRole; 2],
    /// Gives certificates their rights.
    pub certificates_binding: ClusterRoleBinding,
}

/// The objects that an installation in `namespace` brings along for WICD.
pub fn shipped(namespace: &str) -> Shipped {
    let certificates = rule(
        CERTIFICATES_GROUP,
        &["certificatesigningrequests"],
        &["create", "get", "list", "watch"],
    );
    let node_writes = ["get", "list", "patch", "update", "watch"];
    Shipped {
        account: ServiceAccount {
            metadata: meta(WICD, Some(namespace)),
            ..ServiceAccount::default()
        },
        role: Role {
            metadata: meta(WICD, Some(namespace)),
            rules: Some(vec![rule("", &["configmaps"], &["get", "list", "watch"])]),
        },
        cluster_roles: [
            ClusterRole {
                metadata: labelled(meta(WICD, None)),
                rules: Some(vec![
                    rule("", &["configmaps"], &["get", "list"]),
                    rule("", &["nodes"], &["get", "list", "patch", "update"]),
                    certificates.clone(),
                ]),
                ..ClusterRole::default()
            },
            ClusterRole {
                metadata: labelled(meta(WICD_NODES, None)),
                rules: Some(vec![
                    rule("", &["configmaps"], &["get", "list", "watch"]),
                    rule("", &["nodes", "nodes/status"], &node_writes),
                    certificates,
                    rule(EVENTS_GROUP, &["events"], &["create", "patch"]),
                ]),
                ..ClusterRole::default()
            },
        ],
        certificates_binding: ClusterRoleBinding {
            metadata: labelled(meta(WICD_NODES, None)),
            role_ref: role_ref("ClusterRole", WICD_NODES),
            subjects: Some(vec![Subject {
                api_group: Some(RBAC_GROUP.into()),
                kind: "Group".into(),
                name: names::WICD_NODES_GROUP.into(),
                namespace: None,
            }]),
        },
    }
}

fn account(namespace: &str) -> Subject {
    Subject {
        api_group: None,
        kind: "ServiceAccount".into(),
        name: WICD.into(),
        namespace: Some(namespace.into()),
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
