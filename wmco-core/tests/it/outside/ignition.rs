//! A law of rendered MachineConfigs.

use wmco_core::ignition::{CLOUD_CONFIG, CREDENTIAL_PROVIDER, Ignition};
use wmco_core::ignition_unit::KEPT_OPTIONS;
use wmco_core::limits;
use wmco_core::worker_config::WorkerConfig;

/// Of any JSON no more is taken over than two options and two files of bounded size, and an error is
/// one line.
pub(crate) fn little_is_taken_over(text: &str) {
    let Ok(config) = serde_json::from_str(text) else { return };
    let one_line = |error: &dyn std::error::Error| {
        assert!(!error.to_string().contains(char::is_control), "{error}");
    };
    match WorkerConfig::read("rendered-worker-a", &config) {
        Ok(worker) => {
            assert!(worker.cloud_config.is_some() || worker.cloud_config_content.is_none());
        }
        Err(error) => one_line(&error),
    }
    let ignition = match Ignition::read("rendered-worker-a", &config) {
        Ok(ignition) => ignition,
        Err(error) => return one_line(&error),
    };
    match ignition.kubelet_options() {
        Ok(options) => {
            assert!(options.keys().all(|name| KEPT_OPTIONS.contains(&name.as_str())));
        }
        Err(error) => one_line(&error),
    }
    for path in [CLOUD_CONFIG, CREDENTIAL_PROVIDER] {
        match ignition.file(path) {
            Ok(content) => {
                assert!(content.unwrap_or_default().len() <= limits::IGNITION_FILE_BYTES);
            }
            Err(error) => one_line(&error),
        }
    }
}
