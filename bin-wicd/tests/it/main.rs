//! The real controller against a cluster in this process over TLS: on hosts in memory, and as the
//! program for Windows under Wine.
//!
//! What every kind of host must do is in [`scenarios`], written once over [`bench::Bench`]. Besides,
//! [`certificates`], [`cleanup`], [`controller`] and [`own_node`] look closely at one in memory, and
//! [`wine`] at what only a real Service Control Manager can show.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of tests may fail like tests"
)]

mod bench;
mod certificates;
mod cleanup;
mod cluster;
mod controller;
mod crashes;
mod memory;
mod own_node;
mod scenarios;
mod wine;
mod world;
