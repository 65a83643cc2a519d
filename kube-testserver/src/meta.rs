//! Reading and writing `metadata` of an object.

use serde_json::{Map, Value};

/// A text of `metadata`, empty when absent.
pub(crate) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get("metadata").and_then(|meta| meta.get(field)).and_then(Value::as_str).unwrap_or("")
}

/// `metadata.name`.
pub(crate) fn name(object: &Value) -> &str {
    text(object, "name")
}

/// `metadata.namespace`, empty for cluster-scoped objects.
pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "namespace")
}

/// `metadata.uid`.
pub(crate) fn uid(object: &Value) -> &str {
    text(object, "uid")
}

/// `metadata.generation`, 0 when absent.
pub(crate) fn generation(object: &Value) -> i64 {
    get(object, "generation").and_then(Value::as_i64).unwrap_or(0)
}

/// Any member of `metadata`.
pub(crate) fn get<'a>(object: &'a Value, field: &str) -> Option<&'a Value> {
    object.get("metadata")?.get(field).filter(|value| !value.is_null())
}

/// A label.
pub(crate) fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    get(object, "labels")?.get(key)?.as_str()
}

/// An annotation.
pub(crate) fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    get(object, "annotations")?.get(key)?.as_str()
}

/// `metadata.finalizers`.
pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    let list = get(object, "finalizers").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Whether deletion has been requested.
pub(crate) fn is_deleting(object: &Value) -> bool {
    get(object, "deletionTimestamp").is_some()
}

/// Sets a member of `metadata`, which is created if missing.
pub(crate) fn set(object: &mut Value, field: &str, value: Value) {
    if let Some(meta) = map_mut(object, "metadata") {
        meta.insert(field.to_owned(), value);
    }
}

/// Removes a member of `metadata`.
pub(crate) fn remove(object: &mut Value, field: &str) {
    if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.remove(field);
    }
}

/// Sets a member of `metadata`, or removes it if there is no value.
pub(crate) fn put(object: &mut Value, field: &str, value: Option<Value>) {
    match value {
        Some(value) => set(object, field, value),
        None => remove(object, field),
    }
}

/// A member that is an object; created if it is not.
pub(crate) fn map_mut<'a>(
    object: &'a mut Value,
    field: &str,
) -> Option<&'a mut Map<String, Value>> {
    let members = object.as_object_mut()?;
    let entry = members.entry(field).or_insert_with(|| Value::Object(Map::new()));
    if !entry.is_object() {
        *entry = Value::Object(Map::new());
    }
    entry.as_object_mut()
}
