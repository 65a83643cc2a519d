//! Encrypted user names: against GnuPG, and a law that holds for any text.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail tests"
)]

mod corpus;
mod gnupg;
mod law;
