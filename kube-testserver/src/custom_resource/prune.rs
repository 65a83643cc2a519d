//! Pruning and defaulting by a structural schema.

use serde_json::{Map, Value};

use crate::schema::shape::{self, Unreadable};
use crate::schema::{self};

/// Members of an object that schemas need not define.
const ALWAYS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Drops members that the root object's schema does not define; returns their paths.
pub(super) fn prune(schema: &Value, object: &mut Value) -> Result<Vec<String>, Unreadable> {
    let mut unknown = prune_metadata(object, "")?;
    walk(schema, object, "", true, &mut unknown)?;
    Ok(unknown)
}

/// Paths of the members of a value inside of an object that its schema does not define.
pub(super) fn unknown_members(schema: &Value, value: &Value) -> Result<Vec<String>, Unreadable> {
    let mut unknown = vec![];
    walk(schema, &mut value.clone(), "", false, &mut unknown)?;
    Ok(unknown)
}

/// Prunes `metadata`, which has the same form in all kinds.
fn prune_metadata(object: &mut Value, path: &str) -> Result<Vec<String>, Unreadable> {
    let Some(members) = object.as_object_mut() else { return Ok(Vec::new()) };
    let Some(meta) = members.get("metadata").filter(|meta| !meta.is_null()) else {
        members.insert("metadata".to_owned(), Value::Object(Map::new()));
        return Ok(Vec::new());
    };
    let Some(of) = schema::message("ObjectMeta") else { return Ok(Vec::new()) };
    let shaped = shape::object(of, meta)?;
    members.insert("metadata".to_owned(), shaped.value);
    let prefix = if path.is_empty() { String::new() } else { format!("{path}.") };
    Ok(shaped.unknown.iter().map(|name| format!("{prefix}metadata.{name}")).collect())
}

fn is(schema: &Value, extension: &str) -> bool {
    schema.get(extension) == Some(&Value::Bool(true))
}

fn walk(
    schema: &Value,
    value: &mut Value,
    path: &str,
    is_root: bool,
    unknown: &mut Vec<String>,
) -> Result<(), Unreadable> {
    match value {
        Value::Object(_) => {
            let embedded = is(schema, "x-kubernetes-embedded-resource");
            if embedded {
                unknown.extend(prune_metadata(value, path)?);
            }
            let Some(members) = value.as_object_mut() else { return Ok(()) };
            let mut dropped = Vec::new();
            for (name, member) in members.iter_mut() {
                if (is_root || embedded) && ALWAYS.contains(&name.as_str()) {
                    continue;
                }
                let at = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match member_schema(schema, name) {
                    Member::Known(schema) => walk(schema, member, &at, false, unknown)?,
                    Member::Kept => {}
                    Member::Unknown => {
                        unknown.push(at);
                        dropped.push(name.clone());
                    }
                }
            }
            members.retain(|name, _| !dropped.contains(name));
        }
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else { return Ok(()) };
            for (index, item) in items.iter_mut().enumerate() {
                walk(schema, item, &format!("{path}[{index}]"), false, unknown)?;
            }
        }
        _ => {}
    }
    Ok(())
}

enum Member<'a> {
    Known(&'a Value),
    Kept,
    Unknown,
}

fn member_schema<'a>(schema: &'a Value, name: &str) -> Member<'a> {
    if let Some(found) = schema.get("properties").and_then(|properties| properties.get(name)) {
        return Member::Known(found);
    }
    match schema.get("additionalProperties") {
        Some(additional @ Value::Object(_)) => return Member::Known(additional),
        Some(Value::Bool(true)) => return Member::Kept,
        _ => {}
    }
    if is(schema, "x-kubernetes-preserve-unknown-fields") { Member::Kept } else { Member::Unknown }
}

/// Fills in defaults for members that are absent, or null and not nullable.
pub(super) fn default(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(members) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            for (name, schema) in properties.into_iter().flatten() {
                let nullable = is(schema, "nullable");
                if members.get(name).is_some_and(|value| value.is_null() && !nullable) {
                    members.remove(name);
                }
                if let Some(given) = schema.get("default")
                    && !members.contains_key(name)
                {
                    members.insert(name.clone(), given.clone());
                }
                if let Some(member) = members.get_mut(name) {
                    default(schema, member);
                }
            }
            if let Some(additional @ Value::Object(_)) = schema.get("additionalProperties") {
                let known = |name: &str| properties.is_some_and(|map| map.contains_key(name));
                for (name, member) in members.iter_mut() {
                    if !known(name) {
                        default(additional, member);
                    }
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for item in items {
                    default(schema, item);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "level": {"type": "string", "default": "low"},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "map": {"type": "object", "additionalProperties":
                {"type": "object", "properties": {"a": {"type": "integer", "default": 1}}}},
        }}}})
    }

    #[test]
    fn unknown_members_go_and_preserved_ones_stay() {
        let mut object = json!({"kind": "K", "metadata": {"name": "n", "nope": 1},
            "spec": {"x": 1, "free": {"y": 2}, "map": {"k": {"b": 1}}}, "extra": 1});
        let unknown = prune(&schema(), &mut object).unwrap();
        assert_eq!(unknown, ["metadata.nope", "extra", "spec.map.k.b", "spec.x"]);
        assert_eq!(
            object,
            json!({"kind": "K", "metadata": {"name": "n"},
                "spec": {"free": {"y": 2}, "map": {"k": {}}}})
        );
    }

    #[test]
    fn defaults_fill_gaps_and_forbidden_nulls() {
        let mut object = json!({"spec": {"level": null, "map": {"k": {}}}});
        default(&schema(), &mut object);
        assert_eq!(object, json!({"spec": {"level": "low", "map": {"k": {"a": 1}}}}));
    }
}
