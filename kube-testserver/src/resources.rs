//! The resources that are served without a CustomResourceDefinition.

use std::sync::Arc;

use super::custom_resource::CustomResource;

/// All verbs of a stored resource, in the order of discovery documents.
pub(crate) const ALL_VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// All verbs of a custom resource, in the order of discovery documents.
pub(crate) const CUSTOM_VERBS: &[&str] =
    &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const UPDATES: &[&str] = &["get", "patch", "update"];
const CREATE: &[&str] = &["create"];

/// A resource of one API version.
#[derive(Debug)]
pub(crate) struct Resource {
    /// API group, empty for core.
    pub group: String,
    /// API version, for example `v1`.
    pub version: String,
    /// Lower-case plural, as in paths.
    pub plural: String,
    /// Lower-case singular.
    pub singular: String,
    /// For example `ConfigMap`.
    pub kind: String,
    /// For example `ConfigMapList`.
    pub list_kind: String,
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// Short names for kubectl.
    pub short_names: Vec<String>,
    /// Groups of resources, for example `all`.
    pub categories: Vec<String>,
    /// Verbs of the resource itself.
    pub verbs: &'static [&'static str],
    /// Sub-resources.
    pub subresources: Vec<SubResource>,
    /// The server's rules for its objects.
    pub rules: Rules,
    /// Set for resources of a CustomResourceDefinition.
    pub custom: Option<Arc<CustomResource>>,
}

/// A sub-resource of a resource.
#[derive(Clone, Debug)]
pub(crate) struct SubResource {
    /// For example `status`.
    pub name: &'static str,
    /// Kind of its body.
    pub kind: String,
    /// Group and version of its body if they differ from the resource's.
    pub foreign: Option<(&'static str, &'static str)>,
    /// Verbs.
    pub verbs: &'static [&'static str],
}

/// The server's rules for objects of a resource.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "independent properties of a strategy")]
pub(crate) struct Rules {
    /// Whether `metadata.generation` counts changes of the desired state.
    pub generation: bool,
    /// Whether DELETE answers with the object instead of a Status.
    pub returns_deleted: bool,
    /// Whether PUT creates a missing object.
    pub create_on_update: bool,
    /// Whether PUT without resourceVersion overwrites.
    pub unconditional_update: bool,
    /// Whether a create keeps the client's `status`.
    pub keeps_status_on_create: bool,
    /// Whether it is never stored: the answer is computed from the request (reviews).
    pub virtual_only: bool,
}

const PLAIN: Rules = Rules {
    generation: false,
    returns_deleted: false,
    create_on_update: false,
    unconditional_update: true,
    keeps_status_on_create: false,
    virtual_only: false,
};
const GENERATION: Rules = Rules { generation: true, ..PLAIN };
const CREATES: Rules = Rules { create_on_update: true, ..PLAIN };
const RETURNS: Rules = Rules { returns_deleted: true, ..PLAIN };
const REVIEW: Rules = Rules { virtual_only: true, ..PLAIN };

/// The rules of custom resources.
pub(crate) const CUSTOM: Rules = Rules { generation: true, unconditional_update: false, ..PLAIN };

impl Resource {
    /// `v1` or `apps/v1`.
    pub(crate) fn api_version(&self) -> String {
        join_api_version(&self.group, &self.version)
    }

    /// The storage place of the objects: group and plural. Both Event APIs share one place.
    pub(crate) fn storage(&self) -> StorageKey {
        let group = if self.group == "events.k8s.io" { "" } else { &self.group };
        StorageKey { group: group.to_owned(), plural: self.plural.clone() }
    }

    /// Whether it has this group and plural.
    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        self.group == group && self.plural == plural
    }

    /// The sub-resource of that name.
    pub(crate) fn subresource(&self, name: &str) -> Option<&SubResource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }

    /// Whether `status` is a sub-resource.
    pub(crate) fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }
}

