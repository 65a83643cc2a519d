//! The Machines of one MachineSet: which of them are out of order, and whose turn it is while one of them is gone.

use std::collections::BTreeSet;

use super::health::{Health, works};
use crate::facts::NodeFacts;
use crate::fleet::{Assignment, Held, Memory};
use crate::machines::{Machine, Unfit, key};

/// Those that are not being deleted.
pub(super) struct Siblings<'a> {
    pub(super) names: BTreeSet<&'a str>,
    /// Those that have taken the place of Machines that are gone.
    successors: BTreeSet<&'a str>,
    unhealthy: Vec<Sibling<'a>>,
}

/// A Machine that does not work with the operator's version, or will not in a moment.
#[derive(Clone, Copy, Debug)]
struct Sibling<'a> {
    name: &'a str,
    refuses: bool,
    because: Outage,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Outage {
    /// It works with another version.
    Outdated,
    /// It works, and has a permit for its node.
    HasPermit,
    /// It never was a node, so it may be the successor of another one.
    NeverJoined,
    /// It was a node and waits for a disruption slot, of which there is none for it now; it may be in service meanwhile.
    AwaitsSlot { serves: bool },
    /// It was a node and refuses our key, and has not been ready for long or is cordoned by us, who can finish nothing
    /// there. It waits for its own replacement.
    Stranded,
    /// It is a node that refuses our key, and is in service but for marks of ours, which nobody can put back.
    Unmarked,
    /// It was a node, and may get ready again.
    MayRecover,
}

impl<'a> Siblings<'a> {
    /// `refusing` and `successors` may name Machines of other MachineSets.
    pub(super) fn of(
        machines: &[&'a Machine],
        refusing: &BTreeSet<&str>,
        successors: &BTreeSet<&'a str>,
        health: &Health<'a>,
        instances: &[Assignment<'a>],
    ) -> Self {
        let names: BTreeSet<&str> = machines.iter().map(|it| it.facts.name.as_str()).collect();
        let successors = names.intersection(successors).copied().collect();
        let sibling = |machine: &&'a Machine| {
            let name = machine.facts.name.as_str();
            let refuses = refusing.contains(name);
            let because = Outage::of(machine, instances, refuses, health)?;
            Some(Sibling { name, refuses, because })
        };
        Self { names, successors, unhealthy: machines.iter().filter_map(sibling).collect() }
    }

    /// The first that has to recover before another one is deleted. Machines that refuse our key do not count.
    pub(super) fn first_unhealthy(&self) -> Option<&'a str> {
        Some(self.unhealthy.iter().find(|sibling| !sibling.refuses)?.name)
    }

    /// Number of successors that work.
    pub(super) fn succeeded(&self) -> usize {
        let is_out = |it: &&Sibling<'_>| self.successors.contains(it.name) && !it.because.works();
        self.successors.len() - self.unhealthy.iter().filter(is_out).count()
    }

    /// Whether a successor has become a node that has no version, so that it cannot have worked.
    pub(super) fn has_only_joined(
        &self,
        machine: &str,
        assignment: &Assignment<'_>,
        memory: &Memory,
    ) -> bool {
        let has_no_version = |node: &NodeFacts| node.version().is_none();
        assignment.node.is_some_and(has_no_version)
            && self.has_not_succeeded(machine, assignment, memory)
    }

    /// Whether a Machine has taken the place of one that is gone, and does not work: it is out of service by us, or has
    /// not been ready for long. Any other one may have worked a moment ago.
    fn has_not_succeeded(
        &self,
        machine: &str,
        assignment: &Assignment<'_>,
        memory: &Memory,
    ) -> bool {
        let is_held =
            |node: &NodeFacts| (node.holds_slot() || node.is_cordoned_by_us()) && !node.serves();
        let is_out = assignment.node.is_some_and(is_held) || memory.is_unready(machine);
        self.successors.contains(machine) && !works(assignment) && is_out
    }

