//! The Windows services manifest and the on-node reconcile of services, variables and certificates.
//!
//! # What belongs here
//! - [`manifest`]: the services ConfigMap, checked; [`jsonpath`]: values that it takes from a Node.
//! - [`services`]: what the Windows services of a host need next.
//! - [`windows`]: what an executor needs from Windows, as traits; [`fake`]: a host in memory.
//!
//! # Not here
//! Windows itself: an executor implements the traits of this crate (`bin-wicd` for the real thing).

#![forbid(unsafe_code)]

pub mod agent;
pub mod certs;
pub mod daemon;
pub mod env;
pub mod fake;
pub mod jsonpath;
pub mod lifecycle;
pub mod limits;
pub mod manifest;
pub mod services;
pub mod windows;

mod text;
mod words;
