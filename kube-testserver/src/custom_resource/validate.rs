//! Validation of objects by an OpenAPI v3 schema, with the messages of the API.
//!
//! Source: `k8s.io/kube-openapi/pkg/validation` and the wrapping in apiextensions-apiserver.

use regex::Regex;
use serde_json::Value;

use crate::error::FieldError;

/// Validation errors of `object`, without its `metadata`.
pub(super) fn validate(schema: &Value, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check(schema, object, "", &mut errors);
    errors
}

fn member_path(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn has_type(wanted: &str, value: &Value) -> bool {
    let found = type_name(value);
    found == wanted
        || (wanted == "number" && found == "integer")
        || (wanted == "integer" && value.as_f64().is_some_and(|number| number.fract() == 0.0))
}

fn truth(schema: &Value, keyword: &str) -> bool {
    schema.get(keyword) == Some(&Value::Bool(true))
}

fn check(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if value.is_null() && truth(schema, "nullable") {
        return;
    }
    if truth(schema, "x-kubernetes-int-or-string") {
        if !(value.is_string() || has_type("integer", value)) {
            wrong_type(value, path, "integer,string", errors);
        }
    } else if let Some(wanted) = schema.get("type").and_then(Value::as_str)
        && !has_type(wanted, value)
    {
        wrong_type(value, path, wanted, errors);
        return;
    }
    check_enum(schema, value, path, errors);
    match value {
        Value::String(text) => check_text(schema, text, path, errors),
        Value::Number(_) => check_number(schema, value, path, errors),
        Value::Array(items) => check_items(schema, items, path, errors),
        Value::Object(_) => check_members(schema, value, path, errors),
        Value::Null | Value::Bool(_) => {}
    }
    check_combined(schema, value, path, errors);
}

fn wrong_type(value: &Value, path: &str, wanted: &str, errors: &mut Vec<FieldError>) {
    let found = Value::from(type_name(value));
    let why = format!("{path} in body must be of type {wanted}: {found}");
    errors.push(FieldError::type_invalid(path, &found, &why));
}

fn invalid(path: &str, value: &Value, why: &str, errors: &mut Vec<FieldError>) {
    errors.push(FieldError::invalid(path, value, &format!("{path} in body {why}")));
}

fn check_enum(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(allowed) = schema.get("enum").and_then(Value::as_array) else { return };
    if allowed.contains(value) {
        return;
    }
    let words: Vec<String> = allowed
        .iter()
        .map(|word| word.as_str().map_or_else(|| word.to_string(), str::to_owned))
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    errors.push(FieldError::not_supported(path, value, &words));
}

fn limit(schema: &Value, keyword: &str) -> Option<usize> {
    usize::try_from(schema.get(keyword)?.as_u64()?).ok()
}

fn check_text(schema: &Value, text: &str, path: &str, errors: &mut Vec<FieldError>) {
    let value = Value::from(text);
    let length = text.chars().count();
    if let Some(max) = limit(schema, "maxLength").filter(|max| length > *max) {
        errors.push(FieldError::too_long(path, max));
    }
    if let Some(min) = limit(schema, "minLength").filter(|min| length < *min) {
        invalid(path, &value, &format!("should be at least {min} chars long"), errors);
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
        && !Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(text))
    {
        invalid(path, &value, &format!("should match '{pattern}'"), errors);
    }
    if let Some(format @ ("date-time" | "date" | "byte" | "duration")) =
        schema.get("format").and_then(Value::as_str)
        && !has_format(format, text)
    {
        invalid(path, &value, &format!("must be of type {format}: {value}"), errors);
    }
}

fn has_format(format: &str, text: &str) -> bool {
    use base64::Engine as _;
    match format {
        "date-time" => text.parse::<jiff::Timestamp>().is_ok(),
        "date" => text.parse::<jiff::civil::Date>().is_ok(),
        "byte" => base64::engine::general_purpose::STANDARD.decode(text).is_ok(),
        _ => text.parse::<jiff::SignedDuration>().is_ok(),
    }
}

fn check_number(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(number) = value.as_f64() else { return };
    if let Some(limit) = schema.get("maximum")
        && let Some(max) = limit.as_f64()
    {
        let exclusive = truth(schema, "exclusiveMaximum");
        if number > max || (exclusive && number >= max) {
            let or_equal = if exclusive { "" } else { " or equal to" };
            invalid(path, value, &format!("should be less than{or_equal} {limit}"), errors);
        }
    }
    if let Some(limit) = schema.get("minimum")
        && let Some(min) = limit.as_f64()
    {
        let exclusive = truth(schema, "exclusiveMinimum");
        if number < min || (exclusive && number <= min) {
            let or_equal = if exclusive { "" } else { " or equal to" };
            invalid(path, value, &format!("should be greater than{or_equal} {limit}"), errors);
        }
    }
    if let Some(step) = schema.get("multipleOf")
        && let Some(factor) = step.as_f64()
        && factor > 0.0
        && (number / factor).fract() != 0.0
    {
        invalid(path, value, &format!("should be a multiple of {step}"), errors);
    }
}

fn check_items(schema: &Value, items: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    if let Some(max) = limit(schema, "maxItems").filter(|max| items.len() > *max) {
        errors.push(FieldError::too_many(path, items.len(), max));
    }
    if let Some(min) = limit(schema, "minItems").filter(|min| items.len() < *min) {
        let value = Value::from(items.len());
        invalid(path, &value, &format!("should have at least {min} items"), errors);
    }
    let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
    let list_type = schema.get("x-kubernetes-list-type").and_then(Value::as_str);
    let mut seen: Vec<Value> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let at = format!("{path}[{index}]");
        if let Some(schema) = schema.get("items") {
            check(schema, item, &at, errors);
        }
        let identity = match (list_type, keys) {
            (Some("set"), _) => item.clone(),
            (Some("map"), Some(keys)) => keys
                .iter()
                .filter_map(Value::as_str)
                .filter_map(|key| Some((key.to_owned(), item.get(key)?.clone())))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            _ => continue,
        };
        if seen.contains(&identity) {
            errors.push(FieldError::duplicate(&at, &identity));
        }
        seen.push(identity);
    }
}

