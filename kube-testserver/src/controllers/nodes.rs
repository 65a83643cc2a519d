//! Makes the taints of a Node follow its Ready condition and its cordon, like the node lifecycle controller of
//! kube-controller-manager.
//!
//! Not simulated: that controller's clock. A kubelet that stops reporting stays Ready here.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::{NOT_READY_TAINT, put};
use crate::resources::StorageKey;
use crate::state::State;

const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Updates the taints of a Node; `name` may already be deleted.
pub(super) fn taint(state: &mut State, name: &str, now: Timestamp) {
    let place = StorageKey::new("", "nodes");
    let Some(node) = state.store.get(&place, "", name).map(Arc::clone) else {
        return;
    };
    if let Some(tainted) = tainted(&node, now) {
        state.store.put(&place, tainted);
    }
}

/// The Node with the right taints; `None` if it has them already.
fn tainted(node: &Value, now: Timestamp) -> Option<Value> {
    let wanted = wanted(node);
    let taints = node.pointer("/spec/taints").and_then(Value::as_array);
    let mut next: Vec<Value> = taints.into_iter().flatten().cloned().collect();
    let is = |taint: &Value, key: &str| taint["key"] == key && taint["effect"] == "NoSchedule";
    for key in [NOT_READY_TAINT, UNREACHABLE, UNSCHEDULABLE] {
        if !wanted.contains(&key) {
            next.retain(|taint| !is(taint, key));
        } else if !next.iter().any(|taint| is(taint, key)) {
            let added = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            next.push(json!({"key": key, "effect": "NoSchedule", "timeAdded": added}));
        }
    }
    if taints.map_or(&[][..], Vec::as_slice) == next {
        return None;
    }
    let mut spec = node.get("spec").cloned().unwrap_or_else(|| json!({}));
    if next.is_empty() {
        spec.as_object_mut().map(|spec| spec.remove("taints"));
    } else {
        put(&mut spec, "taints", next.into());
    }
    let mut node = node.clone();
    put(&mut node, "spec", spec);
    Some(node)
}

/// Keys of the taints for the state of a Node.
fn wanted(node: &Value) -> Vec<&'static str> {
    let conditions = node.pointer("/status/conditions").and_then(Value::as_array);
    let ready = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == "Ready")
        .and_then(|condition| condition["status"].as_str());
    let reach = match ready {
        Some("True") => None,
        Some("Unknown") => Some(UNREACHABLE),
        Some(_) | None => Some(NOT_READY_TAINT),
    };
    let cordoned = node.pointer("/spec/unschedulable") == Some(&Value::Bool(true));
    reach.into_iter().chain(cordoned.then_some(UNSCHEDULABLE)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(spec: &Value, ready: Option<&str>, expected: Option<&[&str]>) {
        let mut node = json!({"spec": spec});
        if let Some(ready) = ready {
            node["status"] = json!({"conditions": [{"type": "Ready", "status": ready}]});
        }
        let keys = tainted(&node, Timestamp::UNIX_EPOCH).map(|node| {
            let taints = node.pointer("/spec/taints").and_then(Value::as_array).cloned();
            let taints = taints.unwrap_or_default();
            taints.iter().map(|taint| taint["key"].as_str().unwrap().to_owned()).collect()
        });
        let expected: Option<Vec<String>> =
            expected.map(|keys| keys.iter().map(ToString::to_string).collect());
        assert_eq!(keys, expected);
    }

    fn not_ready() -> Value {
        json!({"key": NOT_READY_TAINT, "effect": "NoSchedule"})
    }

    #[test]
    fn a_ready_node_loses_the_taint() {
        check(&json!({"taints": [not_ready()]}), Some("True"), Some(&[]));
    }

    #[test]
    fn a_node_that_was_never_ready_keeps_it() {
        check(&json!({"taints": [not_ready()]}), None, None);
    }

    #[test]
    fn a_node_that_stops_being_ready_gets_it() {
        check(&json!({}), Some("False"), Some(&[NOT_READY_TAINT]));
    }

    #[test]
    fn an_unknown_state_is_another_taint() {
        check(&json!({"taints": [not_ready()]}), Some("Unknown"), Some(&[UNREACHABLE]));
    }

    #[test]
    fn a_cordon_is_a_taint() {
        check(&json!({"unschedulable": true}), Some("True"), Some(&[UNSCHEDULABLE]));
    }

    #[test]
    fn taints_of_others_stay() {
        let os = json!({"key": "os", "value": "Windows", "effect": "NoSchedule"});
        check(&json!({"taints": [os, not_ready()]}), Some("True"), Some(&["os"]));
        check(&json!({"taints": [os]}), Some("True"), None);
    }
}
