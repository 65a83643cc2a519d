//! Resources for an operation instead of an object: binding, eviction, token, reviews.
//!
//! Source: Kubernetes documentation, "Kubernetes API Concepts", virtual resource types.

use serde_json::Value;

use super::admission::node_restriction;
use super::call::{Call, Operation, Query};
use super::error::Result;
use super::state::State;
use super::tokens::{self, TokenIssuer};
use super::write::{self, DeleteOptions};
use super::{auth, binding, eviction};

/// Handles a POST to a sub-resource (binding, eviction, token) or of a review.
///
/// # Errors
/// The error of the operation.
pub(crate) fn post(
    state: &mut State,
    issuer: &TokenIssuer,
    call: &Call,
    mut body: Value,
) -> Result<Value> {
    write::set_namespace(call, &mut body)?;
    if !call.subresource.is_empty() {
        write::namespace_must_live(state, call)?;
    }
    match call.subresource.as_str() {
        "eviction" => {
            let place = call.place();
            let pod = state.store.get(&place, &call.namespace, &call.name).cloned();
            let (operation, before) = (Operation::Create, pod.as_deref());
            node_restriction::admit(&state.store, call, operation, before, Some(&body))?;
            let options = body.get("deleteOptions").filter(|options| !options.is_null());
            let options = DeleteOptions::parse(&Query::default(), options)?;
            eviction::evict(state, call, &body, &options)
        }
        "token" => {
            let operation = Operation::Create;
            node_restriction::admit(&state.store, call, operation, None, Some(&body))?;
            tokens::request(&state.store, issuer, call, &body)
        }
        "binding" => binding::bind(state, call, &body),
        _ if call.resource.is("", "bindings") => binding::bind(state, call, &body),
        _ => {
            let context = auth::reviews::Context {
                store: &state.store,
                issuer,
                user: &call.user,
                now: call.now,
            };
            auth::reviews::answer(context, &call.resource.plural, body)
        }
    }
}
