//! Recording rules: values by hand.

use super::promtool::check;

/// Two cores, one of which is idle a tenth of the time and the other half of it, for 30 seconds each.
const CPU: [(&str, &str); 3] = [
    ("windows_cpu_time_total{instance=\"win-1\",core=\"0,0\",mode=\"idle\"}", "0+3x20"),
    ("windows_cpu_time_total{instance=\"win-1\",core=\"0,1\",mode=\"idle\"}", "0+15x20"),
    ("windows_cpu_time_total{instance=\"win-1\",core=\"0,0\",mode=\"user\"}", "0+27x20"),
];

/// A container in its pod, shown twice for a while after a restart of kube-state-metrics, and one without an ID.
const CONTAINERS: [(&str, &str); 3] = [
    (
        "kube_pod_container_info{container_id=\"containerd://a\",pod=\"web\",namespace=\"shop\",container=\"iis\",instance=\"old\"}",
        "1x20",
    ),
    (
        "kube_pod_container_info{container_id=\"containerd://a\",pod=\"web\",namespace=\"shop\",container=\"iis\",instance=\"new\"}",
        "1x20",
    ),
    (
        "kube_pod_container_info{container_id=\"\",pod=\"new\",namespace=\"shop\",container=\"x\"}",
        "1x20",
    ),
];

#[test]
fn cpu_use_is_what_is_not_idle() {
    check(
        &CPU,
        &[
            (
                "round(instance:node_cpu_utilisation:rate1m * 1000)",
                "5m",
                &[("{instance=\"win-1\"}", 700.0)],
            ),
            ("round(instance:node_cpu:rate:sum * 1000)", "5m", &[("{instance=\"win-1\"}", 600.0)]),
        ],
    );
}

#[test]
fn plain_metrics_get_the_names_of_linux_nodes() {
    let series = [
        ("windows_logical_disk_size_bytes{volume=\"C:\"}", "100x20"),
        ("windows_logical_disk_free_bytes{volume=\"C:\"}", "40x20"),
        ("windows_memory_available_bytes{instance=\"win-1\"}", "7x20"),
        ("windows_memory_physical_total_bytes{instance=\"win-1\"}", "9x20"),
        ("windows_cpu_info{instance=\"win-1\"}", "1x20"),
        ("windows_net_bytes_received_total{nic=\"e\"}", "0+60x20"),
        ("windows_net_bytes_sent_total{nic=\"e\"}", "0+90x20"),
    ];
    check(
        &series,
        &[
            (
                "node_filesystem_size_bytes",
                "5m",
                &[("node_filesystem_size_bytes{volume=\"C:\"}", 100.0)],
            ),
            (
                "node_filesystem_avail_bytes",
                "5m",
                &[("node_filesystem_avail_bytes{volume=\"C:\"}", 40.0)],
            ),
            (
                "node_filesystem_free_bytes",
                "5m",
                &[("node_filesystem_free_bytes{volume=\"C:\"}", 40.0)],
            ),
            (
                "node_memory_MemAvailable_bytes",
                "5m",
                &[("node_memory_MemAvailable_bytes{instance=\"win-1\"}", 7.0)],
            ),
            (
                "node_memory_MemTotal_bytes",
                "5m",
                &[("node_memory_MemTotal_bytes{instance=\"win-1\"}", 9.0)],
            ),
            ("node_cpu_info", "5m", &[("node_cpu_info{instance=\"win-1\"}", 1.0)]),
            (
                "node_network_receive_bytes_total",
                "5m",
                &[("node_network_receive_bytes_total{nic=\"e\"}", 2.0)],
            ),
            (
                "node_network_transmit_bytes_total",
                "5m",
                &[("node_network_transmit_bytes_total{nic=\"e\"}", 3.0)],
            ),
        ],
    );
}

#[test]
fn what_a_container_uses_is_told_by_its_pod() {
    let mut series = CONTAINERS.to_vec();
    series.extend([
        (
            "windows_container_cpu_usage_seconds_total{container_id=\"containerd://a\",mode=\"x\"}",
            "0+15x20",
        ),
        ("windows_container_cpu_usage_seconds_total{container_id=\"containerd://gone\"}", "0+9x20"),
        (
            "windows_container_memory_usage_private_working_set_bytes{container_id=\"containerd://a\"}",
            "4096x20",
        ),
        (
            "windows_container_network_receive_bytes_total{container_id=\"containerd://a\",interface=\"e\"}",
            "0+300x20",
        ),
        (
            "windows_container_network_receive_bytes_total{container_id=\"containerd://a\",interface=\"f\"}",
            "0+30x20",
        ),
        (
            "windows_container_network_transmit_bytes_total{container_id=\"containerd://a\",interface=\"e\"}",
            "0+600x20",
        ),
    ]);
    let of_pod = |name: &str| format!("{name}{{namespace=\"shop\",pod=\"web\"}}");
    let received = "pod_interface_network:container_network_receive_bytes:irate5m";
    let sent = "pod_interface_network:container_network_transmit_bytes_total:irate5m";
    let cpu = "pod:container_cpu_usage:sum";
    let memory = "container_memory_working_set_bytes";
    let of_memory =
        format!("{memory}{{container_id=\"containerd://a\",namespace=\"shop\",pod=\"web\"}}");
    check(
        &series,
        &[
            (cpu, "8m", &[(&of_pod(cpu), 0.5)]),
            (memory, "8m", &[(&of_memory, 4096.0)]),
            (received, "8m", &[(&of_pod(received), 11.0)]),
            (sent, "8m", &[(&of_pod(sent), 20.0)]),
        ],
    );
}
