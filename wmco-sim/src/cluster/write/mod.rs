//! The pipeline of every write: create, update, patch, delete.
//!
//! All of it runs under the lock of [`State`], so that what a write was checked against is still
//! true when it is stored. Order and outcomes follow `k8s.io/apiserver/pkg/registry/generic` and
//! `.../rest`.

mod body;
mod create;
mod delete;
mod delete_options;
mod metadata;
mod patch;
mod update;

use serde_json::Value;

use super::call::Call;

pub(crate) use body::{Body, Form};
pub(crate) use create::create;
pub(crate) use delete::{delete, delete_collection};
pub(crate) use delete_options::DeleteOptions;
pub(crate) use patch::{PatchKind, patch};
pub(crate) use update::update;

/// Warnings about a new object that is stored all the same.
pub(crate) fn warnings(call: &Call, object: &Value) -> Vec<String> {
    metadata::warnings(call, object)
}

/// Which kind of request brings the new state.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Source {
    /// POST or PUT: a `uid` in the body is a precondition.
    Put,
    /// A patch other than apply.
    Patch,
    /// Server-side apply: `managedFields` are already right.
    Apply,
}
