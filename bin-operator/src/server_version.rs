//! Follows the version of the API server, which changes with an update of the cluster.

use kube::Client;
use tokio::sync::watch;
use tokio::time;
use wmco_core::limits;

/// Asks for it now and then, for ever; `changed` is called when it is another.
pub async fn follow(
    client: Client,
    version: watch::Sender<Option<String>>,
    changed: impl Fn() + Send,
) {
    let mut looks = time::interval(limits::OWNED_RESYNC.unsigned_abs());
    looks.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        match client.apiserver_version().await {
            Ok(info) => {
                let told = Some(info.git_version);
                let is_other = version.send_if_modified(|version| {
                    let is_other = *version != told;
                    *version = told;
                    is_other
                });
                if is_other {
                    changed();
                }
            }
            Err(error) => tracing::warn!(%error, "the API server does not tell its version"),
        }
    }
}
