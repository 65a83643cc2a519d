//! Objects of the Go operator in a cluster, apart from what belongs to one Node.
//!
//! Source: `docs/contract/cluster.md`, CLU12 to CLU34; `docs/contract/user-data.md`.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bin_operator::demo::Stage;
use serde_json::{Value, json};
use wmco_core::names::monitoring::{EXPORTER, SERVICE_MONITOR};
use wmco_core::names::objects;

use super::user_data::user_data;
use super::{POD, services};
use crate::live::machines::scenery::Key;

const RBAC: &str = "rbac.authorization.k8s.io/v1";
const NAMESPACE: &str = objects::DEFAULT_NAMESPACE;
/// Its daemon's ClusterRole and ClusterRoleBinding for certificates.
const WICD_NODES: &str = "system-wicd-nodes";

/// Puts those into the cluster that its nodes fill or that others do.
pub(super) fn install_inputs(stage: &Stage) {
    apply(stage, inputs());
}

/// Puts all others into the cluster, over those that are there.
pub(super) fn install(stage: &Stage, version: &str) {
    let mut all = rights();
    all.extend(pod_and_lock());
    all.push(services::config_map(NAMESPACE, version, &stage.cluster.url()));
    all.push(service_monitor());
    all.push(user_data_secret(stage));
    apply(stage, all);
}

fn apply(stage: &Stage, objects: Vec<Value>) {
    for object in objects {
        stage.cluster.put(&object).unwrap_or_else(|error| panic!("{object:#}: {error:?}"));
    }
}

/// The Secret as it makes it.
pub(in crate::live::moving) fn user_data_secret(stage: &Stage) -> Value {
    let key = Key::first(stage).public;
    let text = user_data(&without_comment(&key.to_openssh().unwrap()));
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "name": objects::USER_DATA_SECRET, "namespace": objects::MACHINE_API_NAMESPACE,
        },
        "data": {objects::USER_DATA_KEY: BASE64_STANDARD.encode(text)},
    })
}

/// Type and key of a line of `authorized_keys`.
pub(in crate::live::moving) fn without_comment(line: &str) -> String {
    line.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

fn role(kind: &str, name: &str, rules: &[Value]) -> Value {
    let mut role = json!({
        "apiVersion": RBAC, "kind": kind, "metadata": {"name": name}, "rules": rules,
    });
    if kind == "Role" {
        role["metadata"]["namespace"] = NAMESPACE.into();
    }
    role
}

fn binding(kind: &str, name: &str, role: &str, subject: &Value) -> Value {
    let role_kind = kind.strip_suffix("Binding").unwrap();
    let mut binding = json!({
        "apiVersion": RBAC, "kind": kind, "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role},
        "subjects": [subject],
    });
    if kind == "RoleBinding" {
        binding["metadata"]["namespace"] = NAMESPACE.into();
    }
    binding
}

/// Its own rights as far as they are wider than ours, and those of its daemon.
fn rights() -> Vec<Value> {
    let account =
        |name: &str| json!({"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE});
    let service_account = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": NAMESPACE},
        })
    };
    let group = json!({
        "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:wicd-nodes",
    });
    let all = ["create", "delete", "get", "list", "patch", "update", "watch"];
    let (operator, wicd) = (objects::OPERATOR, objects::WICD);
    let requests = rule(
        "certificates.k8s.io",
        &["certificatesigningrequests"],
        &["create", "get", "list", "watch"],
    );
    let maps = rule("", &["configmaps"], &["get", "list"]);
    vec![
        service_account(operator),
        role(
            "ClusterRole",
            operator,
            &[
                rule("", &["configmaps"], &all),
                rule("", &["secrets"], &["create", "get", "list", "update", "watch"]),
                rule("", &["nodes"], &["delete", "get", "list", "patch", "update", "watch"]),
                requests.clone(),
            ],
        ),
        binding("ClusterRoleBinding", operator, operator, &account(operator)),
        role(
            "Role",
            super::LEADER_ROLE,
            &[rule("", &["configmaps"], &all), rule("coordination.k8s.io", &["leases"], &all)],
        ),
        binding("RoleBinding", super::LEADER_ROLE, super::LEADER_ROLE, &account(operator)),
        service_account(wicd),
        role("Role", wicd, &[rule("", &["configmaps"], &["list", "watch", "get"])]),
        binding("RoleBinding", wicd, wicd, &account(wicd)),
        role(
            "ClusterRole",
            wicd,
            &[
                maps.clone(),
                rule("", &["nodes"], &["get", "list", "patch", "update"]),
                requests.clone(),
            ],
        ),
        binding("ClusterRoleBinding", wicd, wicd, &account(wicd)),
        role(
            "ClusterRole",
            WICD_NODES,
            &[
                maps,
                rule("", &["nodes"], &["list"]),
                rule("", &["nodes", "nodes/status"], &["get", "patch", "update", "watch"]),
                requests,
            ],
        ),
        binding("ClusterRoleBinding", WICD_NODES, WICD_NODES, &group),
    ]
}

