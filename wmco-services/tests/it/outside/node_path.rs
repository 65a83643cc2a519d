//! A property of path templates.

use serde_json::{Value, json};
use wmco_services::jsonpath::NodePath;

/// A template, in the first line, yields itself or a text of the node, which the other lines hold.
pub(crate) fn a_path_gives_a_text_of_the_node(text: &str) {
    let (template, node) = text.split_once('\n').unwrap_or((text, ""));
    let Ok(path) = template.parse::<NodePath>() else { return };
    let node = serde_json::from_str(node).unwrap_or_else(|_| {
        json!({"metadata": {"name": "win-1", "labels": {"a.b": "c"}},
            "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.5"}]}})
    });
    match path.text(&node) {
        Ok(value) if path.is_constant() => assert_eq!(value, template),
        Ok(value) => assert!(holds(&node, &value), "{template} gives {value}"),
        Err(_) => assert!(!path.is_constant(), "{template}"),
    }
}

fn holds(node: &Value, text: &str) -> bool {
    match node {
        Value::String(value) => value == text,
        Value::Array(items) => items.iter().any(|item| holds(item, text)),
        Value::Object(members) => members.values().any(|member| holds(member, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
