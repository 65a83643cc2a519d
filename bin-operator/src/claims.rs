//! Nodes that need a disruption permit to continue, as the workers report them to the fleet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// Claims by Node, each with the instance whose worker made it, and the Nodes whose slots are being taken; cheap to clone.
#[derive(Clone, Debug)]
pub struct Claims {
    all: watch::Sender<BTreeMap<String, String>>,
    taking: Arc<Mutex<Vec<String>>>,
}

/// The slot of a Node is being taken, until this is dropped.
#[derive(Debug)]
#[must_use = "the slot counts as taken until this is dropped"]
pub struct Taking {
    claims: Claims,
    node: String,
}

impl Claims {
    /// No claims.
    pub fn new() -> Self {
        Self { all: watch::channel(BTreeMap::new()).0, taking: Arc::default() }
    }

    /// Sets the claim of `node` for the instance, or drops it, unless another instance has claimed it
    /// since: a host that is listed by another address has another worker.
    pub fn set(&self, node: &str, instance: &str, claims: bool) {
        self.all.send_if_modified(|all| {
            if claims {
                all.insert(node.to_owned(), instance.to_owned()).as_deref() != Some(instance)
            } else {
                let is_its = all.get(node).is_some_and(|owner| owner == instance);
                is_its && all.remove(node).is_some()
            }
        });
    }

    /// Somebody begins to take the slot of a Node. Nobody is woken by that.
    pub fn take(&self, node: &str) -> Taking {
        self.slots().push(node.to_owned());
        Taking { claims: self.clone(), node: node.to_owned() }
    }

    /// The Nodes whose slots are being taken now.
    pub fn taking(&self) -> BTreeSet<String> {
        self.slots().iter().cloned().collect()
    }

    fn slots(&self) -> MutexGuard<'_, Vec<String>> {
        self.taking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All claims now.
    pub fn all(&self) -> BTreeSet<String> {
        self.all.borrow().keys().cloned().collect()
    }

    /// Tells of changes.
    pub fn changes(&self) -> watch::Receiver<BTreeMap<String, String>> {
        self.all.subscribe()
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        let mut slots = self.claims.slots();
        if let Some(number) = slots.iter().position(|node| *node == self.node) {
            slots.swap_remove(number);
        }
    }
}

impl Default for Claims {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_ends_drops_no_claim_of_the_one_that_came_after() {
        let claims = Claims::new();
        claims.set("win-1", "10.0.0.1", true);
        claims.set("win-1", "10.0.0.9", true);
        claims.set("win-1", "10.0.0.1", false);
        assert_eq!(claims.all(), ["win-1".to_owned()].into());
        claims.set("win-1", "10.0.0.9", false);
        assert_eq!(claims.all(), BTreeSet::new());
    }

    #[test]
    fn a_slot_is_being_taken_until_all_who_take_it_are_done() {
        let claims = Claims::new();
        let changes = claims.changes();
        let taken = ["win-1".to_owned()].into();
        // A host that is listed by another address has another worker.
        let [first, second] = [claims.take("win-1"), claims.clone().take("win-1")];
        assert_eq!(claims.taking(), taken);
        drop(first);
        assert_eq!(claims.taking(), taken);
        drop(second);
        assert_eq!(claims.taking(), BTreeSet::new());
        assert!(!changes.has_changed().unwrap(), "nobody is woken");
    }
}
