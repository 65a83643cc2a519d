//! The table at the end of the demo.

use serde_json::Value;
use wmco_core::names;
use wmco_sim::cluster::SimCluster;
use wmco_sim::host::HostCounts;
use wmco_ssh::Snapshot;

use super::hosts::Hosts;
use super::println_line;

/// Prints nodes, certificate requests and remote commands.
pub(super) fn print(
    cluster: &SimCluster,
    hosts: &Hosts,
    first: &[HostCounts],
    second: Option<&(Vec<HostCounts>, usize)>,
    ssh: &Snapshot,
) {
    println_line("");
    println_line(&format!("{:<16}{:<8}{:<14}VERSION", "NODE", "READY", "SCHEDULING"));
    for node in cluster.objects("", "nodes", "") {
        let text = |pointer: &str| node.pointer(pointer).and_then(Value::as_str).unwrap_or("-");
        let version = node
            .pointer("/metadata/annotations")
            .and_then(|annotations| annotations.get(names::VERSION_ANNOTATION))
            .and_then(Value::as_str);
        let cordoned = node.pointer("/spec/unschedulable").and_then(Value::as_bool) == Some(true);
        println_line(&format!(
            "{:<16}{:<8}{:<14}{}",
            text("/metadata/name"),
            ready(&node),
            if cordoned { "disabled" } else { "enabled" },
            version.unwrap_or("-"),
        ));
    }
    println_line("");
    println_line(&format!("{:<16}{:<42}{:<40}CONDITION", "CSR", "SIGNER", "REQUESTER"));
    for csr in cluster.objects("certificates.k8s.io", "certificatesigningrequests", "") {
        let text = |pointer: &str| csr.pointer(pointer).and_then(Value::as_str).unwrap_or("-");
        let requester: String = text("/spec/username")
            .trim_start_matches("system:serviceaccount:")
            .chars()
            .take(38)
            .collect();
        println_line(&format!(
            "{:<16}{:<42}{:<40}{} {}",
            text("/metadata/name"),
            text("/spec/signerName"),
            requester,
            text("/status/conditions/0/type"),
            text("/status/conditions/0/reason"),
        ));
    }
    println_line("");
    println_line(&format!(
        "{:<16}{:<18}{:<16}REMOTE COMMANDS, SECOND PASS",
        "HOST", "REMOTE COMMANDS", "SFTP SESSIONS"
    ));
    for (index, ((name, _), counts)) in hosts.iter().zip(first).enumerate() {
        let again = second.and_then(|(counts, _)| counts.get(index));
        println_line(&format!(
            "{name:<16}{:<18}{:<16}{}",
            counts.executions.len(),
            counts.sftp_sessions,
            again.map_or_else(|| "-".to_owned(), |counts| counts.executions.len().to_string()),
        ));
    }
    if let Some((_, changes)) = second {
        println_line("");
        println_line(&format!("the second pass changed {changes} things"));
    }
    println_line(&format!("{} KiB of files went to hosts", ssh.uploaded_bytes.div_ceil(1024)));
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
