//! Roles and bindings.

use serde_json::Value;

use crate::cluster::auth::rbac::GROUP;
use crate::cluster::error::FieldError;

use super::{items_mut, list, or_default, text};

/// The group of a binding's role and subjects may be left out.
pub(super) fn default_binding(binding: &mut Value) {
    if let Some(role) = binding.get_mut("roleRef").and_then(Value::as_object_mut)
        && role.get("apiGroup").and_then(Value::as_str).unwrap_or("").is_empty()
    {
        role.insert("apiGroup".to_owned(), GROUP.into());
    }
    for subject in items_mut(binding, "/subjects") {
        if matches!(subject.get("kind").and_then(Value::as_str), Some("User" | "Group")) {
            or_default(subject, "apiGroup", GROUP);
        }
    }
}

/// Complaints about an object of that plural resource.
pub(super) fn object(plural: &str, object: &Value) -> Vec<FieldError> {
    match plural {
        "roles" | "clusterroles" => role(object, plural == "roles"),
        _ => binding(object, plural == "rolebindings"),
    }
}

fn role(role: &Value, namespaced: bool) -> Vec<FieldError> {
    let mut errors = vec![];
    for (index, rule) in list(role, "/rules").iter().enumerate() {
        let field = |member: &str| format!("rules[{index}].{member}");
        let has = |member: &str| !list(rule, &format!("/{member}")).is_empty();
        if !has("verbs") {
            let why = "verbs must contain at least one value";
            errors.push(FieldError::required(&field("verbs"), why));
        }
        if has("nonResourceURLs") {
            let urls = rule.get("nonResourceURLs").unwrap_or(&Value::Null);
            if namespaced {
                let why = "namespaced rules cannot apply to non-resource URLs";
                errors.push(FieldError::invalid(&field("nonResourceURLs"), urls, why));
            }
            if has("apiGroups") || has("resources") || has("resourceNames") {
                let why = "rules cannot apply to both regular resources and non-resource URLs";
                errors.push(FieldError::invalid(&field("nonResourceURLs"), urls, why));
            }
            continue;
        }
        if !has("apiGroups") {
            let why = "resource rules must supply at least one api group";
            errors.push(FieldError::required(&field("apiGroups"), why));
        }
        if !has("resources") {
            let why = "resource rules must supply at least one resource";
            errors.push(FieldError::required(&field("resources"), why));
        }
    }
    errors
}

fn binding(binding: &Value, namespaced: bool) -> Vec<FieldError> {
    let mut errors = vec![];
    let group = text(binding, "/roleRef/apiGroup");
    if group != GROUP {
        let field = "roleRef.apiGroup";
        errors.push(FieldError::not_supported(field, &group.into(), &[GROUP]));
    }
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    let kind = text(binding, "/roleRef/kind");
    if !kinds.contains(&kind) {
        errors.push(FieldError::not_supported("roleRef.kind", &kind.into(), kinds));
    }
    if text(binding, "/roleRef/name").is_empty() {
        errors.push(FieldError::required("roleRef.name", ""));
    }
    for (index, subject) in list(binding, "/subjects").iter().enumerate() {
        let field = |member: &str| format!("subjects[{index}].{member}");
        if text(subject, "/name").is_empty() {
            errors.push(FieldError::required(&field("name"), ""));
        }
        let group = text(subject, "/apiGroup");
        let expected = match text(subject, "/kind") {
            "ServiceAccount" => {
                if !namespaced && text(subject, "/namespace").is_empty() {
                    errors.push(FieldError::required(&field("namespace"), ""));
                }
                ""
            }
            "User" | "Group" => GROUP,
            kind => {
                let known = ["ServiceAccount", "User", "Group"];
                let error = FieldError::not_supported(&field("kind"), &kind.into(), &known);
                errors.push(error);
                continue;
            }
        };
        if group != expected {
            let error = FieldError::not_supported(&field("apiGroup"), &group.into(), &[expected]);
            errors.push(error);
        }
    }
    errors
}

/// A binding keeps its role.
pub(super) fn change(before: &Value, object: &Value) -> Option<FieldError> {
    let (old, new) = (before.get("roleRef"), object.get("roleRef"));
    if old == new {
        return None;
    }
    let json = |member: &str| Value::from(text(object, member));
    let shown = format!(
        "{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}",
        json("/roleRef/apiGroup"),
        json("/roleRef/kind"),
        json("/roleRef/name"),
    );
    Some(FieldError::invalid_text("roleRef", &shown, "cannot change roleRef"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::texts;
    use super::*;

    #[test]
    fn rules_say_what_and_how() {
        let without = json!({"rules": [{"apiGroups": [""], "resources": ["configmaps"]}]});
        let expected = ["rules[0].verbs: Required value: verbs must contain at least one value"];
        assert_eq!(texts(&object("roles", &without)), expected);
        let url = json!({"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]});
        assert!(object("clusterroles", &url).is_empty());
        assert_eq!(object("roles", &url).len(), 1);
    }

    #[test]
    fn groups_are_filled_in() {
        let mut binding = json!({"roleRef": {"kind": "Role", "name": "r"},
            "subjects": [{"kind": "User", "name": "u"},
                {"kind": "ServiceAccount", "name": "s", "namespace": "n"}]});
        default_binding(&mut binding);
        assert!(object("rolebindings", &binding).is_empty());
        assert_eq!(binding["subjects"][0]["apiGroup"], GROUP);
        assert_eq!(binding["subjects"][1].get("apiGroup"), None);
        assert_eq!(
            texts(&object("clusterrolebindings", &binding)),
            ["roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\""]
        );
    }
}
