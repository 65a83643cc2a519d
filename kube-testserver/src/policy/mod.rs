//! ValidatingAdmissionPolicies: CEL rules that may refuse a write or warn about it.
//!
//! Source: Kubernetes documentation, "Validating Admission Policy". Parameters are not supported: a policy or
//! binding with parameters is refused.

mod cel;
mod matching;

use serde_json::{Value, json};

use super::call::{Call, Operation};
use super::error::{ApiError, FieldError, Result};
use super::identity::User;
use super::meta;
use super::resources::StorageKey;
use super::store::Store;

use cel::{ExpressionError, Names, compile};

/// The API group of policies and bindings.
pub(crate) const GROUP: &str = "admissionregistration.k8s.io";
const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Fills in what a policy leaves out.
pub(crate) fn default_policy(policy: &mut Value) {
    if let Some(spec) = policy.get_mut("spec").and_then(Value::as_object_mut) {
        spec.entry("failurePolicy").or_insert_with(|| "Fail".into());
    }
    default_matching(policy.pointer_mut("/spec/matchConstraints"));
}

/// Fills in what a binding leaves out.
pub(crate) fn default_binding(binding: &mut Value) {
    default_matching(binding.pointer_mut("/spec/matchResources"));
}

fn default_matching(part: Option<&mut Value>) {
    let Some(part) = part.and_then(Value::as_object_mut) else { return };
    for selector in ["namespaceSelector", "objectSelector"] {
        part.entry(selector).or_insert_with(|| json!({}));
    }
    part.entry("matchPolicy").or_insert_with(|| "Equivalent".into());
    for rules in ["resourceRules", "excludeResourceRules"] {
        let rules = part.get_mut(rules).and_then(Value::as_array_mut);
        for rule in rules.into_iter().flatten().filter_map(Value::as_object_mut) {
            rule.entry("scope").or_insert_with(|| "*".into());
        }
    }
}

/// Complaints about a policy.
///
/// # Errors
/// 501 for parameters and for functions that are not simulated.
pub(crate) fn validate_policy(policy: &Value) -> Result<Vec<FieldError>> {
    if policy.pointer("/spec/paramKind").is_some() {
        return Err(ApiError::not_implemented("parameters of a ValidatingAdmissionPolicy"));
    }
    let mut errors = vec![];
    let failure = text(policy, "/spec/failurePolicy");
    if !["Fail", "Ignore"].contains(&failure) {
        let field = "spec.failurePolicy";
        errors.push(FieldError::not_supported(field, &failure.into(), &["Fail", "Ignore"]));
    }
    if policy.pointer("/spec/matchConstraints").is_none() {
        errors.push(FieldError::required("spec.matchConstraints", ""));
    } else if list(policy, "/spec/matchConstraints/resourceRules").is_empty() {
        errors.push(FieldError::required("spec.matchConstraints.resourceRules", ""));
    }
    let audited = !list(policy, "/spec/auditAnnotations").is_empty();
    if list(policy, "/spec/validations").is_empty() && !audited {
        let why = "validations or auditAnnotations must be present";
        errors.push(FieldError::required("spec.validations", why));
    }
    for (member, part) in [
        ("matchConditions", "expression"),
        ("variables", "expression"),
        ("validations", "expression"),
        ("validations", "messageExpression"),
    ] {
        for (index, item) in list(policy, &format!("/spec/{member}")).iter().enumerate() {
            let field = format!("spec.{member}[{index}].{part}");
            let expression = text(item, &format!("/{part}"));
            if expression.trim().is_empty() {
                if part == "expression" {
                    errors.push(FieldError::required(&field, "expression is not specified"));
                }
                continue;
            }
            match compile(expression) {
                Ok(_) => {}
                Err(error @ ExpressionError::Syntax(_)) => {
                    errors.push(FieldError::invalid(
                        &field,
                        &expression.into(),
                        &error.to_string(),
                    ));
                }
                Err(ExpressionError::Function(name)) => {
                    return Err(ApiError::not_implemented(&format!("the CEL function {name}")));
                }
            }
        }
    }
    Ok(errors)
}

