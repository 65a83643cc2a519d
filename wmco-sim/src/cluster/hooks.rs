//! The seam between the generic pipeline and what each kind, user or controller brings.
//!
//! The pipeline (`write`, `server`, `list`) calls nothing but these functions; each one line here
//! leads to the module that knows.

use serde_json::Value;

use super::admission::node_restriction;
use super::call::{Call, Operation, Query};
use super::error::Result;
use super::shared::Shared;
use super::state::State;
use super::write::DeleteOptions;
use super::{auth, eviction, tokens};

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
