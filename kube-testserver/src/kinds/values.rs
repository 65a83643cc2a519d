//! Values inside of objects.

use serde_json::{Map, Value};

use crate::error::FieldError;

/// Sets a member of an object.
pub(crate) fn put(object: &mut Value, member: &str, value: Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert(member.to_owned(), value);
    }
}

/// Restores a member to its former value.
pub(super) fn keep(before: &Value, object: &mut Value, member: &str) {
    let Some(members) = object.as_object_mut() else { return };
    match before.get(member) {
        Some(value) => drop(members.insert(member.to_owned(), value.clone())),
        None => drop(members.remove(member)),
    }
}

/// Sets a missing member.
pub(super) fn or_default(members: &mut Map<String, Value>, member: &str, value: impl Into<Value>) {
    members.entry(member).or_insert_with(|| value.into());
}

/// A text of the object, empty when absent.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

/// The items of a list.
pub(super) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The objects of a list.
pub(super) fn items_mut<'a>(
    value: &'a mut Value,
    pointer: &str,
) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    let list = value.pointer_mut(pointer).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}

/// One validation error for each reason why `value` is invalid.
pub(super) fn invalid_for(field: &str, value: &str, wrong: &[String]) -> Vec<FieldError> {
    wrong.iter().map(|why| FieldError::invalid(field, &value.into(), why)).collect()
}

/// The validation error of a changed immutable member.
pub(super) fn immutable(
    before: &Value,
    object: &Value,
    pointer: &str,
    field: &str,
) -> Option<FieldError> {
    let (old, new) = (before.pointer(pointer), object.pointer(pointer));
    (old != new)
        .then(|| FieldError::invalid(field, new.unwrap_or(&Value::Null), "field is immutable"))
}

/// The text, or `instead` if it is empty.
pub(super) fn or<'a>(text: &'a str, instead: &'a str) -> &'a str {
    if text.is_empty() { instead } else { text }
}

/// Number of members or items.
pub(super) fn size(object: &Value, pointer: &str) -> usize {
    match object.pointer(pointer) {
        Some(Value::Object(members)) => members.len(),
        Some(Value::Array(items)) => items.len(),
        _ => 0,
    }
}

/// A number of the object, 0 when absent.
pub(super) fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

#[cfg(test)]
pub(super) fn texts(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(|error| format!("{}: {}", error.field, error.message)).collect()
}
