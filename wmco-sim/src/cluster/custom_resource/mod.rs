//! Custom resources: how objects of one version are pruned, filled in, validated and shown.

mod prune;
mod validate;

use serde_json::Value;

use super::error::{ApiError, FieldError, Result};

/// One served version of a custom resource.
#[derive(Debug)]
pub(crate) struct CustomResource {
    /// `openAPIV3Schema`.
    pub schema: Value,
    /// The version that objects are stored in.
    pub storage_version: String,
    /// `additionalPrinterColumns`, or the Age column when there are none.
    pub columns: Vec<Column>,
    /// JSON paths of `selectableFields`, for example `.spec.color`.
    pub selectable: Vec<String>,
}

/// A column of the Table form.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// Heading.
    pub name: String,
    /// `string`, `integer`, `date`, ...
    pub kind: String,
    /// Hint for the client, for example `int32`.
    pub format: String,
    /// 0 is always shown, others in wide output.
    pub priority: i64,
    /// Where the cell comes from, for example `.status.phase`.
    pub path: String,
}

impl CustomResource {
    /// Drops what the schema does not know and returns the paths.
    ///
    /// # Errors
    /// 400 when `metadata` is not of its type.
    pub(crate) fn prune(&self, object: &mut Value) -> Result<Vec<String>> {
        prune::prune(&self.schema, object)
            .map_err(|error| ApiError::bad_request(format!("metadata cannot be decoded: {error}")))
    }

    /// Fills in the defaults of the schema.
    pub(crate) fn default(&self, object: &mut Value) {
        prune::default(&self.schema, object);
    }

    /// Complaints of the schema about an object.
    pub(crate) fn validate(&self, object: &Value) -> Vec<FieldError> {
        validate::validate(&self.schema, object)
    }
}
