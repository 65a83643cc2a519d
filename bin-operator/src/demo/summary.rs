//! The table at the end of the demo.

use std::collections::BTreeMap;
use std::iter;
use std::time::Duration;

use kube_testserver::TestServer;
use serde_json::Value;
use wmco_core::names;
use wmco_sim::host::HostCounts;
use wmco_ssh::Snapshot;

use super::{lifecycle, println_line};

/// Prints nodes, certificate requests, remote commands, and what they cost over a way of `latency`.
pub(super) fn print(
    cluster: &TestServer,
    first: &BTreeMap<String, HostCounts>,
    second: Option<&(BTreeMap<String, HostCounts>, usize)>,
    ssh: &Snapshot,
    latency: Duration,
) {
    let nodes = cluster.objects("", "nodes", "");
    print_table(["NODE", "READY", "SCHEDULING", "VERSION"], nodes.iter().map(|node| row(node)));
    let requests = cluster.objects("certificates.k8s.io", "certificatesigningrequests", "");
    print_table(
        ["CSR", "CONDITION", "REASON", "SIGNER", "REQUESTER"],
        requests.iter().map(|csr| {
            [
                "/metadata/name",
                "/status/conditions/0/type",
                "/status/conditions/0/reason",
                "/spec/signerName",
                "/spec/username",
            ]
            .map(|pointer| text(csr, pointer).to_owned())
        }),
    );
    print_table(
        [
            "HOST",
            "REMOTE COMMANDS",
            "SFTP SESSIONS",
            "ROUND TRIPS",
            "REMOTE COMMANDS, SECOND PASS",
            "ROUND TRIPS, SECOND PASS",
        ],
        first.iter().map(|(name, counts)| {
            let again = second.and_then(|(counts, _)| counts.get(name));
            let none = || "-".to_owned();
            // Over no distance, answers overtake requests that do not wait for them.
            let bound = if latency.is_zero() { "at most " } else { "" };
            let round_trips = |counts: &HostCounts| format!("{bound}{}", counts.round_trips);
            [
                name.clone(),
                counts.executions.len().to_string(),
                counts.sftp_sessions.to_string(),
                round_trips(counts),
                again.map_or_else(none, |counts| counts.executions.len().to_string()),
                again.map_or_else(none, round_trips),
            ]
        }),
    );
    let condition = lifecycle::condition(cluster);
    print_table(
        ["CONDITION", "STATUS", "REASON", "MESSAGE"],
        condition.iter().map(|condition| {
            ["/type", "/status", "/reason", "/message"]
                .map(|pointer| text(condition, pointer).to_owned())
        }),
    );
    println_line("");
    if let Some((_, changes)) = second {
        println_line(&format!("the second pass changed {changes} things"));
    }
    println_line(&format!("{} KiB of files went to hosts", ssh.uploaded_bytes.div_ceil(1024)));
}

/// A blank line, then rows whose columns are as wide as their widest text.
fn print_table<const N: usize>(heads: [&str; N], rows: impl IntoIterator<Item = [String; N]>) {
    let lines: Vec<_> = iter::once(heads.map(str::to_owned)).chain(rows).collect();
    let width = |column: usize| lines.iter().filter_map(|l| Some(l.get(column)?.len())).max();
    let widths: [usize; N] = std::array::from_fn(|column| width(column).unwrap_or_default());
    println_line("");
    for line in &lines {
        let cells = line.iter().zip(widths).map(|(text, width)| format!("{text:<width$}"));
        println_line(cells.collect::<Vec<_>>().join("   ").trim_end());
    }
}

fn row(node: &Value) -> [String; 4] {
    let version = node
        .pointer("/metadata/annotations")
        .and_then(|annotations| annotations.get(names::VERSION_ANNOTATION))
        .and_then(Value::as_str);
    let cordoned = node.pointer("/spec/unschedulable").and_then(Value::as_bool) == Some(true);
    [
        text(node, "/metadata/name"),
        ready(node),
        if cordoned { "disabled" } else { "enabled" },
        version.unwrap_or("-"),
    ]
    .map(str::to_owned)
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or("-")
}

fn ready(node: &Value) -> &str {
    let conditions = node.pointer("/status/conditions").and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == "Ready")
        .and_then(|condition| condition["status"].as_str())
        .unwrap_or("-")
}
