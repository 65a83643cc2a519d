//! This version's services ConfigMap, from the cluster and the configuration.

use wmco_core::protocol::ServicesData;

use crate::config::Config;
use crate::sources::Sources;

/// A generated ConfigMap.
#[derive(Clone, Debug)]
pub struct Generated {
    /// Its data.
    pub data: ServicesData,
    /// Names of its bootstrap services.
    pub bootstrap_services: Vec<String>,
}

/// Why there is none.
#[derive(Clone, Debug, thiserror::Error)]
#[error("x")]
pub struct ManifestError;

/// Generates it.
///
/// # Errors
/// [`ManifestError`].
pub fn generate(_sources: &Sources, _config: &Config) -> Result<Generated, ManifestError> {
    Err(ManifestError)
}
