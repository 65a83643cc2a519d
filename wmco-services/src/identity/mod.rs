//! The client certificate with which a program on a node shows the cluster who it is.
//!
//! - [`Certificate`]: what a stored certificate says; [`judge`]: whether it can be used, and when the
//!   next one is due.
//! - [`Wanted`]: what a request asks for; [`request`]: the request with a new key.
//! - [`known_nodes`]: whose node the certificates on a host are.
//! - [`Store`]: the files of the daemon's certificates.
//!
//! # Not here
//! The client that sends requests: `bin-wicd`, and `wmco-sim` for simulated hosts.
//!
//! Source: `spec/wicd.md`, sections 5, 7 and 23.2.

mod certificate;
mod known;
mod request;
mod store;

pub use certificate::{Certificate, CertificateError, Reason, Standing, judge};
pub use known::known_nodes;
pub use request::{NewRequest, RequestError, Wanted, request};
pub use store::Store;
pub(crate) use store::is_dated;