/// What other parts of the cluster fill for it, and the token of its daemon.
fn inputs() -> Vec<Value> {
    vec![
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {
                "name": EXPORTER, "namespace": NAMESPACE, "labels": {"name": EXPORTER},
                "annotations": {
                    "service.alpha.openshift.io/serving-cert-secret-name": objects::TLS_SECRET,
                },
            },
            "spec": {"ports": [{"name": "metrics", "port": 9182, "protocol": "TCP", "targetPort": 9182}]},
        }),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": objects::TRUSTED_CA_CONFIG_MAP, "namespace": NAMESPACE,
                "labels": {objects::INJECT_TRUSTED_CA_LABEL: "true"},
            },
            "data": {objects::CA_BUNDLE_KEY: "# injected\n"},
        }),
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
            "metadata": {
                "name": objects::WICD, "namespace": NAMESPACE,
                "annotations": {"kubernetes.io/service-account.name": objects::WICD},
            },
        }),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": objects::HOST_KEYS_CONFIG_MAP, "namespace": NAMESPACE,
                "labels": {"app.kubernetes.io/managed-by": objects::OPERATOR},
            },
            "data": {},
        }),
    ]
}

/// Its Pod, and the lock that goes with it.
fn pod_and_lock() -> [Value; 2] {
    let uid = "0f3c1a52-77aa-4a3c-9d6c-3f3fb3d0c001";
    [
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": POD, "namespace": NAMESPACE, "uid": uid},
            "spec": {"containers": [{"name": "manager", "image": "quay.io/example/operator:1"}]},
        }),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": objects::LEADER_LEASE, "namespace": NAMESPACE,
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": POD, "uid": uid}],
            },
        }),
    ]
}

fn service_monitor() -> Value {
    let (group, version, kind) = SERVICE_MONITOR;
    json!({
        "apiVersion": format!("{group}/{version}"), "kind": kind,
        "metadata": {"name": EXPORTER, "namespace": NAMESPACE, "labels": {"name": EXPORTER}},
        "spec": {
            "attachMetadata": {"node": true},
            "endpoints": [{
                "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
                "honorLabels": true, "interval": "30s", "path": "/metrics",
                "port": "https-metrics", "scheme": "https",
                "relabelings": [
                    {
                        "action": "replace", "regex": "(.*)", "replacement": "$1",
                        "sourceLabels": ["__meta_kubernetes_endpointslice_endpoint_target_name"],
                        "targetLabel": "instance",
                    },
                    {
                        "action": "keep", "regex": "windows",
                        "sourceLabels": ["__meta_kubernetes_node_label_kubernetes_io_os"],
                    },
                    {
                        "action": "replace", "regex": "(.+)(?::\\d+)", "replacement": "$1:9182",
                        "sourceLabels": ["__address__"], "targetLabel": "__address__",
                    },
                    {"action": "replace", "replacement": "windows-exporter", "targetLabel": "job"},
                ],
                "tlsConfig": {
                    "caFile": "/etc/prometheus/configmaps/serving-certs-ca-bundle/service-ca.crt",
                    "serverName": format!("{EXPORTER}.{NAMESPACE}.svc"),
                },
            }],
            "namespaceSelector": {"matchNames": ["kube-system"]},
            "selector": {"matchLabels": {"k8s-app": "kubelet"}},
            "serviceDiscoveryRole": "EndpointSlice",
        },
    })
}
