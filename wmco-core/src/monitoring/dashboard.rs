//! A dashboard for the console.

use serde_json::{Value, json};

use crate::names;
use crate::names::monitoring::{DASHBOARD, DASHBOARD_LABEL, DASHBOARD_NAMESPACE};

/// Key of the dashboard in its ConfigMap.
const KEY: &str = "windows-nodes.json";

/// A panel: title, unit, query, legend.
type Panel = (&'static str, &'static str, &'static str, &'static str);

const FLEET: [Panel; 4] = [
    ("Instances by what is wanted", "short", "sum by (intent) (wmco_instances)", "{{intent}}"),
    ("Nodes that hold a disruption slot", "short", "max(wmco_disrupted_nodes)", "nodes"),
    (
        "Unfinished work",
        "s",
        "time() - wmco_instance_pending_since_timestamp_seconds",
        "{{instance}}: {{phase}}",
    ),
    (
        "Hosts that do not answer",
        "s",
        "time() - wmco_host_unreachable_since_timestamp_seconds",
        "{{instance}}",
    ),
];

const WORK: [Panel; 4] = [
    (
        "Actions",
        "ops",
        "sum by (action, result) (rate(wmco_actions_total[5m]))",
        "{{action}} {{result}}",
    ),
    (
        "Certificate requests",
        "short",
        "sum by (kind, verdict) (increase(wmco_csr_decisions_total[1h]))",
        "{{kind}} {{verdict}}",
    ),
    (
        "Time left of certificates",
        "s",
        "wmco_certificate_expiry_timestamp_seconds - time()",
        "{{certificate}} {{node}}",
    ),
    ("Connections to hosts", "short", "sum(wmco_ssh_connections)", "open"),
];

const NODES: [Panel; 4] = [
    (
        "CPU utilisation",
        "percentunit",
        r#"instance:node_cpu_utilisation:rate1m{job="windows-exporter"}"#,
        "{{instance}}",
    ),
    (
        "Memory in use",
        "percentunit",
        "1 - windows_memory_available_bytes / windows_memory_physical_total_bytes",
        "{{instance}}",
    ),
    (
        "Disk in use",
        "percentunit",
        "1 - windows_logical_disk_free_bytes / windows_logical_disk_size_bytes",
        "{{instance}} {{volume}}",
    ),
    (
        "Network received",
        "Bps",
        "sum by (instance) (rate(windows_net_bytes_received_total[5m]))",
        "{{instance}}",
    ),
];

/// The dashboard in its ConfigMap.
pub(super) fn config_map() -> Value {
    let rows = [
        ("Operator and fleet", &FLEET),
        ("What the operator does", &WORK),
        ("Windows nodes", &NODES),
    ];
    let mut number = 0;
    let rows = rows.map(|(title, panels)| {
        let panels = panels.map(|(title, unit, query, legend)| {
            number += 1;
            json!({
                "id": number,
                "title": title,
                "type": "graph",
                "span": 6,
                "datasource": "$datasource",
                "legend": {"show": true},
                "nullPointMode": "null as zero",
                "targets": [{
                    "expr": query, "format": "time_series", "legendFormat": legend, "refId": "A",
                }],
                "yaxes": [{"format": unit, "min": 0}, {"format": "short"}],
            })
        });
        json!({"title": title, "showTitle": true, "collapse": false, "panels": panels})
    });
    let dashboard = json!({
        "title": "Windows nodes",
        "uid": "windows-nodes",
        "schemaVersion": 14,
        "tags": ["windows"],
        "editable": false,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "UTC",
        "templating": {"list": []},
        "rows": rows,
    });
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": DASHBOARD, "namespace": DASHBOARD_NAMESPACE,
            "labels": {DASHBOARD_LABEL: names::TRUE},
        },
        "data": {KEY: format!("{dashboard:#}\n")},
    })
}
