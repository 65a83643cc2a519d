//! Validation of access reviews.
//!
//! Source: Kubernetes API, group `authorization.k8s.io`.

use serde_json::{Map, Value};

use crate::error::{ApiError, FieldError, Result, Subject};

/// Refuses an invalid access review of the plural resource.
///
/// # Errors
/// 422 with every invalid field.
pub(super) fn check(plural: &str, review: &Value) -> Result<()> {
    let mut errors = spec(review.get("spec").unwrap_or(&Value::Null));
    if plural != "selfsubjectaccessreviews" {
        errors.extend(subject(review));
    }
    errors.extend(metadata(plural, review));
    if plural == "localsubjectaccessreviews" {
        errors.extend(local(review));
    }
    if errors.is_empty() {
        return Ok(());
    }
    // The handler of reviews names no kind in its error.
    let of = Subject { group: "authorization.k8s.io", kind: "", name: "" };
    Err(ApiError::invalid(of, &errors))
}

fn spec(spec: &Value) -> Vec<FieldError> {
    let resource = spec.get("resourceAttributes");
    let mut errors = vec![];
    match (resource, spec.get("nonResourceAttributes")) {
        (Some(_), Some(path)) => errors.push(FieldError::invalid(
            "spec.nonResourceAttributes",
            path,
            "cannot be specified in combination with resourceAttributes",
        )),
        (None, None) => errors.push(FieldError::invalid(
            "spec.resourceAttributes",
            &Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )),
        _ => {}
    }
    for member in ["fieldSelector", "labelSelector"] {
        if let Some(given) = resource.and_then(|resource| resource.get(member)) {
            selector(given, &format!("spec.resourceAttributes.{member}"), &mut errors);
        }
    }
    errors
}

fn subject(review: &Value) -> Option<FieldError> {
    let user = review.pointer("/spec/user").and_then(Value::as_str).unwrap_or("");
    let groups = review.pointer("/spec/groups").and_then(Value::as_array);
    let nobody = user.is_empty() && groups.is_none_or(Vec::is_empty);
    let why = "at least one of user or group must be specified";
    nobody.then(|| FieldError::invalid("spec.user", &user.into(), why))
}

/// A review is never stored, so that only the namespace of a local one means something.
fn metadata(plural: &str, review: &Value) -> Option<FieldError> {
    let local = plural == "localsubjectaccessreviews";
    let why = if local { "must be empty except for namespace" } else { "must be empty" };
    let metadata = review.get("metadata")?;
    let given = |(member, value): (&String, &Value)| {
        let allowed = member == "managedFields" || local && member == "namespace";
        !allowed && !value.is_null()
    };
    let wrong = metadata.as_object().is_some_and(|members| members.iter().any(given));
    wrong.then(|| FieldError::invalid("metadata", metadata, why))
}

fn local(review: &Value) -> Vec<FieldError> {
    let text = |pointer: &str| review.pointer(pointer).and_then(Value::as_str).unwrap_or("");
    let mut errors = vec![];
    let asked = text("/spec/resourceAttributes/namespace");
    if review.pointer("/spec/resourceAttributes").is_some() && asked != text("/metadata/namespace")
    {
        let field = "spec.resourceAttributes.namespace";
        errors.push(FieldError::invalid(field, &asked.into(), "must match metadata.namespace"));
    }
    if let Some(path) = review.pointer("/spec/nonResourceAttributes") {
        let why = "disallowed on this kind of request";
        errors.push(FieldError::invalid("spec.nonResourceAttributes", path, why));
    }
    errors
}

fn selector(given: &Value, field: &str, errors: &mut Vec<FieldError>) {
    let raw = given.get("rawSelector").and_then(Value::as_str).unwrap_or("");
    let requirements = given.get("requirements").and_then(Value::as_array);
    let requirements = requirements.map(Vec::as_slice).unwrap_or_default();
    if raw.is_empty() && requirements.is_empty() {
        let why = format!("when {field} is specified, requirements or rawSelector is required");
        errors.push(FieldError::required(&format!("{field}.requirements"), &why));
    }
    if !raw.is_empty() && !requirements.is_empty() {
        let why = "may not specified at the same time as requirements";
        errors.push(FieldError::forbidden(&format!("{field}.rawSelector"), why));
    }
    for (index, requirement) in requirements.iter().enumerate() {
        let Some(requirement) = requirement.as_object() else { continue };
        self::requirement(requirement, &format!("{field}.requirements[{index}]"), errors);
    }
}

/// Operators that the server does not know are allowed: clients may be newer.
fn requirement(requirement: &Map<String, Value>, field: &str, errors: &mut Vec<FieldError>) {
    let text = |member| requirement.get(member).and_then(Value::as_str).unwrap_or("");
    let values = requirement.get("values").and_then(Value::as_array);
    let without = values.is_none_or(Vec::is_empty);
    if text("key").is_empty() {
        errors.push(FieldError::required(&format!("{field}.key"), "must be specified"));
    }
    let values = format!("{field}.values");
    match text("operator") {
        "In" | "NotIn" if without => {
            let why = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(&values, why));
        }
        "Exists" | "DoesNotExist" if !without => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(&values, why));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn messages(plural: &str, review: &Value) -> Vec<String> {
        let Err(error) = check(plural, review) else { return vec![] };
        assert_eq!(error.code, 422);
        let details = error.details.unwrap_or_default();
        let causes = details["causes"].as_array().cloned().unwrap_or_default();
        let text = |cause: &Value, member: &str| cause[member].as_str().unwrap_or("").to_owned();
        causes.iter().map(|c| format!("{}: {}", text(c, "field"), text(c, "message"))).collect()
    }

    #[test]
    fn a_review_has_no_metadata() {
        let review = |metadata: Value| json!({"metadata": metadata, "spec": {"user": "u", "resourceAttributes": {"namespace": "n"}}});
        let named = review(json!({"name": "x"}));
        assert_eq!(
            messages("subjectaccessreviews", &named),
            [r#"metadata: Invalid value: {"name":"x"}: must be empty"#]
        );
        let local = review(json!({"namespace": "n"}));
        assert_eq!(messages("localsubjectaccessreviews", &local), [""; 0]);
        let elsewhere = review(json!({"namespace": "m"}));
        assert_eq!(
            messages("localsubjectaccessreviews", &elsewhere),
            [
                r#"spec.resourceAttributes.namespace: Invalid value: "n": must match metadata.namespace"#
            ]
        );
    }

    #[test]
    fn selectors_are_complete_and_said_once() {
        let review =
            |selector: Value| json!({"spec": {"resourceAttributes": {"fieldSelector": selector}}});
        let of = |selector: Value| messages("selfsubjectaccessreviews", &review(selector));
        let field = "spec.resourceAttributes.fieldSelector";
        assert_eq!(
            of(json!({})),
            [format!(
                "{field}.requirements: Required value: when {field} is specified, requirements or \
                 rawSelector is required"
            )]
        );
        let key = |operator: &str, values: Value| json!({"key": "k", "operator": operator, "values": values});
        assert_eq!(of(json!({"requirements": [key("In", json!(["v"]))]})), [""; 0]);
        assert_eq!(of(json!({"requirements": [key("Later", json!([]))]})), [""; 0]);
        assert_eq!(of(json!({"requirements": [key("In", json!([]))]})).len(), 1);
        assert_eq!(of(json!({"requirements": [key("Exists", json!(["v"]))]})).len(), 1);
        let twice = json!({"rawSelector": "a=b", "requirements": [key("Exists", json!([]))]});
        assert_eq!(of(twice).len(), 1);
    }
}
