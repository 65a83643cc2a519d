//! State shared by all connections: the objects under their lock, keys, the audit log, the stop signal.

use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

use super::audit::Audit;
use super::controllers::Controllers;
use super::pki::Pki;
use super::state::State;

/// Time between two runs of the controllers while nobody writes.
const CONTROLLERS_PERIOD: Duration = Duration::from_secs(1);

/// State shared by all connections.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Locked only while the lock of the state is held, so it never blocks.
    controllers: Mutex<Controllers>,
    /// Keys and certificates of the cluster.
    pub pki: Pki,
    /// The log of requests, and injected faults.
    pub audit: Audit,
    address: OnceLock<SocketAddr>,
    /// Turns true when the server stops.
    stop: watch::Sender<bool>,
}

impl Shared {
    /// Makes an empty cluster. With `taints_nodes`, taints of Nodes follow their conditions.
    pub(crate) fn new(pki: Pki, taints_nodes: bool) -> Self {
        Self {
            state: Mutex::new(State::new()),
            controllers: Mutex::new(Controllers::new(taints_nodes)),
            pki,
            audit: Audit::default(),
            address: OnceLock::new(),
            stop: watch::Sender::new(false),
        }
    }

    /// Sets the address of the server, once it listens.
    pub(super) fn set_address(&self, address: SocketAddr) {
        // Only the start of the server sets it, and only once.
        let _ = self.address.set(address);
    }

    /// `127.0.0.1:port`, empty before the server listens.
    pub(crate) fn address(&self) -> String {
        self.address.get().map(SocketAddr::to_string).unwrap_or_default()
    }

    /// Ends watches and the server.
    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// A receiver that turns true when the server stops.
    pub(super) fn stopped(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// Locks the state. A panic in another request does not stop the cluster: writes are single calls.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the controllers again and again, for what is due without a write. Never ends.
    pub(super) async fn run_controllers(&self) {
        loop {
            tokio::time::sleep(CONTROLLERS_PERIOD).await;
            self.react(&mut self.lock());
        }
    }

    /// Runs the controllers; called after every request that wrote, under the same lock. Returns the admission
    /// warnings of that request.
    pub(crate) fn react(&self, state: &mut State) -> Vec<String> {
        let warnings = std::mem::take(&mut state.warnings);
        let mut controllers = self.controllers.lock().unwrap_or_else(PoisonError::into_inner);
        controllers.react(state, &self.pki, Timestamp::now());
        warnings
    }
}
