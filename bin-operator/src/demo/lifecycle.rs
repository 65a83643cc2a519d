//! What the Operator Lifecycle Manager brings: our OperatorCondition.

use std::time::Duration;

use kube_testserver::TestServer;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use wmco_core::names::monitoring::{OPERATOR_CONDITION, OPERATOR_CONDITIONS, UPGRADEABLE};
use wmco_core::names::objects::{DEFAULT_NAMESPACE, OPERATOR};

/// Name of the OperatorCondition, as of a ClusterServiceVersion.
pub(super) const CONDITION: &str = "windows-machine-config-operator.v0.1.0";

const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// How long the condition may take to say that all is at rest.
const PATIENCE: Duration = Duration::from_secs(30);

/// The OperatorCondition as it is made, and the rights on it, which the Operator Lifecycle Manager gives the
/// ServiceAccount of the operator's Deployment: they are not in our manifests.
pub(super) fn objects() -> [Value; 3] {
    let (group, version, kind) = OPERATOR_CONDITION;
    let metadata = json!({"name": CONDITION, "namespace": DEFAULT_NAMESPACE});
    [
        json!({
            "apiVersion": format!("{group}/{version}"), "kind": kind,
            "metadata": metadata,
            "spec": {},
        }),
        json!({
            "apiVersion": format!("{RBAC_GROUP}/v1"), "kind": "Role", "metadata": metadata,
            "rules": [{
                "apiGroups": [group], "resources": [OPERATOR_CONDITIONS],
                "resourceNames": [CONDITION], "verbs": ["get", "update", "patch"],
            }],
        }),
        json!({
            "apiVersion": format!("{RBAC_GROUP}/v1"), "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": RBAC_GROUP, "kind": "Role", "name": CONDITION},
            "subjects": [{
                "kind": "ServiceAccount", "name": OPERATOR, "namespace": DEFAULT_NAMESPACE,
            }],
        }),
    ]
}

/// The condition `Upgradeable` as it is.
pub(super) fn condition(cluster: &TestServer) -> Option<Value> {
    let (group, _, _) = OPERATOR_CONDITION;
    let object = cluster.object(group, OPERATOR_CONDITIONS, DEFAULT_NAMESPACE, CONDITION)?;
    let conditions = object.pointer("/spec/conditions")?.as_array()?;
    conditions.iter().find(|condition| condition["type"] == UPGRADEABLE).cloned()
}

/// Waits until it says that the operator may be replaced, or for long enough.
pub(super) async fn until_upgradeable(cluster: &TestServer) {
    let end = Instant::now() + PATIENCE;
    let status = || Some(condition(cluster)?.get("status")?.as_str()?.to_owned());
    let is_true = || status().is_some_and(|status| status == "True");
    while !is_true() && Instant::now() < end {
        sleep(Duration::from_millis(100)).await;
    }
}
