//! Keeps the logs of services short as long as the daemon runs.

use std::sync::Arc;

use jiff::Timestamp;
use wmco_services::limits;
use wmco_services::logs::{Bounds, Rotation};
use wmco_services::windows::Windows;

/// Never ends by itself. Dropping this does not end a copy in progress.
pub(super) async fn run(host: Arc<dyn Windows>, bounds: Bounds) {
    let mut rotation = Rotation::new(bounds);
    loop {
        tokio::time::sleep(limits::LOG_POLL.unsigned_abs()).await;
        // Here and not on a thread of its own, which an idle daemon would have to keep for that.
        if !rotation.is_due(&*host, Timestamp::now()) {
            continue;
        }
        let windows = Arc::clone(&host);
        let turn = tokio::task::spawn_blocking(move || {
            for line in rotation.rotate(&*windows, Timestamp::now()) {
                tracing::warn!("{line}");
            }
            rotation
        });
        rotation = match turn.await {
            Ok(rotation) => rotation,
            Err(error) => {
                tracing::error!(%error, "a look at the logs broke down");
                Rotation::new(bounds)
            }
        };
    }
}
