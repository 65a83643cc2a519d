//! ServiceMonitors, by which Prometheus finds metrics.

use serde_json::{Value, json};

use crate::names;
use crate::names::monitoring::{
    EXPORTER, EXPORTER_PORT, KUBELET_NAMESPACE, METRICS_PATH, OPERATOR_METRICS,
    OPERATOR_METRICS_PORT, SERVICE_MONITOR,
};

const TOKEN_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
const SERVICE_CA: &str = "/etc/prometheus/configmaps/serving-certs-ca-bundle/service-ca.crt";

/// The ServiceMonitor of the exporters on Windows nodes, found by the endpoints of the kubelets.
///
/// Source: `docs/contract/cluster.md`, CLU25.
pub fn exporter(namespace: &str) -> Value {
    let endpoint = json!({
        "port": "https-metrics",
        "path": METRICS_PATH,
        "scheme": "https",
        "interval": "30s",
        "honorLabels": true,
        "bearerTokenFile": TOKEN_FILE,
        "tlsConfig": tls(EXPORTER, namespace),
        "relabelings": [
            {
                "action": "replace",
                "sourceLabels": ["__meta_kubernetes_endpointslice_endpoint_target_name"],
                "regex": "(.*)",
                "replacement": "$1",
                "targetLabel": "instance",
            },
            {
                "action": "keep",
                "sourceLabels": ["__meta_kubernetes_node_label_kubernetes_io_os"],
                "regex": names::OS_WINDOWS,
            },
            {
                "action": "replace",
                "sourceLabels": ["__address__"],
                "regex": r"(.+)(?::\d+)",
                "replacement": format!("$1:{EXPORTER_PORT}"),
                "targetLabel": "__address__",
            },
            {"action": "replace", "replacement": EXPORTER, "targetLabel": "job"},
        ],
    });
    let spec = json!({
        "serviceDiscoveryRole": "EndpointSlice",
        "attachMetadata": {"node": true},
        "namespaceSelector": {"matchNames": [KUBELET_NAMESPACE]},
        "selector": {"matchLabels": {"k8s-app": "kubelet"}},
        "endpoints": [endpoint],
    });
    object(EXPORTER, namespace, &spec)
}

/// The ServiceMonitor of the operator's own metrics.
pub(super) fn operator(namespace: &str) -> Value {
    let endpoint = json!({
        "port": OPERATOR_METRICS_PORT,
        "path": METRICS_PATH,
        "scheme": "https",
        "interval": "30s",
        // `instance` is the host that a metric is about, not the operator's pod.
        "honorLabels": true,
        "bearerTokenFile": TOKEN_FILE,
        "tlsConfig": tls(OPERATOR_METRICS, namespace),
    });
    let spec = json!({
        "selector": {"matchLabels": {"name": OPERATOR_METRICS}},
        "endpoints": [endpoint],
    });
    object(OPERATOR_METRICS, namespace, &spec)
}

fn tls(service: &str, namespace: &str) -> Value {
    json!({"caFile": SERVICE_CA, "serverName": format!("{service}.{namespace}.svc")})
}

fn object(name: &str, namespace: &str, spec: &Value) -> Value {
    let (group, version, kind) = SERVICE_MONITOR;
    json!({
        "apiVersion": format!("{group}/{version}"), "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": {"name": name}},
        "spec": spec,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Metrics have a label `instance` of their own, by which alerts name a host.
    #[test]
    fn the_label_that_names_a_host_is_kept() {
        for monitor in [operator("winc"), exporter("winc")] {
            assert_eq!(monitor["spec"]["endpoints"][0]["honorLabels"], true, "{monitor}");
        }
    }
}
