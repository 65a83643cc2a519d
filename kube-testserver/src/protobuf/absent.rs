//! Replaces protobuf without the feature `protobuf`: it is neither offered nor accepted, as for custom resources.

use serde_json::Value;

use super::error::{ApiError, Result};

/// The media type of a body.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// Whether protobuf is supported for built-in kinds.
pub(crate) const IS_OFFERED: bool = false;

/// Refuses the body.
///
/// # Errors
/// 501, always.
pub(crate) fn from_protobuf(_: &[u8], _: &str) -> Result<Value> {
    Err(ApiError::not_implemented("protobuf without the feature `protobuf`"))
}

/// No answer has a protobuf form.
pub(crate) fn to_protobuf(_: &Value) -> Option<Vec<u8>> {
    None
}

/// No event has a protobuf form.
pub(crate) fn watch_frame(_: &str, _: &Value) -> Option<Vec<u8>> {
    None
}
