//! JSON merge patch (RFC 7386) and JSON patch (RFC 6902).

use serde_json::{Map, Value};

use crate::error::{ApiError, Result};
use crate::golang::json::type_name;

/// Most operations of a JSON patch.
const MOST_OPERATIONS: usize = 10_000;

/// Applies a merge patch: `null` removes members, lists are replaced.
///
/// # Errors
/// 400 if the patch is not an object.
pub(crate) fn merge_patch(document: &Value, patch: &Value) -> Result<Value> {
    if !patch.is_object() {
        let found = type_name(patch);
        return Err(ApiError::bad_request(format!(
            "error decoding patch: json: cannot unmarshal {found} into Go value of type \
             map[string]interface {{}}"
        )));
    }
    let mut patched = document.clone();
    json_patch::merge(&mut patched, patch);
    Ok(patched)
}

/// Applies a JSON patch completely or not at all, by the rules of the API's own library: a missing member of an
/// object counts as null for `test`, `replace` and `copy`, but `remove` and `move` need it. A negative index counts
/// from the end of a list.
///
/// # Errors
/// 400 if the patch is not a list of operations, 413 if it has too many, 422 if an operation is unknown or fails.
pub(crate) fn json_patch(document: &Value, patch: &Value) -> Result<Value> {
    let operations = operations(patch)?;
    if operations.len() > MOST_OPERATIONS {
        let count = operations.len();
        return Err(ApiError::too_large(&format!(
            "The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {count}"
        )));
    }
    let mut patched = document.clone();
    for operation in operations {
        perform(&mut patched, operation).ok_or_else(ApiError::rejected)?;
    }
    Ok(patched)
}

/// The operations, with a type check of their text members.
fn operations(patch: &Value) -> Result<Vec<&Map<String, Value>>> {
    let bad = |what: &str, at: &str| {
        ApiError::bad_request(format!(
            "error decoding patch: json: cannot unmarshal {what} into Go {at}"
        ))
    };
    let Some(list) = patch.as_array() else {
        return Err(bad(type_name(patch), "value of type []handlers.jsonPatchOp"));
    };
    let checked = list.iter().map(|operation| {
        let Some(operation) = operation.as_object() else {
            return Err(bad(type_name(operation), "value of type handlers.jsonPatchOp"));
        };
        for member in ["op", "path", "from"] {
            if let Some(value) = operation.get(member).filter(|v| !v.is_string() && !v.is_null()) {
                let at = format!("struct field jsonPatchOp.{member} of type string");
                return Err(bad(type_name(value), &at));
            }
        }
        Ok(operation)
    });
    checked.collect()
}

/// Unknown members of operations, for example `[0].vaule`.
pub(crate) fn unknown_members(patch: &Value) -> Vec<String> {
    let operations = patch.as_array().into_iter().flatten().enumerate();
    let members = operations.flat_map(|(index, operation)| {
        let members = operation.as_object().into_iter().flatten();
        members.map(move |(member, _)| (index, member))
    });
    members
        .filter(|(_, member)| !["op", "path", "from", "value"].contains(&member.as_str()))
        .map(|(index, member)| format!("[{index}].{member}"))
        .collect()
}

/// Performs one operation; `None` if it does not apply.
fn perform(document: &mut Value, operation: &Map<String, Value>) -> Option<()> {
    let text = |member: &str| operation.get(member).and_then(Value::as_str);
    let path = text("path");
    let value = || operation.get("value").cloned().unwrap_or_default();
    match text("op")? {
        "add" => add(document, path?, value()),
        "remove" => remove(document, path?).map(drop),
        "replace" if path?.is_empty() => {
            let value = value();
            (value.is_object() || value.is_array()).then(|| *document = value)
        }
        "replace" => replace(document, path?, value()),
        "test" if path?.is_empty() => (*document == value()).then_some(()),
        "test" => (get(document, path?)? == value()).then_some(()),
        "move" => {
            let moved = remove(document, text("from")?)?;
            add(document, path?, moved)
        }
        "copy" => {
            let copied = get(document, text("from")?)?;
            add(document, path?, copied)
        }
        _ => None,
    }
}

/// The object or list with the last part of a path, and that part.
fn holder<'a>(document: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let mut parts = path.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~"));
    let mut last = parts.next()?;
    let mut at = document;
    for part in parts {
        at = match at {
            Value::Object(members) => members.get_mut(&last)?,
            Value::Array(items) => {
                let index = index(&last, items.len())?;
                items.get_mut(index)?
            }
            _ => return None,
        };
        last = part;
    }
    Some((at, last))
}

/// The index in a list of `len` items.
fn index(text: &str, len: usize) -> Option<usize> {
    let index: i64 = text.parse().ok()?;
    let length = i64::try_from(len).ok()?;
    let index = if index < 0 { length.checked_add(index)? } else { index };
    usize::try_from(index).ok().filter(|index| *index < len)
}

