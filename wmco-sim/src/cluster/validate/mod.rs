//! Defaults, strategies and validation of the built-in kinds. Metadata is checked by `write`.
//!
//! Source: the Kubernetes API reference and the answers of kube-apiserver 1.36.

mod data;
mod event;
mod network;
mod node;
mod pod;
mod pod_defaults;
mod policy;
mod rbac;
mod workload;

pub(crate) use node::{NOT_READY_TAINT, new_taints};
pub(crate) use pod::admit as admit_pod;

use serde_json::{Map, Value, json};

use super::call::Call;
use super::error::{FieldError, Result};
use super::policy as policy_rules;
use super::store::Store;
use super::{crd, csr, meta, schema};

/// Fills in what decoding fills in, on every write.
pub(crate) fn default(call: &Call, object: &mut Value) {
    if matches!(call.subresource.as_str(), "eviction" | "token") {
        // The body is of another kind than the resource.
        return;
    }
    match (call.resource.group.as_str(), call.resource.plural.as_str()) {
        ("", "secrets") => data::default_secret(object),
        ("", "namespaces") => default_namespace(object),
        ("", "pods") => pod_defaults::pod(object),
        ("", "services") => network::default_service(object),
        ("apps", plural) => workload::default(plural, object),
        ("discovery.k8s.io", "endpointslices") => network::default_slice(object),
        (policy_rules::GROUP, plural) => policy_rules::default(plural, object),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => {
            rbac::default_binding(object);
        }
        _ if crd::is_definition(&call.resource) => crd::complete(object, false),
        _ => {}
    }
}

/// A Namespace carries its name as a label.
fn default_namespace(object: &mut Value) {
    let name = meta::name(object).to_owned();
    if name.is_empty() {
        return;
    }
    let labels = meta::get(object, "labels").cloned().unwrap_or_else(|| json!({}));
    if let Value::Object(mut labels) = labels {
        labels.entry("kubernetes.io/metadata.name").or_insert_with(|| name.into());
        meta::set(object, "labels", labels.into());
    }
}

/// What the kind's strategy sets on a new object.
pub(crate) fn prepare_create(store: &Store, call: &Call, object: &mut Value) {
    match (call.resource.group.as_str(), call.resource.plural.as_str()) {
        ("", "namespaces") => {
            put(object, "spec", json!({"finalizers": ["kubernetes"]}));
            put(object, "status", json!({"phase": "Active"}));
        }
        ("", "pods") => pod::prepare_create(object),
        ("", "services") => network::allocate(store, object),
        ("certificates.k8s.io", _) => csr::prepare_create(&call.user, object),
        _ if crd::is_definition(&call.resource) => crd::complete(object, true),
        _ => {}
    }
    canonical(object);
}

/// What the kind's strategy keeps or resets on a change.
pub(crate) fn prepare_update(call: &Call, before: &Value, object: &mut Value) {
    match (call.resource.group.as_str(), call.resource.plural.as_str(), call.subresource.as_str()) {
        ("", "namespaces", "finalize") => {
            let finalizers = object.pointer("/spec/finalizers").cloned();
            *object = before.clone();
            put(object, "spec", json!({"finalizers": finalizers}));
        }
        ("", "namespaces", _) => keep(before, object, "spec"),
        ("", "pods", sub) => pod::prepare_update(sub, before, object),
        ("", "services", "") => network::prepare_service(before, object),
        ("certificates.k8s.io", ..) => csr::prepare_update(call, before, object),
        _ => {}
    }
    canonical(object);
}

/// Validates a new object (metadata apart).
///
/// # Errors
/// 501 for parts of a kind that are not simulated.
pub(crate) fn create(call: &Call, object: &Value) -> Result<Vec<FieldError>> {
    if call.resource.group == policy_rules::GROUP {
        return policy_rules::validate(&call.resource.plural, object);
    }
    if crd::is_definition(&call.resource) {
        return crd::validate(object);
    }
    Ok(object_errors(call, None, object))
}

