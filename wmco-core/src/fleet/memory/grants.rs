//! Permits whose results have not been observed yet.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use crate::fleet::{Assignments, Intent, Observed};
use crate::limits;
use crate::machines::Machines;

/// How long a permit counts that nobody uses any more.
const PATIENCE: Duration = limits::CATCH_UP.unsigned_abs();

/// Nodes with a permit that the watch does not show out of service yet, each with the time when it was given or in use for
/// the last time, and Machines with a permit whose deletion has not. If this state is lost, one pass may disrupt
/// as many nodes more as have permits without a mark, at most the budget: the marks show the rest.
///
/// Times are those of a monotonic clock with any start: a clock that can be set would drop permits too early, or
/// keep them for hours.
#[derive(Clone, Debug, Default)]
pub(in crate::fleet) struct Grants {
    pub(super) nodes: BTreeMap<String, Duration>,
    pub(super) machines: BTreeMap<String, Duration>,
    /// The Nodes whose permits the last pass gave.
    pub(super) given: BTreeSet<String>,
}

impl Grants {
    /// Drops permits whose Nodes are out of service by now, those of Machines that are deleted, and those with which nobody
    /// takes a slot, and which were not given again or claimed, for [`limits::CATCH_UP`]: the mark of a worker that has just
    /// ended, or has just lost its permit, may still be on its way.
    pub(super) fn update(&mut self, machines: &Machines, observed: &Observed<'_>, now: Duration) {
        let is_there = |name: &str| machines.get(name).is_some_and(|it| !it.facts.is_deleted);
        self.machines.retain(|name, given| is_there(name) && now < *given + PATIENCE);
        if self.nodes.is_empty() {
            return;
        }
        for (name, in_use) in &mut self.nodes {
            let is_claimed = observed.claims.contains(name) && self.given.contains(name);
            if is_claimed || observed.taking.contains(name) {
                *in_use = now;
            }
        }
        let out = observed.nodes.iter().filter(|node| node.is_out_of_service());
        let out: HashSet<&str> = out.map(|node| node.name.as_str()).collect();
        self.nodes.retain(|name, in_use| !out.contains(name.as_str()) && now < *in_use + PATIENCE);
    }

    /// Records the permits of a pass.
    pub(super) fn note(&mut self, out: &Assignments<'_>, now: Duration) {
        self.given.clear();
        for instance in &out.instances {
            match &instance.intent {
                Intent::Configure(Some(permit)) | Intent::Remove(Some(permit)) => {
                    self.nodes.insert(permit.node().to_owned(), now);
                    self.given.insert(permit.node().to_owned());
                }
                Intent::Replace(permit) => {
                    self.machines.insert(permit.machine().to_owned(), now);
                }
                Intent::Configure(None) | Intent::Remove(None) | Intent::Look | Intent::Leave => {}
            }
        }
    }

    /// Names of the Nodes. A name stays until the pass with the permit is over and the Nodes show its result.
    pub(in crate::fleet) fn nodes(&self) -> impl Iterator<Item = &str> {
        self.nodes.keys().map(String::as_str)
    }

    /// Whether a Node has such a permit.
    pub(in crate::fleet) fn has_node(&self, name: &str) -> bool {
        self.nodes.contains_key(name)
    }

    /// Whether a Machine has such a permit.
    pub(in crate::fleet) fn has_machine(&self, name: &str) -> bool {
        self.machines.contains_key(name)
    }

