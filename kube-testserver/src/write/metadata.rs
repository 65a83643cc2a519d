//! Validation of `metadata`, the same for every kind.
//!
//! Source: `k8s.io/apimachinery/pkg/api/validation/objectmeta.go`.

use serde_json::{Value, json};

use crate::call::Call;
use crate::error::FieldError;
use crate::kinds;
use crate::meta;
use crate::names;
use crate::resources::split_api_version;

/// Largest sum of all annotation keys and values.
const ANNOTATION_BYTES: usize = 256 * 1024;

/// Validation errors of the metadata of a new object.
pub(super) fn validate_create(call: &Call, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = meta::name(object);
    if name.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else {
        let wrong = kinds::of(&call.resource).name_rule()(name);
        errors.extend(invalid("metadata.name", name, &wrong));
    }
    let prefix = meta::text(object, "generateName");
    if !prefix.is_empty() {
        let wrong = kinds::of(&call.resource).name_rule()(&without_last_dash(prefix));
        errors.extend(invalid("metadata.generateName", prefix, &wrong));
    }
    if meta::generation(object) < 0 {
        let value = meta::generation(object).into();
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("metadata.generation", &value, why));
    }
    errors.extend(common(object));
    errors.extend(unqualified_finalizers(call, object));
    errors
}

/// Validation errors of a change of metadata. Each error occurs twice, as in the API: the generic registry and the
/// kind's strategy both check.
pub(super) fn validate_update(call: &Call, before: &Value, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in ["name", "namespace", "uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let (old, new) = (meta::get(before, field), meta::get(object, field));
        if old != new {
            let new = new.cloned().unwrap_or_default();
            let why = "field is immutable";
            errors.push(FieldError::invalid(&format!("metadata.{field}"), &new, why));
        }
    }
    errors.extend(new_finalizers(before, object));
    errors.extend(common(object));
    let again = errors.clone();
    errors.extend(again);
    errors.extend(unqualified_finalizers(call, object));
    errors
}

/// Warnings about new finalizers of a custom resource whose names may collide.
pub(super) fn warnings(before: Option<&Value>, object: &Value) -> Vec<String> {
    let old = before.map(meta::finalizers).unwrap_or_default();
    let mut new = meta::finalizers(object);
    new.retain(|finalizer| !kinds::is_known_finalizer(finalizer) && !old.contains(finalizer));
    new.sort_unstable();
    new.dedup();
    let warn = |finalizer: &str| {
        format!(
            "metadata.finalizers: {finalizer:?}: prefer a domain-qualified finalizer name \
             including a path (/) to avoid accidental conflicts with other finalizer writers"
        )
    };
    new.into_iter().map(warn).collect()
}

/// Finalizers of built-in kinds that are neither built in nor have a domain.
fn unqualified_finalizers(call: &Call, object: &Value) -> Vec<FieldError> {
    let of_extension = matches!(
        call.resource.group.as_str(),
        "apiextensions.k8s.io" | "admissionregistration.k8s.io"
    );
    if call.resource.custom.is_some() || of_extension {
        return Vec::new();
    }
    let finalizers = meta::get(object, "finalizers").and_then(Value::as_array);
    let finalizers = finalizers.map(Vec::as_slice).unwrap_or_default();
    kinds::unknown_finalizers("metadata.finalizers", finalizers)
}

fn new_finalizers(before: &Value, object: &Value) -> Option<FieldError> {
    if !meta::is_deleting(before) {
        return None;
    }
    let old = meta::finalizers(before);
    let mut new: Vec<_> = meta::finalizers(object);
    new.retain(|finalizer| !old.contains(finalizer));
    if new.is_empty() {
        return None;
    }
    let quoted: Vec<_> = new.iter().map(|finalizer| format!("{finalizer:?}")).collect();
    let why = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers \
         []string{{{}}}",
        quoted.join(", ")
    );
    Some(FieldError::forbidden("metadata.finalizers", &why))
}

fn common(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in entries(object, "labels") {
        errors.extend(invalid("metadata.labels", key, &names::qualified_name(key)));
        errors.extend(invalid("metadata.labels", value, &names::label_value(value)));
    }
    let mut bytes = 0;
    for (key, value) in entries(object, "annotations") {
        let wrong = names::qualified_name(&key.to_lowercase());
        errors.extend(invalid("metadata.annotations", key, &wrong));
        bytes += key.len() + value.len();
    }
    if bytes > ANNOTATION_BYTES {
        errors.push(FieldError::too_long("metadata.annotations", ANNOTATION_BYTES));
    }
    errors.extend(owners(object));
    for finalizer in meta::finalizers(object) {
        let wrong = names::qualified_name(finalizer);
        errors.extend(invalid("metadata.finalizers", finalizer, &wrong));
    }
    let finalizers = meta::finalizers(object);
    if ["orphan", "foregroundDeletion"].iter().all(|both| finalizers.contains(both)) {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid("metadata.finalizers", &json!(finalizers), why));
    }
    errors
}

/// A prefix may end with a dash, for a generated end follows it.
fn without_last_dash(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(start) if !start.is_empty() => {
            let mut name = start.to_owned();
            name.pop();
            name + "a"
        }
        _ => prefix.to_owned(),
    }
}

fn invalid(field: &str, value: &str, wrong: &[String]) -> Vec<FieldError> {
    wrong.iter().map(|why| FieldError::invalid(field, &value.into(), why)).collect()
}

fn entries<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let map = meta::get(object, field).and_then(Value::as_object);
    map.into_iter().flatten().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or("")))
}

fn owners(object: &Value) -> Vec<FieldError> {
    const FIELD: &str = "metadata.ownerReferences";
    let mut errors = Vec::new();
    let list = meta::get(object, "ownerReferences").and_then(Value::as_array);
    let owners = list.map(Vec::as_slice).unwrap_or_default();
    let text = |owner: &Value, field: &str| {
        owner.get(field).and_then(Value::as_str).unwrap_or("").to_owned()
    };
    let mut controllers = Vec::new();
    for owner in owners {
        let api_version = text(owner, "apiVersion");
        if split_api_version(&api_version).1.is_empty() {
            let field = format!("{FIELD}.apiVersion");
            let value = api_version.as_str().into();
            errors.push(FieldError::invalid(&field, &value, "version must not be empty"));
        }
        for field in ["kind", "name", "uid"] {
            if text(owner, field).is_empty() {
                let field = format!("{FIELD}.{field}");
                errors.push(FieldError::invalid(&field, &"".into(), "must not be empty"));
            }
        }
        if api_version == "v1" && text(owner, "kind") == "Event" {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(FieldError::invalid_text(FIELD, &in_go_order(owner), why));
        }
        if owner.get("controller") == Some(&Value::Bool(true)) {
            controllers.push(format!("{}/{}", text(owner, "kind"), text(owner, "name")));
        }
    }
    if let [first, second, ..] = controllers.as_slice() {
        let shown: Vec<_> = owners.iter().map(in_go_order).collect();
        let why = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references \
             for {first} and {second}"
        );
        errors.push(FieldError::invalid_text(FIELD, &format!("[{}]", shown.join(",")), &why));
    }
    errors
}

/// An owner reference as JSON, with its members in the order of Go's struct.
fn in_go_order(owner: &Value) -> String {
    let order = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let members = order
        .iter()
        .filter_map(|key| owner.get(key).map(|value| format!("{}:{value}", Value::from(*key))));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}
