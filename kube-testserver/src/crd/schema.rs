//! Validation of the schemas of definitions: what a schema may use, and that it is structural.
//!
//! Source: Kubernetes documentation, "Specifying a structural schema", and the answers of kube-apiserver 1.36.

use regex::Regex;
use serde_json::Value;

use crate::custom_resource;
use crate::error::FieldError;

use super::text;

/// Keywords of OpenAPI that schemas may not use.
const UNSUPPORTED: [&str; 6] =
    ["$ref", "additionalItems", "definitions", "dependencies", "id", "patternProperties"];
/// Keywords that describe values and are not for the branches of `allOf`, `anyOf`, `oneOf` and `not`.
const GENERIC: [&str; 9] = [
    "additionalProperties",
    "default",
    "description",
    "nullable",
    "title",
    "type",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
];
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

#[derive(Clone, Copy, Eq, PartialEq)]
enum Level {
    Root,
    Field,
    Item,
}

/// Complaints about the schema at `field`.
pub(super) fn errors(schema: &Value, field: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if is(schema, "nullable") {
        let why = "nullable cannot be true at the root";
        errors.push(FieldError::forbidden(&format!("{field}.nullable"), why));
    }
    check(schema, field, Level::Root, &mut errors);
    errors
}

fn is(schema: &Value, keyword: &str) -> bool {
    schema.get(keyword) == Some(&Value::Bool(true))
}

fn member<'a>(schema: &'a Value, keyword: &str) -> &'a Value {
    schema.get(keyword).unwrap_or(&Value::Null)
}

fn check(schema: &Value, field: &str, level: Level, errors: &mut Vec<FieldError>) {
    keywords(schema, field, errors);
    lists_and_maps(schema, field, errors);
    types(schema, field, level, errors);
    if level == Level::Root || is(schema, "x-kubernetes-embedded-resource") {
        type_and_metadata(schema, field, level, errors);
    }
    branches(schema, schema, field, errors);
    default(schema, field, errors);
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, inner) in properties.into_iter().flatten() {
        check(inner, &format!("{field}.properties[{name}]"), Level::Field, errors);
    }
    if let Some(items @ Value::Object(_)) = schema.get("items") {
        check(items, &format!("{field}.items"), Level::Item, errors);
    }
    if let Some(additional @ Value::Object(_)) = schema.get("additionalProperties") {
        check(additional, &format!("{field}.additionalProperties"), Level::Field, errors);
    }
}

/// Keywords that may not be there, or not with this value.
fn keywords(schema: &Value, field: &str, errors: &mut Vec<FieldError>) {
    for keyword in UNSUPPORTED {
        if schema.get(keyword).is_some_and(|value| !value.is_null()) {
            let why = format!("{keyword} is not supported");
            errors.push(FieldError::forbidden(&format!("{field}.{keyword}"), &why));
        }
    }
    if is(schema, "uniqueItems") {
        let why =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(&format!("{field}.uniqueItems"), why));
    }
    if member(schema, "items").is_array() {
        let why = "items must be a schema object and not an array";
        errors.push(FieldError::forbidden(&format!("{field}.items"), why));
    }
    let additional = format!("{field}.additionalProperties");
    match member(schema, "additionalProperties") {
        Value::Bool(false) => {
            let why = "additionalProperties cannot be set to false";
            errors.push(FieldError::forbidden(&additional, why));
        }
        Value::Object(_) if schema.get("properties").is_some() => {
            let why = "additionalProperties and properties are mutual exclusive";
            errors.push(FieldError::forbidden(&additional, why));
        }
        _ => {}
    }
    let preserve = "x-kubernetes-preserve-unknown-fields";
    if schema.get(preserve) == Some(&Value::Bool(false)) {
        let why = "must be true or undefined";
        errors.push(FieldError::invalid(&format!("{field}.{preserve}"), &false.into(), why));
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
        && Regex::new(pattern).is_err()
    {
        let why = "must be a valid regular expression";
        errors.push(FieldError::invalid(&format!("{field}.pattern"), &pattern.into(), why));
    }
}

/// Complains unless the type is the one that `keyword` needs.
fn needs_type(schema: &Value, field: &str, wanted: &str, keyword: &str) -> Option<FieldError> {
    let (found, of) = (text(schema, "/type"), format!("{field}.type"));
    let why = format!("must be {wanted} if {keyword}");
    match found {
        "" => Some(FieldError::required(&of, &why)),
        _ if found != wanted => Some(FieldError::invalid(&of, &found.into(), &why)),
        _ => None,
    }
}

