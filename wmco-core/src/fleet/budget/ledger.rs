//! The ledger of disruptions: what is out of service because of us.
//!
//! A line of the ledger is a Node that is out of service or has a permit, or a Machine that is gone, until its MachineSet is
//! whole again. There are never more lines than the budget allows, but for one case: a node that does not work may fill
//! the place of a Machine of its MachineSet that is gone, because that place stays open until it works.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::health::{Health, is_configured};
use super::replacements::Replacements;
use crate::facts::NodeFacts;
use crate::fleet::identity::MachineIndex;
use crate::fleet::{Assignment, Because, DisruptionPermit, Intent, Observed};

/// The lines, and the budget for them.
pub(super) struct Ledger<'a> {
    budget: usize,
    /// Nodes that are out of service because of us, or have a permit and are still in service.
    out: BTreeSet<&'a str>,
    /// Nodes with a mark that serve all the same: the mark was left over or set by a predecessor, or people took our cordon
    /// off. Each keeps a slot until the mark is gone, but more marks than slots do not disrupt more nodes.
    marked: BTreeSet<&'a str>,
    /// Those of them that we have cordoned: what was begun there goes on before work begins at another mark.
    begun: BTreeSet<&'a str>,
    /// Number of further lines: of Machines that are to go and have no Node, and of permits beyond the budget, as after it
    /// was lowered. These end before their nodes are out of service.
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

/// How far the disruption of a node is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Phase {
    Out,
    Begun,
    Marked,
    InService,
}

impl<'a> Ledger<'a> {
    /// The lines that Nodes, permits and replacements of Machines make. `marked` are the [`marked`] Nodes.
    pub(in crate::fleet) fn of(
        health: &Health<'a>,
        replaced: &Replacements,
        marked: &[&'a NodeFacts],
        instances: &[Assignment<'a>],
    ) -> Self {
        let budget = health.desired.budget;
        let name = |node: &&'a NodeFacts| node.name.as_str();
        let (out, marked): (Vec<_>, Vec<_>) =
            marked.iter().copied().partition(|node| node.is_out_of_service());
        let out: BTreeSet<&str> = out.iter().map(name).collect();
        let is_granted = |node: &&str| health.memory.grants().has_node(node);
        let all = health.observed.nodes.iter().map(|node| node.name.as_str());
        let granted: BTreeSet<&str> = all.filter(is_granted).collect();
        let mut places: BTreeMap<String, Places> = BTreeMap::new();
        for (_, set) in replaced.iter() {
            places.entry(set.to_owned()).or_default().gone += 1;
        }
        let room = budget.saturating_sub(out.len() + replaced.count());
        let further = granted.len().saturating_sub(room);
        let out: BTreeSet<&str> = out.into_iter().chain(granted.into_iter().take(room)).collect();
        let is_out = |it: &&Assignment<'_>| it.node_name().is_some_and(|node| out.contains(node));
        for instance in instances.iter().filter(is_out).filter(|it| !is_configured(it)) {
            let set = replaced.waits_for(instance, health);
            if let Some(places) = set.and_then(|set| places.get_mut(set)) {
                places.out += 1;
            }
        }
        let is_in = |node: &&&NodeFacts| !out.contains(node.name.as_str());
        let begun = marked.iter().filter(|node| node.is_cordoned_by_us()).filter(is_in);
        let begun = begun.map(name).collect();
        let marked = marked.iter().filter(is_in).map(name).collect();
        Self { budget, out, marked, begun, further, places }
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
        let gone: usize = self.places.values().map(|places| places.gone).sum();
        let lines = self.out.len() + self.further + gone;
        let has_room = match self.phase(node) {
            Phase::Out => return true,
            Phase::Begun => lines < self.budget,
            Phase::Marked => lines + self.begun.len() < self.budget,
            Phase::InService => lines + self.marked.len() < self.budget,
        };
        let beyond = lines.saturating_sub(self.budget);
        let places = fills.and_then(|set| self.places.get_mut(set));
        let has_place = places.as_ref().is_some_and(|it| it.out.min(beyond) < it.gone);
        if !has_room && !has_place {
            return false;
        }
        if let Some(places) = places {
            places.out += 1;
        }
        match node {
            Some(node) => {
                self.marked.remove(node);
                self.begun.remove(node);
                self.out.insert(node);
            }
            None => self.further += 1,
        }
        true
    }

    pub(super) fn phase(&self, node: Option<&str>) -> Phase {
        match node {
            Some(node) if self.out.contains(node) => Phase::Out,
            Some(node) if self.begun.contains(node) => Phase::Begun,
            Some(node) if self.marked.contains(node) => Phase::Marked,
            Some(_) | None => Phase::InService,
        }
    }
}

/// Nodes whose marks take slots of the budget.
///
/// A mark on an unmanaged Node would never go away. A Node that has just registered has no label of ours yet, a Node that
/// lost its annotations may still be that of a Machine, and a deleted Node disrupts nothing once its host was given up.
pub(in crate::fleet) fn marked<'a>(
    instances: &[Assignment<'_>],
    made: &MachineIndex<'_>,
    observed: &Observed<'a>,
) -> Vec<&'a NodeFacts> {
    let at_work = LazyCell::new(|| -> HashSet<&str> {
        let at_work = instances.iter().filter(|i| i.because != Because::NodeDeleted);
        at_work.filter_map(Assignment::node_name).collect()
    });
    let managed = |node: &&NodeFacts| {
        let labelled = node.is_byoh() || made.is_behind(node) || made.is_referred_to_by_name(node);
        let ours = labelled && !node.is_deleted || at_work.contains(node.name.as_str());
        node.is_windows() && ours
    };
    observed.nodes.iter().filter(|node| node.holds_slot()).filter(managed).collect()
}
