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
mod names;
mod patch;
mod update;

pub use body::{Body, Form};
pub use create::create;
pub use delete::{delete, delete_collection};
pub use delete_options::DeleteOptions;
pub use names::{dns1123_label, label_value, qualified_name};
pub use patch::{PatchKind, patch};
pub use update::update;

/// Which kind of request brings the new state.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Source {
    /// POST or PUT: a `uid` in the body is a precondition.
    Put,
    /// A patch other than apply.
    Patch,
    /// Server-side apply: `managedFields` are already right.
    Apply,
}