/// Complaints about a binding.
///
/// # Errors
/// 501 for parameters and for functions that are not simulated.
pub(crate) fn validate_binding(binding: &Value) -> Result<Vec<FieldError>> {
    if binding.pointer("/spec/paramRef").is_some() {
        return Err(ApiError::not_implemented("parameters of a ValidatingAdmissionPolicyBinding"));
    }
    let mut errors = vec![];
    if text(binding, "/spec/policyName").is_empty() {
        errors.push(FieldError::required("spec.policyName", ""));
    }
    let field = "spec.validationActions";
    let actions = list(binding, "/spec/validationActions");
    if actions.is_empty() {
        errors.push(FieldError::required(field, ""));
    }
    for (index, action) in actions.iter().enumerate() {
        if !ACTIONS.contains(&action.as_str().unwrap_or("")) {
            let field = format!("{field}[{index}]");
            errors.push(FieldError::not_supported(&field, action, &ACTIONS));
        }
    }
    if actions.contains(&"Deny".into()) && actions.contains(&"Warn".into()) {
        let why = "must not contain both Deny and Warn (repeating the same validation failure \
                   information in the API response and headers serves no purpose)";
        let shown = Value::from(actions.to_vec());
        errors.push(FieldError::invalid(field, &shown, why));
    }
    Ok(errors)
}

/// A write, for policies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write<'a> {
    /// The request.
    pub(crate) call: &'a Call,
    /// The operation.
    pub(crate) operation: Operation,
    /// The state before.
    pub(crate) before: Option<&'a Value>,
    /// The state after.
    pub(crate) object: Option<&'a Value>,
}

/// Evaluates every bound policy. Returns the warnings.
///
/// # Errors
/// The error of the first policy that refuses; 422 unless it has another code.
pub(crate) fn admit(store: &Store, write: Write<'_>) -> Result<Vec<String>> {
    if write.call.resource.group == GROUP {
        return Ok(vec![]);
    }
    let bindings = store.list(&StorageKey::new(GROUP, "validatingadmissionpolicybindings"), "");
    let policies = StorageKey::new(GROUP, "validatingadmissionpolicies");
    let mut warnings = vec![];
    for binding in bindings {
        let Some(policy) = store.get(&policies, "", text(binding, "/spec/policyName")) else {
            continue;
        };
        let matches = |part| matching::matches(store, part, write);
        let limits = binding.pointer("/spec/matchResources");
        if !policy.pointer("/spec/matchConstraints").is_some_and(matches)
            || !limits.is_none_or(matches)
        {
            continue;
        }
        let says = |action: &str| list(binding, "/spec/validationActions").contains(&action.into());
        for failure in failures(store, policy, write) {
            let by = format!(
                "ValidatingAdmissionPolicy '{}' with binding '{}'",
                meta::name(policy),
                meta::name(binding)
            );
            if says("Deny") {
                let message = format!("{by} denied request: {}", failure.message);
                return Err(denied(write.call, &message, &failure.reason));
            }
            if says("Warn") {
                warnings.push(format!("Validation failed for {by}: {}", failure.message));
            }
        }
    }
    Ok(warnings)
}

struct Failure {
    message: String,
    reason: String,
}

/// The failed validations of a policy for a write.
fn failures(store: &Store, policy: &Value, write: Write<'_>) -> Vec<Failure> {
    let mut names = names(store, write);
    let ignores = text(policy, "/spec/failurePolicy") == "Ignore";
    let broken = |why: String| Failure { message: why, reason: String::new() };
    for condition in list(policy, "/spec/matchConditions") {
        match names.holds(text(condition, "/expression")) {
            Ok(true) => {}
            Ok(false) => return vec![],
            Err(_) if ignores => return vec![],
            Err(why) => return vec![broken(why)],
        }
    }
    let variables: Vec<_> = list(policy, "/spec/variables")
        .iter()
        .map(|own| (text(own, "/name").to_owned(), text(own, "/expression").to_owned()))
        .collect();
    names.set_variables(&variables);
    let mut out = vec![];
    for validation in list(policy, "/spec/validations") {
        let expression = text(validation, "/expression");
        match names.holds(expression) {
            Ok(true) => {}
            Ok(false) => out.push(Failure {
                message: message(&names, validation, expression),
                reason: text(validation, "/reason").to_owned(),
            }),
            Err(_) if ignores => {}
            Err(why) => {
                let why = format!("expression '{expression}' resulted in error: {why}");
                out.push(broken(why));
            }
        }
    }
    out
}

