//! Integration tests of the simulated hosts and their Machine API.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "the helpers of tests may fail like tests"
)]

mod containerd;
mod host;
mod kubelet;
mod machines;
