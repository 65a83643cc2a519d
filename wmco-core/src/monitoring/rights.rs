//! Rights of Prometheus in the operator's namespace.

use serde_json::{Value, json};

use crate::names::monitoring::{PROMETHEUS, PROMETHEUS_NAMESPACE};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Role and RoleBinding of the cluster's Prometheus. Source: `docs/contract/cluster.md`, CLU26.
pub(super) fn of_prometheus(namespace: &str) -> [Value; 2] {
    let metadata = json!({"name": PROMETHEUS, "namespace": namespace});
    let role = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Role", "metadata": metadata,
        "rules": [
            {
                "apiGroups": [""], "resources": ["services", "endpoints", "pods"],
                "verbs": ["list", "watch"],
            },
            {
                "apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"],
                "verbs": ["get", "list", "watch"],
            },
        ],
    });
    let binding = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": PROMETHEUS},
        "subjects": [{
            "kind": "ServiceAccount", "name": PROMETHEUS, "namespace": PROMETHEUS_NAMESPACE,
        }],
    });
    [role, binding]
}
