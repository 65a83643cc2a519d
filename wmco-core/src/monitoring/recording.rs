//! Recording rules: metrics of Windows nodes and their containers under the names of Linux nodes.
//!
//! Source: `docs/contract/cluster.md`, CLU26.

use serde_json::{Value, json};

/// Source metrics of the rules: those of the exporter on each node, and one of kube-state-metrics.
pub const SOURCES: [&str; 13] = [
    "windows_cpu_time_total",
    "windows_cpu_info",
    "windows_logical_disk_size_bytes",
    "windows_logical_disk_free_bytes",
    "windows_net_bytes_received_total",
    "windows_net_bytes_sent_total",
    "windows_memory_available_bytes",
    "windows_memory_physical_total_bytes",
    "windows_container_cpu_usage_seconds_total",
    "windows_container_memory_usage_private_working_set_bytes",
    "windows_container_network_receive_bytes_total",
    "windows_container_network_transmit_bytes_total",
    "kube_pod_container_info",
];

/// All recording rules.
pub(super) fn rules() -> Vec<Value> {
    let cpu = of_container("rate(windows_container_cpu_usage_seconds_total[5m])");
    let memory = of_container("windows_container_memory_usage_private_working_set_bytes");
    let received = of_container("irate(windows_container_network_receive_bytes_total[5m])");
    let sent = of_container("irate(windows_container_network_transmit_bytes_total[5m])");
    let by_pod = |series: &str| format!("sum by (pod, namespace) ({series})");
    let idle = "windows_cpu_time_total{mode=\"idle\"}";
    let rules = [
        (
            "instance:node_cpu_utilisation:rate1m",
            format!("1 - avg without (core, mode) (rate({idle}[1m]))"),
        ),
        (
            "instance:node_cpu:rate:sum",
            "sum by (instance) (rate(windows_cpu_time_total{mode=\"idle\",mode!=\"iowait\"}[3m]))"
                .to_owned(),
        ),
        ("node_filesystem_size_bytes", "windows_logical_disk_size_bytes".to_owned()),
        ("node_filesystem_avail_bytes", "windows_logical_disk_free_bytes".to_owned()),
        ("node_filesystem_free_bytes", "windows_logical_disk_free_bytes".to_owned()),
        (
            "node_network_receive_bytes_total",
            "rate(windows_net_bytes_received_total[1m])".to_owned(),
        ),
        ("node_network_transmit_bytes_total", "rate(windows_net_bytes_sent_total[1m])".to_owned()),
        ("node_memory_MemAvailable_bytes", "windows_memory_available_bytes".to_owned()),
        ("node_memory_MemTotal_bytes", "windows_memory_physical_total_bytes".to_owned()),
        ("node_cpu_info", "windows_cpu_info".to_owned()),
        ("pod:container_cpu_usage:sum", by_pod(&cpu)),
        (
            "container_memory_working_set_bytes",
            format!("label_replace({memory}, \"container\", \"\", \"\", \"\")"),
        ),
        ("pod_interface_network:container_network_receive_bytes:irate5m", by_pod(&received)),
        ("pod_interface_network:container_network_transmit_bytes_total:irate5m", by_pod(&sent)),
    ];
    rules.into_iter().map(|(record, expr)| json!({"record": record, "expr": expr})).collect()
}

/// A series of the exporter, with the pod and the container of its `container_id`.
///
/// `max by`: for some minutes after a restart, kube-state-metrics reports a container twice.
fn of_container(series: &str) -> String {
    let containers = "max by (container_id, namespace, pod, container) \
                      (kube_pod_container_info{container_id!=\"\"})";
    format!("{series} * on (container_id) group_left (namespace, pod, container) {containers}")
}
