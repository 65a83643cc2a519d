//! Resources that stand for an operation instead of an object: eviction, token, reviews.
//!
//! Source: Kubernetes documentation, "Kubernetes API Concepts", virtual resource types.

use serde_json::Value;

use super::admission::node_restriction;
use super::call::{Call, Operation, Query};
use super::error::Result;
use super::state::State;
use super::tokens::{self, TokenIssuer};
use super::write::DeleteOptions;
use super::{auth, eviction};

/// Carries out a POST to a sub-resource (eviction, token) or answers a review.
///
/// # Errors
/// What the operation answers.
pub(crate) fn post(
    state: &mut State,
    issuer: &TokenIssuer,
    call: &Call,
    body: Value,
) -> Result<Value> {
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
