//! A Kubernetes API in a process, Windows hosts that speak SSH, and a Machine API that makes such hosts,
//! for demos and tests.
//!
//! # Not here
//! Anything that the product needs in a real cluster.

#![forbid(unsafe_code)]

pub mod cluster;
pub mod host;
pub mod machines;
pub mod round_trips;
