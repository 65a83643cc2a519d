//! The Windows services manifest and the on-node reconcile of services, variables and certificates.
//!
//! # What belongs here
//! - [`manifest`]: the services ConfigMap, checked; [`generate`]: how the operator makes one;
//!   [`jsonpath`]: values that it takes from a Node.
//! - [`services`], [`mod@env`], [`certs`]: what each part of a host needs next; [`daemon`]: all of them
//!   together with the Node; [`lifecycle`]: bringing up and taking away without a Node.
//!   [`step`]: what all their plans are made of.
//! - [`identity`]: the client certificate of a program on a node.
//! - [`agent`]: the host's side of the protocol with the operator.
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
pub mod generate;
pub mod identity;
pub mod jsonpath;
pub mod lifecycle;
pub mod limits;
pub mod manifest;
pub mod services;
pub mod step;
pub mod windows;

mod words;
