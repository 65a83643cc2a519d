//! This version's services ConfigMap, from the cluster and the configuration.

use std::sync::Arc;

use wmco_core::content::ContentError;
use wmco_core::protocol::ServicesData;
use wmco_core::proxy::ProxyError;
use wmco_core::worker_config::WorkerConfigError;
use wmco_services::generate::{self, GenerateError, KubeletArguments, ManifestInputs};

use crate::config::Config;
use crate::snapshot;
use crate::sources::Sources;

/// A generated ConfigMap.
#[derive(Clone, Debug)]
pub struct Generated {
    /// Its data.
    pub data: ServicesData,
    /// Names of its bootstrap services.
    pub bootstrap_services: Vec<String>,
    /// The platform that it is for.
    pub platform: String,
    /// Whether its nodes use a proxy.
    pub proxy: bool,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestSourceError {
    /// A value of the cluster does not fit.
    #[error("services ConfigMap")]
    Generate(#[from] GenerateError),
    /// An object is missing.
    #[error(transparent)]
    Missing(#[from] ContentError),
    /// Nobody knows which proxy nodes use.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// The configuration of the Linux workers cannot be used.
    #[error(transparent)]
    Worker(#[from] Arc<WorkerConfigError>),
}

/// Generates it.
///
/// # Errors
/// [`ManifestSourceError`] names the object and the next step.
pub fn generate(sources: &Sources, config: &Config) -> Result<Generated, ManifestSourceError> {
    let status = snapshot::infrastructure(sources)?;
    let worker = snapshot::worker_config(sources)??;
    let proxy = snapshot::proxy(sources, config)?;
    let uses_proxy = proxy.is_enabled();
    let platform = status.platform_status.unwrap_or_default().type_;
    let manifest = generate::manifest(&ManifestInputs {
        platform: platform.clone(),
        debug: config.debug,
        containerd_log_level: config.containerd.log_level,
        vxlan_port: snapshot::vxlan_port(sources)?,
        kubelet: KubeletArguments {
            cloud_provider: worker.cloud_provider.clone(),
            cloud_config: worker.cloud_config.clone(),
            no_credential_provider: worker.lacks_credential_provider(&platform),
        },
        logs: config.logs.clone(),
        proxy,
        api_server: status.api_server_internal_uri,
    })?;
    Ok(Generated {
        bootstrap_services: manifest.bootstrap().map(|s| s.name.to_string()).collect(),
        data: manifest.render(),
        platform,
        proxy: uses_proxy,
    })
}
