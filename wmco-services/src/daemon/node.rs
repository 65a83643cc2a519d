//! What the daemon reads from Nodes.

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

pub(super) fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
