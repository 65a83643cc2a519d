//! DELETE of an object or a collection.
//!
//! Source: `k8s.io/apiserver/pkg/registry/rest/delete.go` and `.../generic/registry/store.go`.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::call::{Call, Operation};
use crate::error::{ApiError, Result};
use crate::state::State;
use crate::store::rfc3339;
use crate::{admission, meta};

use super::create::store;
use super::delete_options::{DeleteOptions, Propagation};
use super::update::removed;

/// Finalizer that keeps an object until its dependents are deleted.
const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer that keeps an object until its dependents are released.
const ORPHAN: &str = "orphan";
/// Default grace period of a Pod.
const POD_GRACE_S: i64 = 30;

/// The result of a DELETE.
#[derive(Clone, Debug)]
pub(crate) enum Deleted {
    /// The object waits for finalizers or its grace period.
    Pending(Arc<Value>),
    /// The object was deleted; this was its last state.
    Gone(Arc<Value>),
}

impl Deleted {
    /// The object in its last state.
    pub(crate) fn object(&self) -> &Arc<Value> {
        match self {
            Self::Pending(object) | Self::Gone(object) => object,
        }
    }
}

/// Deletes an object and answers with the object or a Status, depending on its kind.
///
/// # Errors
/// 404, 409 if a precondition does not hold, 403 if admission refuses.
pub(crate) fn delete(
    state: &mut State,
    call: &Call,
    options: &DeleteOptions,
) -> Result<Arc<Value>> {
    let deleted = delete_object(state, call, options)?;
    Ok(match deleted {
        Deleted::Gone(object) if !call.resource.rules.returns_deleted => {
            Arc::new(success(call, &object))
        }
        Deleted::Gone(object) | Deleted::Pending(object) => object,
    })
}

/// Deletes every listed object and returns their last states.
///
/// # Errors
/// The first error other than 404.
pub(crate) fn delete_collection(
    state: &mut State,
    call: &Call,
    options: &DeleteOptions,
    names: &[(String, String)],
) -> Result<Vec<Arc<Value>>> {
    let mut gone = Vec::new();
    for (namespace, name) in names {
        let call = Call { namespace: namespace.clone(), ..call.about(name) };
        match delete_object(state, &call, options) {
            Ok(deleted) => gone.push(Arc::clone(deleted.object())),
            Err(error) if error.code == 404 => {}
            Err(error) => return Err(error),
        }
    }
    Ok(gone)
}

fn success(call: &Call, object: &Value) -> Value {
    let mut details = json!({
        "name": call.name, "kind": call.resource.plural, "uid": meta::uid(object),
    });
    if !call.resource.group.is_empty()
        && let Some(members) = details.as_object_mut()
    {
        members.insert("group".to_owned(), call.resource.group.clone().into());
    }
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": details,
    })
}

fn delete_object(state: &mut State, call: &Call, options: &DeleteOptions) -> Result<Deleted> {
    let place = call.place();
    let Some(before) = state.store.get(&place, &call.namespace, &call.name).cloned() else {
        return Err(call.not_found());
    };
    check_preconditions(call, &before, options)?;
    admission::validate(state, call, Operation::Delete, Some(&before), None)?;
    Ok(delete_admitted(state, call, before, options))
}

/// Deletes `before`, which may be deleted, as it is stored.
pub(crate) fn delete_admitted(
    state: &mut State,
    call: &Call,
    before: Arc<Value>,
    options: &DeleteOptions,
) -> Deleted {
    let place = call.place();
    let mut object = Value::clone(&before);
    let grace = match mark_graceful(call, &mut object, options) {
        Grace::AlreadyPending => return Deleted::Pending(before),
        Grace::Marked(seconds) => Some(seconds),
        Grace::NotSupported => None,
    };
    let finalizers = wanted_finalizers(&before, options);
    let waits = !finalizers.is_empty() || call.resource.is("", "namespaces");
    if finalizers != meta::finalizers(&before) {
        let value = (!finalizers.is_empty()).then(|| finalizers.clone().into());
        meta::put(&mut object, "finalizers", value);
    }
    if grace.is_none() && waits {
        mark_as_deleting(&mut object, call.now);
    }
    if call.resource.is("", "namespaces") {
        let status = json!({"phase": "Terminating"});
        merge(&mut object, "status", &status);
    }
    let updated = grace.is_some() || waits;
    if options.dry_run {
        let object = Arc::new(object);
        let gone = !waits && grace.unwrap_or(0) == 0;
        return if gone { Deleted::Gone(object) } else { Deleted::Pending(object) };
    }
    let mut last = before;
    if updated && *last != object {
        last = store(state, call, object);
    }
    if waits || grace.unwrap_or(0) > 0 {
        return Deleted::Pending(last);
    }
    state.store.remove(&place, &call.namespace, &call.name);
    removed(state, call);
    Deleted::Gone(last)
}

