//! `LabelSelector` objects of budgets and policies.

use serde_json::Value;

use super::meta;

/// Whether a `LabelSelector` selects an object. `None` selects nothing, an empty selector everything.
pub(crate) fn selects(selector: Option<&Value>, object: &Value) -> bool {
    let Some(selector) = selector else { return false };
    let wanted = selector.get("matchLabels").and_then(Value::as_object);
    let labels =
        wanted.into_iter().flatten().all(|(key, value)| meta::label(object, key) == value.as_str());
    let rules = selector.get("matchExpressions").and_then(Value::as_array);
    labels && rules.into_iter().flatten().all(|rule| fits(rule, object))
}

fn fits(rule: &Value, object: &Value) -> bool {
    let text = |member: &str| rule.get(member).and_then(Value::as_str).unwrap_or("");
    let own = meta::label(object, text("key"));
    let values = rule.get("values").and_then(Value::as_array);
    let listed = || {
        let mut values = values.into_iter().flatten().filter_map(Value::as_str);
        own.is_some_and(|own| values.any(|value| value == own))
    };
    match text("operator") {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => own.is_some(),
        "DoesNotExist" => own.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors() {
        let pod = json!({"metadata": {"labels": {"app": "x"}}});
        assert!(!selects(None, &pod));
        assert!(selects(Some(&json!({})), &pod));
        assert!(selects(Some(&json!({"matchLabels": {"app": "x"}})), &pod));
        assert!(!selects(Some(&json!({"matchLabels": {"app": "y"}})), &pod));
        let rule = |operator: &str| json!({"matchExpressions": [{"key": "app", "operator": operator, "values": ["x"]}]});
        assert!(selects(Some(&rule("In")), &pod));
        assert!(!selects(Some(&rule("NotIn")), &pod));
        assert!(selects(Some(&rule("Exists")), &pod));
        assert!(!selects(Some(&rule("DoesNotExist")), &pod));
    }
}
