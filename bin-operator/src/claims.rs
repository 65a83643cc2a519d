//! Which nodes cannot get on without a disruption permit, told by the workers to the fleet.

use std::collections::BTreeSet;

use tokio::sync::watch;

/// The set of claims; cheap to clone.
#[derive(Clone, Debug)]
pub struct Claims(watch::Sender<BTreeSet<String>>);

impl Claims {
    /// No claims.
    pub fn new() -> Self {
        Self(watch::channel(BTreeSet::new()).0)
    }

    /// Sets or drops the claim of `node`.
    pub fn set(&self, node: &str, claims: bool) {
        self.0.send_if_modified(|set| {
            if claims { set.insert(node.to_owned()) } else { set.remove(node) }
        });
    }

    /// All claims now.
    pub fn all(&self) -> BTreeSet<String> {
        self.0.borrow().clone()
    }

    /// Tells of changes.
    pub fn changes(&self) -> watch::Receiver<BTreeSet<String>> {
        self.0.subscribe()
    }
}

impl Default for Claims {
    fn default() -> Self {
        Self::new()
    }
}
