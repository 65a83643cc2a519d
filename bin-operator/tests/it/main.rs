//! The built program, from the command line to the exit status.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed"
)]

mod check;
mod program;
mod render;
mod usage;
mod vectors;
