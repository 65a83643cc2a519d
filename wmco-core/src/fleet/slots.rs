//! Assigns slots of the disruption budget.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::made::Made;
use super::replaced::{Health, Replaced, is_configured};
use super::{Assignment, Because, DisruptionPermit, Observed};
use crate::facts::NodeFacts;
use crate::fleet::Intent;
use crate::machines::name_in;
use crate::names;

/// Gives permits to instances that claim one, as long as there are slots. Returns the remaining slots.
///
/// Work in progress comes before new work; nodes whose drains were given up less often come first. The slot of a
/// Machine that is being replaced is lent to nodes of its MachineSet that do not work: it is held until they work.
/// In a cluster that is `blocked` only removals begin.
pub(super) fn hand_out<'a>(
    instances: &mut [Assignment<'a>],
    (budget, blocked): (usize, bool),
    replaced: &Replaced<'a>,
    health: &Health<'a>,
    made: &Made<'_>,
    observed: &Observed<'_>,
) -> Slots {
    let asking = [observed.claims, observed.refused, observed.unanswered];
    if asking.iter().all(|names| names.is_empty()) {
        return Slots::default();
    }
    let mut slots =
        Slots::count(instances, budget.saturating_sub(replaced.count()), made, observed);
    slots.lend(instances, budget, replaced, health, observed.unready);
    let mut queue: Vec<&mut Assignment<'_>> = instances.iter_mut().collect();
    let given_up = times_given_up(observed.nodes);
    queue.sort_by_key(|instance| given_up.get(instance.node_name()?).copied());
    for turn in [Turn::Disrupted, Turn::Marked, Turn::New] {
        let waits = |it: &Assignment<'_>| {
            blocked && turn == Turn::New && !matches!(it.intent, Intent::Remove(_))
        };
        for instance in queue.iter_mut().filter(|instance| !waits(instance)) {
            slots.serve(instance, turn, observed);
        }
    }
    slots
}

/// Nodes whose marks take slots of the budget.
///
/// A mark on an unmanaged Node would never go away. A Node that has just registered has no label of ours yet, a Node that
/// lost its annotations may still be that of a Machine, and a deleted Node disrupts nothing once its host was given up.
pub(super) fn marked<'a>(
    instances: &[Assignment<'_>],
    made: &Made<'_>,
    observed: &Observed<'a>,
) -> Vec<&'a NodeFacts> {
    let at_work = instances.iter().filter(|i| i.because != Because::NodeDeleted);
    let at_work: HashSet<&str> = at_work.filter_map(Assignment::node_name).collect();
    let managed = |node: &&NodeFacts| {
        let labelled = node.is_byoh() || made.is_behind(node) || made.is_referred_to_by_name(node);
        let ours = labelled && !node.is_deleted || at_work.contains(node.name.as_str());
        node.is_windows() && ours
    };
    observed.nodes.iter().filter(managed).filter(|node| node.holds_slot()).collect()
}

/// Nodes that asked for a slot and have none.
pub(super) fn waiting<'a>(
    instances: &[Assignment<'a>],
    observed: &Observed<'_>,
) -> BTreeSet<&'a str> {
    let waits = |it: &&Assignment<'a>| match &it.intent {
        Intent::Configure(permit) | Intent::Remove(permit) => permit.is_none(),
        Intent::Replace(_) | Intent::Look | Intent::Leave => false,
    };
    let asked = |name: &&str| observed.claims.contains(*name);
    instances.iter().filter(waits).filter_map(Assignment::node_name).filter(asked).collect()
}

/// The free part of the budget.
#[derive(Default)]
pub(super) struct Slots {
    free: usize,
    /// Nodes that hold a slot: marked and cordoned by us, or with a permit whose mark is not visible yet.
    disrupted: BTreeSet<String>,
    /// Nodes with a mark but without our cordon: left over, or set by a predecessor. Each keeps a slot until the
    /// mark is gone, but more marks than slots do not disrupt more nodes.
    marked: BTreeSet<String>,
    /// Nodes that may use the slot of a Machine that is being replaced, with their MachineSet.
    lent: BTreeMap<String, String>,
    /// Number of such slots by MachineSet.
    lendable: BTreeMap<String, usize>,
}

/// Number of drains given up in a row, by Node name.
fn times_given_up(nodes: &[NodeFacts]) -> BTreeMap<&str, u32> {
    nodes.iter().filter_map(|node| Some((node.name.as_str(), node.given_up()?.times))).collect()
}

/// The order of permits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Turn {
    Disrupted,
    Marked,
    New,
}

