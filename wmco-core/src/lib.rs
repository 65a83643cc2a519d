//! Names, types and pure reconcile functions for Windows nodes in Kubernetes clusters.
//!
//! Everything here is data and decisions: desired and observed state in, a plan of actions out.
//!
//! # What belongs here
//! - [`names`] and [`limits`]: every wire name, path, time and size, each in one place.
//! - [`protocol`]: what the operator and the agent on a host say to each other.
//! - [`secret`], [`digest`], [`winpath`]: small types that remember a check.
//!
//! # Not here
//! I/O, clocks, randomness and async code: binaries and transports bring those.

#![forbid(unsafe_code)]

pub mod digest;
pub mod instances;
pub mod limits;
pub mod names;
pub mod protocol;
pub mod secret;
pub mod winpath;
