//! Nodes that need a disruption permit to continue, as the workers report them to the fleet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio::time::{error::Elapsed, timeout};
use wmco_core::limits;

/// All claims, and the slots that are being taken; cheap to clone.
#[derive(Clone, Debug)]
pub struct Claims {
    /// The Node that is claimed, by the instance whose worker claims it.
    all: watch::Sender<BTreeMap<String, String>>,
    /// Nodes, and keys of Machines.
    taking: Arc<Mutex<Vec<String>>>,
}

/// What the worker of one instance claims; nothing any more once this is dropped.
#[derive(Debug)]
pub struct Claim {
    claims: Claims,
    instance: String,
}

/// A slot is being taken, until this is dropped.
#[derive(Debug)]
#[must_use = "the slot counts as taken until this is dropped"]
pub struct Taking {
    claims: Claims,
    slot: String,
}

impl Claims {
    /// No claims.
    pub fn new() -> Self {
        Self { all: watch::channel(BTreeMap::new()).0, taking: Arc::default() }
    }

    /// The claim of an instance's worker, which claims nothing yet. An instance has one worker at a time, and so one claim.
    pub fn of(&self, instance: &str) -> Claim {
        Claim { claims: self.clone(), instance: instance.to_owned() }
    }

    /// The Nodes that are claimed now.
    pub fn all(&self) -> BTreeSet<String> {
        self.all.borrow().values().cloned().collect()
    }

    /// Tells of changes.
    pub fn changes(&self) -> watch::Receiver<BTreeMap<String, String>> {
        self.all.subscribe()
    }

    /// The Nodes and Machines whose slots are being taken now.
    pub fn taking(&self) -> BTreeSet<String> {
        self.slots().iter().cloned().collect()
    }

    fn slots(&self) -> MutexGuard<'_, Vec<String>> {
        self.taking.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Claim {
    /// It claims this Node and no other one.
    pub fn set(&self, node: &str) {
        self.claims.all.send_if_modified(|all| {
            all.insert(self.instance.clone(), node.to_owned()).as_deref() != Some(node)
        });
    }

    /// It claims none.
    pub fn clear(&self) {
        self.claims.all.send_if_modified(|all| all.remove(&self.instance).is_some());
    }

    /// A request that takes the slot of a Node or a Machine is under way from now on. Nobody is woken by that.
    pub fn take(&self, slot: String) -> Taking {
        self.claims.slots().push(slot.clone());
        Taking { claims: self.claims.clone(), slot }
    }
}

impl Taking {
    /// What comes of the request, unless that lasts too long, since others wait for the slot.
    ///
    /// # Errors
    /// There is no answer in time.
    pub async fn in_time<T>(&self, request: impl Future<Output = T>) -> Result<T, Elapsed> {
        timeout(limits::SLOT_REQUEST.unsigned_abs(), request).await
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        let mut slots = self.claims.slots();
        if let Some(number) = slots.iter().position(|slot| *slot == self.slot) {
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

    /// A host that is listed by another address has another worker; one whose Node is deleted has no Node any more.
    #[test]
    fn a_claim_ends_with_its_worker_whoever_claims_the_node_as_well() {
        let claims = Claims::new();
        let [first, second] = ["10.0.0.1", "10.0.0.9"].map(|instance| claims.of(instance));
        first.set("win-1");
        second.set("win-1");
        drop(first);
        assert_eq!(claims.all(), ["win-1".to_owned()].into());
        second.set("win-9");
        assert_eq!(claims.all(), ["win-9".to_owned()].into());
        second.clear();
        assert_eq!(claims.all(), BTreeSet::new());
    }

    #[test]
    fn a_slot_is_being_taken_until_all_who_take_it_are_done() {
        let claims = Claims::new();
        let changes = claims.changes();
        let taken = ["win-1".to_owned()].into();
        // A host that is listed by another address has another worker.
        let workers = ["10.0.0.1", "10.0.0.9"].map(|instance| claims.of(instance));
        let [first, second] = workers.each_ref().map(|worker| worker.take("win-1".to_owned()));
        assert_eq!(claims.taking(), taken);
        drop(first);
        assert_eq!(claims.taking(), taken);
        drop(second);
        assert_eq!(claims.taking(), BTreeSet::new());
        assert!(!changes.has_changed().unwrap(), "nobody is woken");
    }
}
