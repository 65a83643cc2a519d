//! Applying patches to JSON documents. Pure.

pub(crate) mod json;
pub(crate) mod strategic;

pub(crate) use json::{json_patch, merge_patch, unknown_members};
pub(crate) use strategic::strategic_merge_patch;
