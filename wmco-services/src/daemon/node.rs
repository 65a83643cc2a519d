//! What the daemon reads from Nodes.

use std::net::Ipv4Addr;

use serde_json::{Value, json};
use wmco_core::names;

/// What a Node says about itself and about what is asked of it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct NodeFacts {
    /// Version that the operator wants; an empty one counts as none.
    pub desired_version: Option<String>,
    /// Version that is configured.
    pub version: Option<String>,
    /// Digest of the services ConfigMap's content that the node is released for; `None` where the
    /// operator does not say.
    pub released: Option<String>,
    /// Whether a restart is asked for.
    pub reboot_requested: bool,
    /// Whether the Node's condition `Ready` is true.
    pub ready: bool,
}

impl NodeFacts {
    /// Reads a Node given as JSON.
    pub fn of(node: &Value) -> Self {
        let annotation = |name| {
            node.get("metadata")
                .and_then(|metadata| metadata.get("annotations"))
                .and_then(|annotations| annotations.get(name))
                .and_then(Value::as_str)
        };
        let text = |name| annotation(name).filter(|text| !text.is_empty()).map(str::to_owned);
        let is = |condition: &Value, field, value| {
            condition.get(field).and_then(Value::as_str) == Some(value)
        };
        Self {
            desired_version: text(names::DESIRED_VERSION_ANNOTATION),
            version: text(names::VERSION_ANNOTATION),
            released: text(names::SERVICES_ANNOTATION),
            reboot_requested: annotation(names::REBOOT_ANNOTATION).is_some(),
            ready: list(node.pointer("/status/conditions"))
                .iter()
                .any(|condition| is(condition, "type", "Ready") && is(condition, "status", "True")),
        }
    }
}

/// What of a Node a pass depends on: everything but what the kubelet reports again and again. As long
/// as this is the same, another pass would find nothing new.
pub fn concern(node: &Value) -> Value {
    let part = |pointer| node.pointer(pointer).cloned().unwrap_or_default();
    json!({
        "uid": part("/metadata/uid"),
        "labels": part("/metadata/labels"),
        "annotations": part("/metadata/annotations"),
        "spec": part("/spec"),
        "addresses": part("/status/addresses"),
        "info": part("/status/nodeInfo"),
        "ready": NodeFacts::of(node).ready,
    })
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Several Nodes claim to be this host.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("nodes {} all have an address of this host, delete the wrong ones", .names.join(", "))]
pub struct NodeSearchError {
    /// Their names.
    pub names: Vec<String>,
}

/// The name of the Windows Node that one of `addresses` belongs to; internal addresses count first.
/// `known` is the name in a certificate that this host has: it decides between several, and stands for
/// a host whose addresses are new, since the kubelet, which would report them, waits for the daemon.
/// `None` when there is none (yet).
///
/// # Errors
/// [`NodeSearchError`] when there are several and the host is known as none of them.
///
/// Source: `spec/wicd.md`, sections 6 and 23.2, row 17.
pub fn find_node(
    nodes: &[Value],
    addresses: &[Ipv4Addr],
    known: Option<&str>,
) -> Result<Option<String>, NodeSearchError> {
    let own: Vec<String> = addresses
        .iter()
        .filter(|address| !address.is_loopback() && !address.is_link_local())
        .map(ToString::to_string)
        .collect();
    let is_windows = |node: &&Value| {
        let labels = node.get("metadata").and_then(|metadata| metadata.get("labels"));
        let system = labels.and_then(|labels| labels.get(names::OS_LABEL));
        system.and_then(Value::as_str) == Some(names::OS_WINDOWS)
    };
    let has = |node: &Value, internal_only: bool| {
        list(node.pointer("/status/addresses")).iter().any(|address| {
            let field = |name| address.get(name).and_then(Value::as_str);
            let counts = !internal_only || field("type") == Some("InternalIP");
            counts && field("address").is_some_and(|text| own.iter().any(|own| own == text))
        })
    };
    let windows = || nodes.iter().filter(is_windows);
    for internal_only in [true, false] {
        let here = windows().filter(|node| has(node, internal_only));
        let found: Vec<&str> = here.filter_map(name).collect();
        let one = match found.as_slice() {
            [] => continue,
            [one] => Some(*one),
            several => several.iter().copied().find(|name| Some(*name) == known),
        };
        let names = || found.iter().map(|name| (*name).to_owned()).collect();
        return one
            .map(|one| Some(one.to_owned()))
            .ok_or_else(|| NodeSearchError { names: names() });
    }
    Ok(windows().filter_map(name).find(|name| Some(*name) == known).map(str::to_owned))
}

fn name(node: &Value) -> Option<&str> {
    node.pointer("/metadata/name").and_then(Value::as_str)
}
