//! PUT, and the second half of PATCH: a new state of an existing object.

use std::sync::Arc;

use serde_json::Value;

use crate::call::{Call, Operation};
use crate::error::{ApiError, FieldError, Result};
use crate::state::State;
use crate::{admission, apply, crd, kinds, meta};

use super::{Source, create, metadata, warnings};

/// Replaces an object by `object`, already decoded into its kind. The flag says whether it was created.
///
/// # Errors
/// The API's error: 404, 409 for a stale resourceVersion, 422 if the change is invalid.
pub(crate) fn update(
    state: &mut State,
    call: &Call,
    mut object: Value,
) -> Result<(Arc<Value>, bool)> {
    check_identity(call, &object)?;
    let place = call.place();
    let Some(before) = state.store.get(&place, &call.namespace, &call.name).cloned() else {
        if !call.resource.rules.create_on_update || !call.subresource.is_empty() {
            return Err(call.not_found());
        }
        let stated = meta::text(&object, "resourceVersion");
        if !stated.is_empty() && stated != "0" {
            return Err(call.not_found());
        }
        create::must_be_allowed(state, call)?;
        if !meta::uid(&object).is_empty() {
            return Err(uid_differs(call, &object, ""));
        }
        meta::remove(&mut object, "resourceVersion");
        return Ok((create(state, call, object, Source::Put)?, true));
    };
    let stated_uid = meta::uid(&object);
    if !stated_uid.is_empty() && stated_uid != meta::uid(&before) {
        return Err(uid_differs(call, &object, meta::uid(&before)));
    }
    check_version(call, &before, &object)?;
    Ok((change(state, call, &before, object, Source::Put)?, false))
}

/// The conflict of a body with another `uid` than the stored object.
fn uid_differs(call: &Call, object: &Value, stored: &str) -> ApiError {
    let stated = meta::uid(object);
    let why =
        format!("Precondition failed: UID in precondition: {stated}, UID in object meta: {stored}");
    ApiError::conflict(call.subject(), &why)
}

/// Checks that body and URL name the same object.
pub(super) fn check_identity(call: &Call, object: &Value) -> Result<()> {
    let (name, namespace) = (meta::name(object), meta::namespace(object));
    if name.is_empty() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            call.name
        )));
    }
    if name != call.name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.name
        )));
    }
    if call.resource.namespaced && !namespace.is_empty() && namespace != call.namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

pub(super) fn check_version(call: &Call, before: &Value, object: &Value) -> Result<()> {
    let stated = meta::text(object, "resourceVersion");
    if stated.is_empty() || stated == "0" {
        if call.resource.rules.unconditional_update {
            return Ok(());
        }
        let field = "metadata.resourceVersion";
        let error = FieldError::invalid_text(field, "0", "must be specified for an update");
        return Err(ApiError::invalid(call.subject(), &[error]));
    }
    if stated.parse::<u64>().is_err() {
        return Err(ApiError::plain(format!(
            "strconv.ParseUint: parsing {stated:?}: invalid syntax"
        )));
    }
    if stated != meta::text(before, "resourceVersion") {
        return Err(ApiError::modified(call.subject()));
    }
    Ok(())
}

/// Changes an object from `before` to `object`: keeps members that clients may not change, validates, stores unless
/// nothing changed, and removes the object when its last finalizer was removed.
pub(super) fn change(
    state: &mut State,
    call: &Call,
    before: &Arc<Value>,
    mut object: Value,
    source: Source,
) -> Result<Arc<Value>> {
    state.warnings.extend(warnings::dedup_owners(&mut object, source != Source::Put));
    admission::mutate(state, call, Operation::Update, Some(before), &mut object)?;
    keep_server_fields(call, before, &mut object);
    keep_other_half(call, before, &mut object);
    kinds::prepare_update(&state.store, call, before, &mut object);
    bump_generation(call, before, &mut object);
    let mut errors = metadata::validate_update(call, before, &object);
    if let Some(custom) = &call.resource.custom {
        errors.extend(custom.validate(&object));
    } else {
        errors.extend(kinds::of(&call.resource).validate_update(call, before, &object)?);
    }
    call.valid(&object, &errors)?;
    state.warnings.extend(warnings::warnings(call, Some(before), &object));
    admission::validate(state, call, Operation::Update, Some(before), Some(&object))?;
    if source != Source::Apply {
        apply::track(call, Some(before), &mut object);
    }
    Ok(settle(state, call, before, object))
}

/// Stores the new state, if it differs.
fn settle(state: &mut State, call: &Call, before: &Arc<Value>, object: Value) -> Arc<Value> {
    let gone = is_finished(call, before, &object);
    if !gone && same(before, &object) {
        return Arc::clone(before);
    }
    if call.options.dry_run {
        return Arc::new(object);
    }
    if gone {
        state.store.remove(&call.place(), &call.namespace, &call.name);
        removed(state, call);
        return Arc::new(object);
    }
    create::store(state, call, object)
}

