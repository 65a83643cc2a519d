//! The node authorizer: a kubelet may access only objects that belong to its node.
//!
//! Source: Kubernetes documentation, "Using Node Authorization"; with node and pod reads limited
//! by selectors, as since 1.34.

use serde_json::{Value, json};

use super::{Attributes, Decision, rbac};
use crate::identity::User;
use crate::resources::StorageKey;
use crate::store::Store;

/// The group of all kubelets.
pub(crate) const NODES: &str = "system:nodes";
const PREFIX: &str = "system:node:";
const LEASES: &str = "kube-node-lease";

/// The node of a user; `None` for users that are no node.
pub(crate) fn identity(user: &User) -> Option<&str> {
    user.name.strip_prefix(PREFIX).filter(|name| !name.is_empty() && user.in_group(NODES))
}

/// Decides for nodes; has no opinion on others.
pub(crate) fn authorize(store: &Store, user: &User, of: &Attributes<'_>) -> Decision {
    let Some(node) = identity(user) else { return Decision::none() };
    match (of.group, of.resource) {
        ("", "secrets") => related_read(store, node, of, "secret"),
        ("", "configmaps") => related_read(store, node, of, "configMap"),
        ("", "serviceaccounts") => token(store, node, of),
        ("coordination.k8s.io", "leases") => lease(node, of),
        ("", "nodes") => own_node(node, of),
        ("", "pods") => pod(store, node, of),
        _ if rbac::allows(&rules(), of) => Decision::allow(),
        _ => Decision::none(),
    }
}

/// Rules for every node.
fn rules() -> [Value; 6] {
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    let read = &["get", "list", "watch"];
    [
        rule("authentication.k8s.io", &["tokenreviews"], &["create"]),
        rule(
            "authorization.k8s.io",
            &["subjectaccessreviews", "localsubjectaccessreviews"],
            &["create"],
        ),
        rule("", &["services"], read),
        rule("", &["events"], &["create", "patch", "update"]),
        rule(
            "certificates.k8s.io",
            &["certificatesigningrequests"],
            &["create", "get", "list", "watch"],
        ),
        rule("node.k8s.io", &["runtimeclasses"], read),
    ]
}

fn no(reason: &str) -> Decision {
    Decision::NoOpinion(reason.to_owned())
}

fn related_read(store: &Store, node: &str, of: &Attributes<'_>, what: &str) -> Decision {
    if !matches!(of.verb, "get" | "list" | "watch") {
        return no("can only read resources of this type");
    }
    if !of.subresource.is_empty() {
        return no("cannot read subresource");
    }
    if of.namespace.is_empty() {
        return no("can only read namespaced object of this type");
    }
    if of.name.is_empty() {
        return no("No Object name found");
    }
    related(node, pods_of(store, node, of.namespace).any(|pod| uses(pod, what, of.name)))
}

fn related(node: &str, is: bool) -> Decision {
    if is {
        return Decision::allow();
    }
    Decision::NoOpinion(format!("no relationship found between node '{node}' and this object"))
}

fn token(store: &Store, node: &str, of: &Attributes<'_>) -> Decision {
    if of.verb != "create" || of.name.is_empty() {
        return no("can only create tokens for individual service accounts");
    }
    if of.subresource != "token" {
        return no("can only create token subresource of serviceaccount");
    }
    let account = |pod: &Value| pod.pointer("/spec/serviceAccountName") == Some(&of.name.into());
    related(node, pods_of(store, node, of.namespace).any(account))
}

fn lease(node: &str, of: &Attributes<'_>) -> Decision {
    if !matches!(of.verb, "get" | "create" | "update" | "patch" | "delete") {
        return no("can only get, create, update, patch, or delete a node lease");
    }
    if of.namespace != LEASES {
        return no("can only access leases in the \"kube-node-lease\" system namespace");
    }
    if of.verb != "create" && of.name != node {
        return no("can only access node lease with the same name as the requesting node");
    }
    Decision::allow()
}

fn own_node(node: &str, of: &Attributes<'_>) -> Decision {
    // The admission checks which Node it writes.
    match (of.subresource, of.verb, of.name) {
        ("", "create" | "update" | "patch", _) | ("status", "update" | "patch", _) => {
            Decision::allow()
        }
        ("", "get" | "list" | "watch", name) if name == node => Decision::allow(),
        ("", "get" | "list" | "watch", "") => Decision::NoOpinion(format!(
            "node '{node}' cannot read all nodes, only its own Node object"
        )),
        ("", "get" | "list" | "watch", other) => Decision::NoOpinion(format!(
            "node '{node}' cannot read '{other}', only its own Node object"
        )),
        _ => Decision::none(),
    }
}

fn pod(store: &Store, node: &str, of: &Attributes<'_>) -> Decision {
    let single = || {
        let pod = store.get(&StorageKey::new("", "pods"), of.namespace, of.name);
        related(node, pod.is_some_and(|pod| runs_on(pod, node)))
    };
    match (of.subresource, of.verb) {
        ("", "get") if of.name.is_empty() => no("No Object name found"),
        ("", "get") => single(),
        ("", "list" | "watch") => {
            if of.fields.iter().any(|(field, value)| field == "spec.nodeName" && value == node) {
                Decision::allow()
            } else if of.name.is_empty() {
                no("can only list/watch pods with spec.nodeName field selector")
            } else {
                single()
            }
        }
        ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => {
            Decision::allow()
        }
        _ => Decision::none(),
    }
}

