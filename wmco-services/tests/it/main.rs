//! Scenarios and test vectors, run against the public functions.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says so when it fails"
)]

mod join;
mod outside;
mod roll_out;
mod rules;
mod vectors;
