//! Checks whether a cluster and a host are ready for Windows nodes.
//!
//! [`cluster`] checks the cluster's objects, [`host`] checks a host's report, both against the
//! [`support_matrix`](crate::support_matrix). Each unmet requirement is a [`Finding`]: the observed value, the
//! needed value, the next step.
//!
//! # Guarantees
//! - A blocking finding only holds back new work: [`fleet`](crate::fleet) configures no further host, and disrupts
//!   no node for an upgrade. Running nodes are never changed because of it.
//! - Unknown objects give no findings ([`Seen::Unknown`]).
//! - Findings are one line each and show no secret, whatever the objects contain.
//!
//! Source: `docs/contract/cluster.md`, CLU1 to CLU8.

mod api_server;
mod finding;
mod host;
mod network;
mod overlap;
mod overlay;
mod seen;
#[cfg(test)]
mod tests;
mod versions;

use serde_json::Value;

pub use finding::{Finding, Requirement, Severity};
pub use host::{AskedBy, HostSeen, OtherMachine, host};
pub use seen::{ClusterSeen, NodeSeen, Seen};

use crate::text::{cut, printable};

/// Finds problems that keep Windows nodes from working in this cluster, blocking findings first.
pub fn cluster(seen: &ClusterSeen) -> Vec<Finding> {
    let mut found = Vec::new();
    if is_no_openshift(seen, &mut found) {
        return found;
    }
    let rendered_from = [
        ("machineconfigpools.machineconfiguration.openshift.io/worker", &seen.worker_pool),
        (
            "controllerconfigs.machineconfiguration.openshift.io/machine-config-controller",
            &seen.controller_config,
        ),
    ];
    let missing = rendered_from.into_iter().filter(|(_, seen)| **seen == Seen::ObjectMissing);
    found.extend(missing.map(|(name, _)| api_server::no_object(name)));
    versions::check(seen, &mut found);
    api_server::check(seen, &mut found);
    network::check(seen, &mut found);
    overlay::check(seen, &mut found);
    overlap::check(seen, &mut found);
    found.sort();
    found.sort_by_key(|finding| finding.severity);
    found
}

/// Kinds that identify an OpenShift cluster, with the observed objects.
fn kinds(seen: &ClusterSeen) -> [(&'static str, &Seen); 5] {
    [
        ("infrastructures.config.openshift.io", &seen.infrastructure),
        ("networks.config.openshift.io", &seen.network),
        ("networks.operator.openshift.io", &seen.operator_network),
        ("machineconfigpools.machineconfiguration.openshift.io", &seen.worker_pool),
        ("controllerconfigs.machineconfiguration.openshift.io", &seen.controller_config),
    ]
}

/// Reports missing kinds, without which nothing else can be checked.
fn is_no_openshift(seen: &ClusterSeen, found: &mut Vec<Finding>) -> bool {
    let missing = kinds(seen).into_iter().filter(|(_, seen)| **seen == Seen::KindMissing);
    let missing: Vec<_> = missing.map(|(kind, _)| kind).collect();
    if missing.is_empty() {
        return false;
    }
    found.push(Finding {
        requirement: Requirement::OpenShift,
        severity: Severity::Blocking,
        at: "the cluster".to_owned(),
        seen: format!("lacks {}", missing.join(", ")),
        needed: "OpenShift or OKD, whose operators tell how nodes are configured".to_owned(),
        next_step:
            "run the operator in such a cluster; if it is one, see why its API server does not \
                    serve these kinds (kubectl api-resources)"
                .to_owned(),
    });
    true
}

/// Formats the place of a field for messages.
fn field(object: &str, field: &str) -> String {
    format!("{object}, field `{field}`,")
}

/// Formats a foreign value as one short text.
fn shown(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "is not set".to_owned(),
        Some(Value::String(text)) if text.is_empty() => "is empty".to_owned(),
        Some(Value::Array(list)) if list.is_empty() => "is empty".to_owned(),
        Some(Value::String(text)) => format!("is {}", quoted(text)),
        Some(other) => format!("is {}", quoted(&other.to_string())),
    }
}

/// Formats a foreign text in backquotes, without control characters.
fn quoted(text: &str) -> String {
    const MOST_BYTES: usize = 80;
    let escaped = printable(text);
    let short = cut(&escaped, MOST_BYTES);
    let more = if short.len() < escaped.len() { "..." } else { "" };
    format!("`{short}{more}`")
}
