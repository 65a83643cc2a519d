//! Names of monitoring and of the Operator Lifecycle Manager. Source:
//! `docs/contract/cluster.md`, CLU20 to CLU26.

/// Service without pods for which the service CA creates the certificate of the exporters on nodes; also the name
/// of their ServiceMonitor.
pub const EXPORTER: &str = "windows-exporter";

/// TCP port of the exporters on nodes.
pub const EXPORTER_PORT: u16 = 9182;

/// Service and ServiceMonitor of the operator's own metrics. Ours.
pub const OPERATOR_METRICS: &str = "windows-machine-config-operator-metrics";

/// Name of the port in [`OPERATOR_METRICS`] and in the operator's pod.
pub const OPERATOR_METRICS_PORT: &str = "metrics";

/// HTTP path of metrics.
pub const METRICS_PATH: &str = "/metrics";

/// Secret with the certificate of the operator's own metrics, created by the service CA. Ours.
pub const OPERATOR_METRICS_TLS_SECRET: &str = "windows-machine-config-operator-metrics-tls";

/// Annotation of a Service: name of the Secret for which the service CA creates a certificate.
pub const SERVING_CERT_ANNOTATION: &str = "service.beta.openshift.io/serving-cert-secret-name";

/// PrometheusRule with the recording rules and alerts.
pub const RULES: &str = "windows-prometheus-k8s-rules";

/// Role and RoleBinding by which Prometheus finds its targets, and its ServiceAccount.
pub const PROMETHEUS: &str = "prometheus-k8s";

/// Namespace of [`PROMETHEUS`].
pub const PROMETHEUS_NAMESPACE: &str = "openshift-monitoring";

/// Namespace of the kubelets' EndpointSlices.
pub const KUBELET_NAMESPACE: &str = "kube-system";

/// Label of a namespace: whether the cluster's Prometheus scrapes it.
pub const CLUSTER_MONITORING_LABEL: &str = "openshift.io/cluster-monitoring";

/// ConfigMap of the console's dashboard. Ours.
pub const DASHBOARD: &str = "dashboard-windows-nodes";

/// Namespace of [`DASHBOARD`].
pub const DASHBOARD_NAMESPACE: &str = "openshift-config-managed";

/// Label of dashboards of the console; its value is `"true"`.
pub const DASHBOARD_LABEL: &str = "console.openshift.io/dashboard";

/// Group, version and kind of ServiceMonitors.
pub const SERVICE_MONITOR: (&str, &str, &str) = ("monitoring.coreos.com", "v1", "ServiceMonitor");

/// The resource of [`SERVICE_MONITOR`].
pub const SERVICE_MONITORS: &str = "servicemonitors";

/// Group, version and kind of OperatorConditions.
pub const OPERATOR_CONDITION: (&str, &str, &str) =
    ("operators.coreos.com", "v2", "OperatorCondition");

/// The resource of [`OPERATOR_CONDITION`].
pub const OPERATOR_CONDITIONS: &str = "operatorconditions";

/// Environment variable with the name of our OperatorCondition. Only the Operator Lifecycle Manager sets it.
pub const OPERATOR_CONDITION_VARIABLE: &str = "OPERATOR_CONDITION_NAME";

/// Type of the condition that allows the Operator Lifecycle Manager to upgrade the operator.
pub const UPGRADEABLE: &str = "Upgradeable";

/// Reason of [`UPGRADEABLE`] when it is `True`.
pub const UPGRADE_IS_SAFE: &str = "upgradeIsSafe";

/// Reason of [`UPGRADEABLE`] when it is `False`.
pub const UPGRADE_IS_NOT_SAFE: &str = "upgradeIsNotSafe";