fn message(names: &Names, validation: &Value, expression: &str) -> String {
    let made = match text(validation, "/messageExpression") {
        "" => None,
        made => names.text(made).filter(|made| !made.trim().is_empty()),
    };
    match (made, text(validation, "/message").trim()) {
        (Some(made), _) => made,
        (None, "") => format!("failed expression: {}", expression.trim()),
        (None, fixed) => fixed.to_owned(),
    }
}

fn names(store: &Store, write: Write<'_>) -> Names {
    let Write { call, operation, before, object } = write;
    let resource = &call.resource;
    // The kind of the body.
    let sub = resource.subresource(&call.subresource);
    let kind = json!({
        "group": resource.group, "version": resource.version,
        "kind": sub.map_or(&resource.kind, |sub| &sub.kind),
    });
    let place = json!({
        "group": resource.group, "version": resource.version, "resource": resource.plural,
    });
    let namespace = store.get(&StorageKey::new("", "namespaces"), "", &call.namespace);
    let mut names = Names::default();
    names.set("object", object.unwrap_or(&Value::Null));
    names.set("oldObject", before.unwrap_or(&Value::Null));
    names.set("params", &Value::Null);
    names.set("namespaceObject", namespace.map_or(&Value::Null, AsRef::as_ref));
    names.set(
        "request",
        &json!({
            "kind": kind, "requestKind": kind, "resource": place, "requestResource": place,
            "subResource": call.subresource, "requestSubResource": call.subresource,
            "name": call.name, "namespace": call.namespace,
            "operation": matching::word(operation), "userInfo": user(&call.user),
            "dryRun": call.options.dry_run,
        }),
    );
    names
}

fn user(user: &User) -> Value {
    json!({
        "username": user.name, "uid": user.uid, "groups": user.groups, "extra": user.extra,
    })
}

fn denied(call: &Call, message: &str, reason: &str) -> ApiError {
    let (code, reason) = match reason {
        "Forbidden" => (403, "Forbidden"),
        "RequestEntityTooLarge" => (413, "RequestEntityTooLarge"),
        "Unauthorized" => (401, "Unauthorized"),
        _ => (422, "Invalid"),
    };
    let refused = ApiError::forbidden(call.subject(), message);
    ApiError {
        code,
        reason: Some(reason),
        ..refused.with_causes(vec![json!({"message": message})])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_must_compile() {
        let mut given = json!({"spec": {"matchConstraints": {"resourceRules": [{}]},
            "validations": [{"expression": "object.metadata.name =="}]}});
        default_policy(&mut given);
        let errors = validate_policy(&given).unwrap();
        assert_eq!(errors.len(), 1);
        assert_eq!(errors[0].field, "spec.validations[0].expression");
    }

    #[test]
    fn parameters_are_not_simulated() {
        assert_eq!(validate_policy(&json!({"spec": {"paramKind": {}}})).unwrap_err().code, 501);
        assert_eq!(validate_binding(&json!({"spec": {"paramRef": {}}})).unwrap_err().code, 501);
    }

    #[test]
    fn a_binding_denies_or_warns() {
        let with = |actions: Value| {
            validate_binding(&json!({"spec": {"policyName": "p", "validationActions": actions}}))
                .unwrap()
        };
        assert!(with(json!(["Deny", "Audit"])).is_empty());
        assert_eq!(with(json!(["Deny", "Warn"])).len(), 1);
        assert_eq!(with(json!([])).len(), 1);
    }
}
