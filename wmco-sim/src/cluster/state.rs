//! What the server keeps: the store and the resources it serves, under one lock.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::Value;

use super::audit::Audit;
use super::lifecycle::Progress;
use super::pki::Pki;
use super::registry::Registry;
use super::store::Store;

/// Everything that requests read and write.
#[derive(Debug)]
pub(crate) struct State {
    /// The objects.
    pub store: Store,
    /// The resources that are served now.
    pub registry: Registry,
    /// How far the controllers have come.
    pub controllers: Progress,
    /// What admission has to say about the write that is under way.
    pub warnings: Vec<String>,
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Keys and certificates of the cluster.
    pub pki: Pki,
    /// What has been asked, and the faults to answer with.
    pub audit: Audit,
    /// Whether taints of Nodes follow their conditions.
    pub taints_nodes: bool,
    /// How many requests were answered.
    pub requests: AtomicU64,
    address: OnceLock<SocketAddr>,
}

impl Shared {
    /// An empty cluster.
    pub(crate) fn new(pki: Pki, taints_nodes: bool) -> Self {
        let mut store = Store::default();
        let registry = Registry::builtin();
        for resource in registry.all() {
            store.open(&resource.storage());
        }
        Self {
            state: Mutex::new(State {
                store,
                registry,
                controllers: Progress::default(),
                warnings: Vec::new(),
            }),
            pki,
            audit: Audit::default(),
            taints_nodes,
            requests: AtomicU64::new(0),
            address: OnceLock::new(),
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

    /// The lock. A panic of another request does not end the cluster: writes are single calls.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a handler answers.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// HTTP status.
    pub code: u16,
    /// The body.
    pub body: Arc<Value>,
    /// Texts for `Warning` headers.
    pub warnings: Vec<String>,
    /// More headers, for example `retry-after`.
    pub headers: BTreeMap<&'static str, String>,
}

impl Answer {
    /// An answer without warnings.
    pub(crate) fn new(code: u16, body: impl Into<Arc<Value>>) -> Self {
        Self { code, body: body.into(), warnings: Vec::new(), headers: BTreeMap::new() }
    }

    /// Adds a `Warning` header for each text.
    #[must_use]
    pub(crate) fn with_warnings(mut self, warnings: Vec<String>) -> Self {
        self.warnings.extend(warnings);
        self
    }
}
