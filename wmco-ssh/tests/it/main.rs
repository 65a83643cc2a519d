//! Tests against OpenSSH and simulated hosts on loopback, and against hostile servers.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail tests"
)]

mod answers;
mod backend;
mod chaos;
mod conformance;
mod cuts;
mod dialers;
mod exchange;
mod exec;
mod forced;
mod hostile;
mod jump;
mod key_files;
mod liar;
mod login;
mod lying;
mod machines;
mod pool;
mod proxy;
mod restart;
mod scripts;
mod shell;
mod slow;
mod sshd;
mod upload;
