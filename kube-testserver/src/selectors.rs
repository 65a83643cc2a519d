//! Label and field selectors.
//!
//! Source: `k8s.io/apimachinery/pkg/labels` and `.../fields`; the fields of each kind come from the
//! `AddFieldLabelConversionFunc` registrations.

mod field;
mod label;

pub(crate) use field::{FieldSelector, equality_terms};
pub(crate) use label::LabelSelector;

use serde_json::Value;

/// Both selectors of a list or watch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// From `labelSelector`.
    pub labels: LabelSelector,
    /// From `fieldSelector`.
    pub fields: FieldSelector,
}

impl Selection {
    /// Whether the object is selected.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.labels.matches(object.pointer("/metadata/labels")) && self.fields.matches(object)
    }

    /// Whether everything is selected.
    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }
}
