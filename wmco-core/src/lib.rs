//! Names, types and pure reconcile functions for Windows nodes in Kubernetes clusters.
//!
//! Everything here is data and decisions: desired and observed state in, a plan of actions out.
//!
//! # What belongs here
//! - [`names`] and [`limits`]: every wire name, path, time and size, each in one place.
//! - [`fleet`] and [`node`]: which instance is next, and what it needs.
//! - [`protocol`]: what the operator and the agent on a host say to each other.
//! - [`secret`], [`digest`], [`winpath`]: small types that remember a check.
//!
//! # Not here
//! I/O, clocks, randomness and async code: binaries and transports bring those.

#![forbid(unsafe_code)]

pub mod cluster;
pub mod content;
pub mod digest;
pub mod fleet;
pub mod instances;
pub mod limits;
pub mod names;
pub mod node;
pub mod protocol;
pub mod secret;
pub mod winpath;
