//! Roles and bindings.

use jiff::Timestamp;
use serde_json::Value;

use crate::auth::rbac::GROUP;
use crate::call::Call;
use crate::error::{ApiError, FieldError, Result};
use crate::{meta, names};

use super::ages::age;
use super::values::{invalid_for, items_mut, list, or_default, text};
use super::{CREATED_AT, Columns, NameRule, Strategy, TEXT};

/// Roles and `ClusterRoles`.
#[derive(Debug)]
pub(super) struct Roles {
    pub(super) namespaced: bool,
}

impl Strategy for Roles {
    fn name_rule(&self) -> NameRule {
        names::path_segment
    }

    fn validate(&self, _call: &Call, object: &Value) -> Result<Vec<FieldError>> {
        if object.get("aggregationRule").is_some_and(|rule| !rule.is_null()) {
            // No controller aggregates, and a role without its rules would be a wrong answer.
            return Err(ApiError::not_implemented("the aggregationRule of a ClusterRole"));
        }
        Ok(role(object, self.namespaced))
    }

    fn columns(&self) -> Columns {
        CREATED_AT
    }

    fn cells(&self, object: &Value, _now: Timestamp) -> Vec<Value> {
        vec![meta::name(object).into(), meta::text(object, "creationTimestamp").into()]
    }
}

/// `RoleBindings` and `ClusterRoleBindings`.
#[derive(Debug)]
pub(super) struct RoleBindings {
    pub(super) namespaced: bool,
}

impl Strategy for RoleBindings {
    fn name_rule(&self) -> NameRule {
        names::path_segment
    }

    fn default(&self, object: &mut Value) {
        default_binding(object);
    }

    fn validate(&self, _call: &Call, object: &Value) -> Result<Vec<FieldError>> {
        Ok(binding(object, self.namespaced))
    }

    fn validate_update(
        &self,
        call: &Call,
        before: &Value,
        object: &Value,
    ) -> Result<Vec<FieldError>> {
        Ok(self.validate(call, object)?.into_iter().chain(change(before, object)).collect())
    }

    fn columns(&self) -> Columns {
        &[
            ("Name", TEXT, 0),
            ("Role", TEXT, 0),
            ("Age", TEXT, 0),
            ("Users", TEXT, 1),
            ("Groups", TEXT, 1),
            ("ServiceAccounts", TEXT, 1),
        ]
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let role = format!("{}/{}", text(object, "/roleRef/kind"), text(object, "/roleRef/name"));
        let subjects = |kind: &str| -> Value {
            let chosen = list(object, "/subjects").iter().filter(|s| text(s, "/kind") == kind);
            let names = chosen.map(|subject| match kind {
                "ServiceAccount" => {
                    format!("{}/{}", text(subject, "/namespace"), text(subject, "/name"))
                }
                _ => text(subject, "/name").to_owned(),
            });
            names.collect::<Vec<_>>().join(", ").into()
        };
        let (name, age) = (meta::name(object).into(), age(object, now));
        let users = subjects("User");
        vec![name, role.into(), age, users, subjects("Group"), subjects("ServiceAccount")]
    }
}

/// Fills in the API groups of a binding's role and subjects.
fn default_binding(binding: &mut Value) {
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
    let role = text(binding, "/roleRef/name");
    if role.is_empty() {
        errors.push(FieldError::required("roleRef.name", ""));
    } else {
        errors.extend(invalid_for("roleRef.name", role, &names::path_segment(role)));
    }
    for (index, subject) in list(binding, "/subjects").iter().enumerate() {
        let field = |member: &str| format!("subjects[{index}].{member}");
        let name = text(subject, "/name");
        if name.is_empty() {
            errors.push(FieldError::required(&field("name"), ""));
        }
        let group = text(subject, "/apiGroup");
        let expected = match text(subject, "/kind") {
            "ServiceAccount" => {
                if !name.is_empty() {
                    let wrong = names::dns1123_subdomain(name);
                    errors.extend(invalid_for(&field("name"), name, &wrong));
                }
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

/// The validation error of a binding with a changed role.
fn change(before: &Value, object: &Value) -> Option<FieldError> {
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

    use super::super::values::texts;
    use super::*;

    #[test]
    fn rules_say_what_and_how() {
        let without = json!({"rules": [{"apiGroups": [""], "resources": ["configmaps"]}]});
        let expected = ["rules[0].verbs: Required value: verbs must contain at least one value"];
        assert_eq!(texts(&role(&without, true)), expected);
        let url = json!({"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]});
        assert!(role(&url, false).is_empty());
        assert_eq!(role(&url, true).len(), 1);
    }

    #[test]
    fn groups_are_filled_in() {
        let mut binding = json!({"roleRef": {"kind": "Role", "name": "r"},
            "subjects": [{"kind": "User", "name": "u"},
                {"kind": "ServiceAccount", "name": "s", "namespace": "n"}]});
        default_binding(&mut binding);
        assert!(self::binding(&binding, true).is_empty());
        assert_eq!(binding["subjects"][0]["apiGroup"], GROUP);
        assert_eq!(binding["subjects"][1].get("apiGroup"), None);
        assert_eq!(
            texts(&self::binding(&binding, false)),
            ["roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\""]
        );
    }

    #[test]
    fn names_in_bindings_are_names() {
        let binding = |role: &str, account: &str| {
            let binding = json!({"roleRef": {"apiGroup": GROUP, "kind": "Role", "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "n"}]});
            texts(&self::binding(&binding, true))
        };
        assert_eq!(binding("system:r", "s"), [""; 0]);
        assert_eq!(
            binding("a/b", "s"),
            ["roleRef.name: Invalid value: \"a/b\": may not contain '/'"]
        );
        assert!(binding("r", "Not_A_Name")[0].starts_with("subjects[0].name: Invalid value: "));
    }
}