fn lists_and_maps(schema: &Value, field: &str, errors: &mut Vec<FieldError>) {
    for (keyword, wanted, known) in [
        ("x-kubernetes-map-type", "object", &["atomic", "granular"][..]),
        ("x-kubernetes-list-type", "array", &["atomic", "map", "set"][..]),
    ] {
        let Some(found) = schema.get(keyword).and_then(Value::as_str) else { continue };
        errors.extend(needs_type(schema, field, wanted, &format!("{keyword} is specified")));
        if !known.contains(&found) {
            errors.push(FieldError::not_supported(
                &format!("{field}.{keyword}"),
                &found.into(),
                known,
            ));
        }
    }
    let list_type = format!("{field}.x-kubernetes-list-type");
    let keys_field = format!("{field}.x-kubernetes-list-map-keys");
    let keys = member(schema, "x-kubernetes-list-map-keys").as_array();
    let has_keys = keys.is_some_and(|keys| !keys.is_empty());
    let (found, items) = (text(schema, "/x-kubernetes-list-type"), member(schema, "items"));
    if has_keys && found != "map" {
        let why = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match found {
            "" => FieldError::required(&list_type, why),
            _ => FieldError::invalid(&list_type, &found.into(), why),
        });
    }
    let of_items = format!("{field}.items");
    if found == "set" {
        for (kind, keyword) in [("object", "map"), ("array", "list")] {
            let own = format!("x-kubernetes-{keyword}-type");
            if text(items, "/type") == kind && text(items, &format!("/{own}")) != "atomic" {
                let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
                errors.push(match items.get(&own) {
                    None => FieldError::required(&format!("{of_items}.{own}"), why),
                    Some(given) => FieldError::invalid(&format!("{of_items}.{own}"), given, why),
                });
            }
        }
    }
    if found != "map" {
        return;
    }
    if !has_keys {
        let why = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(&keys_field, why));
    }
    let kind = text(items, "/type");
    if kind != "object" {
        let why = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(&format!("{of_items}.type"), &kind.into(), why));
        return;
    }
    let required = member(items, "required").as_array();
    let given = member(schema, "x-kubernetes-list-map-keys");
    let mut seen = Vec::new();
    for key in keys.into_iter().flatten().filter_map(Value::as_str) {
        if seen.contains(&key) {
            let why = "must not contain duplicate entries";
            errors.push(FieldError::invalid(&keys_field, given, why));
        }
        seen.push(key);
        let Some(property) = member(items, "properties").get(key) else {
            let why = "entries must all be names of item properties";
            errors.push(FieldError::invalid(&keys_field, given, why));
            continue;
        };
        let of = format!("{of_items}.properties[{key}]");
        if matches!(text(property, "/type"), "array" | "object") {
            let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            errors.push(FieldError::invalid(&format!("{of}.type"), &kind.into(), why));
        }
        let is_required = required.is_some_and(|required| required.contains(&key.into()));
        if !is_required && property.get("default").is_none() {
            let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a \
                       required property";
            errors.push(FieldError::required(&format!("{of}.default"), why));
        }
        if is(property, "nullable") {
            let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(&format!("{of}.nullable"), why));
        }
    }
}

/// The type of every part is known.
fn types(schema: &Value, field: &str, level: Level, errors: &mut Vec<FieldError>) {
    let (kind, of) = (text(schema, "/type"), format!("{field}.type"));
    let is_mixed = is(schema, "x-kubernetes-int-or-string");
    let preserves = is(schema, "x-kubernetes-preserve-unknown-fields");
    match (kind, level) {
        ("", Level::Root) => {
            errors.push(FieldError::required(&of, "must be object at the root"));
        }
        (_, Level::Root) if kind != "object" => {
            errors.push(FieldError::invalid(&of, &kind.into(), "must be object at the root"));
        }
        ("", _) if is_mixed || preserves => {}
        ("", _) => {
            let part = if level == Level::Item { "array items" } else { "object fields" };
            errors.push(FieldError::required(
                &of,
                &format!("must not be empty for specified {part}"),
            ));
        }
        ("null", _) => {
            let why = "type cannot be set to null, use nullable as an alternative";
            errors.push(FieldError::forbidden(&of, why));
        }
        _ if is_mixed => {
            let why = "must be empty if x-kubernetes-int-or-string is true";
            errors.push(FieldError::forbidden(&of, why));
        }
        _ if !TYPES.contains(&kind) => {
            errors.push(FieldError::not_supported(&of, &kind.into(), &TYPES));
        }
        _ => {}
    }
    if kind == "array" && schema.get("items").is_none() {
        errors.push(FieldError::required(&format!("{field}.items"), "must be specified"));
    }
    let embedded = "x-kubernetes-embedded-resource";
    if is(schema, embedded) {
        errors.extend(needs_type(schema, field, "object", &format!("{embedded} is true")));
        let has_properties = member(schema, "properties")
            .as_object()
            .is_some_and(|properties| !properties.is_empty());
        if !preserves && !has_properties {
            let why = format!(
                "must not be empty if {embedded} is true without x-kubernetes-preserve-unknown-fields"
            );
            errors.push(FieldError::required(&format!("{field}.properties"), &why));
        }
    }
}

