//! Makes the services manifest of a cluster.
//!
//! The text of every command and script is what the original operator writes, so that a node sees no
//! difference when one operator follows the other.
//!
//! Source: `spec/services.md`, sections 6 to 9.

mod command;
mod logs;
mod scripts;
mod services;

use std::collections::BTreeMap;

use wmco_core::names::host;

use crate::manifest::{Manifest, ManifestError, Parts};

pub use logs::{BadLogSetting, LogSettings, LogSettingsError};
pub(crate) use scripts::AWS_HOST_NAME;
pub use scripts::{FULL_HOST_NAME, NODE_IP};

/// What a manifest is made from.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// `status.platformStatus.type` of the cluster's Infrastructure, for example `AWS`.
    pub platform: String,
    /// Whether services log more.
    pub debug: bool,
    /// Port of the hybrid overlay, unless it is the usual one.
    pub vxlan_port: Option<u16>,
    /// What Linux kubelets are told about the cloud.
    pub kubelet: KubeletArguments,
    /// How logs of wrapped services are rotated.
    pub logs: LogSettings,
    /// Proxy variables of the cluster that are set, possibly to nothing.
    pub proxy: Proxy,
    /// URL of the API server inside the cluster.
    pub api_server: String,
}

/// Arguments of Linux kubelets that Windows kubelets get, too.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct KubeletArguments {
    /// Value of `cloud-provider`.
    pub cloud_provider: Option<String>,
    /// Value of `cloud-config`, a path on a Linux node.
    pub cloud_config: Option<String>,
}

/// Proxy variables with their values, which can hold passwords: `Debug` shows names only.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct Proxy(BTreeMap<String, String>);

impl Proxy {
    /// Picks the proxy variables out of an environment, also those that are set to nothing.
    ///
    /// Source: `spec/services.md`, section 9.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).map(|value| (name.to_owned(), value));
        Self(host::PROXY_VARIABLES.into_iter().filter_map(set).collect())
    }

    /// Whether the cluster has a proxy: a variable that names one is there and says something.
    ///
    /// Source: `spec/operator.md`, section 13, row 39.
    pub fn is_enabled(&self) -> bool {
        let names = |name: &&str| self.0.get(*name).is_some_and(|value| !value.trim().is_empty());
        [host::HTTP_PROXY, host::HTTPS_PROXY].iter().any(names)
    }
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Why no manifest can be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// The result breaks a rule.
    #[error("the generated manifest is refused, correct what it is made from")]
    Manifest(#[from] ManifestError),
    /// A value would not be one argument.
    #[error(
        "{what} is empty or holds blanks, quotes or others that cannot stand there, correct it where \
         the cluster's configuration has it"
    )]
    Unfit {
        /// Which value.
        what: &'static str,
    },
}

/// Makes the manifest.
///
/// # Errors
/// [`GenerateError`] when an input does not fit into a command line.
pub fn manifest(inputs: &Inputs) -> Result<Manifest, GenerateError> {
    let parts = Parts {
        services: services::all(inputs)?,
        files: Vec::new(),
        environment: inputs.proxy.0.clone(),
        watched: host::PROXY_VARIABLES.map(str::to_owned).to_vec(),
    };
    Ok(Manifest::new(parts)?)
}

#[cfg(test)]
mod tests;
