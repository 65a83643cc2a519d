//! CustomResourceDefinitions: what [`crd`] decides, and their row.

use jiff::Timestamp;
use serde_json::Value;

use crate::call::Call;
use crate::error::{FieldError, Result};
use crate::store::Store;
use crate::{crd, meta};

use super::{CREATED_AT, Columns, Strategy};

/// CustomResourceDefinitions.
#[derive(Debug)]
pub(super) struct Definitions;

impl Strategy for Definitions {
    fn default(&self, object: &mut Value) {
        crd::complete(object, false);
    }

    fn prepare_create(&self, _store: &Store, _call: &Call, object: &mut Value) {
        crd::complete(object, true);
    }

    fn validate(&self, _call: &Call, object: &Value) -> Result<Vec<FieldError>> {
        crd::validate(object)
    }

    fn prepare_update(&self, _store: &Store, call: &Call, _before: &Value, object: &mut Value) {
        if call.subresource.is_empty() {
            crd::note_storage(object);
        }
    }

    fn validate_update(
        &self,
        call: &Call,
        before: &Value,
        object: &Value,
    ) -> Result<Vec<FieldError>> {
        crd::validate_update(&call.subresource, before, object)
    }

    fn columns(&self) -> Columns {
        CREATED_AT
    }

    fn cells(&self, object: &Value, _now: Timestamp) -> Vec<Value> {
        vec![meta::name(object).into(), meta::text(object, "creationTimestamp").into()]
    }
}
