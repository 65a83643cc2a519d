//! Nodes that need a disruption permit to continue, as the workers report them to the fleet.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::watch;

/// Claims by Node; cheap to clone.
#[derive(Clone, Debug)]
pub struct Claims(watch::Sender<BTreeMap<String, Claim>>);

/// The claim of a worker on the slot of a Node.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Claim {
    /// The instance whose worker made it.
    instance: String,
    /// Whether the slot is being taken.
    takes: bool,
}

/// A slot is being taken, until this is dropped.
#[derive(Debug)]
#[must_use = "the slot counts as taken until this is dropped"]
pub struct Taking {
    claims: Claims,
    node: String,
    instance: String,
}

impl Claims {
    /// No claims.
    pub fn new() -> Self {
        Self(watch::channel(BTreeMap::new()).0)
    }

    /// Sets the claim of `node` for the instance, or drops it, unless another instance has claimed it
    /// since: a host that is listed by another address has another worker.
    pub fn set(&self, node: &str, instance: &str, claims: bool) {
        self.0.send_if_modified(|all| {
            let is_its = all.get(node).is_some_and(|claim| claim.instance == instance);
            if claims && !is_its {
                let claim = Claim { instance: instance.to_owned(), takes: false };
                all.insert(node.to_owned(), claim);
            }
            if !claims && is_its {
                all.remove(node);
            }
            claims != is_its
        });
    }

    /// The worker of the instance takes the slot that it has claimed. Nobody is woken by that.
    pub fn take(&self, node: &str, instance: &str) -> Taking {
        self.set_taking(node, instance, true);
        Taking { claims: self.clone(), node: node.to_owned(), instance: instance.to_owned() }
    }

    fn set_taking(&self, node: &str, instance: &str, takes: bool) {
        self.0.send_if_modified(|all| {
            if let Some(claim) = all.get_mut(node).filter(|claim| claim.instance == instance) {
                claim.takes = takes;
            }
            false
        });
    }

    /// The Nodes that are claimed now.
    pub fn all(&self) -> BTreeSet<String> {
        self.0.borrow().keys().cloned().collect()
    }

    /// Those of them whose slots are being taken.
    pub fn taking(&self) -> BTreeSet<String> {
        let all = self.0.borrow();
        let taking = all.iter().filter(|(_, claim)| claim.takes);
        taking.map(|(node, _)| node.clone()).collect()
    }

    /// Tells of claims that come and go.
    pub fn changes(&self) -> watch::Receiver<BTreeMap<String, Claim>> {
        self.0.subscribe()
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        self.claims.set_taking(&self.node, &self.instance, false);
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
    fn a_slot_is_taken_by_who_claims_it_as_long_as_that_lasts() {
        let claims = Claims::new();
        drop(claims.take("win-1", "10.0.0.1"));
        assert_eq!(claims.all(), BTreeSet::new(), "who asks for nothing has no permit");
        claims.set("win-1", "10.0.0.1", true);
        let changes = claims.changes();
        let taking = claims.take("win-1", "10.0.0.1");
        claims.set("win-1", "10.0.0.1", true);
        assert_eq!(claims.taking(), ["win-1".to_owned()].into());
        let other = claims.take("win-1", "10.0.0.9");
        drop(other);
        assert_eq!(claims.taking(), ["win-1".to_owned()].into(), "it is another worker's");
        drop(taking);
        assert_eq!(claims.taking(), BTreeSet::new());
        assert_eq!(claims.all(), ["win-1".to_owned()].into());
        assert!(!changes.has_changed().unwrap(), "nobody is woken");
    }
}
