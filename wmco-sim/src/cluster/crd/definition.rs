//! Defaults and validation of CustomResourceDefinition objects themselves.

use serde_json::{Map, Value, json};

use crate::cluster::error::{ApiError, FieldError, Result};
use crate::cluster::meta;

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

fn versions(definition: &Value) -> &[Value] {
    let list = definition.pointer("/spec/versions").and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

fn storage_versions(definition: &Value) -> Vec<&str> {
    let stored = versions(definition)
        .iter()
        .filter(|version| version.get("storage") == Some(&Value::Bool(true)));
    stored.map(|version| text(version, "/name")).collect()
}

/// Fills in what the API fills in: names, the conversion strategy, the first status.
pub(crate) fn complete(definition: &mut Value, is_new: bool) {
    let kind = text(definition, "/spec/names/kind").to_owned();
    let stored: Vec<String> = storage_versions(definition).into_iter().map(str::to_owned).collect();
    let Some(spec) = meta::map_mut(definition, "spec") else { return };
    let conversion = spec.entry("conversion").or_insert_with(|| json!({}));
    if let Some(conversion) = conversion.as_object_mut() {
        conversion.entry("strategy").or_insert_with(|| "None".into());
    }
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let absent = |names: &Map<String, Value>, name: &str| {
            names.get(name).and_then(Value::as_str).unwrap_or("").is_empty()
        };
        if absent(names, "singular") && !kind.is_empty() {
            names.insert("singular".to_owned(), kind.to_lowercase().into());
        }
        if absent(names, "listKind") && !kind.is_empty() {
            names.insert("listKind".to_owned(), format!("{kind}List").into());
        }
    }
    if is_new && let Some(members) = definition.as_object_mut() {
        let status = json!({
            "conditions": null,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": if stored.is_empty() { Value::Null } else { stored.into() },
        });
        members.insert("status".to_owned(), status);
    }
}

/// Complaints about a definition.
///
/// # Errors
/// 501 for what it asks for and the simulator does not do.
pub(crate) fn validate(definition: &Value) -> Result<Vec<FieldError>> {
    unsupported(definition)?;
    let mut errors = Vec::new();
    let (group, plural) = (text(definition, "/spec/group"), text(definition, "/spec/names/plural"));
    let name = meta::name(definition);
    if name != format!("{plural}.{group}") {
        let why = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", &name.into(), why));
    }
    for (pointer, field) in [
        ("/spec/group", "spec.group"),
        ("/spec/names/plural", "spec.names.plural"),
        ("/spec/names/kind", "spec.names.kind"),
    ] {
        if text(definition, pointer).is_empty() {
            errors.push(FieldError::required(field, ""));
        }
    }
    let scope = text(definition, "/spec/scope");
    if scope.is_empty() {
        errors.push(FieldError::required("spec.scope", ""));
    } else if !matches!(scope, "Cluster" | "Namespaced") {
        let words = ["Cluster", "Namespaced"];
        errors.push(FieldError::not_supported("spec.scope", &scope.into(), &words));
    }
    if versions(definition).is_empty() {
        errors.push(FieldError::required("spec.versions", ""));
    }
    schemas(definition, &mut errors);
    if storage_versions(definition).len() != 1 && !versions(definition).is_empty() {
        let shown: Vec<String> = versions(definition).iter().map(in_go).collect();
        let why = "must have exactly one version marked as storage version";
        let shown = format!("[{}]", shown.join(","));
        errors.push(FieldError::invalid_text("spec.versions", &shown, why));
    }
    if storage_versions(definition).is_empty() {
        let why = "must have at least one stored version";
        errors.push(FieldError::invalid("status.storedVersions", &Value::Null, why));
    }
    Ok(errors)
}

/// What a definition asks for and the simulator does not do.
///
/// # Errors
/// 501 naming it.
fn unsupported(definition: &Value) -> Result<()> {
    if text(definition, "/spec/conversion/strategy") == "Webhook" {
        return Err(ApiError::not_implemented("conversion webhooks"));
    }
    if uses(definition.pointer("/spec/versions"), "x-kubernetes-validations") {
        return Err(ApiError::not_implemented("CEL rules (x-kubernetes-validations) of a schema"));
    }
    Ok(())
}

fn uses(value: Option<&Value>, keyword: &str) -> bool {
    match value {
        Some(Value::Object(members)) => {
            members.iter().any(|(name, member)| name == keyword || uses(Some(member), keyword))
        }
        Some(Value::Array(items)) => items.iter().any(|item| uses(Some(item), keyword)),
        _ => false,
    }
}

fn schemas(definition: &Value, errors: &mut Vec<FieldError>) {
    let list = versions(definition);
    for (index, version) in list.iter().enumerate() {
        let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
        let Some(schema) = version.pointer("/schema/openAPIV3Schema") else {
            errors.push(FieldError::required(&field, ""));
            continue;
        };
        // A single version is shown by the name that its schema had in v1beta1.
        let field = if list.len() == 1 { "spec.validation.openAPIV3Schema" } else { &field };
        if text(schema, "/type") != "object" {
            let why = "must be object at the root";
            let found = text(schema, "/type");
            errors.push(if found.is_empty() {
                FieldError::required(&format!("{field}.type"), "must be object at the root")
            } else {
                FieldError::invalid(&format!("{field}.type"), &found.into(), why)
            });
        }
        structural(schema, field, true, errors);
    }
}

/// Every part of a schema must say its type.
fn structural(schema: &Value, field: &str, is_root: bool, errors: &mut Vec<FieldError>) {
    let is = |extension: &str| schema.get(extension) == Some(&Value::Bool(true));
    let untyped = is("x-kubernetes-int-or-string") || is("x-kubernetes-preserve-unknown-fields");
    if !is_root && !untyped && text(schema, "/type").is_empty() {
        let part =
            if field.rsplit('.').next() == Some("items") { "array items" } else { "object fields" };
        let why = &format!("must not be empty for specified {part}");
        errors.push(FieldError::required(&format!("{field}.type"), why));
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, member) in properties.into_iter().flatten() {
        structural(member, &format!("{field}.properties[{name}]"), false, errors);
    }
    match schema.get("items") {
        Some(items) => structural(items, &format!("{field}.items"), false, errors),
        None if text(schema, "/type") == "array" => {
            errors.push(FieldError::required(&format!("{field}.items"), "must be specified"));
        }
        None => {}
    }
    if let Some(additional @ Value::Object(_)) = schema.get("additionalProperties") {
        structural(additional, &format!("{field}.additionalProperties"), false, errors);
    }
}

/// A version as Go prints the internal struct; a single version has its parts elsewhere.
fn in_go(version: &Value) -> String {
    let flag = |name: &str| version.get(name) == Some(&Value::Bool(true));
    format!(
        "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":null,\
         \"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\
         \"SelectableFields\":null}}",
        Value::from(text(version, "/name")),
        flag("served"),
        flag("storage"),
        flag("deprecated"),
    )
}
