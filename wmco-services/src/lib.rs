#![doc = include_str!("../README.md")]
//!
//! # Modules
//! - [`manifest`]: the services ConfigMap, checked; [`generate`]: how the operator renders it; [`jsonpath`]: values
//!   that it reads from a Node.
//! - [`services`], [`mod@env`], [`certs`]: plans for each part of a host; [`daemon`]: the plan for all of them and the
//!   Node; [`lifecycle`]: setup and removal without a Node; [`step`]: the building block of all plans.
//! - [`owner`]: whose services, variables and roots are managed.
//! - [`logs`]: limits the size of service logs.
//! - [`metadata`], [`routes`]: the name that a cloud's metadata service gives the machine, and the route to it.
//! - [`identity`]: the client certificate of a program on a node.
//! - [`agent`]: the host's side of the protocol with the operator.
//! - [`windows`]: what an executor needs from Windows, as traits; [`fake`]: a host in memory.
//!
//! Windows itself is not here: an executor implements the traits of [`windows`].

#![forbid(unsafe_code)]

#[cfg(feature = "agent")]
pub mod agent;
pub mod certs;
#[cfg(feature = "daemon")]
pub mod daemon;
pub mod env;
#[cfg(feature = "fake")]
pub mod fake;
#[cfg(feature = "generate")]
pub mod generate;
#[cfg(feature = "identity")]
pub mod identity;
pub mod jsonpath;
#[cfg(any(feature = "agent", feature = "daemon"))]
pub mod lifecycle;
pub mod limits;
#[cfg(feature = "daemon")]
pub mod logs;
pub mod manifest;
pub mod metadata;
pub mod owner;
#[cfg(any(feature = "agent", feature = "daemon"))]
pub mod routes;
pub mod scripts;
pub mod services;
pub mod step;
pub mod windows;

mod words;
