//! Mirrors and settings of image registries for Windows nodes.
//!
//! [`configure`] makes containerd's `hosts.toml` files from the cluster's objects about registries: mirror sets
//! ([`MirrorSetFacts`]), settings for images ([`ImageConfigFacts`]) and the [`PullSecret`]. [`Registries::explain`]
//! returns the URLs that containerd asks with these files.
//!
//! ```
//! use serde_json::json;
//! use wmco_core::registries::{MirrorSetFacts, RegistryInputs, configure};
//!
//! let set = json!({
//!     "kind": "ImageTagMirrorSet",
//!     "metadata": {"name": "ours"},
//!     "spec": {"imageTagMirrors": [
//!         {"source": "quay.io:8443/team", "mirrors": ["cache.example/proxy/team"]},
//!     ]},
//! });
//! let sets = [MirrorSetFacts::of(&set).expect("it is a mirror set")];
//! let registries = configure(&RegistryInputs { mirror_sets: &sets, ..RegistryInputs::default() });
//! assert!(registries.files().contains_key(r"quay.io_8443_\hosts.toml"));
//!
//! let pull = registries.explain(&"quay.io:8443/team/app:1".parse()?);
//! let url = "https://cache.example/v2/proxy/team/app/manifests/1?ns=quay.io%3A8443";
//! assert_eq!(pull.resolve[0].url, url);
//! Ok::<(), wmco_core::registries::BadReference>(())
//! ```
//!
//! # What containerd cannot express
//! containerd configures whole registries only, so the mirrors of one repository are tried for all of them, and it
//! appends the whole repository to a mirror, so a mirror under another path cannot be used. Domains (`*.example`),
//! parts of registries and a list of allowed registries have no counterpart. Each such case is a
//! [`RegistryFinding`].
//!
//! CAs of registries (`additionalTrustedCA`) are trusted by the whole host instead; see
//! [`ca_bundle`](crate::ca_bundle).
//!
//! # Source
//! `docs/contract/registries.md`; REG21 there lists the differences from the Go operator.
//!
//! # Guarantees
//! - Pure: equal input, equal output.
//! - Any JSON is accepted: a value of an unexpected type is reported and ignored.
//! - Neither `Debug` output nor a finding contains any part of a password.

mod advice;
mod configure;
mod endpoint;
mod explain;
mod finding;
mod forbidden;
mod host_files;
mod hosts_file;
mod image;
mod image_config;
mod location;
mod mirror_set;
mod notice;
mod pull_secret;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use advice::RegistryAdvice;
pub use configure::{RegistryInputs, configure};
pub use endpoint::EndpointReason;
pub use explain::{Pull, PullRequest};
pub use finding::{ClusterObject, RegistryFinding, RegistryProblem};
pub use host_files::{RegistryFile, RegistryFiles};
pub use image::{BadReference, ImageReference};
pub use image_config::ImageConfigFacts;
pub use location::{BadLocation, ImageLocation, ImageScope};
pub use mirror_set::{MirrorSetFacts, misplaced};
pub use notice::{RegistryNotice, registry_notices};
pub use pull_secret::{PullCredentials, PullSecret, PullSecretData};

use crate::secret::Secret;
use hosts_file::HostsFile;

/// containerd's configuration of registries.
///
/// ```
/// use wmco_core::registries::{RegistryInputs, configure};
///
/// let registries = configure(&RegistryInputs::default());
/// assert!(registries.files().is_empty() && registries.findings().is_empty());
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Registries {
    /// By folder in lower case, because Windows ignores case.
    files: BTreeMap<String, (String, HostsFile)>,
    findings: Vec<RegistryFinding>,
}

impl Registries {
    /// The files by their path below [`REGISTRIES`](crate::names::host::REGISTRIES). They hold credentials.
    pub fn files(&self) -> BTreeMap<String, Secret> {
        let files = self.files.values();
        files.map(|(folder, file)| (explain::path_of(folder), file.render())).collect()
    }

    /// Findings about the objects.
    pub fn findings(&self) -> &[RegistryFinding] {
        &self.findings
    }
}