/// `apiVersion`, `kind` and `metadata` are known without the schema, which may say little about them.
fn type_and_metadata(schema: &Value, field: &str, level: Level, errors: &mut Vec<FieldError>) {
    let properties = member(schema, "properties");
    for name in ["apiVersion", "kind"] {
        let Some(property) = properties.get(name) else { continue };
        let kind = text(property, "/type");
        if kind != "string" {
            let of = format!("{field}.properties[{name}].type");
            errors.push(FieldError::invalid(&of, &kind.into(), "must be string"));
        }
    }
    let Some(metadata) = properties.get("metadata") else { return };
    let of = format!("{field}.properties[metadata]");
    let kind = text(metadata, "/type");
    if level == Level::Root && kind != "object" {
        errors.push(FieldError::invalid(&format!("{of}.type"), &kind.into(), "must be object"));
    }
    let allowed = |members: &Value| {
        let mut names = members.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        names.all(|name| matches!(name, "generateName" | "name"))
    };
    if !allowed(member(metadata, "properties")) || metadata.get("additionalProperties").is_some() {
        let why = "must not specify anything other than name and generateName, but metadata is implicitly \
                   specified";
        errors.push(FieldError::forbidden(&of, why));
    }
}

/// The branches of `schema` restrict values, and define nothing that `outside` lacks.
fn branches(schema: &Value, outside: &Value, field: &str, errors: &mut Vec<FieldError>) {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let all = member(schema, keyword).as_array();
        for (index, branch) in all.into_iter().flatten().enumerate() {
            restriction(branch, outside, &format!("{field}.{keyword}[{index}]"), field, errors);
        }
    }
    if let Some(branch @ Value::Object(_)) = schema.get("not") {
        restriction(branch, outside, &format!("{field}.not"), field, errors);
    }
}

fn restriction(
    branch: &Value,
    outside: &Value,
    field: &str,
    of_outside: &str,
    errors: &mut Vec<FieldError>,
) {
    // The two types of an int-or-string may be named.
    let may_name_type = is(outside, "x-kubernetes-int-or-string");
    for keyword in GENERIC {
        if branch.get(keyword).is_some_and(|value| !value.is_null())
            && !(keyword == "type" && may_name_type)
        {
            let why = "must be empty to be structural";
            errors.push(FieldError::forbidden(&format!("{field}.{keyword}"), why));
        }
    }
    let properties = branch.get("properties").and_then(Value::as_object);
    for (name, inner) in properties.into_iter().flatten() {
        let inner_field = format!("{field}.properties[{name}]");
        let of_outer = format!("{of_outside}.properties[{name}]");
        if let Some(outer) = member(outside, "properties").get(name) {
            restriction(inner, outer, &inner_field, &of_outer, errors);
        } else {
            let why = format!("because it is defined in {inner_field}");
            errors.push(FieldError::required(&of_outer, &why));
        }
    }
    if let Some(items @ Value::Object(_)) = branch.get("items") {
        let (inner, of_outer) = (format!("{field}.items"), format!("{of_outside}.items"));
        if let Some(outer) = outside.get("items") {
            restriction(items, outer, &inner, &of_outer, errors);
        } else {
            let why = format!("because it is defined in {inner}");
            errors.push(FieldError::required(&of_outer, &why));
        }
    }
    branches(branch, outside, field, errors);
}

