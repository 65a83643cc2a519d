//! The built program from the command line to the exit status, and the operator at work.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed"
)]

mod advice;
mod book;
mod check;
mod credential_provider;
mod deploy;
mod e2e;
mod explain;
mod live;
mod machine_sets;
mod monitoring;
mod mutated;
mod outside;
mod plan;
mod preflight;
mod program;
mod records;
mod registries;
mod render;
mod reports;
mod requests;
mod services;
mod usage;
mod user_data;
mod vectors;