/// Compares the preconditions with the stored object.
///
/// # Errors
/// 409 if one does not hold.
pub(crate) fn check_preconditions(
    call: &Call,
    before: &Value,
    options: &DeleteOptions,
) -> Result<()> {
    let of = call.kind_subject(&call.name);
    if let Some(uid) = &options.preconditions.uid
        && uid != meta::uid(before)
    {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The \
             object might have been deleted and then recreated",
            meta::uid(before)
        );
        return Err(ApiError::conflict(of, &why));
    }
    if let Some(version) = &options.preconditions.resource_version
        && version != meta::text(before, "resourceVersion")
    {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the \
             ResourceVersion in record ({}). The object might have been modified",
            meta::text(before, "resourceVersion")
        );
        return Err(ApiError::conflict(of, &why));
    }
    Ok(())
}

enum Grace {
    NotSupported,
    AlreadyPending,
    Marked(i64),
}

/// Marks a graceful deletion. Only Pods have one: the first deletion sets the period, later ones may shorten it.
fn mark_graceful(call: &Call, object: &mut Value, options: &DeleteOptions) -> Grace {
    if !call.resource.is("", "pods") {
        return Grace::NotSupported;
    }
    let asked = options.grace_s.map(|grace| if grace < 0 { 1 } else { grace });
    if meta::is_deleting(object) {
        let pending = meta::get(object, "deletionGracePeriodSeconds").and_then(Value::as_i64);
        let Some(pending) = pending else { return Grace::NotSupported };
        return match asked {
            Some(asked) if asked < pending => {
                let ends: Option<Timestamp> = meta::text(object, "deletionTimestamp").parse().ok();
                let ends = ends.unwrap_or(call.now) - SignedDuration::from_secs(pending - asked);
                set_grace(object, ends, asked);
                Grace::Marked(asked)
            }
            Some(_) | None => Grace::AlreadyPending,
        };
    }
    let spec = object.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    let mut grace = asked.or(spec).unwrap_or(POD_GRACE_S);
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("");
    if text("/spec/nodeName").is_empty() || matches!(text("/status/phase"), "Failed" | "Succeeded")
    {
        grace = 0;
    }
    if grace < 0 {
        grace = 1;
    }
    set_grace(object, call.now + SignedDuration::from_secs(grace), grace);
    bump(object);
    Grace::Marked(grace)
}

fn set_grace(object: &mut Value, ends: Timestamp, grace: i64) {
    meta::set(object, "deletionTimestamp", rfc3339(ends).into());
    meta::set(object, "deletionGracePeriodSeconds", grace.into());
}

fn bump(object: &mut Value) {
    let generation = meta::generation(object);
    if generation > 0 {
        meta::set(object, "generation", (generation + 1).into());
    }
}

/// Marks an object that waits for its finalizers.
fn mark_as_deleting(object: &mut Value, now: Timestamp) {
    let waiting = meta::get(object, "deletionGracePeriodSeconds").is_some();
    if meta::is_deleting(object) && waiting {
        return;
    }
    if !waiting {
        bump(object);
    }
    if !meta::is_deleting(object) {
        meta::set(object, "deletionTimestamp", rfc3339(now).into());
    }
    meta::set(object, "deletionGracePeriodSeconds", 0.into());
}

/// The finalizers after the propagation policy has added or removed its own ones.
fn wanted_finalizers(before: &Value, options: &DeleteOptions) -> Vec<String> {
    let old = meta::finalizers(before);
    let policy = match options.propagation {
        Some(policy) => policy,
        None if old.contains(&ORPHAN) => Propagation::Orphan,
        None if old.contains(&FOREGROUND) => Propagation::Foreground,
        None => Propagation::Background,
    };
    let own = match policy {
        Propagation::Background => None,
        Propagation::Foreground => Some(FOREGROUND),
        Propagation::Orphan => Some(ORPHAN),
    };
    let mut wanted: Vec<String> = Vec::new();
    for finalizer in &old {
        if Some(*finalizer) == own || (*finalizer != FOREGROUND && *finalizer != ORPHAN) {
            wanted.push((*finalizer).to_owned());
        }
    }
    if let Some(own) = own
        && !old.contains(&own)
    {
        wanted.push(own.to_owned());
    }
    wanted
}

fn merge(object: &mut Value, field: &str, by: &Value) {
    let Some(members) = meta::map_mut(object, field) else { return };
    for (key, value) in by.as_object().into_iter().flatten() {
        members.insert(key.clone(), value.clone());
    }
}
