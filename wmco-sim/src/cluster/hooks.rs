//! The seam between the generic pipeline and what each kind, user or controller brings.
//!
//! The pipeline (`write`, `server`, `list`) calls nothing but these functions; each one line here
//! leads to the module that knows.

use jiff::Timestamp;
use serde_json::Value;

use super::call::{Call, Operation, Query};
use super::error::{ApiError, FieldError, Result};
use super::shared::Shared;
use super::state::State;
use super::write::DeleteOptions;
use super::{auth, crd, csr, eviction, lifecycle, policy, schema, tokens, validate};

const CRDS: &str = "customresourcedefinitions";

/// A body after decoding into its kind.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    /// The object, with just the fields that its kind knows.
    pub object: Value,
    /// Paths of fields that it does not know, for example `spec.unknown`.
    pub unknown: Vec<String>,
}

/// Reduces a body to what its built-in kind knows; wrong types are 400.
///
/// # Errors
/// 400 naming the field.
pub(crate) fn decode(call: &Call, object: Value) -> Result<Decoded> {
    let text = |member: &str| object.get(member).and_then(Value::as_str).unwrap_or("");
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let Some(message) = schema::kind(api_version, kind) else {
        return Ok(Decoded { object, unknown: Vec::new() });
    };
    match schema::shape::object(message, &object) {
        Ok(shaped) => Ok(Decoded { object: shaped.value, unknown: shaped.unknown }),
        Err(error) => {
            let version = super::resources::split_api_version(api_version).1;
            let wanted = call.body_kind();
            Err(ApiError::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {wanted}: {error}"
            )))
        }
    }
}

/// Fills in the defaults of a built-in kind, as decoding does on every write.
pub(crate) fn default(call: &Call, object: &mut Value) {
    if call.resource.is("apiextensions.k8s.io", CRDS) {
        crd::complete(object, false);
    } else if call.subresource != "eviction" && call.subresource != "token" {
        validate::default(call, object);
    }
}

/// Admission that may change the object (`before` is `None` for a create).
///
/// # Errors
/// Usually 403.
pub(crate) fn admit_changing(
    state: &State,
    call: &Call,
    operation: Operation,
    before: Option<&Value>,
    object: &mut Value,
) -> Result<()> {
    auth::restriction::admit(&state.store, call, operation, before, Some(object))?;
    if operation == Operation::Create && call.resource.is("", "nodes") {
        validate::new_taints(object);
    }
    if operation == Operation::Create && call.resource.is("", "pods") {
        validate::admit_pod(&state.store, call, object)?;
    }
    auth::escalation::admit(&state.store, call, operation, before, Some(object))
}

/// Admission that may only refuse or warn. `object` is `None` for a delete.
///
/// # Errors
/// Usually 403 or 422.
pub(crate) fn admit(
    state: &mut State,
    call: &Call,
    operation: Operation,
    before: Option<&Value>,
    object: Option<&Value>,
) -> Result<()> {
    if operation == Operation::Delete {
        auth::restriction::admit(&state.store, call, operation, before, object)?;
        lifecycle::may_delete(call)?;
    }
    if call.resource.is("certificates.k8s.io", "certificatesigningrequests") {
        csr::admit(&state.store, call, operation, before, object)?;
    }
    let write = policy::Write { call, operation, before, object };
    let warnings = policy::admit(&state.store, write)?;
    state.warnings.extend(warnings);
    Ok(())
}

/// What the kind's strategy sets or resets on a create, for example a Pod's first status.
pub(crate) fn prepare_create(state: &State, call: &Call, object: &mut Value) {
    if call.resource.is("", "services") {
        validate::allocate(&state.store, object);
    }
    if call.resource.is("apiextensions.k8s.io", CRDS) {
        crd::complete(object, true);
    }
    validate::prepare_create(call, object);
}

/// What the kind's strategy keeps or resets on an update.
pub(crate) fn prepare_update(_state: &State, call: &Call, before: &Value, object: &mut Value) {
    validate::prepare_update(call, before, object);
}

/// The kind's own validation of a new object; metadata is checked elsewhere.
///
/// # Errors
/// Anything that is not a complaint about a field.
pub(crate) fn validate_create(
    _state: &State,
    call: &Call,
    object: &Value,
) -> Result<Vec<FieldError>> {
    if call.resource.is("apiextensions.k8s.io", CRDS) {
        crd::unsupported(object)?;
        return Ok(crd::validate_definition(object));
    }
    validate::create(call, object)
}

/// The kind's own validation of a change; metadata is checked elsewhere.
///
/// # Errors
/// Anything that is not a complaint about a field.
pub(crate) fn validate_update(
    _state: &State,
    call: &Call,
    before: &Value,
    object: &Value,
) -> Result<Vec<FieldError>> {
    if call.resource.is("apiextensions.k8s.io", CRDS) && call.subresource.is_empty() {
        crd::unsupported(object)?;
        return Ok(crd::validate_definition(object));
    }
    Ok(validate::update(call, before, object))
}

/// A POST to a sub-resource (eviction, token) or to a resource that is never stored (reviews).
///
/// # Errors
/// What the sub-resource answers.
pub(crate) fn post(cluster: &Shared, state: &mut State, call: &Call, body: Value) -> Result<Value> {
    let issuer = cluster.pki.tokens();
    match call.subresource.as_str() {
        "eviction" => {
            let place = call.place();
            let pod = state.store.get(&place, &call.namespace, &call.name).cloned();
            let (operation, before) = (Operation::Create, pod.as_deref());
            auth::restriction::admit(&state.store, call, operation, before, Some(&body))?;
            let options = body.get("deleteOptions").filter(|options| !options.is_null());
            let options = DeleteOptions::parse(&Query::default(), options)?;
            eviction::evict(state, call, &body, &options)
        }
        "token" => {
            let operation = Operation::Create;
            auth::restriction::admit(&state.store, call, operation, None, Some(&body))?;
            tokens::request(&state.store, issuer, call, &body)
        }
        _ => {
            let context = auth::reviews::Context {
                store: &state.store,
                issuer,
                user: &call.user,
                namespace: &call.namespace,
                now: call.now,
            };
            auth::reviews::answer(context, &call.resource.plural, body)
        }
    }
}

/// Controllers: called after every request that wrote something, under the same lock. Answers with
/// what admission warned of in that request.
pub(crate) fn react(cluster: &Shared, state: &mut State) -> Vec<String> {
    let warnings = std::mem::take(&mut state.warnings);
    lifecycle::react(cluster, state, Timestamp::now());
    warnings
}
