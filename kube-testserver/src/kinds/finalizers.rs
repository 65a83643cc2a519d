//! Names of finalizers.

use serde_json::Value;

use crate::error::FieldError;

/// Finalizers that are neither built in nor have a domain.
pub(crate) fn unknown_finalizers(field: &str, finalizers: &[Value]) -> Vec<FieldError> {
    let why = "name is neither a standard finalizer name nor is it fully qualified";
    let finalizers = finalizers.iter().enumerate();
    let wrong = finalizers.filter(|(_, own)| !own.as_str().is_some_and(is_known_finalizer));
    wrong.map(|(index, own)| FieldError::invalid(&format!("{field}[{index}]"), own, why)).collect()
}

/// Whether a finalizer is built in or has a domain.
pub(crate) fn is_known_finalizer(finalizer: &str) -> bool {
    finalizer.contains('/') || matches!(finalizer, "kubernetes" | "orphan" | "foregroundDeletion")
}
