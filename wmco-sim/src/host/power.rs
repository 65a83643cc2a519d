//! The machine's port and its restarts.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::fault::Conditions;
use super::port::Port;
use super::shared::Shared;
use super::ssh::{self, Connection};
use super::wire;

/// Pause before another attempt to open the port.
const RETRY: Duration = Duration::from_millis(50);

/// Accepts connections while the port should be open, until the host is stopped. `open` is the listener if the port is
/// open already.
pub(super) async fn serve(host: Arc<Shared>, port: Arc<Port>, mut open: Option<TcpListener>) {
    let mut conditions = host.conditions.subscribe();
    while conditions.wait_for(Conditions::listens).await.is_ok() {
        let listener = open.take().map_or_else(|| port.listen(), Ok);
        let closed = match listener {
            Ok(listener) => accept(&host, &listener).await,
            Err(error) => Err(error),
        };
        if let Err(error) = closed {
            tracing::warn!(%error, port = port.address().port(), "cannot take connections");
            tokio::time::sleep(RETRY).await;
        }
    }
}

/// Accepts connections until the port should be closed.
async fn accept(host: &Arc<Shared>, listener: &TcpListener) -> io::Result<()> {
    let mut conditions = host.conditions.subscribe();
    loop {
        let client = tokio::select! {
            accepted = listener.accept() => accepted?.0,
            // An error means that the host is gone, which the caller detects as well.
            _ = conditions.wait_for(|now| !now.listens()) => return Ok(()),
        };
        let cut = host.power().child_token();
        let connection = connect(Arc::clone(host), client, cut.clone());
        host.tasks.spawn(cut.run_until_cancelled_owned(connection));
    }
}

async fn connect(host: Arc<Shared>, client: TcpStream, cut: CancellationToken) {
    host.tally.connected();
    if let Err(error) = client.set_nodelay(true) {
        tracing::debug!(%error, "a client left at once");
        return;
    }
    let (near, carry) = wire::line(client, host.conditions.subscribe(), Arc::clone(&host.tally));
    let config = Arc::new(ssh::config(host.host_keys()));
    let way = host.conditions.borrow().latency;
    let session = Connection::new(host, cut.clone());
    // The session runs in its own task, which ends with the line.
    let greet = async {
        if way > Duration::ZERO {
            // Connecting takes two ways there and one back; the ways there have all the latency.
            tokio::time::sleep(2 * way).await;
        }
        if let Err(error) = russh::server::run_stream(config, near, session).await {
            tracing::debug!(%error, "a client left before it said hello");
        }
    };
    tokio::join!(carry, greet);
    cut.cancel();
}

/// Restarts the machine: everything ends after the delay, and the host starts after the restart's duration.
pub(super) async fn restart(host: Arc<Shared>) {
    tokio::time::sleep(host.timing.restart_delay()).await;
    host.power_off();
    tokio::time::sleep(host.timing.restart_duration).await;
    // An error means that the host is gone.
    let _ = host.conditions.subscribe().wait_for(|now| !now.held_down).await;
    host.tally.restarted();
    host.boot().await;
}
