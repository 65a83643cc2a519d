//! Generates the services manifest of a cluster.
//!
//! Commands and scripts are textually those of the original operator, so a node sees no difference when one operator
//! replaces the other.
//!
//! Source: `docs/contract/services.md`, SVC40 to SVC48.

mod command;
mod logs;
mod platform;
mod services;

use wmco_core::names::host;
use wmco_core::proxy::ProxySettings;
use wmco_core::render::ContainerdLogLevel;

use crate::manifest::{Manifest, ManifestError, Parts};

pub use logs::{BadLogSetting, LogSettings, LogSettingsError};

/// The inputs of a manifest.
#[derive(Clone, Debug, Default)]
pub struct ManifestInputs {
    /// `status.platformStatus.type` of the cluster's Infrastructure, for example `AWS`.
    pub platform: String,
    /// Whether services log more.
    pub debug: bool,
    /// Log level of containerd, if configured.
    pub containerd_log_level: Option<ContainerdLogLevel>,
    /// Port of the hybrid overlay, unless it is the default.
    pub vxlan_port: Option<u16>,
    /// Cloud arguments of the Linux kubelets.
    pub kubelet: KubeletArguments,
    /// Rotation of service logs.
    pub logs: LogSettings,
    /// Proxy variables of the cluster that are set, possibly to an empty value.
    pub proxy: ProxySettings,
    /// URL of the API server inside the cluster.
    pub api_server: String,
}

/// Arguments of Linux kubelets that Windows kubelets need, too.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct KubeletArguments {
    /// Value of `cloud-provider`.
    pub cloud_provider: Option<String>,
    /// Value of `cloud-config`, a path on a Linux node.
    pub cloud_config: Option<String>,
    /// Whether the Linux nodes have no image credential providers, so that kubelets get no argument for them: a kubelet
    /// with an argument for a missing file does not start.
    pub no_credential_provider: bool,
}

/// Errors of [`manifest()`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// The generated manifest breaks a rule.
    #[error("the generated manifest is refused, correct what it is made from")]
    Manifest(#[from] ManifestError),
    /// A value would not stay one argument.
    #[error(
        "{what} is empty or holds blanks, quotes or others that cannot stand there, correct it where \
         the cluster's configuration has it"
    )]
    Unfit {
        /// Name of the value.
        what: &'static str,
    },
}

/// Generates the manifest.
///
/// # Errors
/// [`GenerateError`] when an input does not fit into a command line.
pub fn manifest(inputs: &ManifestInputs) -> Result<Manifest, GenerateError> {
    let parts = Parts {
        services: services::all(inputs)?,
        files: Vec::new(),
        environment: inputs.proxy.variables().clone(),
        watched: host::PROXY_VARIABLES.map(str::to_owned).to_vec(),
    };
    Ok(Manifest::new(parts)?)
}

#[cfg(test)]
mod tests;
