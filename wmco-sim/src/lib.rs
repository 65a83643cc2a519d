#![doc = include_str!("../README.md")]
//!
//! # Modules
//! - [`host`]: a simulated Windows host with SSH.
//! - [`machines`]: a Machine API that creates such hosts.
//! - [`round_trips`]: counts how often a client waited for a host.

#![forbid(unsafe_code)]

pub mod host;
pub mod machines;
pub mod round_trips;
