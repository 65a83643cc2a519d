//! The Windows services manifest and the on-node reconcile of services, variables and certificates.
//!
//! # What belongs here
//! - [`windows`]: what an executor needs from Windows, as traits; [`fake`]: a host in memory.
//!
//! # Not here
//! Windows itself: an executor implements the traits of this crate (`bin-wicd` for the real thing).

#![forbid(unsafe_code)]

pub mod fake;
pub mod windows;