/// A place in the store.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct StorageKey {
    /// API group, empty for core.
    pub group: String,
    /// Lower-case plural.
    pub plural: String,
}

impl StorageKey {
    /// The place of `plural` in `group`.
    pub(crate) fn new(group: &str, plural: &str) -> Self {
        Self { group: group.to_owned(), plural: plural.to_owned() }
    }
}

/// `group/version`, or just the version for core.
pub(crate) fn join_api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Splits `group/version`; the core group is empty.
pub(crate) fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// A row of the table: the group's version is always `v1`.
struct Row {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    namespaced: bool,
    short: &'static [&'static str],
    categories: &'static [&'static str],
    subresources: &'static [&'static str],
    /// Verbs in discovery, if they differ from those of all stored resources.
    verbs: Option<&'static [&'static str]>,
    rules: Rules,
}

const fn row(group: &'static str, kind: &'static str, plural: &'static str) -> Row {
    Row {
        group,
        kind,
        plural,
        namespaced: true,
        short: &[],
        categories: &[],
        subresources: &[],
        verbs: None,
        rules: PLAIN,
    }
}

impl Row {
    const fn cluster(self) -> Self {
        Self { namespaced: false, ..self }
    }
    const fn short(self, short: &'static [&'static str]) -> Self {
        Self { short, ..self }
    }
    const fn category(self, categories: &'static [&'static str]) -> Self {
        Self { categories, ..self }
    }
    const fn subs(self, subresources: &'static [&'static str]) -> Self {
        Self { subresources, ..self }
    }
    const fn verbs(self, verbs: &'static [&'static str]) -> Self {
        Self { verbs: Some(verbs), ..self }
    }
    const fn rules(self, rules: Rules) -> Self {
        Self { rules, ..self }
    }
}

const APPS: &str = "apps";
const RBAC: &str = "rbac.authorization.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";
const AUTHENTICATION: &str = "authentication.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";
const ALL: &[&str] = &["all"];

