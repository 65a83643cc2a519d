//! Leases.

use jiff::Timestamp;
use serde_json::Value;

use crate::call::Call;
use crate::error::{FieldError, Result};
use crate::meta;

use super::ages::age;
use super::budget::NOT_NEGATIVE;
use super::values::text;
use super::{Columns, Strategy, TEXT};

/// Leases.
#[derive(Debug)]
pub(super) struct Leases;

impl Strategy for Leases {
    fn validate(&self, _call: &Call, object: &Value) -> Result<Vec<FieldError>> {
        Ok(lease(object))
    }

    fn columns(&self) -> Columns {
        &[("Name", TEXT, 0), ("Holder", TEXT, 0), ("Age", TEXT, 0)]
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let holder = text(object, "/spec/holderIdentity");
        vec![meta::name(object).into(), holder.into(), age(object, now)]
    }
}

/// Validation errors of a Lease.
fn lease(lease: &Value) -> Vec<FieldError> {
    let mut errors = vec![];
    let number = |name: &str| lease.pointer(&format!("/spec/{name}")).and_then(Value::as_i64);
    if let Some(seconds) = number("leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
        let field = "spec.leaseDurationSeconds";
        errors.push(FieldError::invalid(field, &seconds.into(), "must be greater than 0"));
    }
    if let Some(count) = number("leaseTransitions").filter(|count| *count < 0) {
        errors.push(FieldError::invalid("spec.leaseTransitions", &count.into(), NOT_NEGATIVE));
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::values::texts;
    use super::*;

    #[test]
    fn leases_last_a_while() {
        let of = |spec: Value| texts(&lease(&json!({"spec": spec})));
        assert_eq!(
            of(json!({"leaseDurationSeconds": 0})),
            ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"]
        );
        assert_eq!(of(json!({"leaseTransitions": -1})).len(), 1);
        assert!(of(json!({"leaseDurationSeconds": 1, "leaseTransitions": 0})).is_empty());
    }
}
