//! Nodes that need a disruption permit to continue, as the workers report them to the fleet.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::watch;

/// Claims by Node, each with the instance whose worker made it; cheap to clone.
#[derive(Clone, Debug)]
pub struct Claims(watch::Sender<BTreeMap<String, String>>);

impl Claims {
    /// No claims.
    pub fn new() -> Self {
        Self(watch::channel(BTreeMap::new()).0)
    }

    /// Sets the claim of `node` for the instance, or drops it, unless another instance has claimed it
    /// since: a host that is listed by another address has another worker.
    pub fn set(&self, node: &str, instance: &str, claims: bool) {
        self.0.send_if_modified(|all| {
            if claims {
                all.insert(node.to_owned(), instance.to_owned()).as_deref() != Some(instance)
            } else {
                let is_its = all.get(node).is_some_and(|owner| owner == instance);
                is_its && all.remove(node).is_some()
            }
        });
    }

    /// All claims now.
    pub fn all(&self) -> BTreeSet<String> {
        self.0.borrow().keys().cloned().collect()
    }

    /// Tells of changes.
    pub fn changes(&self) -> watch::Receiver<BTreeMap<String, String>> {
        self.0.subscribe()
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
}