/// Follow-up of a removed object: a definition removes its resource, and a definition may have waited for the last
/// object of its resource.
pub(super) fn removed(state: &mut State, call: &Call) {
    if crd::is_definition(&call.resource) {
        crd::reconcile(state, &call.name, call.now);
    }
    if call.resource.custom.is_some() {
        crd::retry(state, &call.resource.group, &call.resource.plural, call.now);
    }
}

/// Whether the change removed the last blocker of a deletion.
fn is_finished(call: &Call, before: &Value, object: &Value) -> bool {
    let released = meta::finalizers(object).is_empty()
        && meta::get(before, "deletionGracePeriodSeconds").and_then(Value::as_i64) == Some(0);
    if call.resource.is("", "namespaces") {
        let spec = object.pointer("/spec/finalizers").and_then(Value::as_array);
        let emptied = spec.is_none_or(Vec::is_empty);
        return emptied && meta::is_deleting(before) && meta::finalizers(object).is_empty();
    }
    released
}

/// Keeps the fields of metadata that only the server writes, and the identity.
fn keep_server_fields(call: &Call, before: &Value, object: &mut Value) {
    for field in ["creationTimestamp", "generation", "resourceVersion"] {
        meta::put(object, field, meta::get(before, field).cloned());
    }
    for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if meta::get(object, field).is_none() {
            meta::put(object, field, meta::get(before, field).cloned());
        }
    }
    meta::remove(object, "selfLink");
    if call.resource.namespaced {
        meta::set(object, "namespace", call.namespace.clone().into());
    } else {
        meta::remove(object, "namespace");
    }
}

/// Keeps `status` on the object's own path, and most other members on `/status`.
fn keep_other_half(call: &Call, before: &Value, object: &mut Value) {
    if call.subresource == "status" {
        if call.resource.custom.is_some() {
            let status = object.get("status").cloned();
            let managed = meta::get(object, "managedFields").cloned();
            *object = before.clone();
            set(object, "status", status);
            meta::put(object, "managedFields", managed);
        } else {
            for field in others(before, object) {
                set(object, &field, before.get(&field).cloned());
            }
        }
    } else if call.subresource == "finalize" {
        let finalizers = object.pointer("/spec/finalizers").cloned();
        for field in ["spec", "status"] {
            set(object, field, before.get(field).cloned());
        }
        if let Some(spec) = meta::map_mut(object, "spec") {
            spec.insert("finalizers".to_owned(), finalizers.unwrap_or_default());
        }
    } else if call.subresource.is_empty() && call.resource.has_status() {
        set(object, "status", before.get("status").cloned());
    }
}

/// All top-level members except the type, `metadata` and `status`.
fn others(before: &Value, object: &Value) -> Vec<String> {
    let of = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let mut names: Vec<String> = of(before).into_iter().chain(of(object)).map(|(k, _)| k).collect();
    names.retain(|name| !["apiVersion", "kind", "metadata", "status"].contains(&name.as_str()));
    names.dedup();
    names
}

fn set(object: &mut Value, field: &str, value: Option<Value>) {
    let Some(members) = object.as_object_mut() else { return };
    match value {
        Some(value) => drop(members.insert(field.to_owned(), value)),
        None => drop(members.remove(field)),
    }
}

/// Increments `generation` if the desired state changed: all except status and, of most kinds, metadata.
fn bump_generation(call: &Call, before: &Value, object: &mut Value) {
    if !call.resource.rules.generation || call.subresource == "status" {
        return;
    }
    let with_status = call.resource.custom.is_some() && !call.resource.has_status();
    let wanted = |value: &Value| {
        let mut members = value.as_object().cloned().unwrap_or_default();
        members.remove("metadata");
        members.remove("apiVersion");
        if !with_status {
            members.remove("status");
        }
        members
    };
    let of_metadata = kinds::of(&call.resource).generation_counts();
    let marked =
        of_metadata.is_some_and(|field| meta::get(before, field) != meta::get(object, field));
    if marked || wanted(before) != wanted(object) {
        meta::set(object, "generation", (meta::generation(before) + 1).into());
    }
}

/// Whether both are equal except for the times in `managedFields`.
fn same(before: &Value, object: &Value) -> bool {
    let without_times = |value: &Value| {
        let mut value = value.clone();
        let managed = value.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
        for entry in managed.into_iter().flatten() {
            if let Some(entry) = entry.as_object_mut() {
                entry.remove("time");
            }
        }
        value
    };
    before == object || without_times(before) == without_times(object)
}
