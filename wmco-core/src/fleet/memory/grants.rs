//! Permits whose results have not been observed yet.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use crate::fleet::{Assignments, Intent, Observed};
use crate::limits;
use crate::machines::{Machines, key};

/// How long a permit counts that nobody uses any more.
const PATIENCE: Duration = limits::CATCH_UP.unsigned_abs();

/// Nodes with a permit that the watch does not show out of service yet, and Machines with a permit whose deletion it does not
/// show, each with the time when the permit may have been in use last. If this state is lost, one pass may disrupt as many
/// nodes more as have permits without a mark, at most the budget: the marks show the rest.
///
/// Times are those of a monotonic clock with any start: a clock that can be set would drop permits too early, or
/// keep them for hours.
#[derive(Clone, Debug, Default)]
pub(in crate::fleet) struct Grants {
    pub(super) nodes: BTreeMap<String, Duration>,
    pub(super) machines: BTreeMap<String, Duration>,
    /// Those of both, by name of the Node or [`key`] of the Machine, that the last pass gave, or saw in use.
    pub(super) in_use: BTreeSet<String>,
}

impl Grants {
    /// Drops permits whose Nodes are out of service by now, those of Machines that are deleted, and those that were neither
    /// given again nor in use for [`limits::CATCH_UP`]: a mark that was written a moment ago may still be on its way back.
    pub(super) fn update(&mut self, machines: &Machines, observed: &Observed<'_>, now: Duration) {
        let taking = observed.taking;
        let in_use = std::mem::replace(&mut self.in_use, taking.clone());
        // Its use may have ended just now.
        let is_in_use = |name: &str| in_use.contains(name) || taking.contains(name);
        let is_left = |name: &str, last: &mut Duration| {
            if is_in_use(name) {
                *last = now;
            }
            now < *last + PATIENCE
        };
        let is_there = |name: &str| machines.get(name).is_some_and(|it| !it.facts.is_deleted);
        self.machines.retain(|name, last| is_left(&key(name), last) && is_there(name));
        if self.nodes.is_empty() {
            return;
        }
        let out = observed.nodes.iter().filter(|node| node.is_out_of_service());
        let out: HashSet<&str> = out.map(|node| node.name.as_str()).collect();
        self.nodes.retain(|name, last| is_left(name, last) && !out.contains(name.as_str()));
    }

    /// Records the permits of a pass.
    pub(super) fn note(&mut self, out: &Assignments<'_>, now: Duration) {
        for instance in &out.instances {
            match &instance.intent {
                Intent::Configure(Some(permit)) | Intent::Remove(Some(permit)) => {
                    self.nodes.insert(permit.node().to_owned(), now);
                    self.in_use.insert(permit.node().to_owned());
                }
                Intent::Replace(permit) => {
                    self.machines.insert(permit.machine().to_owned(), now);
                    self.in_use.insert(key(permit.machine()));
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
        times.min().map(|last| *last + PATIENCE)
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

    /// What is left of a permit `after` so long, of which passes do not give it again.
    fn is_left(grants: &mut Grants, taking: &[&str], after: Duration) -> bool {
        let taking = taking.iter().map(|it| (*it).to_owned()).collect();
        let observed = Observed { taking: &taking, ..Observed::new(&[]) };
        grants.update(&Machines::default(), &observed, NOW + after);
        grants.note(&Assignments::default(), NOW + after);
        grants.has_node("win-1")
    }

    #[test]
    fn a_permit_that_is_not_given_again_counts_for_a_while() {
        let mut grants = granted();
        assert_eq!(grants.next_end(), Some(NOW + PATIENCE));
        // It may have been used until this pass.
        let pass = Duration::from_secs(60);
        assert!(is_left(&mut grants, &[], pass));
        assert!(is_left(&mut grants, &[], pass + PATIENCE / 2), "its mark is on its way");
        assert!(!is_left(&mut grants, &[], pass + PATIENCE));
    }

    #[test]
    fn a_permit_with_which_a_slot_is_taken_counts_however_long_that_lasts_and_for_a_while() {
        let mut grants = granted();
        let mut at_next_end = |taking: &[&str]| {
            let next_end = grants.next_end().unwrap();
            is_left(&mut grants, taking, next_end)
        };
        for _ in 0..9 {
            assert!(at_next_end(&["win-1"]));
        }
        // The request may have ended just now.
        assert!(at_next_end(&["win-2"]));
        assert!(!at_next_end(&[]));
    }

    #[test]
    fn the_permit_of_a_node_that_is_to_leave_counts_like_any_other() {
        let intent = Intent::Remove(Some(DisruptionPermit::for_node("win-1")));
        let instance = assignment("10.0.0.1", intent, Because::Unlisted);
        let mut grants = Grants::default();
        grants.note(&Assignments { instances: vec![instance], ..Assignments::default() }, NOW);
        assert!(grants.has_node("win-1"));
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
        let (nobody, its) = (BTreeSet::new(), [key("win")].into());
        for (machines, taking, later, expected) in [
            (&there, &nobody, Duration::ZERO, true),
            (&deleted, &nobody, Duration::ZERO, false),
            (&Machines::default(), &nobody, Duration::ZERO, false),
            (&there, &nobody, PATIENCE, false),
            // Its deletion is under way.
            (&there, &its, PATIENCE, true),
            (&deleted, &its, PATIENCE, false),
        ] {
            let mut grants = Grants::default();
            grants.note(&out, NOW);
            grants.update(machines, &Observed::new(&[]), NOW);
            let observed = Observed { taking, ..Observed::new(&[]) };
            grants.update(machines, &observed, NOW + later);
            assert_eq!(grants.has_machine("win"), expected, "{taking:?} {later:?}");
        }
        // It may have been used until the first pass that does not give it again.
        let mut grants = Grants::default();
        grants.note(&out, NOW);
        for (later, expected) in [(60, true), (62, true), (65, false)] {
            grants.update(&there, &Observed::new(&[]), NOW + Duration::from_secs(later));
            assert_eq!(grants.has_machine("win"), expected, "{later} s");
        }
    }
}
