//! Everything of the `wmco-operator` program but its `main` function: it observes a cluster, asks
//! the pure functions of the wmco crates what to do, and does it. No decision about a node, a
//! service or a certificate is taken here.
//!
//! - [`run`](mod@run): the controllers. [`sources`] caches the cluster, [`fleet`] turns each change
//!   into inputs of one [`instance::Worker`] per host, [`csr`] answers certificate requests,
//!   [`owned`] keeps the operator's own objects.
//! - [`cli`]: the command line and the commands that touch no cluster; [`input`] reads files for
//!   them.

#![forbid(unsafe_code)]

pub mod announce;
mod backoff;
pub mod claims;
pub mod cli;
pub mod clock;
pub mod condition;
pub mod config;
pub mod csr;
#[cfg(feature = "demo")]
pub mod demo;
pub mod fleet;
pub mod fleet_metrics;
pub mod host_reports;
pub mod http;
pub mod input;
pub mod instance;
pub mod keys;
pub mod kinds;
pub mod leader;
pub mod machines;
pub mod manifest;
pub mod metrics;
pub mod nodes;
pub mod openshift;
pub mod other_writer;
pub mod owned;
pub mod payload;
pub mod preflight;
pub mod problems;
pub mod progress;
mod randomness;
pub mod registries;
pub mod release;
pub mod resolver;
pub mod run;
pub mod server_version;
pub mod service_monitor;
pub mod snapshot;
pub mod sources;
mod words;
pub mod work;
pub mod worker_machine_config;

pub use words::chain;

/// Version of this build: what the version annotation of a configured node holds.
///
/// A build for an image sets `WMCO_VERSION` to `<semver>-<first 7 characters of the commit>`. The
/// text is part of a ConfigMap's name. Source: `docs/contract/nodes.md`, NODE7.
pub const VERSION: &str = match option_env!("WMCO_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};