/// Validates a change (metadata apart).
///
/// # Errors
/// 501 for parts of a kind that are not simulated.
pub(crate) fn update(call: &Call, before: &Value, object: &Value) -> Result<Vec<FieldError>> {
    if crd::is_definition(&call.resource) && call.subresource.is_empty() {
        return crd::validate(object);
    }
    let mut errors = match (call.resource.group.as_str(), call.resource.plural.as_str()) {
        ("", "secrets") => data::immutable_secret(before, object),
        ("discovery.k8s.io", "endpointslices") => return Ok(network::slice_change(before, object)),
        _ => vec![],
    };
    if call.subresource.is_empty() || call.resource.group == "certificates.k8s.io" {
        errors.extend(object_errors(call, Some(before), object));
    }
    match (call.resource.group.as_str(), call.resource.plural.as_str()) {
        ("", "configmaps") => errors.extend(data::immutable_map(before, object)),
        ("", "nodes") => {
            // Both the general and the update check of Nodes look at the taints.
            let again = errors.clone();
            errors.extend(again);
            errors.extend(node::change(before, object));
        }
        ("", "pods") if call.subresource.is_empty() => errors.extend(pod::change(before, object)),
        ("", "services") => errors.extend(network::service_change(before, object)),
        ("apps", _) => errors.extend(workload::change(before, object)),
        ("rbac.authorization.k8s.io", _) => errors.extend(rbac::change(before, object)),
        _ => {}
    }
    Ok(errors)
}

fn object_errors(call: &Call, before: Option<&Value>, object: &Value) -> Vec<FieldError> {
    match (call.resource.group.as_str(), call.resource.plural.as_str()) {
        ("", "configmaps") => data::config_map(object),
        ("", "secrets") => data::secret(object),
        ("", "nodes") => node::node(object),
        ("", "pods") => pod::pod(object),
        ("", "services") => network::service(object),
        ("" | "events.k8s.io", "events") => event::event(call, before, object),
        ("apps", _) => workload::workload(object),
        ("certificates.k8s.io", _) => csr::validate(call, before, object),
        ("coordination.k8s.io", "leases") => policy::lease(object),
        ("discovery.k8s.io", "endpointslices") => network::slice(object),
        ("policy", "poddisruptionbudgets") => policy::budget(object),
        ("rbac.authorization.k8s.io", plural) => rbac::object(plural, object),
        _ => vec![],
    }
}

/// Brings an object back into the shape that its kind has, after a strategy touched it.
fn canonical(object: &mut Value) {
    let text = |member: &str| object.get(member).and_then(Value::as_str).unwrap_or("");
    if let Some(message) = schema::kind(text("apiVersion"), text("kind"))
        && let Ok(shaped) = schema::shape::object(message, object)
    {
        *object = shaped.value;
    }
}

/// Sets a member of an object.
pub(crate) fn put(object: &mut Value, member: &str, value: Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert(member.to_owned(), value);
    }
}

/// Takes a member back to what it was.
fn keep(before: &Value, object: &mut Value, member: &str) {
    let Some(members) = object.as_object_mut() else { return };
    match before.get(member) {
        Some(value) => drop(members.insert(member.to_owned(), value.clone())),
        None => drop(members.remove(member)),
    }
}

/// Sets a member that is not there yet.
fn or_default(members: &mut Map<String, Value>, member: &str, value: impl Into<Value>) {
    members.entry(member).or_insert_with(|| value.into());
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn items_mut<'a>(
    value: &'a mut Value,
    pointer: &str,
) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    let list = value.pointer_mut(pointer).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}

/// One complaint for each reason why `value` is not acceptable.
fn invalid_for(field: &str, value: &str, wrong: &[String]) -> Vec<FieldError> {
    wrong.iter().map(|why| FieldError::invalid(field, &value.into(), why)).collect()
}

/// Complains if a member that may not change did.
fn immutable(before: &Value, object: &Value, pointer: &str, field: &str) -> Option<FieldError> {
    let (old, new) = (before.pointer(pointer), object.pointer(pointer));
    (old != new)
        .then(|| FieldError::invalid(field, new.unwrap_or(&Value::Null), "field is immutable"))
}

#[cfg(test)]
fn texts(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(|error| format!("{}: {}", error.field, error.message)).collect()
}
