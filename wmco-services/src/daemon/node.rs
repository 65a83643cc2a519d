//! Reads the facts of Nodes that the daemon needs.

use serde_json::{Value, json};
use wmco_core::names;

/// The state of a Node and the operator's requests to it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct NodeIntent {
    /// Desired version; an empty annotation counts as none.
    pub desired_version: Option<String>,
    /// Configured version.
    pub version: Option<String>,
    /// Digest of the services ConfigMap content that is released for the node; `None` if the operator sets none.
    pub released: Option<String>,
    /// Digest of the roots that are released for the node; `None` if the operator sets none.
    pub released_roots: Option<String>,
    /// Whether a restart is requested.
    pub reboot_requested: bool,
    /// Whether the Node's condition `Ready` is true.
    pub ready: bool,
}

impl NodeIntent {
    /// Parses a Node given as JSON.
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
            released_roots: text(names::ROOTS_ANNOTATION),
            reboot_requested: annotation(names::REBOOT_ANNOTATION).is_some(),
            ready: list(node.pointer("/status/conditions"))
                .iter()
                .any(|condition| is(condition, "type", "Ready") && is(condition, "status", "True")),
        }
    }
}

/// Returns the part of a Node that affects passes: all but the fields that the kubelet updates repeatedly. While it is
/// unchanged, the Node warrants no further pass.
pub fn pass_inputs(node: &Value) -> Value {
    let part = |pointer| node.pointer(pointer).cloned().unwrap_or_default();
    json!({
        "uid": part("/metadata/uid"),
        "labels": part("/metadata/labels"),
        "annotations": part("/metadata/annotations"),
        "spec": part("/spec"),
        "addresses": part("/status/addresses"),
        "info": part("/status/nodeInfo"),
        "ready": NodeIntent::of(node).ready,
    })
}

pub(super) fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