/// A default value fits its own schema and survives pruning.
fn default(schema: &Value, field: &str, errors: &mut Vec<FieldError>) {
    let Some(value) = schema.get("default") else { return };
    let of = format!("{field}.default");
    if custom_resource::has_unknown_members(schema, value) {
        errors.push(FieldError::invalid(&of, value, "must not have unknown fields"));
    }
    let wrong = custom_resource::value_errors(schema, value);
    errors.extend(wrong.into_iter().map(|error| FieldError {
        field: match error.field.as_str() {
            "" | "<nil>" => of.clone(),
            inner => format!("{of}.{inner}"),
        },
        ..error
    }));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Complaints about a schema whose property `a` is this.
    fn of(property: &Value) -> Vec<String> {
        let schema = json!({"type": "object", "properties": {"a": property}});
        let errors = errors(&schema, "s");
        errors.iter().map(|error| format!("{}: {}", error.field, error.message)).collect()
    }

    #[test]
    fn schemas_of_kinds_are_accepted() {
        for property in [
            json!({"type": "string", "pattern": "^a+$", "enum": ["a", "aa"], "default": "a"}),
            json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
            json!({"x-kubernetes-preserve-unknown-fields": true}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}}}),
            json!({"type": "object", "properties": {"b": {"type": "string"}}, "anyOf": [{"required": ["b"]},
                {"properties": {"b": {"minLength": 3}}}]}),
        ] {
            assert_eq!(of(&property), Vec::<String>::new(), "{property}");
        }
    }

    #[test]
    fn what_is_not_structural_is_named() {
        for (property, expected) in [
            (
                json!({"type": "string", "$ref": "#/x"}),
                "s.properties[a].$ref: Forbidden: $ref is not supported",
            ),
            (
                json!({"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
                "s.properties[a].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
            ),
            (
                json!({"type": "string", "x-kubernetes-int-or-string": true}),
                "s.properties[a].type: Forbidden: must be empty if x-kubernetes-int-or-string is true",
            ),
            (
                json!({"type": "object", "anyOf": [{"properties": {"b": {"minLength": 1}}}]}),
                "s.properties[a].properties[b]: Required value: because it is defined in \
                 s.properties[a].anyOf[0].properties[b]",
            ),
            (
                json!({"type": "string", "allOf": [{"type": "string"}]}),
                "s.properties[a].allOf[0].type: Forbidden: must be empty to be structural",
            ),
            (
                json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"}),
                "s.properties[a].items.x-kubernetes-map-type: Required value: must be atomic as item of a list \
                 with x-kubernetes-list-type=set",
            ),
            (
                json!({"type": "strange"}),
                "s.properties[a].type: Unsupported value: \"strange\": supported values: \"array\", \
                 \"boolean\", \"integer\", \"number\", \"object\", \"string\"",
            ),
        ] {
            assert_eq!(of(&property), [expected], "{property}");
        }
    }

    #[test]
    fn lists_by_keys_have_keys_that_are_there() {
        let list = |keys: &Value, items: &Value| {
            of(&json!({"type": "array", "items": items, "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": keys}))
        };
        let optional = json!({"type": "object", "properties": {"k": {"type": "string"}}});
        assert_eq!(
            list(&json!(["k"]), &optional),
            ["s.properties[a].items.properties[k].default: Required value: this property is in \
              x-kubernetes-list-map-keys, so it must have a default or be a required property"]
        );
        assert_eq!(list(&json!(["x"]), &optional).len(), 1);
        assert_eq!(list(&json!([]), &optional).len(), 1);
        assert_eq!(list(&json!(["k"]), &json!({"type": "string"})).len(), 1);
    }

    #[test]
    fn defaults_fit() {
        assert_eq!(of(&json!({"type": "integer", "default": "x"})).len(), 1);
        assert_eq!(of(&json!({"type": "string", "enum": ["a"], "default": "b"})).len(), 1);
        let unknown = json!({"type": "object", "properties": {"k": {"type": "string"}}, "default": {"j": ""}});
        assert_eq!(
            of(&unknown),
            [r#"s.properties[a].default: Invalid value: {"j":""}: must not have unknown fields"#]
        );
    }

    #[test]
    fn metadata_is_known_already() {
        let schema = json!({"type": "object", "properties": {
            "metadata": {"type": "object", "properties": {"labels": {"type": "object"}}},
            "kind": {"type": "integer"}}});
        let errors = errors(&schema, "s");
        let fields: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["s.properties[kind].type", "s.properties[metadata]"]);
    }
}