    /// When the first permit expires, unless it is in use then.
    pub(super) fn next_end(&self) -> Option<Duration> {
        let times = self.nodes.values().chain(self.machines.values());
        times.min().map(|in_use| *in_use + PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{MachineFacts, NodeFacts};
    use crate::fleet::tests::assignment;
    use crate::fleet::{Because, DisruptionPermit, ReplacementPermit};
    use crate::names;

    const NOW: Duration = Duration::ZERO;

    fn granted() -> Grants {
        let intent = Intent::Configure(Some(DisruptionPermit::for_node("win-1")));
        let instance = assignment("10.0.0.1", intent, Because::Listed);
        let mut grants = Grants::default();
        let out = Assignments { instances: vec![instance], ..Assignments::default() };
        grants.note(&out, NOW);
        grants
    }

    #[test]
    fn a_permit_counts_until_its_node_is_seen_out_of_service() {
        type Change = fn(&mut NodeFacts);
        let rows: [(Change, bool); 8] = [
            (|_| {}, true),
            // It is about to join.
            (
                |it| drop(it.annotations.insert(names::CORDONED_ANNOTATION.into(), String::new())),
                true,
            ),
            (|it| it.unschedulable = true, true),
            // People cordoned it.
            (|it| it.annotations.clear(), true),
            // A person left the mark there.
            (|it| drop(it.labels.insert(names::UPGRADING_LABEL.into(), names::TRUE.into())), true),
            (
                |it| drop(it.annotations.insert(names::CORDONED_ANNOTATION.into(), String::new())),
                false,
            ),
            // A person took our cordon off.
            (|it| (it.unschedulable, it.ready) = (false, true), true),
            (|it| it.ready = false, false),
        ];
        let mut node = NodeFacts { name: "win-1".into(), ready: true, ..NodeFacts::default() };
        for (row, (change, counts)) in rows.into_iter().enumerate() {
            change(&mut node);
            let mut grants = granted();
            grants.update(&Machines::default(), &Observed::new(std::slice::from_ref(&node)), NOW);
            assert_eq!(grants.has_node("win-1"), counts, "{row}");
        }
    }

    #[test]
    fn a_permit_that_nobody_claims_any_more_is_dropped_after_a_while() {
        let (mut grants, win_1) = (granted(), ["win-1".to_owned()].into());
        let claimed = Observed { claims: &win_1, ..Observed::new(&[]) };
        let later = NOW + PATIENCE;
        assert_eq!(grants.next_end(), Some(later));
        grants.update(&Machines::default(), &claimed, later);
        assert!(grants.has_node("win-1"));
        grants.update(&Machines::default(), &Observed::new(&[]), later + PATIENCE);
        assert_eq!(grants.nodes().count(), 0);
    }

    #[test]
    fn a_permit_that_a_pass_does_not_give_again_is_dropped_after_a_while_though_it_is_claimed() {
        let (mut grants, win_1) = (granted(), ["win-1".to_owned()].into());
        let claimed = Observed { claims: &win_1, ..Observed::new(&[]) };
        let later = NOW + Duration::from_secs(1);
        grants.note(&Assignments::default(), later);
        grants.update(&Machines::default(), &claimed, later);
        assert!(grants.has_node("win-1"), "its mark may be on its way");
        grants.update(&Machines::default(), &claimed, NOW + PATIENCE);
        assert_eq!(grants.nodes().count(), 0);
    }

    #[test]
    fn a_permit_with_which_a_slot_is_taken_counts_however_long_that_lasts() {
        let (mut grants, win_1) = (granted(), ["win-1".to_owned()].into());
        let taken = Observed { taking: &win_1, ..Observed::new(&[]) };
        let is_left = |grants: &mut Grants, observed: &Observed<'_>, after: u32| {
            grants.note(&Assignments::default(), NOW);
            grants.update(&Machines::default(), observed, NOW + PATIENCE * after / 2);
            grants.has_node("win-1")
        };
        for halves in 1..9 {
            assert!(is_left(&mut grants, &taken, halves));
        }
        assert!(is_left(&mut grants, &Observed::new(&[]), 9), "its mark may be on its way back");
        assert!(!is_left(&mut grants, &Observed::new(&[]), 10));
    }

    #[test]
    fn a_permit_to_replace_counts_until_the_machine_is_deleted_or_nobody_wants_it_any_more() {
        let intent = Intent::Replace(ReplacementPermit::for_machine("win", "u-1"));
        let instance = assignment("win_machine", intent, Because::LoginRefused);
        let out = Assignments { instances: vec![instance], ..Assignments::default() };
        let facts =
            MachineFacts { name: "win".into(), is_windows: true, ..MachineFacts::default() };
        let deleted = MachineFacts { is_deleted: true, ..facts.clone() };
        let [there, deleted] = [facts, deleted].map(|facts| Machines::read([facts], [], ""));
        for (machines, now, expected) in [
            (&there, NOW, true),
            (&deleted, NOW, false),
            (&Machines::default(), NOW, false),
            (&there, NOW + PATIENCE, false),
        ] {
            let mut grants = Grants::default();
            grants.note(&out, NOW);
            grants.update(machines, &Observed::new(&[]), now);
            assert_eq!(grants.has_machine("win"), expected);
        }
    }
}
