//! JSON merge patch (RFC 7386) and JSON patch (RFC 6902).

use json_patch::PatchOperation;
use serde_json::Value;

use crate::cluster::error::{ApiError, Result};

/// Applies a merge patch: `null` removes, lists are replaced.
///
/// # Errors
/// 400 when the patch is no object.
pub(crate) fn merge_patch(document: &Value, patch: &Value) -> Result<Value> {
    if !patch.is_object() {
        return Err(ApiError::bad_request(
            "error decoding patch: json: cannot unmarshal into Go value of type map[string]interface {}",
        ));
    }
    let mut patched = document.clone();
    json_patch::merge(&mut patched, patch);
    Ok(patched)
}

/// Applies a JSON patch, all of it or nothing. As the API does it, `test` takes a member that is
/// not there for null, if its parent is there.
///
/// # Errors
/// 400 when the patch is no list, 422 when an operation is unknown or fails.
pub(crate) fn json_patch(document: &Value, patch: &Value) -> Result<Value> {
    let Some(operations) = patch.as_array() else {
        return Err(ApiError::bad_request(
            "error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch",
        ));
    };
    let mut patched = document.clone();
    for operation in operations {
        if passes_as_null(&patched, operation) {
            continue;
        }
        let operation: PatchOperation =
            serde_json::from_value(operation.clone()).map_err(|_| ApiError::rejected())?;
        json_patch::patch(&mut patched, &[operation]).map_err(|_| ApiError::rejected())?;
    }
    Ok(patched)
}

/// A `test` for null of a member that its parent does not have.
fn passes_as_null(document: &Value, operation: &Value) -> bool {
    if operation.get("op").and_then(Value::as_str) != Some("test")
        || !operation.get("value").is_none_or(Value::is_null)
    {
        return false;
    }
    let Some(path) = operation.get("path").and_then(Value::as_str) else { return false };
    let Some((parent, _)) = path.rsplit_once('/') else { return false };
    document.pointer(path).is_none() && document.pointer(parent).is_some_and(Value::is_object)
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
}
