//! The ledger of disruptions: what is out of service because of us.
//!
//! A line of the ledger is a Node that is out of service or has a permit, or a Machine that is gone, until its MachineSet is
//! whole again. No line is added beyond the budget, but for one case: a node that does not work may fill
//! the place of a Machine of its MachineSet that is gone, because that place stays open until it works.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::health::Health;
use super::replacements::Replacements;
use crate::facts::NodeFacts;
use crate::fleet::identity::MachineIndex;
use crate::fleet::{Assignment, Because, DisruptionPermit, Intent, Observed};

/// The lines, and the budget for them.
#[derive(Default)]
pub(super) struct Ledger<'a> {
    budget: usize,
    /// Nodes with a mark or a permit. Each keeps its slot until the mark is gone, but more marks than slots do not disrupt
    /// more nodes.
    phases: BTreeMap<&'a str, Phase>,
    /// Number of these nodes in each phase.
    numbers: BTreeMap<Phase, usize>,
    /// Number of further lines: of Machines that are to go and have no Node, and of permits beyond the budget, as after it
    /// was lowered. These end before their nodes are out of service, but where
    /// the label was just being written.
    further: usize,
    /// MachineSets of which Machines are gone.
    places: BTreeMap<String, Places>,
}

/// Places in a MachineSet.
#[derive(Clone, Copy, Debug, Default)]
struct Places {
    /// Those of Machines that are gone.
    gone: usize,
    /// Number of nodes that do not work yet and are out of service because of us.
    out: usize,
}

/// How far the disruption of a node is. What is further goes first, and leaves room for less.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Phase {
    /// It is out of service because of us, or has a permit and is still in service.
    Out,
    /// We cordoned it, and it serves all the same, because people took the cordon off.
    Begun,
    /// It serves, and has a mark that was left over or set by a predecessor.
    Marked,
    InService,
}

