//! Validation of one version of a definition, its schema apart.

use serde_json::Value;

use crate::error::FieldError;
use crate::names::dns1035_label;

use super::{list, text};

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// Complaints about the version at `field`.
pub(super) fn errors(version: &Value, field: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = text(version, "/name");
    let wrong = dns1035_label(name);
    if !wrong.is_empty() {
        errors.push(FieldError::invalid(&format!("{field}.name"), &name.into(), &wrong.join(",")));
    }
    if let Some(warning) = version.get("deprecationWarning").filter(|warning| warning.is_string())
        && version.get("deprecated") != Some(&Value::Bool(true))
    {
        let why = "can only be set for deprecated versions";
        errors.push(FieldError::invalid(&format!("{field}.deprecationWarning"), warning, why));
    }
    for (index, column) in list(version, "/additionalPrinterColumns").iter().enumerate() {
        let field = format!("{field}.additionalPrinterColumns[{index}]");
        errors.extend(column_errors(column, &field));
    }
    if let Some(scale) = version.pointer("/subresources/scale").filter(|scale| scale.is_object()) {
        errors.extend(scale_errors(scale, &format!("{field}.subresources.scale")));
    }
    errors.extend(selectable_errors(version, &format!("{field}.selectableFields")));
    errors
}

fn column_errors(column: &Value, field: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (kind, format) = (text(column, "/type"), text(column, "/format"));
    if text(column, "/name").is_empty() {
        errors.push(FieldError::required(&format!("{field}.name"), ""));
    }
    if kind.is_empty() {
        let why = format!("must be one of {}", COLUMN_TYPES.join(","));
        errors.push(FieldError::required(&format!("{field}.type"), &why));
    } else if !COLUMN_TYPES.contains(&kind) {
        let why = format!("must be one of {}", COLUMN_TYPES.join(","));
        errors.push(FieldError::invalid(&format!("{field}.type"), &kind.into(), &why));
    }
    if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
        let why = format!("must be one of {}", COLUMN_FORMATS.join(","));
        errors.push(FieldError::invalid(&format!("{field}.format"), &format.into(), &why));
    }
    errors.extend(path_error(text(column, "/jsonPath"), &format!("{field}.jsonPath")));
    errors
}

/// A path such as `.spec.replicas`.
fn path_error(path: &str, field: &str) -> Option<FieldError> {
    if path.is_empty() {
        return Some(FieldError::required(field, ""));
    }
    let why = "must be a simple json path starting with .";
    (!path.starts_with('.')).then(|| FieldError::invalid(field, &path.into(), why))
}

fn scale_errors(scale: &Value, field: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (member, start, where_to) in [
        ("specReplicasPath", &[".spec."][..], ".spec"),
        ("statusReplicasPath", &[".status."], ".status"),
        ("labelSelectorPath", &[".spec.", ".status."], "either .spec or .status"),
    ] {
        let (path, field) = (text(scale, &format!("/{member}")), format!("{field}.{member}"));
        if path.is_empty() && member == "labelSelectorPath" {
            continue;
        }
        if let Some(error) = path_error(path, &field) {
            errors.push(error);
        } else if !start.iter().any(|start| path.starts_with(start)) {
            let why = format!("should be a json path under {where_to}");
            errors.push(FieldError::invalid(&field, &path.into(), &why));
        }
    }
    errors
}

fn selectable_errors(version: &Value, field: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = Vec::new();
    for (index, own) in list(version, "/selectableFields").iter().enumerate() {
        let (path, field) = (text(own, "/jsonPath"), format!("{field}[{index}].jsonPath"));
        if let Some(error) = path_error(path, &field) {
            errors.push(error);
            continue;
        }
        if seen.contains(&path) {
            errors.push(FieldError::duplicate(&field, &path.into()));
        }
        seen.push(path);
        if path == ".metadata" || path.starts_with(".metadata.") {
            let why = "must not point to fields in metadata";
            errors.push(FieldError::invalid(&field, &path.into(), why));
            continue;
        }
        let mut schema = version.pointer("/schema/openAPIV3Schema");
        for name in path.trim_start_matches('.').split('.') {
            schema = schema.and_then(|schema| schema.get("properties")?.get(name));
        }
        let kind = schema.map_or("", |schema| text(schema, "/type"));
        if !matches!(kind, "boolean" | "integer" | "string") {
            let why = if schema.is_none() {
                "is an invalid path: does not refer to a valid field"
            } else {
                "must point to a field of type string, boolean or integer"
            };
            errors.push(FieldError::invalid(&field, &path.into(), why));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(version: &Value) -> Vec<String> {
        errors(version, "v").into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn what_is_wrong_with_a_version_is_named() {
        let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": {
            "type": "object", "properties": {"a": {"type": "string"}, "l": {"type": "array"}}}}}});
        let good = json!({"name": "v1", "schema": schema,
            "additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".spec.a"}],
            "selectableFields": [{"jsonPath": ".spec.a"}],
            "subresources": {"scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}}});
        assert_eq!(fields(&good), Vec::<String>::new());
        let bad = json!({"name": "V1", "schema": schema, "deprecationWarning": "old",
            "additionalPrinterColumns": [{"type": "text", "format": "x", "jsonPath": "a"}],
            "selectableFields": [{"jsonPath": ".metadata.name"}, {"jsonPath": ".spec.l"},
                {"jsonPath": ".spec.l"}],
            "subresources": {"scale": {"specReplicasPath": ".n"}}});
        assert_eq!(
            fields(&bad),
            [
                "v.name",
                "v.deprecationWarning",
                "v.additionalPrinterColumns[0].name",
                "v.additionalPrinterColumns[0].type",
                "v.additionalPrinterColumns[0].format",
                "v.additionalPrinterColumns[0].jsonPath",
                "v.subresources.scale.specReplicasPath",
                "v.subresources.scale.statusReplicasPath",
                "v.selectableFields[0].jsonPath",
                "v.selectableFields[1].jsonPath",
                "v.selectableFields[2].jsonPath",
                "v.selectableFields[2].jsonPath"
            ]
        );
    }
}
