//! The pipeline of every write: create, update, patch, delete.
//!
//! All of it runs under the lock of [`State`], so that the state that a write was checked against is unchanged when
//! the write is stored. Order and results follow `k8s.io/apiserver/pkg/registry/generic` and `.../rest`.

mod body;
mod create;
mod delete;
mod delete_options;
mod duplicates;
mod metadata;
mod patch;
mod update;
mod warnings;

pub(crate) use body::{Body, Form};
pub(crate) use create::{create, namespace_must_live, set_namespace};
pub(crate) use delete::{check_preconditions, delete, delete_admitted, delete_collection};
pub(crate) use delete_options::DeleteOptions;
pub(crate) use patch::{PatchKind, patch};
pub(crate) use update::update;

/// The kind of request with the new state.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Source {
    /// POST or PUT: a `uid` in the body is a precondition.
    Put,
    /// A patch other than apply.
    Patch,
    /// Server-side apply: `managedFields` are already updated.
    Apply,
}
