//! What workers report of their instances, from which follows whether the fleet is at rest.

use std::collections::BTreeMap;

use tokio::sync::watch;
use wmco_core::upgradeable::WorkState;

/// The last word of each worker by what its instance is known by; cheap to clone.
#[derive(Clone, Debug)]
pub struct WorkStates(watch::Sender<BTreeMap<String, WorkState>>);

impl WorkStates {
    /// No workers.
    pub fn new() -> Self {
        Self(watch::channel(BTreeMap::new()).0)
    }

    /// Changes the state of an instance.
    pub fn update(&self, instance: &str, change: impl FnOnce(WorkState) -> WorkState) {
        self.0.send_if_modified(|all| {
            let before = all.get(instance).copied().unwrap_or_default();
            let after = change(before);
            if before != after {
                all.insert(instance.to_owned(), after);
            }
            before != after
        });
    }

    /// Its worker has ended.
    pub fn remove(&self, instance: &str) {
        self.0.send_if_modified(|all| all.remove(instance).is_some());
    }

    /// The states of all instances, and their changes.
    pub fn subscribe(&self) -> watch::Receiver<BTreeMap<String, WorkState>> {
        self.0.subscribe()
    }
}

impl Default for WorkStates {
    fn default() -> Self {
        Self::new()
    }
}