fn check_members(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(members) = value.as_object() else { return };
    if let Some(max) = limit(schema, "maxProperties").filter(|max| members.len() > *max) {
        errors.push(FieldError::too_many(path, members.len(), max));
    }
    if let Some(min) = limit(schema, "minProperties").filter(|min| members.len() < *min) {
        invalid(path, value, &format!("should have at least {min} properties"), errors);
    }
    let required = schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if !members.contains_key(name) {
            errors.push(FieldError::required(&member_path(path, name), ""));
        }
    }
    let properties = schema.get("properties");
    for (name, member) in members {
        if path.is_empty() && name == "metadata" {
            continue;
        }
        let known = properties.and_then(|properties| properties.get(name));
        let additional = schema.get("additionalProperties").filter(|schema| schema.is_object());
        if let Some(schema) = known.or(additional) {
            check(schema, member, &member_path(path, name), errors);
        }
    }
}

fn check_combined(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let list = |keyword: &str| schema.get(keyword).and_then(Value::as_array);
    let fits = |schema: &Value| {
        let mut errors = Vec::new();
        check(schema, value, path, &mut errors);
        errors.is_empty()
    };
    for schema in list("allOf").into_iter().flatten() {
        check(schema, value, path, errors);
    }
    let quoted = Value::from(path);
    let mut complain = |why: &str| {
        errors.push(FieldError::invalid(path, value, &format!("{quoted} {why}")));
    };
    if list("anyOf").is_some_and(|schemas| !schemas.iter().any(fits)) {
        complain("must validate at least one schema (anyOf)");
    }
    if let Some(schemas) = list("oneOf") {
        match schemas.iter().filter(|schema| fits(schema)).count() {
            1 => {}
            0 => complain("must validate one and only one schema (oneOf). Found none valid"),
            many => complain(&format!(
                "must validate one and only one schema (oneOf). Found {many} valid alternatives"
            )),
        }
    }
    if schema.get("not").is_some_and(fits) {
        complain("must not validate the schema (not)");
    }
}
