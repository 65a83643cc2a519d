//! Nodes.

use serde_json::{Value, json};

use crate::cluster::error::FieldError;
use crate::cluster::names::{label_value, qualified_name};

use super::{list, text};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
/// Key of the taint of a Node that is not ready.
pub(crate) const NOT_READY_TAINT: &str = "node.kubernetes.io/not-ready";

/// Complaints about a Node.
pub(super) fn node(node: &Value) -> Vec<FieldError> {
    let mut errors = vec![];
    let mut seen: Vec<(&str, &str)> = vec![];
    for (index, taint) in list(node, "/spec/taints").iter().enumerate() {
        // The real path is `spec.taints`; the server says otherwise.
        let path = format!("metadata.taints[{index}]");
        let (key, value, effect) =
            (text(taint, "/key"), text(taint, "/value"), text(taint, "/effect"));
        errors.extend(super::invalid_for(&format!("{path}.key"), key, &qualified_name(key)));
        let wrong = label_value(value);
        if !wrong.is_empty() {
            let field = format!("{path}.value");
            errors.push(FieldError::invalid(&field, &value.into(), &wrong.join(";")));
        }
        if effect.is_empty() {
            errors.push(FieldError::required(&format!("{path}.effect"), ""));
        } else if !EFFECTS.contains(&effect) {
            let field = format!("{path}.effect");
            errors.push(FieldError::not_supported(&field, &effect.into(), &EFFECTS));
        }
        if seen.contains(&(key, effect)) {
            errors.push(duplicate(&path, taint));
        }
        seen.push((key, effect));
    }
    errors
}

fn duplicate(path: &str, taint: &Value) -> FieldError {
    let json = |member: &str| Value::from(text(taint, member));
    let added = taint.get("timeAdded").unwrap_or(&Value::Null);
    let (key, value, effect) = (json("/key"), json("/value"), json("/effect"));
    FieldError {
        reason: "FieldValueDuplicate",
        message: format!(
            "Duplicate value: {{\"Key\":{key},\"Value\":{value},\"Effect\":{effect},\
             \"TimeAdded\":{added}}}: taints must be unique by key and effect pair"
        ),
        field: path.to_owned(),
    }
}

/// Complaints about what may be set once only.
pub(super) fn change(before: &Value, node: &Value) -> Vec<FieldError> {
    let mut errors = vec![];
    let changed = |pointer: &str| {
        let old = before.pointer(pointer);
        old.is_some() && old != node.pointer(pointer)
    };
    if changed("/spec/podCIDRs") {
        let why = "node updates may not change podCIDR except from \"\" to valid";
        errors.push(FieldError::forbidden("spec.podCIDRs", why));
    }
    if changed("/spec/providerID") {
        let why = "node updates may not change providerID except from \"\" to valid";
        errors.push(FieldError::forbidden("spec.providerID", why));
    }
    errors
}

/// The taints of a new Node: nobody has said that it is ready.
pub(crate) fn new_taints(node: &mut Value) {
    let mut taints = list(node, "/spec/taints").to_vec();
    let there = |taint: &Value| {
        text(taint, "/key") == NOT_READY_TAINT && text(taint, "/effect") == "NoSchedule"
    };
    if !taints.iter().any(there) {
        taints.push(json!({"key": NOT_READY_TAINT, "effect": "NoSchedule"}));
    }
    let mut spec = node.get("spec").cloned().unwrap_or_else(|| json!({}));
    super::put(&mut spec, "taints", taints.into());
    super::put(node, "spec", spec);
}

#[cfg(test)]
mod tests {
    use super::super::texts;
    use super::*;

    #[track_caller]
    fn check(taints: &Value, expected: &[&str]) {
        assert_eq!(texts(&node(&json!({"spec": {"taints": taints}}))), expected);
    }

    #[test]
    fn effects_are_known_words() {
        check(
            &json!([{"key": "os", "effect": "Wrong"}]),
            &["metadata.taints[0].effect: Unsupported value: \"Wrong\": supported values: \
               \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\""],
        );
        check(&json!([{"key": "os"}]), &["metadata.taints[0].effect: Required value"]);
    }

    #[test]
    fn key_and_effect_are_unique() {
        let taint = json!({"key": "os", "value": "Windows", "effect": "NoSchedule"});
        check(
            &json!([taint, taint]),
            &["metadata.taints[1]: Duplicate value: {\"Key\":\"os\",\"Value\":\"Windows\",\
               \"Effect\":\"NoSchedule\",\"TimeAdded\":null}: taints must be unique by key and \
               effect pair"],
        );
    }

    #[test]
    fn the_provider_id_stays() {
        let with = |id: &str| json!({"spec": {"providerID": id}});
        assert_eq!(change(&with("a"), &with("b")).len(), 1);
        assert!(change(&json!({"spec": {}}), &with("b")).is_empty());
    }

    #[test]
    fn a_new_node_is_tainted_once() {
        let mut node = json!({"spec": {"taints": [{"key": "os", "effect": "NoSchedule"}]}});
        new_taints(&mut node);
        new_taints(&mut node);
        assert_eq!(list(&node, "/spec/taints").len(), 2);
    }
}