    /// Whether it is a Machine's turn while another one of its MachineSet is gone and not all work, or the mark on its own
    /// node is all that keeps it from waiting for the others.
    ///
    /// One that never was a node may go at any time: it may be the successor, and nobody misses it. So may a successor
    /// that does not work: the others wait for it. Any other one waits until each of the others works or waits for its
    /// own replacement, so that no two are gone. One that is not ready may get ready again for a while: its kubelet may
    /// only have lost the API server for a moment. A missing mark says nothing, because the host itself may write it; but
    /// what is in service waits for a successor without it.
    pub(super) fn succession(
        &self,
        is_any_gone: bool,
        machine: &Machine,
        assignment: &Assignment<'_>,
        memory: &Memory,
    ) -> Result<(), Held> {
        let own = machine.facts.name.as_str();
        if !was_node(machine) || self.has_not_succeeded(own, assignment, memory) {
            return Ok(());
        }
        let node = assignment.node;
        let is_ready = node.is_some_and(|node| node.ready);
        let holds_slot = node.is_some_and(NodeFacts::holds_slot);
        let is_cordoned = node.is_some_and(NodeFacts::is_cordoned_by_us);
        let is_untouched = is_ready && !holds_slot && !is_cordoned;
        let serves = node.is_some_and(NodeFacts::serves);
        let is_successor = |name: &str| self.successors.contains(name);
        let is_in_the_way = |it: &&Sibling<'_>| match it.because {
            Outage::Outdated => false,
            // What refuses our key cannot make use of its permit.
            Outage::HasPermit => !it.refuses,
            Outage::MayRecover => true,
            // While none is gone, only one with a mark asks: the other would wait for its slot, and nobody misses it.
            Outage::NeverJoined => is_any_gone || !it.refuses,
            // It serves, and waits for a slot that this one holds up.
            Outage::AwaitsSlot { serves: true } if is_successor(own) || !serves => false,
            Outage::AwaitsSlot { .. } => !holds_slot,
            // While one is gone it goes in the slot of its MachineSet; else it waits for that of this one.
            Outage::Stranded => is_untouched || is_any_gone && serves && !is_cordoned,
            Outage::Unmarked => is_untouched && is_successor(it.name) && !is_successor(own),
        };
        let mut others = self.unhealthy.iter().filter(|sibling| sibling.name != own);
        if let Some(first) = others.find(is_in_the_way) {
            return Err(Held::Unhealthy { first: key(first.name) });
        }
        let may_recover = !is_ready && !holds_slot && !memory.is_unready(own);
        if may_recover { Err(Held::MayRecover) } else { Ok(()) }
    }
}

impl Outage {
    /// `None` of a Machine that works, and of one with the ignore label: people answer for it.
    fn of(
        machine: &Machine,
        instances: &[Assignment<'_>],
        refuses: bool,
        health: &Health<'_>,
    ) -> Option<Self> {
        if machine.instance == Err(Unfit::Ignored) {
            return None;
        }
        let assignment = health.assignment(machine, instances);
        let has_permit = assignment.is_some_and(|it| it.intent.permit().is_some());
        if let Some(it) = assignment.filter(|it| works(it)) {
            let is_granted = |node| health.memory.grants().has_node(node);
            let is_about_to_go = has_permit || it.node_name().is_some_and(is_granted);
            let outdated = (!health.is_healthy(it)).then_some(Self::Outdated);
            return if is_about_to_go { Some(Self::HasPermit) } else { outdated };
        }
        let node = assignment.and_then(|it| it.node);
        let is_cordoned = node.is_some_and(NodeFacts::is_cordoned_by_us);
        let asks = node.is_some_and(|node| health.observed.claims.contains(node.name.as_str()));
        Some(if !was_node(machine) {
            Self::NeverJoined
        } else if refuses && (is_cordoned || health.memory.is_unready(&machine.facts.name)) {
            Self::Stranded
        } else if refuses && node.is_some_and(|node| node.ready) {
            Self::Unmarked
        } else if asks && !has_permit {
            Self::AwaitsSlot { serves: node.is_some_and(NodeFacts::serves) }
        } else {
            Self::MayRecover
        })
    }

    fn works(self) -> bool {
        matches!(self, Self::Outdated | Self::HasPermit)
    }
}

/// Whether a Machine has been a node, which the Machine API knows even if all records are lost. One that only let us in
/// never was in service; one that runs and refers to no node is left.
pub(super) fn was_node(machine: &Machine) -> bool {
    machine.facts.node.is_some()
}
