//! Who gets the next permit.

use std::collections::BTreeSet;

use super::health::{Health, works};
use super::ledger::{Ledger, Phase};
use super::replacements::Replacements;
use super::replacing::{self, Gate, Refusing};
use crate::facts::NodeFacts;
use crate::fleet::{Assignment, Assignments, Intent};

/// Who is next: the least goes first, and among equals the one whose address sorts first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Rank {
    /// A node that asks for a permit: first what is out of service already, last what had most of its drains given up.
    Node(Phase, Option<u32>),
    /// A Machine whose host does not let us in: the deletion of one that neither works nor takes pods disrupts nothing.
    Machine { works: bool, serves: bool },
}

/// Gives permits to the nodes that ask for one, and to Machines whose hosts refuse our key, one after the other as long as
/// the ledger has room. Returns the names of the Nodes that got one.
pub(in crate::fleet) fn hand_out<'a, 'b: 'a>(
    health: &Health<'a>,
    mut replaced: Replacements,
    marked: &[&'a NodeFacts],
    out: &mut Assignments<'b>,
) -> BTreeSet<&'b str> {
    let mut granted = BTreeSet::new();
    let claims = health.observed.claims;
    let asks = |it: &Assignment<'_>| {
        let is_asking = it.node_name().is_some_and(|node| claims.contains(node));
        is_asking && matches!(it.intent, Intent::Configure(None) | Intent::Remove(None))
    };
    let refusing = Refusing::of(health, out);
    let all = || out.instances.iter().enumerate();
    let asking: Vec<usize> = all().filter(|(_, it)| asks(it)).map(|(number, _)| number).collect();
    if asking.is_empty() && refusing.is_empty() {
        return granted;
    }
    let stand_ins = replaced.stand_ins(health, &out.instances);
    let mut ledger = Ledger::of(health, &replaced, &stand_ins, marked, &out.instances);
    let machines = refusing.numbers().filter_map(|number| {
        let instance = out.instances.get(number)?;
        let serves = instance.node.is_some_and(NodeFacts::serves);
        Some((Rank::Machine { works: works(instance), serves }, number))
    });
    let nodes = asking.iter().filter_map(|number| {
        let node = out.instances.get(*number)?.node?;
        let times = node.given_up().map(|given_up| given_up.times);
        Some((Rank::Node(ledger.phase(Some(&node.name)), times), *number))
    });
    let mut candidates: Vec<(Rank, usize)> = nodes.chain(machines).collect();
    candidates.sort_unstable();
    let mut gate = None;
    for (rank, number) in candidates {
        match rank {
            Rank::Node(..) => {
                let Some(instance) = out.instances.get_mut(number) else { continue };
                let fills = replaced.filled_by(instance, &stand_ins, health);
                let node = instance.node_name();
                let is_granted = ledger.grants(instance, fills, health.desired.blocked);
                if is_granted { &mut granted } else { &mut out.waiting }.extend(node);
            }
            Rank::Machine { .. } => {
                let gate = gate.get_or_insert_with(|| {
                    Gate::of(health, &refusing, &replaced.successors(health), &out.instances)
                });
                replacing::decide(number, gate, health, &mut replaced, &mut ledger, out);
            }
        }
    }
    granted
}
