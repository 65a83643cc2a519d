//! Custom resources: pruning, defaults, validation and columns of one version.

mod prune;
mod validate;

use serde_json::Value;

use super::error::FieldError;
use super::schema::shape::Unreadable;

/// A served version of a custom resource.
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
    /// 0 is always shown, other values in wide output.
    pub priority: i64,
    /// JSON path of the cell's value, for example `.status.phase`.
    pub path: String,
}

impl CustomResource {
    /// Drops members that the schema does not define and returns their paths.
    ///
    /// # Errors
    /// `metadata` that cannot be read as its type.
    pub(crate) fn prune(&self, object: &mut Value) -> Result<Vec<String>, Unreadable> {
        prune::prune(&self.schema, object)
    }

    /// Fills in the defaults of the schema.
    pub(crate) fn default(&self, object: &mut Value) {
        prune::default(&self.schema, object);
    }

    /// Validation errors of an object by the schema.
    pub(crate) fn validate(&self, object: &Value) -> Vec<FieldError> {
        validate::validate(&self.schema, object)
    }
}

/// Validation errors of any value by a schema.
pub(crate) fn value_errors(schema: &Value, value: &Value) -> Vec<FieldError> {
    validate::validate(schema, value)
}

/// Whether a value has members that its schema does not define.
pub(crate) fn has_unknown_members(schema: &Value, value: &Value) -> bool {
    prune::unknown_members(schema, value).map_or(true, |unknown| !unknown.is_empty())
}
