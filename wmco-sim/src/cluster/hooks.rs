//! The seam between the generic pipeline and what each kind, user or controller brings.
//!
//! The pipeline (`write`, `server`, `list`) calls nothing but these functions; each one line here
//! leads to the module that knows.

use jiff::Timestamp;
use serde_json::Value;

use super::call::{Call, Operation, Query};
use super::error::Result;
use super::shared::Shared;
use super::state::State;
use super::write::DeleteOptions;
use super::{auth, csr, eviction, lifecycle, policy, tokens, validate};

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
