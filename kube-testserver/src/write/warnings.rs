//! Warnings about accepted writes.
//!
//! Source: the `WarningsOnCreate` and `WarningsOnUpdate` of the strategies of Kubernetes.

use serde_json::Value;

use crate::call::Call;
use crate::{kinds, meta};

use super::metadata;

/// Warnings about the new state of an object; `before` is `None` for a new one.
pub(super) fn warnings(call: &Call, before: Option<&Value>, object: &Value) -> Vec<String> {
    if !call.subresource.is_empty() {
        return Vec::new();
    }
    if call.resource.custom.is_some() {
        return metadata::warnings(before, object);
    }
    kinds::of(&call.resource).warnings(before, object)
}

/// Drops repeated owner references and warns about them.
pub(super) fn dedup_owners(object: &mut Value, is_patch: bool) -> Option<String> {
    let owners = meta::get(object, "ownerReferences").and_then(Value::as_array)?;
    let mut kept: Vec<Value> = Vec::new();
    let mut twice: Vec<&str> = Vec::new();
    for owner in owners {
        if kept.contains(owner) {
            twice.push(text(owner, "/uid"));
        } else {
            kept.push(owner.clone());
        }
    }
    if twice.is_empty() {
        return None;
    }
    let when = if is_patch { " after mutating admission happens" } else { "" };
    let warning = format!(
        ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner \
         references in 1.20+, and may reject such requests as early as 1.24; please fix your \
         requests; duplicate UID(s) observed: [{}]",
        twice.join(" ")
    );
    meta::set(object, "ownerReferences", kept.into());
    Some(warning)
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}
