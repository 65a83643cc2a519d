//! Namespaces.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::call::Call;
use crate::error::{FieldError, Result};
use crate::store::Store;
use crate::{meta, names};

use super::ages::age;
use super::finalizers::unknown_finalizers;
use super::values::{keep, list, put, text};
use super::{Columns, NameRule, SelectableField, Strategy, TEXT, same_as_stored};

/// Namespaces.
#[derive(Debug)]
pub(super) struct Namespaces;

impl Strategy for Namespaces {
    fn name_rule(&self) -> NameRule {
        names::dns1123_label
    }

    fn default(&self, object: &mut Value) {
        label(object);
    }

    fn prepare_create(&self, _store: &Store, _call: &Call, object: &mut Value) {
        // A generated name was not known when defaults were filled in.
        label(object);
        put(object, "spec", json!({"finalizers": ["kubernetes"]}));
        put(object, "status", json!({"phase": "Active"}));
    }

    fn prepare_update(&self, _store: &Store, call: &Call, before: &Value, object: &mut Value) {
        if call.subresource == "finalize" {
            let finalizers = object.pointer("/spec/finalizers").cloned();
            *object = before.clone();
            put(object, "spec", json!({"finalizers": finalizers}));
        } else {
            keep(before, object, "spec");
        }
    }

    fn validate_update(
        &self,
        call: &Call,
        _before: &Value,
        object: &Value,
    ) -> Result<Vec<FieldError>> {
        Ok(match call.subresource.as_str() {
            "finalize" => unknown_finalizers("spec.finalizers", list(object, "/spec/finalizers")),
            _ => vec![],
        })
    }

    fn columns(&self) -> Columns {
        &[("Name", TEXT, 0), ("Status", TEXT, 0), ("Age", TEXT, 0)]
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let phase = text(object, "/status/phase");
        vec![meta::name(object).into(), phase.into(), age(object, now)]
    }

    fn fields(&self) -> Option<Vec<SelectableField>> {
        Some(same_as_stored(&["status.phase"]))
    }
}

/// Labels a Namespace with its name.
fn label(namespace: &mut Value) {
    let name = meta::name(namespace).to_owned();
    if name.is_empty() {
        return;
    }
    let labels = meta::get(namespace, "labels").cloned().unwrap_or_else(|| json!({}));
    if let Value::Object(mut labels) = labels {
        labels.insert("kubernetes.io/metadata.name".to_owned(), name.into());
        meta::set(namespace, "labels", labels.into());
    }
}
