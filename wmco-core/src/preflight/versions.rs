//! Checks of the versions of Kubernetes and of Windows on existing nodes.

use serde_json::Value;

use super::api_server::no_object;
use super::{ClusterSeen, Finding, NodeSeen, Requirement, Seen, Severity, field, quoted, shown};
use crate::support_matrix::{Minor, SUPPORTED};
use crate::text::without_secrets;

const CLUSTER_VERSION: &str = "clusterversions.config.openshift.io/version";

/// Most nodes that a finding names.
const MOST_NAMED: usize = 5;

pub(super) fn check(seen: &ClusterSeen, found: &mut Vec<Finding>) {
    let server = seen.server_version.as_deref();
    found.extend(server.and_then(kubernetes));
    found.extend(no_id(seen));
    found.extend(failing(seen));
    let server = server.and_then(|version| version.parse().ok());
    let nodes: Vec<_> = seen.nodes.iter().filter(|node| node.is_windows).collect();
    found.extend(server.and_then(|server| skew(server, &nodes)));
    found.extend(old_windows(&nodes));
}

fn kubernetes(server: &str) -> Option<Finding> {
    let is_supported = |minor: Minor| SUPPORTED.kubernetes.contains(&minor);
    if server.parse().is_ok_and(is_supported) {
        return None;
    }
    let newest = SUPPORTED.kubernetes.last().copied();
    let is_newer = server.parse::<Minor>().is_ok_and(|minor| Some(minor) > newest);
    let next_step = if is_newer {
        "install the version of this operator that is made for the cluster's version"
    } else {
        "update the cluster, or install the version of this operator that is made for it"
    };
    Some(Finding {
        requirement: Requirement::KubernetesVersion,
        severity: Severity::Blocking,
        at: "the API server".to_owned(),
        seen: format!("is {}", quoted(server)),
        needed: format!("Kubernetes {}", SUPPORTED.kubernetes_names()),
        next_step: next_step.to_owned(),
    })
}

/// Without its ID nobody can tell to which cluster a host belongs, so nothing is done on hosts.
fn no_id(seen: &ClusterSeen) -> Option<Finding> {
    let version = match &seen.cluster_version {
        Seen::Object(version) => version,
        Seen::ObjectMissing => return Some(no_object(CLUSTER_VERSION)),
        Seen::Unknown | Seen::KindMissing => return None,
    };
    let id = version.pointer("/spec/clusterID");
    id.and_then(Value::as_str).is_none_or(|id| id.trim().is_empty()).then(|| Finding {
        requirement: Requirement::ClusterVersion,
        severity: Severity::Blocking,
        at: field(CLUSTER_VERSION, "spec.clusterID"),
        seen: shown(id),
        needed: "the ID of the cluster, by which a host belongs to it".to_owned(),
        next_step: "restore the one that the installation wrote".to_owned(),
    })
}

/// Warns about a cluster whose own installation or update is failing, or that does not work; Windows nodes may all the
/// same.
fn failing(seen: &ClusterSeen) -> Option<Finding> {
    let conditions = seen.cluster_version.object()?.pointer("/status/conditions")?.as_array()?;
    let text = |condition: &Value, name| condition.get(name)?.as_str().map(str::to_owned);
    let is = |condition: &Value, kind: &str, status: &str| {
        text(condition, "type").as_deref() == Some(kind)
            && text(condition, "status").as_deref() == Some(status)
    };
    let find = |(kind, status): (&'static str, &'static str)| {
        let mut found = conditions.iter().filter(|condition| is(condition, kind, status));
        Some((kind, status, found.next()?))
    };
    let (kind, status, failing) =
        [("Failing", "True"), ("Available", "False")].into_iter().find_map(find)?;
    let why = ["message", "reason"].into_iter().filter_map(|name| text(failing, name));
    let why = why.map(|text| without_secrets(&text)).find(|text| !text.is_empty());
    let why = why.unwrap_or_default();
    Some(Finding {
        requirement: Requirement::ClusterVersion,
        severity: Severity::Warning,
        at: field(CLUSTER_VERSION, &format!("status.conditions[{kind}]")),
        seen: if why.is_empty() {
            format!("is {status}")
        } else {
            format!("is {status}: {}", quoted(&why))
        },
        needed: "a cluster that works, installed or updated to the end".to_owned(),
        next_step: "see `kubectl get clusteroperators` for who fails, before you add Windows nodes"
            .to_owned(),
    })
}

fn skew(server: Minor, nodes: &[&NodeSeen]) -> Option<Finding> {
    let kubelet = |node: &NodeSeen| node.kubelet.parse::<Minor>().ok();
    let oldest = server.minor.saturating_sub(SUPPORTED.kubelet_may_be_older_by);
    let is_newer = |node: &&NodeSeen| kubelet(node).is_some_and(|kubelet| kubelet > server);
    let is_off = |node: &&NodeSeen| {
        let is_older = |it: Minor| it.major != server.major || it.minor < oldest;
        is_newer(node) || kubelet(node).is_some_and(is_older)
    };
    let off: Vec<_> = nodes.iter().copied().filter(is_off).collect();
    let (first, newer) = (off.first()?, off.iter().copied().find(is_newer));
    let kubelet = quoted(&newer.unwrap_or(first).kubelet);
    Some(Finding {
        requirement: Requirement::KubeletSkew,
        severity: Severity::Warning,
        at: "Windows nodes".to_owned(),
        seen: named(&off, &format!("have other kubelets, such as {kubelet}"))?,
        needed: format!("kubelets of {}.{oldest} to {server}", server.major),
        next_step: match newer {
            Some(_) => {
                "update the cluster to the version of these kubelets, or see who installed them"
            }
            None => "let the operator upgrade them; see its Events for what they wait for",
        }
        .to_owned(),
    })
}

fn old_windows(nodes: &[&NodeSeen]) -> Option<Finding> {
    // A Node whose kubelet has not reported yet is none of them.
    let is_unknown =
        |node: &&NodeSeen| !node.windows.is_empty() && SUPPORTED.windows(&node.windows).is_none();
    let unknown: Vec<_> = nodes.iter().copied().filter(is_unknown).collect();
    Some(Finding {
        requirement: Requirement::WindowsRelease,
        severity: Severity::Warning,
        at: "Windows nodes".to_owned(),
        seen: named(&unknown, "run another Windows")?,
        needed: SUPPORTED.windows_names(),
        next_step: "move their pods to nodes of a supported release and remove them".to_owned(),
    })
}

/// The first nodes; `None` if there are none. Texts from the nodes are left out: a text that changes every minute
/// would give a new finding every minute.
fn named(nodes: &[&NodeSeen], verb: &str) -> Option<String> {
    if nodes.is_empty() {
        return None;
    }
    let names: Vec<_> = nodes.iter().take(MOST_NAMED).map(|node| node.name.as_str()).collect();
    let more = match nodes.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("{verb}: {}{more}", names.join(", ")))
}
