//! Applying patches to JSON documents. Pure.

pub mod json;
pub mod strategic;

pub use json::{json_patch, merge_patch};
pub use strategic::strategic_merge_patch;
