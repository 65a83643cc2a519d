//! The Windows services manifest and the on-node reconcile of services, variables and certificates.
//!
//! # Not here
//! Windows itself: an executor implements the traits of this crate (`bin-wicd` for the real thing).

#![forbid(unsafe_code)]
