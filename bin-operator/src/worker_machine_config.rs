//! Follows the configuration of the Linux workers.
//!
//! Rendered MachineConfigs are large and never change, so the pool is watched and the one
//! MachineConfig that it names is read once.

use std::sync::Arc;

use backon::{ExponentialBuilder, Retryable};
use kube::{Api, Client};
use tokio::sync::watch;
use wmco_core::limits;
use wmco_core::worker_config::{WorkerConfig, WorkerConfigError};

use crate::openshift::MachineConfig;

/// The worker pool's configuration, or why it cannot be used.
pub type Current = Result<Arc<WorkerConfig>, Arc<WorkerConfigError>>;

/// Reads the MachineConfig of this `name` whenever that may be another, by `renames`, until their sender is gone.
/// `None` as long as nothing was read; a pool that is gone or names none leaves what was read before.
pub async fn follow(
    client: Client,
    name: impl Fn() -> Option<String>,
    mut renames: watch::Receiver<()>,
    current: watch::Sender<Option<Current>>,
    changed: impl Fn(),
) {
    let configs: Api<MachineConfig> = Api::all(client);
    let patience = ExponentialBuilder::default()
        .with_min_delay(limits::RETRY_FIRST.unsigned_abs())
        .with_max_delay(limits::RETRY_MOST.unsigned_abs())
        .with_jitter()
        .without_max_times();
    let mut last = None;
    loop {
        renames.mark_unchanged();
        let wanted = name();
        if let Some(wanted) = wanted.filter(|wanted| last.as_ref() != Some(wanted)) {
            let read = (|| configs.get(&wanted)).retry(patience).notify(|error, pause| {
                tracing::warn!(config = %wanted, %error, ?pause, "cannot read the machineconfig");
            });
            tokio::select! {
                biased;
                next = renames.changed() => match next {
                    Ok(()) => continue,
                    Err(_) => return,
                },
                found = read => if let Ok(found) = found {
                    let read = WorkerConfig::read(&wanted, &found.spec.config);
                    current.send_replace(Some(read.map(Arc::new).map_err(Arc::new)));
                    last = Some(wanted.clone());
                    changed();
                },
            }
        }
        if renames.changed().await.is_err() {
            return;
        }
    }
}
