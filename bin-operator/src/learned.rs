//! Host names that hosts reported in probes, by the address that they are listed under.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

/// What was learned so far; cheap to clone.
#[derive(Clone, Debug)]
pub struct Learned {
    names: Arc<Mutex<BTreeMap<String, String>>>,
    changed: watch::Sender<u64>,
}

impl Learned {
    /// Nothing yet.
    pub fn new() -> Self {
        Self { names: Arc::default(), changed: watch::channel(0).0 }
    }

    /// Remembers what the host at `address` calls itself.
    pub fn set(&self, address: &str, host_name: &str) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let old = names.insert(address.to_owned(), host_name.to_owned());
        if old.as_deref() != Some(host_name) {
            self.changed.send_modify(|count| *count += 1);
        }
    }

    /// Everything learned.
    pub fn all(&self) -> BTreeMap<String, String> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}

impl Default for Learned {
    fn default() -> Self {
        Self::new()
    }
}
