//! POST of a new object.

use std::sync::Arc;

use serde_json::Value;

use crate::auth::{self, Attributes};
use crate::call::{Call, Operation};
use crate::error::{ApiError, FieldError, Result, Subject};
use crate::resources::StorageKey;
use crate::state::State;
use crate::store::rfc3339;
use crate::{admission, apply, crd, kinds, meta, random};

use super::{Source, metadata, warnings};

/// Attempts to generate a name that is not in use.
const NAME_ATTEMPTS: usize = 8;
/// Longest prefix of a generated name: 63 minus the five random characters.
const LONGEST_PREFIX: usize = 58;

/// Creates `object`, already decoded into its kind, and returns the stored object.
///
/// # Errors
/// The API's error: 404 without the namespace, 409 if the name is in use, 422 if the object is invalid, 403 if
/// admission refuses it.
pub(crate) fn create(
    state: &mut State,
    call: &Call,
    mut object: Value,
    source: Source,
) -> Result<Arc<Value>> {
    set_namespace(call, &mut object)?;
    let generated =
        meta::name(&object).is_empty() && !meta::text(&object, "generateName").is_empty();
    for attempt in 1.. {
        let mut candidate = object.clone();
        if generated {
            generate_name(&mut candidate);
        }
        match create_named(state, call, candidate, source) {
            Err(error)
                if generated
                    && error.reason == Some("AlreadyExists")
                    && attempt < NAME_ATTEMPTS => {}
            done => return done,
        }
    }
    Err(ApiError::plain("no free name was found"))
}

/// Checks the right to create, for a PUT or apply of a missing object.
///
/// # Errors
/// 403 if the user may not create.
pub(super) fn must_be_allowed(state: &State, call: &Call) -> Result<()> {
    let of = Attributes {
        verb: "create",
        group: &call.resource.group,
        resource: &call.resource.plural,
        namespace: &call.namespace,
        name: &call.name,
        ..Attributes::default()
    };
    auth::require(&state.store, &call.user, &of)
}

/// Sets the namespace of the URL in the object.
///
/// # Errors
/// 400 if the object has another namespace.
pub(crate) fn set_namespace(call: &Call, object: &mut Value) -> Result<()> {
    let given = meta::namespace(object);
    if !call.resource.namespaced {
        if !given.is_empty() {
            meta::remove(object, "namespace");
        }
        return Ok(());
    }
    if !given.is_empty() && given != call.namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    meta::set(object, "namespace", call.namespace.clone().into());
    Ok(())
}

fn generate_name(object: &mut Value) {
    let prefix: String = meta::text(object, "generateName").chars().take(LONGEST_PREFIX).collect();
    let name = format!("{prefix}{}", random::suffix());
    meta::set(object, "name", name.into());
}

fn create_named(
    state: &mut State,
    call: &Call,
    mut object: Value,
    source: Source,
) -> Result<Arc<Value>> {
    let call = &call.about(meta::name(&object));
    namespace_must_live(state, call)?;
    if !matches!(meta::text(&object, "resourceVersion"), "" | "0") {
        return Err(ApiError::plain("resourceVersion should not be set on objects to be created"));
    }
    meta::remove(&mut object, "resourceVersion");
    state.warnings.extend(warnings::dedup_owners(&mut object, source == Source::Apply));
    admission::mutate(state, call, Operation::Create, None, &mut object)?;
    meta::remove(&mut object, "deletionTimestamp");
    meta::remove(&mut object, "deletionGracePeriodSeconds");
    if source != Source::Apply {
        meta::remove(&mut object, "managedFields");
    }
    meta::remove(&mut object, "selfLink");
    meta::set(&mut object, "uid", random::uid().into());
    meta::set(&mut object, "creationTimestamp", rfc3339(call.now).into());
    prepare(state, call, &mut object);
    let mut errors = metadata::validate_create(call, &object);
    if let Some(custom) = &call.resource.custom {
        errors.extend(custom.validate(&object));
    } else {
        errors.extend(kinds::of(&call.resource).validate(call, &object)?);
    }
    call.valid(&object, &errors)?;
    state.warnings.extend(warnings::warnings(call, None, &object));
    admission::validate(state, call, Operation::Create, None, Some(&object))?;
    if state.store.get(&call.place(), &call.namespace, &call.name).is_some() {
        return Err(ApiError::already_exists(call.subject()));
    }
    if source != Source::Apply {
        apply::track(call, None, &mut object);
    }
    if call.options.dry_run {
        return Ok(Arc::new(object));
    }
    Ok(store(state, call, object))
}

/// Stores the object; a definition of a custom resource takes effect.
pub(super) fn store(state: &mut State, call: &Call, object: Value) -> Arc<Value> {
    let object = state.store.put(&call.place(), object);
    if crd::is_definition(&call.resource) {
        crd::reconcile(state, &call.name, call.now);
    }
    object
}

fn prepare(state: &State, call: &Call, object: &mut Value) {
    let resource = &call.resource;
    if resource.rules.generation {
        meta::set(object, "generation", 1.into());
    }
    if resource.has_status()
        && !resource.rules.keeps_status_on_create
        && let Some(members) = object.as_object_mut()
    {
        members.remove("status");
    }
    kinds::prepare_create(&state.store, call, object);
}

/// Checks that the namespace of a new object exists and is not being deleted.
///
/// # Errors
/// 404 without the namespace, 403 if it is terminating.
pub(crate) fn namespace_must_live(state: &State, call: &Call) -> Result<()> {
    if !call.resource.namespaced {
        return Ok(());
    }
    let place = StorageKey::new("", "namespaces");
    let Some(namespace) = state.store.get(&place, "", &call.namespace) else {
        let of = Subject { group: "", kind: "namespaces", name: &call.namespace };
        return Err(ApiError::not_found(of));
    };
    if !meta::is_deleting(namespace) {
        return Ok(());
    }
    let name = &call.namespace;
    let cause = FieldError {
        reason: "NamespaceTerminating",
        message: format!("namespace {name} is being terminated"),
        field: "metadata.namespace".to_owned(),
    };
    let why =
        format!("unable to create new content in namespace {name} because it is being terminated");
    Err(ApiError::forbidden(call.subject(), &why).with_field_causes(&[cause]))
}
