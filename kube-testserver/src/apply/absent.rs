//! Replaces server-side apply without the feature `server-side-apply`: an apply gets 501, and no field has a
//! manager.

use serde_json::Value;

use super::call::Call;
use super::error::{ApiError, Result};
use super::meta;

/// Removes the client's `managedFields`.
pub(crate) fn track(_: &Call, _: Option<&Value>, object: &mut Value) {
    meta::remove(object, "managedFields");
}

/// Refuses the apply.
///
/// # Errors
/// 501, always.
pub(crate) fn apply(_: &Call, _: Option<&Value>, _: &Value) -> Result<Value> {
    Err(ApiError::not_implemented("server-side apply without the feature `server-side-apply`"))
}
