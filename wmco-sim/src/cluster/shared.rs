//! What all connections share: the state under its lock, keys, the audit log, the stop signal.

use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use jiff::Timestamp;
use tokio::sync::watch;

use super::audit::Audit;
use super::controllers::Controllers;
use super::pki::Pki;
use super::state::State;

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Locked only by those who hold the lock of the state, so nobody waits for it.
    controllers: Mutex<Controllers>,
    /// Keys and certificates of the cluster.
    pub pki: Pki,
    /// What has been asked, and the faults to answer with.
    pub audit: Audit,
    /// How many requests were answered.
    pub requests: AtomicU64,
    address: OnceLock<SocketAddr>,
    /// Turns true when the server stops.
    stop: watch::Sender<bool>,
}

impl Shared {
    /// An empty cluster. `taints_nodes`: taints of Nodes follow their conditions.
    pub(crate) fn new(pki: Pki, taints_nodes: bool) -> Self {
        Self {
            state: Mutex::new(State::new()),
            controllers: Mutex::new(Controllers::new(taints_nodes)),
            pki,
            audit: Audit::default(),
            requests: AtomicU64::new(0),
            address: OnceLock::new(),
            stop: watch::Sender::new(false),
        }
    }

    /// Where the server listens; known once it does.
    pub(super) fn set_address(&self, address: SocketAddr) {
        // Only the start of the server sets it, and does so once.
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

    /// Turns true when the server stops.
    pub(super) fn stopped(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// The lock. A panic of another request does not end the cluster: writes are single calls.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the controllers react: called after every request that wrote something, under the same
    /// lock. Answers with what admission warned of in that request.
    pub(crate) fn react(&self, state: &mut State) -> Vec<String> {
        let warnings = std::mem::take(&mut state.warnings);
        let mut controllers = self.controllers.lock().unwrap_or_else(PoisonError::into_inner);
        controllers.react(state, &self.pki, Timestamp::now());
        warnings
    }
}