/// Whether a Pod is bound to the node.
pub(crate) fn runs_on(pod: &Value, node: &str) -> bool {
    pod.pointer("/spec/nodeName").and_then(Value::as_str) == Some(node)
}

fn pods_of<'a>(
    store: &'a Store,
    node: &'a str,
    namespace: &str,
) -> impl Iterator<Item = &'a Value> {
    // The real authorizer's graph does not contain a node that does not exist.
    let known = store.get(&StorageKey::new("", "nodes"), "", node).is_some();
    store
        .list(&StorageKey::new("", "pods"), namespace)
        .map(AsRef::as_ref)
        .filter(move |pod| known && runs_on(pod, node))
}

/// Whether a Pod refers to a Secret (`what` is `secret`) or a ConfigMap (`configMap`) of this name.
pub(crate) fn uses(pod: &Value, what: &str, name: &str) -> bool {
    pod.get("spec").is_some_and(|spec| refers(spec, what, Some(name)))
}

/// Whether there is a reference anywhere below `value`; to any object if `name` is `None`.
///
/// References are members like `secret`, `secretRef`, `secretKeyRef`, `imagePullSecrets` with a `name` or
/// `secretName`.
pub(crate) fn refers(value: &Value, what: &str, name: Option<&str>) -> bool {
    let is = |object: &Value| {
        ["name", "secretName"].iter().any(|member| {
            let found = object.get(member).and_then(Value::as_str);
            found.is_some_and(|found| name.is_none_or(|name| name == found))
        })
    };
    match value {
        Value::Object(members) => members.iter().any(|(member, below)| {
            let reference = member == what
                || *member == format!("{what}Ref")
                || *member == format!("{what}KeyRef")
                || (what == "secret" && member.ends_with("SecretRef"));
            let pull = what == "secret" && member == "imagePullSecrets";
            (reference && is(below))
                || (pull && below.as_array().is_some_and(|list| list.iter().any(is)))
                || refers(below, what, name)
        }),
        Value::Array(items) => items.iter().any(|item| refers(item, what, name)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node_user() -> User {
        User::authenticated("system:node:n", &[NODES.to_owned()])
    }

    fn store() -> Store {
        let mut store = Store::default();
        store.put(&StorageKey::new("", "nodes"), json!({"metadata": {"name": "n"}}));
        store.put(
            &StorageKey::new("", "pods"),
            json!({"metadata": {"name": "p", "namespace": "d"}, "spec": {"nodeName": "n",
                "volumes": [{"secret": {"secretName": "vol"}},
                    {"projected": {"sources": [{"configMap": {"name": "proj"}}]}}],
                "imagePullSecrets": [{"name": "pull"}],
                "containers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "env"}}}]}]}}),
        );
        store
    }

    #[track_caller]
    fn check(of: &Attributes<'_>, expected: &Decision) {
        assert_eq!(&authorize(&store(), &node_user(), of), expected);
    }

    fn get<'a>(resource: &'a str, name: &'a str) -> Attributes<'a> {
        Attributes { verb: "get", resource, namespace: "d", name, ..Attributes::default() }
    }

    #[test]
    fn secrets_of_its_pods() {
        for name in ["vol", "pull", "env"] {
            check(&get("secrets", name), &Decision::allow());
        }
        let unrelated = "no relationship found between node 'n' and this object";
        check(&get("secrets", "proj"), &no(unrelated));
        check(&get("secrets", ""), &no("No Object name found"));
    }

    #[test]
    fn configmaps_of_its_pods() {
        check(&get("configmaps", "proj"), &Decision::allow());
    }

    #[test]
    fn its_own_node_only() {
        let nodes = |name| Attributes { namespace: "", ..get("nodes", name) };
        check(&nodes("n"), &Decision::allow());
        check(&nodes("m"), &no("node 'n' cannot read 'm', only its own Node object"));
        let list = Attributes { verb: "list", ..nodes("") };
        check(&list, &no("node 'n' cannot read all nodes, only its own Node object"));
    }

    #[test]
    fn leases_by_name_and_namespace() {
        let lease = |namespace, name| Attributes {
            group: "coordination.k8s.io",
            namespace,
            ..get("leases", name)
        };
        check(&lease(LEASES, "n"), &Decision::allow());
        let own = "can only access node lease with the same name as the requesting node";
        check(&lease(LEASES, "m"), &no(own));
        let place = "can only access leases in the \"kube-node-lease\" system namespace";
        check(&lease("default", "n"), &no(place));
    }

    #[test]
    fn a_user_without_the_group_is_no_node() {
        assert_eq!(identity(&User::authenticated("system:node:n", &[])), None);
        assert_eq!(identity(&User::authenticated("someone", &[NODES.to_owned()])), None);
    }
}
