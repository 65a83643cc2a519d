//! A Kubernetes API in a process and Windows hosts that speak SSH, for demos and tests.
//!
//! # Not here
//! Anything that the product needs in a real cluster.

#![forbid(unsafe_code)]

pub mod cluster;
pub mod host;
pub mod round_trips;
