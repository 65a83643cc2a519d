//! Reads the settings of Linux workers that Windows nodes use, too, from their rendered MachineConfig.

use serde_json::Value;

use crate::ignition::{CLOUD_CONFIG, CREDENTIAL_PROVIDER, Ignition, IgnitionError};
use crate::names::platforms;
use crate::render::{CredentialProviderError, credential_provider, missing_provider_members};

/// Settings of the worker pool that also apply to Windows nodes.
///
/// ```
/// use serde_json::json;
/// use wmco_core::worker_config::WorkerConfig;
///
/// let unit = "[Service]\nExecStart=/usr/bin/kubelet --cloud-provider=external\n";
/// let config = json!({
///     "ignition": { "version": "3.5.0" },
///     "systemd": { "units": [{ "name": "kubelet.service", "contents": unit }] },
/// });
/// let worker = WorkerConfig::read("rendered-worker-0a1b", &config)?;
/// assert_eq!(worker.cloud_provider.as_deref(), Some("external"));
/// Ok::<(), wmco_core::worker_config::WorkerConfigError>(())
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct WorkerConfig {
    /// The kubelet's option `cloud-provider`.
    pub cloud_provider: Option<String>,
    /// The kubelet's option `cloud-config`, a path on Linux.
    pub cloud_config: Option<String>,
    /// Content of [`CLOUD_CONFIG`], if the kubelet has the option `cloud-config`.
    pub cloud_config_content: Option<Vec<u8>>,
    /// The image credential providers, rewritten for Windows; `None` if kubelets would refuse them for a missing member.
    pub credential_provider: Option<String>,
    /// The paths of these members.
    pub missing_provider_members: Vec<String>,
}

/// Why the settings cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerConfigError {
    /// The credential providers cannot be rewritten.
    #[error("MachineConfig {name}")]
    CredentialProvider {
        /// The MachineConfig's name.
        name: String,
        /// The problem.
        source: CredentialProviderError,
    },
    /// The document cannot be read.
    #[error(transparent)]
    Ignition(#[from] IgnitionError),
}

impl WorkerConfig {
    /// Reads `config`, the `spec.config` of the MachineConfig `name`.
    ///
    /// Source: `docs/contract/node-files.md`, FILE19 to FILE22.
    ///
    /// # Errors
    /// [`WorkerConfigError`] names the MachineConfig and the problem in it.
    pub fn read(name: &str, config: &Value) -> Result<Self, WorkerConfigError> {
        let ignition = Ignition::read(name, config)?;
        let mut options = ignition.kubelet_options()?;
        let cloud_config = options.remove("cloud-config");
        let cloud_config_content =
            if cloud_config.is_some() { ignition.file(CLOUD_CONFIG)? } else { None };
        let file = ignition.file(CREDENTIAL_PROVIDER)?;
        let file = file.as_deref().map(String::from_utf8_lossy);
        let missing = file.as_deref().map(missing_provider_members).unwrap_or_default();
        let credential_provider =
            file.as_deref().map(credential_provider).transpose().map_err(|source| {
                WorkerConfigError::CredentialProvider { name: name.to_owned(), source }
            })?;
        Ok(Self {
            cloud_provider: options.remove("cloud-provider"),
            cloud_config,
            cloud_config_content,
            credential_provider: credential_provider.filter(|_| missing.is_empty()),
            missing_provider_members: missing,
        })
    }
}

impl WorkerConfig {
    /// Whether nodes on `platform` lack image credential providers, without which kubelets get no credentials for
    /// the cloud's own registry.
    pub fn lacks_credential_provider(&self, platform: &str) -> bool {
        platform == platforms::AWS && self.credential_provider.is_none()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PROVIDERS: &str = "data:,apiVersion:%20kubelet.config.k8s.io/v1%0Akind:%20CredentialProviderConfig%0A\
                             providers:%20[{name:%20ecr,%20apiVersion:%20credentialprovider.kubelet.k8s.io/v1,%20\
                             defaultCacheDuration:%2012h,%20matchImages:%20[a.test]}]";

    fn worker(options: &str) -> Result<WorkerConfig, WorkerConfigError> {
        with_providers(options, PROVIDERS)
    }

    fn with_providers(options: &str, providers: &str) -> Result<WorkerConfig, WorkerConfigError> {
        let unit = format!("[Service]\nExecStart=/usr/bin/kubelet {options}\n");
        let config = json!({
            "ignition": { "version": "3.5.0" },
            "storage": { "files": [
                { "path": CLOUD_CONFIG, "contents": { "source": "data:,%5BGlobal%5D" } },
                { "path": CREDENTIAL_PROVIDER, "contents": { "source": providers } },
            ] },
            "systemd": { "units": [{ "name": "kubelet.service", "contents": unit }] },
        });
        WorkerConfig::read("rendered-worker-a", &config)
    }

    #[test]
    fn options_and_files_are_taken_over() {
        let worker =
            worker("--cloud-provider=azure \\\n --cloud-config=/etc/kubernetes/cloud.conf");
        let worker = worker.unwrap();
        assert_eq!(worker.cloud_config.as_deref(), Some("/etc/kubernetes/cloud.conf"));
        assert_eq!(worker.cloud_config_content.as_deref(), Some(&b"[Global]"[..]));
        assert!(worker.credential_provider.unwrap().contains("ecr.exe"));
    }

    #[test]
    fn credential_providers_are_missed_on_aws_only() {
        let (without, with) = (WorkerConfig::default(), worker("--v=2").unwrap());
        let lacks = |platform| [&without, &with].map(|it| it.lacks_credential_provider(platform));
        assert_eq!(lacks(platforms::AWS), [true, false]);
        assert_eq!(lacks(platforms::AZURE), [false, false]);
    }

    /// A kubelet does not start with them.
    #[test]
    fn credential_providers_that_kubelets_refuse_are_missed() {
        let refused = PROVIDERS.replace("matchImages", "args");
        let worker = with_providers("--v=2", &refused).unwrap();
        assert!(worker.lacks_credential_provider(platforms::AWS));
        assert_eq!(worker.missing_provider_members, ["providers[0].matchImages"]);
    }

    #[test]
    fn a_cloud_config_that_no_kubelet_reads_stays_away() {
        let worker = worker("--cloud-provider=external").unwrap();
        assert_eq!((worker.cloud_config, worker.cloud_config_content), (None, None));
        assert_eq!(worker.cloud_provider.as_deref(), Some("external"));
    }
}