impl<'a> Ledger<'a> {
    /// The lines that Nodes, permits and replacements of Machines make. `stand_ins` are those of `replaced`, `marked` are the
    /// [`marked`] Nodes.
    pub(in crate::fleet) fn of(
        health: &Health<'a>,
        replaced: &Replacements,
        stand_ins: &BTreeSet<&str>,
        marked: &[&'a NodeFacts],
        instances: &[Assignment<'a>],
    ) -> Self {
        let mut ledger = Self { budget: health.desired.budget, ..Self::default() };
        for node in marked {
            ledger.enter(&node.name, Phase::of(node));
        }
        for (_, set) in replaced.iter() {
            ledger.places.entry(set.to_owned()).or_default().gone += 1;
        }
        for instance in instances {
            if ledger.phase(instance.node_name()) != Phase::Out {
                continue;
            }
            let set = replaced.waits_for(instance, health);
            if let Some(places) = set.and_then(|set| ledger.places.get_mut(set)) {
                places.out += 1;
            }
        }
        let all = health.observed.nodes.iter().map(|node| node.name.as_str());
        let granted = all.filter(|node| health.memory.grants().has_node(node));
        let granted: BTreeSet<(Phase, &str)> =
            granted.map(|node| (ledger.phase(Some(node)), node)).collect();
        for (phase, node) in granted {
            let of = || instances.iter().find(|instance| instance.node_name() == Some(node));
            let may_fill = !stand_ins.is_empty();
            let instance = may_fill.then(of).flatten();
            let fills = instance.and_then(|it| replaced.filled_by(it, stand_ins, health));
            // What people uncordoned serves and keeps its slot, so it leaves no room for what has not begun.
            if !ledger.enter_beside(phase.min(Phase::Marked), Some(node), fills) {
                ledger.further += 1;
            }
        }
        ledger
    }

    /// Gives a permit to the node of an instance that asks for one, if there is room. In a cluster that is `blocked` only
    /// removals begin.
    pub(super) fn grants<'b: 'a>(
        &mut self,
        instance: &mut Assignment<'b>,
        fills: Option<&str>,
        blocked: bool,
    ) -> bool {
        let Some(node) = instance.node_name() else { return false };
        let begins = self.phase(Some(node)) != Phase::Out;
        if blocked && begins && !matches!(instance.intent, Intent::Remove(_)) {
            return false;
        }
        let is_admitted = self.admit(Some(node), fills);
        if let Intent::Configure(permit) | Intent::Remove(permit) = &mut instance.intent {
            *permit = is_admitted.then(|| DisruptionPermit::for_node(node));
        }
        is_admitted
    }

    /// Adds a line for a node, or for an instance without a node, if there is room, or if it fills a place in the MachineSet
    /// `fills`.
    ///
    /// A mark does not tell whether its node fills a place. As many do as there are lines beyond the budget.
    pub(super) fn admit(&mut self, node: Option<&'a str>, fills: Option<&str>) -> bool {
        let phase = self.phase(node);
        phase == Phase::Out || self.enter_beside(phase, node, fills)
    }

    /// The same beside what is further than `phase`.
    fn enter_beside(&mut self, phase: Phase, node: Option<&'a str>, fills: Option<&str>) -> bool {
        let has_room = self.lines(phase) < self.budget;
        let beyond = self.lines(Phase::Begun).saturating_sub(self.budget);
        let places = fills.and_then(|set| self.places.get_mut(set));
        let has_place = places.as_ref().is_some_and(|it| it.out.min(beyond) < it.gone);
        if !has_room && !has_place {
            return false;
        }
        if let Some(places) = places {
            places.out += 1;
        }
        match node {
            Some(node) => self.enter(node, Phase::Out),
            None => self.further += 1,
        }
        true
    }

    fn enter(&mut self, node: &'a str, phase: Phase) {
        *self.numbers.entry(phase).or_default() += 1;
        if let Some(before) = self.phases.insert(node, phase) {
            self.numbers.entry(before).and_modify(|number| *number -= 1);
        }
    }

    /// Number of lines that are further than `phase`.
    fn lines(&self, phase: Phase) -> usize {
        let nodes: usize = self.numbers.range(..phase).map(|(_, number)| number).sum();
        let gone: usize = self.places.values().map(|places| places.gone).sum();
        nodes + self.further + gone
    }

    pub(super) fn phase(&self, node: Option<&str>) -> Phase {
        node.and_then(|node| self.phases.get(node)).copied().unwrap_or(Phase::InService)
    }
}

impl Phase {
    fn of(marked: &NodeFacts) -> Self {
        match marked.is_cordoned_by_us() {
            _ if marked.is_out_of_service() => Self::Out,
            true => Self::Begun,
            false => Self::Marked,
        }
    }
}

/// Nodes whose marks take slots of the budget.
///
/// A mark on an unmanaged Node would never go away. A Node that has just registered has no label of ours yet, a Node that
/// lost its annotations may still be that of a Machine, one that lost its label that of an entry while there is no list, and
/// a deleted Node disrupts nothing once its host was given up.
pub(in crate::fleet) fn marked<'a>(
    instances: &[Assignment<'_>],
    made: &MachineIndex<'_>,
    observed: &Observed<'a>,
) -> Vec<&'a NodeFacts> {
    let at_work = LazyCell::new(|| -> HashSet<&str> {
        let at_work = instances.iter().filter(|i| i.because != Because::NodeDeleted);
        at_work.filter_map(Assignment::node_name).collect()
    });
    let on_record = LazyCell::new(|| -> HashSet<&str> {
        observed.hosts.records().filter_map(|(_, record)| record.node.as_deref()).collect()
    });
    let managed = |node: &&NodeFacts| {
        let known = node.is_byoh()
            || made.is_behind(node)
            || made.is_referred_to_by_name(node)
            || on_record.contains(node.name.as_str());
        let ours = known && !node.is_deleted || at_work.contains(node.name.as_str());
        node.is_windows() && ours
    };
    observed.nodes.iter().filter(|node| node.holds_slot()).filter(managed).collect()
}
