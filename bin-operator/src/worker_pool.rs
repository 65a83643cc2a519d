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

/// Reads what `name` says whenever that changes, until the sender of names is gone. `None` as long as
/// nothing was read.
pub async fn follow(
    client: Client,
    mut name: watch::Receiver<Option<String>>,
    current: watch::Sender<Option<Current>>,
    changed: impl Fn(),
) {
    let configs: Api<MachineConfig> = Api::all(client);
    let patience = ExponentialBuilder::default()
        .with_min_delay(limits::RETRY_FIRST.unsigned_abs())
        .with_max_delay(limits::RETRY_MOST.unsigned_abs())
        .with_jitter()
        .without_max_times();
    loop {
        let wanted = name.borrow_and_update().clone();
        if let Some(wanted) = wanted {
            let read = (|| configs.get(&wanted)).retry(patience).notify(|error, pause| {
                tracing::warn!(config = %wanted, %error, ?pause, "cannot read the machineconfig");
            });
            tokio::select! {
                biased;
                next = name.changed() => match next {
                    Ok(()) => continue,
                    Err(_) => return,
                },
                found = read => if let Ok(found) = found {
                    let read = WorkerConfig::read(&wanted, &found.spec.config);
                    current.send_replace(Some(read.map(Arc::new).map_err(Arc::new)));
                    changed();
                },
            }
        }
        if name.changed().await.is_err() {
            return;
        }
    }
}
