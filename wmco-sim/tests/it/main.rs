//! Integration tests of the simulated cluster and the simulated hosts.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "the helpers of tests may fail like tests"
)]

mod client;
mod host;
mod kubectl;
mod kubelet;
mod machines;
mod replay;
mod replay_match;
mod replay_steps;
mod rules;
mod runtime;
