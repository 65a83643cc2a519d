//! Objects for Prometheus and the console, about Windows nodes and the operator: shipped objects, and the
//! ServiceMonitor that the operator manages.
//!
//! # Not here
//! The decision whether the ServiceMonitor of the exporters is needed
//! ([`cluster::monitoring`](crate::cluster::monitoring)).
//!
//! Source: `docs/contract/cluster.md`, CLU25 and CLU26.

mod alerts;
mod dashboard;
mod recording;
mod rights;
mod service_monitors;

use serde_json::{Value, json};

pub use alerts::{ALERTS, Alert, Severity};
pub use service_monitors::exporter as exporter_monitor;

use crate::names::monitoring::{
    OPERATOR_METRICS, OPERATOR_METRICS_PORT, OPERATOR_METRICS_TLS_SECRET, RULES,
    SERVING_CERT_ANNOTATION,
};
use crate::names::objects::OPERATOR;

/// Names of metrics from other programs: the exporter on a node and kube-state-metrics.
pub use recording::SOURCES;

/// All objects that are shipped with an operator in `namespace`.
///
/// ```
/// let objects = wmco_core::monitoring::shipped("ns");
/// assert!(objects.iter().any(|object| object["kind"] == "PrometheusRule"));
/// ```
pub fn shipped(namespace: &str) -> Vec<Value> {
    let [role, binding] = rights::of_prometheus(namespace);
    vec![
        role,
        binding,
        metrics_service(namespace),
        service_monitors::operator(namespace),
        rules(namespace),
        dashboard::config_map(),
    ]
}

/// The Service of the operator's own metrics, whose certificate the service CA creates.
fn metrics_service(namespace: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": OPERATOR_METRICS, "namespace": namespace,
            "labels": {"name": OPERATOR_METRICS},
            "annotations": {SERVING_CERT_ANNOTATION: OPERATOR_METRICS_TLS_SECRET},
        },
        "spec": {
            "selector": {"name": OPERATOR},
            "ports": [{
                "name": OPERATOR_METRICS_PORT, "protocol": "TCP", "port": 9182,
                "targetPort": OPERATOR_METRICS_PORT,
            }],
        },
    })
}

/// The PrometheusRule: recording rules, so that dashboards and autoscalers find Windows nodes under the names of
/// Linux nodes, and alerts.
pub fn rules(namespace: &str) -> Value {
    json!({
        "apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule",
        "metadata": {
            "name": RULES, "namespace": namespace,
            "labels": {"prometheus": "k8s", "role": "alert-rules"},
        },
        "spec": {"groups": [
            {"name": "windows.rules", "rules": recording::rules()},
            {"name": "windows.alerts", "rules": alerts::rules(namespace)},
        ]},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::objects::DEFAULT_NAMESPACE;

    #[test]
    fn every_object_has_a_place() {
        for object in shipped("ns") {
            for field in ["/apiVersion", "/kind", "/metadata/name", "/metadata/namespace"] {
                assert!(object.pointer(field).is_some_and(Value::is_string), "{field}: {object}");
            }
        }
    }

    #[test]
    fn every_alert_says_what_to_do() {
        for alert in ALERTS {
            let texts = [alert.summary, alert.description, alert.runbook];
            assert!(texts.iter().all(|text| text.len() > 20), "{}", alert.name);
            assert!(alert.name.starts_with("Windows"), "{}", alert.name);
        }
    }

    #[test]
    fn commands_are_for_the_namespace_of_the_operator() {
        let rules = rules("elsewhere").to_string();
        assert!(rules.contains("-n elsewhere") && !rules.contains(DEFAULT_NAMESPACE), "{rules}");
    }

    #[test]
    fn the_exporters_monitor_is_the_one_of_the_specification() {
        insta::assert_yaml_snapshot!(exporter_monitor("ns")["spec"]);
    }
}
