//! State that the parts of a Machine API share.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::cloud::Cloud;
use super::oddity::Oddity;
use crate::host::SimHostBuilder;

/// Changes the settings of a Machine's host before its start.
pub(super) type Adjust = Arc<dyn Fn(&str, SimHostBuilder) -> SimHostBuilder + Send + Sync>;

/// Settings of the cloud.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) platform: String,
    /// Time from a new Machine to its instance.
    pub(super) provisioning: Duration,
    /// Time from an instance to a host whose user data has run.
    pub(super) boot: Duration,
    pub(super) reuse_addresses: bool,
    pub(super) adjust: Adjust,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("platform", &self.platform).finish_non_exhaustive()
    }
}

/// State besides the objects in the cluster.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) cloud: Cloud,
    /// Times at which Machines without an instance were first observed, by UID.
    pub(super) ordered: BTreeMap<String, Instant>,
    /// Reasons for Machines that the cloud refused, by UID.
    pub(super) refused: BTreeMap<String, String>,
    /// Oddities by the name of the Machine.
    pub(super) oddities: BTreeMap<String, Vec<Oddity>>,
}

/// The shared state of a Machine API.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: Settings,
    /// Notified when something may have changed.
    pub(super) wake: Notify,
    state: Mutex<State>,
}

impl Shared {
    pub(super) fn new(settings: Settings) -> Self {
        Self { settings, wake: Notify::new(), state: Mutex::default() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere cannot leave a partial entry.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
