//! CertificateSigningRequests: what [`csr`] decides, and their row.

use jiff::Timestamp;
use serde_json::Value;

use crate::call::Call;
use crate::error::{FieldError, Result};
use crate::store::Store;
use crate::{csr, meta};

use super::ages::{age, human};
use super::values::{list, or, text};
use super::{Columns, NONE, SelectableField, Strategy, TEXT, same_as_stored};

/// CertificateSigningRequests.
#[derive(Debug)]
pub(super) struct Requests;

impl Strategy for Requests {
    fn prepare_create(&self, _store: &Store, call: &Call, object: &mut Value) {
        csr::prepare_create(&call.user, object);
    }

    fn prepare_update(&self, _store: &Store, call: &Call, before: &Value, object: &mut Value) {
        csr::prepare_update(call, before, object);
    }

    fn validate(&self, call: &Call, object: &Value) -> Result<Vec<FieldError>> {
        Ok(csr::validate(call, None, object))
    }

    fn validate_update(
        &self,
        call: &Call,
        before: &Value,
        object: &Value,
    ) -> Result<Vec<FieldError>> {
        Ok(csr::validate(call, Some(before), object))
    }

    fn columns(&self) -> Columns {
        &[
            ("Name", TEXT, 0),
            ("Age", TEXT, 0),
            ("SignerName", TEXT, 0),
            ("Requestor", TEXT, 0),
            ("RequestedDuration", TEXT, 0),
            ("Condition", TEXT, 0),
        ]
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        cells(object, now)
    }

    fn fields(&self) -> Option<Vec<SelectableField>> {
        Some(same_as_stored(&["spec.signerName"]))
    }
}

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let has = |kind: &str| {
        let mut conditions = list(object, "/status/conditions").iter();
        conditions.any(|condition| text(condition, "/type") == kind)
    };
    let mut condition = if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else {
        "Pending"
    }
    .to_owned();
    if has("Failed") {
        condition.push_str(",Failed");
    }
    if !text(object, "/status/certificate").is_empty() {
        condition.push_str(",Issued");
    }
    let duration = object.pointer("/spec/expirationSeconds").and_then(Value::as_i64);
    vec![
        meta::name(object).into(),
        age(object, now),
        or(text(object, "/spec/signerName"), NONE).into(),
        text(object, "/spec/username").into(),
        duration.map_or_else(|| NONE.to_owned(), human).into(),
        condition.into(),
    ]
}