fn get(document: &mut Value, path: &str) -> Option<Value> {
    match holder(document, path)? {
        (Value::Object(members), key) => Some(members.get(&key).cloned().unwrap_or_default()),
        (Value::Array(items), key) => items.get(index(&key, items.len())?).cloned(),
        _ => None,
    }
}

fn add(document: &mut Value, path: &str, value: Value) -> Option<()> {
    match holder(document, path)? {
        (Value::Object(members), key) => drop(members.insert(key, value)),
        (Value::Array(items), key) if key == "-" => items.push(value),
        (Value::Array(items), key) => items.insert(index(&key, items.len() + 1)?, value),
        _ => return None,
    }
    Some(())
}

fn replace(document: &mut Value, path: &str, value: Value) -> Option<()> {
    match holder(document, path)? {
        (Value::Object(members), key) => drop(members.insert(key, value)),
        (Value::Array(items), key) => {
            let index = index(&key, items.len())?;
            *items.get_mut(index)? = value;
        }
        _ => return None,
    }
    Some(())
}

fn remove(document: &mut Value, path: &str) -> Option<Value> {
    match holder(document, path)? {
        (Value::Object(members), key) => members.remove(&key),
        (Value::Array(items), key) => {
            let index = index(&key, items.len())?;
            Some(items.remove(index))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kube_runtimes_finalizer_guard_passes() {
        let patch = json!([
            {"op": "test", "path": "/metadata/finalizers", "value": null},
            {"op": "add", "path": "/metadata/finalizers", "value": ["x"]},
        ]);
        let patched = json_patch(&json!({"metadata": {}}), &patch).unwrap();
        assert_eq!(patched, json!({"metadata": {"finalizers": ["x"]}}));
        assert_eq!(json_patch(&patched, &patch).unwrap_err().code, 422);
    }

    #[test]
    fn a_failing_operation_is_422_and_no_list_is_400() {
        let document = json!({"a": {}});
        let deep = json!([{"op": "test", "path": "/a/b/c", "value": null}]);
        assert_eq!(json_patch(&document, &deep).unwrap_err().code, 422);
        assert_eq!(json_patch(&document, &json!([{"op": "frob"}])).unwrap_err().code, 422);
        assert_eq!(json_patch(&document, &json!({})).unwrap_err().code, 400);
    }

    #[track_caller]
    fn check(patch: &Value, expected: Option<Value>) {
        let document = json!({"data": {"a": "1"}, "list": [1, 2, 3]});
        match expected {
            Some(expected) => assert_eq!(json_patch(&document, patch).unwrap(), expected),
            None => assert_eq!(json_patch(&document, patch).unwrap_err().code, 422),
        }
    }

    #[test]
    fn a_missing_member_is_null_to_replace_and_copy() {
        check(
            &json!([{"op": "replace", "path": "/data/b", "value": "2"}]),
            Some(json!({"data": {"a": "1", "b": "2"}, "list": [1, 2, 3]})),
        );
        check(
            &json!([{"op": "copy", "from": "/data/x", "path": "/data/b"}]),
            Some(json!({"data": {"a": "1", "b": null}, "list": [1, 2, 3]})),
        );
    }

    #[test]
    fn a_missing_member_is_neither_removed_nor_moved() {
        check(&json!([{"op": "remove", "path": "/data/b"}]), None);
        check(&json!([{"op": "move", "from": "/data/b", "path": "/data/c"}]), None);
        check(&json!([{"op": "replace", "path": "/none/b", "value": "2"}]), None);
        check(&json!([{"op": "copy", "from": "/none/x", "path": "/data/b"}]), None);
    }

    #[test]
    fn lists_have_ends() {
        check(
            &json!([{"op": "remove", "path": "/list/-1"}, {"op": "add", "path": "/list/0", "value": 0}]),
            Some(json!({"data": {"a": "1"}, "list": [0, 1, 2]})),
        );
        check(&json!([{"op": "replace", "path": "/list/3", "value": 0}]), None);
        check(&json!([{"op": "add", "path": "/list/4", "value": 0}]), None);
    }

    #[test]
    fn members_of_operations_are_checked() {
        let typed = json!([{"op": 1, "path": "/data"}]);
        assert_eq!(json_patch(&json!({}), &typed).unwrap_err().code, 400);
        assert_eq!(json_patch(&json!({}), &json!(["x"])).unwrap_err().code, 400);
        let misspelt = json!([{"op": "add", "path": "/a", "vaule": 1}]);
        assert_eq!(unknown_members(&misspelt), ["[0].vaule"]);
        let many = vec![json!({"op": "test", "path": "/a"}); MOST_OPERATIONS + 1];
        assert_eq!(json_patch(&json!({}), &many.into()).unwrap_err().code, 413);
    }
}
