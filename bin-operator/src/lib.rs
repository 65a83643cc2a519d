//! Everything of the `wmco-operator` program but its `main` function.
//!
//! - [`cli`]: the command line and the commands that touch no cluster.
//! - [`input`]: cluster objects from files, for these commands.

#![forbid(unsafe_code)]

pub mod cli;
pub mod input;

/// Version of this build: what the version annotation of a configured node holds.
///
/// A build for an image sets `WMCO_VERSION` to `<semver>-<first 7 characters of the commit>`. The
/// text is part of a ConfigMap's name. Source: `spec/operator.md`, section 11.
pub const VERSION: &str = match option_env!("WMCO_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};