impl Slots {
    fn count(
        instances: &[Assignment<'_>],
        budget: usize,
        made: &Made<'_>,
        observed: &Observed<'_>,
    ) -> Self {
        let holders = marked(instances, made, observed);
        let begun = |node: &&NodeFacts| node.annotation(names::CORDONED_ANNOTATION).is_some();
        let (begun, marked): (Vec<_>, Vec<_>) = holders.into_iter().partition(begun);
        let mut disrupted: BTreeSet<String> =
            begun.into_iter().map(|node| node.name.clone()).collect();
        let was_granted = |node: &&NodeFacts| observed.granted.contains(&node.name);
        let granted = observed.nodes.iter().filter(was_granted).map(|node| &node.name);
        let granted: Vec<_> = granted.filter(|name| !disrupted.contains(*name)).collect();
        let free = budget.saturating_sub(disrupted.len() + granted.len());
        // Permits that go beyond the budget, as after it was lowered, end before their nodes are out of service.
        let within = budget.saturating_sub(disrupted.len());
        disrupted.extend(granted.into_iter().take(within).cloned());
        let marked = marked.iter().map(|node| node.name.clone());
        let marked = marked.filter(|name| !disrupted.contains(name)).collect();
        Self { free, disrupted, marked, ..Self::default() }
    }

    /// Records which nodes may use the slots of Machines that are being replaced, one each: see [`Replaced::may_borrow`].
    ///
    /// A mark does not tell whose slot its node took. As many count as borrowed as go beyond the budget, those of other
    /// MachineSets first: a slot that is lent once too often goes to a successor, to what has been out of service for long,
    /// or beside as many successors as are awaited; one that is not lent lets a successor wait for what its MachineSet holds.
    fn lend<'a>(
        &mut self,
        instances: &[Assignment<'a>],
        budget: usize,
        replaced: &Replaced<'a>,
        health: &Health<'a>,
        unready: &BTreeSet<String>,
    ) {
        if replaced.count() == 0 {
            return;
        }
        let borrowers = replaced.may_borrow(health, instances, unready);
        let may_borrow = |instance: &Assignment<'_>| {
            name_in(&instance.address).is_some_and(|machine| borrowers.contains(machine))
        };
        let mut holders: BTreeMap<&str, usize> = BTreeMap::new();
        for instance in instances {
            let Some(node) = instance.node_name() else { continue };
            let Some(set) = replaced.waits_for(instance, health) else { continue };
            let holds = self.disrupted.contains(node);
            if holds && !is_configured(instance) {
                *holders.entry(set).or_default() += 1;
            } else if !holds && may_borrow(instance) {
                self.lent.insert(node.to_owned(), set.to_owned());
            }
        }
        let borrowed = (replaced.count() + self.disrupted.len()).saturating_sub(budget);
        let by_set = replaced.by_set();
        let may_have =
            |set: &str, slots: usize| slots.min(holders.get(set).copied().unwrap_or_default());
        let all: usize = by_set.iter().map(|(set, slots)| may_have(set, *slots)).sum();
        let lendable = by_set.iter().map(|(set, slots)| {
            let own = may_have(set, *slots);
            let of_others = all - own;
            let left = slots - own.min(borrowed.saturating_sub(of_others));
            ((*set).to_owned(), left)
        });
        self.lendable = lendable.collect();
    }

    /// Takes a slot for a node, or for an instance without a node, unless the node already holds one.
    pub(super) fn take(&mut self, node: Option<&str>) -> bool {
        let turn = node.map_or(Turn::New, |node| self.turn(node));
        let free = match turn {
            Turn::Disrupted => return true,
            Turn::Marked => self.free > 0,
            Turn::New => self.left() > 0,
        };
        if free {
            self.free -= 1;
        } else if !node.is_some_and(|node| self.borrow(node)) {
            return false;
        }
        if let Some(node) = node {
            self.marked.remove(node);
            self.disrupted.insert(node.to_owned());
        }
        true
    }

    fn borrow(&mut self, node: &str) -> bool {
        let lendable = self.lent.get(node).and_then(|set| self.lendable.get_mut(set));
        let Some(left) = lendable.filter(|left| **left > 0) else { return false };
        *left -= 1;
        true
    }

    /// Gives the instance a permit if it claims one, it is its turn, and a slot is free.
    fn serve(&mut self, instance: &mut Assignment<'_>, turn: Turn, observed: &Observed<'_>) {
        let Some(node) = instance.node_name() else { return };
        let (Intent::Configure(permit) | Intent::Remove(permit)) = &mut instance.intent else {
            return;
        };
        if self.turn(node) != turn || permit.is_some() || !observed.claims.contains(node) {
            return;
        }
        if self.take(Some(node)) {
            *permit = Some(DisruptionPermit::for_node(node));
        }
    }

    /// Slots that are neither taken nor reserved by a mark.
    fn left(&self) -> usize {
        self.free.saturating_sub(self.marked.len())
    }

    fn turn(&self, node: &str) -> Turn {
        if self.disrupted.contains(node) {
            Turn::Disrupted
        } else if self.marked.contains(node) {
            Turn::Marked
        } else {
            Turn::New
        }
    }
}
