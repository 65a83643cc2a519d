//! `pods/binding` and `bindings`, with which a scheduler binds a Pod to a Node.
//!
//! Source: Kubernetes API reference, "Binding", and the registry of Pods.

use std::sync::Arc;

use serde_json::{Value, json};

use super::call::Call;
use super::error::{ApiError, FieldError, Result, Subject};
use super::meta;
use super::resources::StorageKey;
use super::state::State;
use super::store::rfc3339;

/// Binds the Pod that the path names, or else the body, and answers with a Status.
///
/// # Errors
/// 400 for another name in the body, 404 without the Pod, 409 if the Pod is deleted, already bound or another one,
/// 500 for a target that is not a Node.
pub(crate) fn bind(state: &mut State, call: &Call, binding: &Value) -> Result<Value> {
    let name = meta::name(binding);
    if !call.name.is_empty() && call.name != name {
        return Err(ApiError::bad_request("name in URL does not match name in Binding object"));
    }
    let node = target(binding)?;
    let place = StorageKey::new("", "pods");
    let Some(pod) = state.store.get(&place, &call.namespace, name) else {
        return Err(ApiError::not_found(Subject { group: "", kind: "pods", name }));
    };
    check(binding, pod)?;
    let bound = bound(pod, node, binding, &rfc3339(call.now));
    if !call.options.dry_run {
        state.store.put(&place, bound);
    }
    Ok(json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
    }))
}

/// The target Node. Clients get validation errors of a Binding as a plain error.
fn target(binding: &Value) -> Result<&str> {
    let text = |pointer| binding.pointer(pointer).and_then(Value::as_str).unwrap_or("");
    let (kind, node) = (text("/target/kind"), text("/target/name"));
    let mut errors = vec![];
    if !["", "Node"].contains(&kind) {
        let words = ["<empty>", "Node"];
        errors.push(FieldError::not_supported("target.kind", &kind.into(), &words));
    }
    if node.is_empty() {
        errors.push(FieldError::required("target.name", ""));
    }
    let texts: Vec<_> = errors.iter().map(|e| format!("{}: {}", e.field, e.message)).collect();
    match texts.as_slice() {
        [] => Ok(node),
        [one] => Err(ApiError::plain(one)),
        many => Err(ApiError::plain(format!("[{}]", many.join(", ")))),
    }
}

/// Checks that the Pod may be bound, and is the one that the client has seen.
fn check(binding: &Value, pod: &Value) -> Result<()> {
    let name = meta::name(pod);
    for (field, shown) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
        let (wanted, actual) = (meta::text(binding, field), meta::text(pod, field));
        if !wanted.is_empty() && wanted != actual {
            let why = format!(
                "Precondition failed: {shown} in precondition: {wanted}, {shown} in object meta: \
                 {actual}"
            );
            return Err(ApiError::conflict(Subject { group: "", kind: "pods", name }, &why));
        }
    }
    let node = pod.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or("");
    let gates = pod.pointer("/spec/schedulingGates").and_then(Value::as_array);
    let why = if meta::is_deleting(pod) {
        format!("pod {name} is being deleted, cannot be assigned to a host")
    } else if !node.is_empty() {
        format!("pod {name} is already assigned to node {node:?}")
    } else if gates.is_some_and(|gates| !gates.is_empty()) {
        format!("pod {name} has non-empty .spec.schedulingGates")
    } else {
        return Ok(());
    };
    Err(ApiError::conflict(Subject { group: "", kind: "pods/binding", name }, &why))
}

/// Returns the Pod bound to its Node.
fn bound(pod: &Arc<Value>, node: &str, binding: &Value, now: &str) -> Value {
    let mut pod = Value::clone(pod);
    if let Some(spec) = meta::map_mut(&mut pod, "spec") {
        spec.insert("nodeName".to_owned(), node.into());
    }
    let more = meta::get(binding, "annotations").and_then(Value::as_object);
    if let Some(more) = more.filter(|more| !more.is_empty()) {
        let old = meta::get(&pod, "annotations").and_then(Value::as_object);
        let mut all = old.cloned().unwrap_or_default();
        all.extend(more.clone());
        meta::set(&mut pod, "annotations", all.into());
    }
    let scheduled = json!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now,
    });
    if let Some(status) = meta::map_mut(&mut pod, "status") {
        let conditions = status.entry("conditions").or_insert_with(|| json!([]));
        if let Some(conditions) = conditions.as_array_mut() {
            conditions.retain(|own| own.get("type") != scheduled.get("type"));
            conditions.push(scheduled);
        }
    }
    pod
}
