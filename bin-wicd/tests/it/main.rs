//! The real controller on hosts in memory, against a cluster in this process over TLS.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of tests may fail like tests"
)]

mod certificates;
mod cleanup;
mod controller;
mod world;