/// Sources: the registry strategies of Kubernetes (`pkg/registry`) and its discovery documents.
static ROWS: &[Row] = &[
    row("", "Binding", "bindings").rules(REVIEW),
    row("", "ConfigMap", "configmaps").short(&["cm"]),
    row("", "Event", "events").short(&["ev"]).rules(CREATES),
    row("", "Namespace", "namespaces")
        .cluster()
        .short(&["ns"])
        .subs(&["finalize", "status"])
        .verbs(&["create", "delete", "get", "list", "patch", "update", "watch"]),
    row("", "Node", "nodes")
        .cluster()
        .short(&["no"])
        .subs(&["status"])
        .rules(Rules { keeps_status_on_create: true, ..PLAIN }),
    row("", "Pod", "pods")
        .short(&["po"])
        .category(ALL)
        .subs(&["binding", "eviction", "status"])
        .rules(Rules { generation: true, ..RETURNS }),
    row("", "Secret", "secrets"),
    row("", "Service", "services").short(&["svc"]).category(ALL).subs(&["status"]).rules(RETURNS),
    row("", "ServiceAccount", "serviceaccounts").short(&["sa"]).subs(&["token"]).rules(RETURNS),
    row(APPS, "DaemonSet", "daemonsets")
        .short(&["ds"])
        .category(ALL)
        .subs(&["status"])
        .rules(GENERATION),
    row(APPS, "Deployment", "deployments")
        .short(&["deploy"])
        .category(ALL)
        .subs(&["scale", "status"])
        .rules(GENERATION),
    row(APPS, "ReplicaSet", "replicasets")
        .short(&["rs"])
        .category(ALL)
        .subs(&["scale", "status"])
        .rules(GENERATION),
    row(APPS, "StatefulSet", "statefulsets")
        .short(&["sts"])
        .category(ALL)
        .subs(&["scale", "status"])
        .rules(GENERATION),
    row("policy", "PodDisruptionBudget", "poddisruptionbudgets")
        .short(&["pdb"])
        .subs(&["status"])
        .rules(Rules { unconditional_update: false, ..GENERATION }),
    row("coordination.k8s.io", "Lease", "leases")
        .rules(Rules { unconditional_update: false, ..CREATES }),
    row("certificates.k8s.io", "CertificateSigningRequest", "certificatesigningrequests")
        .cluster()
        .short(&["csr"])
        .subs(&["approval", "status"]),
    row(RBAC, "ClusterRole", "clusterroles").cluster().rules(CREATES),
    row(RBAC, "ClusterRoleBinding", "clusterrolebindings").cluster().rules(CREATES),
    row(RBAC, "Role", "roles").rules(CREATES),
    row(RBAC, "RoleBinding", "rolebindings").rules(CREATES),
    row(AUTHORIZATION, "LocalSubjectAccessReview", "localsubjectaccessreviews").rules(REVIEW),
    row(AUTHORIZATION, "SelfSubjectAccessReview", "selfsubjectaccessreviews")
        .cluster()
        .rules(REVIEW),
    row(AUTHORIZATION, "SelfSubjectRulesReview", "selfsubjectrulesreviews").cluster().rules(REVIEW),
    row(AUTHORIZATION, "SubjectAccessReview", "subjectaccessreviews").cluster().rules(REVIEW),
    row(AUTHENTICATION, "SelfSubjectReview", "selfsubjectreviews").cluster().rules(REVIEW),
    row(AUTHENTICATION, "TokenReview", "tokenreviews").cluster().rules(REVIEW),
    row("events.k8s.io", "Event", "events").short(&["ev"]).rules(CREATES),
    row("discovery.k8s.io", "EndpointSlice", "endpointslices").rules(GENERATION),
    row("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions")
        .cluster()
        .short(&["crd", "crds"])
        .category(&["api-extensions"])
        .subs(&["status"])
        .rules(Rules { unconditional_update: false, ..GENERATION }),
    row(ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies")
        .cluster()
        .category(&["api-extensions"])
        .subs(&["status"])
        .rules(Rules { unconditional_update: false, ..GENERATION }),
    row(ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings")
        .cluster()
        .category(&["api-extensions"])
        .rules(Rules { unconditional_update: false, ..GENERATION }),
];

/// Every built-in resource, in discovery order.
pub(crate) fn builtin() -> Vec<Arc<Resource>> {
    let is_served = |row: &&Row| cfg!(feature = "admission-policy") || row.group != ADMISSION;
    ROWS.iter().filter(is_served).map(|row| Arc::new(resource(row))).collect()
}

fn resource(row: &Row) -> Resource {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    Resource {
        group: row.group.to_owned(),
        version: "v1".to_owned(),
        plural: row.plural.to_owned(),
        singular: row.kind.to_lowercase(),
        kind: row.kind.to_owned(),
        list_kind: format!("{}List", row.kind),
        namespaced: row.namespaced,
        short_names: owned(row.short),
        categories: owned(row.categories),
        verbs: row.verbs.unwrap_or(if row.rules.virtual_only { CREATE } else { ALL_VERBS }),
        subresources: row.subresources.iter().map(|name| subresource(name, row.kind)).collect(),
        rules: row.rules,
        custom: None,
    }
}

fn subresource(name: &'static str, kind: &str) -> SubResource {
    let (kind, foreign, verbs) = match name {
        "binding" => ("Binding", None, CREATE),
        "eviction" => ("Eviction", Some(("policy", "v1")), CREATE),
        "token" => ("TokenRequest", Some((AUTHENTICATION, "v1")), CREATE),
        "scale" => ("Scale", Some(("autoscaling", "v1")), UPDATES),
        "finalize" => (kind, None, &["update"][..]),
        _ => (kind, None, UPDATES),
    };
    SubResource { name, kind: kind.to_owned(), foreign, verbs }
}

/// The `status` sub-resource of a custom resource.
pub(crate) fn status_of(kind: &str) -> SubResource {
    subresource("status", kind)
}
