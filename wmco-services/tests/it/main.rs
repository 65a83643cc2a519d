//! Whole stories, and the vectors, each against the public functions that answer them.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says so when it fails"
)]

mod join;
mod rows;
mod vectors;
