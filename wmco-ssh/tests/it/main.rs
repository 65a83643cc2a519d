//! The crate against servers that we did not write: OpenSSH on loopback, and hostile ones.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail tests"
)]

mod dialers;
mod exec;
mod gnupg;
mod host_keys;
mod hostile;
mod login;
mod pool;
mod sshd;
mod upload;
