//! Integration tests of the API server.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "the helpers of tests may fail like tests"
)]

mod access;
mod client;
mod kubectl;
mod replay;
mod replay_match;
mod replay_steps;
mod rules;
mod runtime;
