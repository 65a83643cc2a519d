//! What the parts of one Machine API share.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::cloud::Cloud;
use super::oddity::Oddity;
use crate::host::SimHostBuilder;

/// Changes the host of a Machine before it is switched on.
pub(super) type Adjust = Arc<dyn Fn(&str, SimHostBuilder) -> SimHostBuilder + Send + Sync>;

/// How the cloud is.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) platform: String,
    /// From a new Machine to its instance.
    pub(super) provisioning: Duration,
    /// From an instance to a host whose user data has run.
    pub(super) boot: Duration,
    pub(super) reuse_addresses: bool,
    pub(super) adjust: Adjust,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("platform", &self.platform).finish_non_exhaustive()
    }
}

/// What is known beside the objects in the cluster.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) cloud: Cloud,
    /// When Machines without an instance were first seen, by UID.
    pub(super) ordered: BTreeMap<String, Instant>,
    /// Machines that the cloud refused, by UID, and why.
    pub(super) refused: BTreeMap<String, String>,
    /// By the name of the Machine.
    pub(super) oddities: BTreeMap<String, Vec<Oddity>>,
}

/// One Machine API, as seen by its parts.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: Settings,
    /// Something may have changed.
    pub(super) wake: Notify,
    state: Mutex<State>,
}

impl Shared {
    pub(super) fn new(settings: Settings) -> Self {
        Self { settings, wake: Notify::new(), state: Mutex::default() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves whole entries.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
