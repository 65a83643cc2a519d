//! The client certificate with which a program on a node authenticates to the cluster.
//!
//! - [`Certificate`]: a parsed certificate; [`judge`]: whether it is usable, and when the next one is due.
//! - [`RequestContent`]: the content of a request; [`request`]: builds it with a new key.
//! - [`known_nodes`]: the nodes named in the certificates on a host.
//! - [`Store`]: the files of the daemon's certificates.
//!
//! # Not here
//! The client that sends requests: `bin-wicd`, and `wmco-sim` for simulated hosts.
//!
//! Source: `docs/contract/wicd.md`, WICD40 to WICD44.

mod certificate;
mod known;
mod request;
mod store;

pub use certificate::{Certificate, CertificateError, Reason, Usability, judge};
pub use known::known_nodes;
pub use request::{NewRequest, RequestContent, RequestError, request};
pub use store::{Store, is_dated};
