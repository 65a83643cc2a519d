//! Finds what administrators are told.

use std::collections::{BTreeMap, BTreeSet};

use super::next_step::next_step;
use super::{Hold, Notice, Others};
use crate::facts::NodeFacts;
use crate::fleet::budget::{Health, Replacements};
use crate::fleet::identity::{Identities, NodeOfHost};
use crate::fleet::{Assignment, Assignments, Because, Memory, Rotation};
use crate::machines::Machines;
use crate::names;

/// Notice about Nodes that wait for a slot, and who holds the slots; `granted` are those with a permit of this pass.
pub(in crate::fleet) fn of_slots(
    out: &Assignments<'_>,
    granted: &BTreeSet<&str>,
    memory: &Memory,
) -> Option<Notice> {
    let (node, others) = (out.waiting.first()?, out.waiting.len() - 1);
    let granted = memory.grants().nodes().chain(granted.iter().copied());
    let wanted = out.instances.iter().filter(|it| it.is_wanted());
    let wanted: BTreeSet<&str> = wanted.filter_map(Assignment::node_name).collect();
    let marked = out.disrupted.iter().map(|node| {
        let hold = if wanted.contains(node) { Hold::Worked } else { Hold::Left };
        ((*node).to_owned(), hold)
    });
    // A label tells more than a permit.
    let holders = granted.map(|node| (node.to_owned(), Hold::Granted)).chain(marked).collect();
    Some(Notice::SlotAwaited { node: (*node).to_owned(), others, holders })
}

/// Notices about Nodes with conflicting claims.
pub(in crate::fleet) fn of_claims(
    known: &Identities<'_, '_>,
    out: &Assignments<'_>,
) -> BTreeSet<Notice> {
    let Identities { hosts, evidence, matching, .. } = known;
    let mut notices = BTreeSet::new();
    for host in hosts.listed() {
        let Some(owner) = matching.stand(host).node() else { continue };
        let copy = owner.facts.annotation(names::HOST_KEY_ANNOTATION);
        if copy.zip(host.kept.pin).is_some_and(|(copy, pin)| copy != pin) {
            notices.insert(Notice::KeyCopyDiffers {
                node: owner.facts.name.clone(),
                address: host.address.to_owned(),
            });
        }
        let others = evidence.at(host).chain(evidence.made_from(host));
        for node in others.filter(|node| node.number != owner.number) {
            notices.insert(Notice::ForeignClaim {
                node: node.facts.name.clone(),
                address: host.address.to_owned(),
                owner: owner.facts.name.clone(),
            });
        }
    }
    let is_claim = |address: &str, node: &NodeFacts| {
        notices.iter().any(|notice| {
            matches!(notice, Notice::ForeignClaim { node: claims, address: of, .. }
                if *claims == node.name && of == address)
        })
    };
    let is_told = |instance: &&Assignment<'_>| match (&instance.because, instance.node) {
        (Because::MayBeListed { address }, node) => {
            let host = hosts.named(address).filter(|host| host.is_listed() && host.ipv4.is_some());
            host.is_some_and(|host| match (node, matching.stand(host)) {
                (None, _) | (_, NodeOfHost::Nobody) => true,
                // The notice about the contested host covers it.
                (_, NodeOfHost::Contested(_)) => false,
                (Some(node), NodeOfHost::Node(_)) => !is_claim(address, node),
            })
        }
        _ => false,
    };
    let told: Vec<_> = out.instances.iter().filter(is_told).map(left).collect();
    notices.extend(told);
    notices
}

/// Notices about instances that are left alone. Machines of a MachineSet that wait for their replacement share one.
pub(in crate::fleet) fn of_left(health: &Health<'_>, out: &Assignments<'_>) -> BTreeSet<Notice> {
    let is_told = |instance: &&Assignment<'_>| match &instance.because {
        Because::MayBeListed { .. } => false,
        because => next_step(because, instance.node_name()).is_some(),
    };
    let mut notices = BTreeSet::new();
    let mut sets: BTreeMap<&str, Vec<Notice>> = BTreeMap::new();
    for instance in out.instances.iter().filter(is_told) {
        let is_held = matches!(instance.because, Because::ReplacementHeld(_));
        match health.set_of(instance).filter(|_| is_held) {
            Some(set) => sets.entry(set).or_default().push(left(instance)),
            None => drop(notices.insert(left(instance))),
        }
    }
    for (set, held) in sets {
        let count = held.len() - 1;
        // What does not pass by itself is the better example.
        let mut example = held.into_iter().min_by_key(Notice::patience);
        if let Some(Notice::Left { others, .. }) = &mut example
            && count > 0
        {
            *others = Some(Others { machine_set: set.to_owned(), count });
        }
        notices.extend(example);
    }
    notices
}

/// Notices about deleted Machines without a successor, and those whose deletion does not end.
pub(in crate::fleet) fn of_replaced(
    machines: &Machines,
    replaced: &Replacements,
) -> BTreeSet<Notice> {
    let notice = |(machine, set): (&str, &str)| {
        let (name, set) = (machine.to_owned(), set.to_owned());
        match machines.get(machine).filter(|it| replaced.is_of(&it.facts)) {
            None => Some(Notice::NotReplaced { machine: name, set }),
            Some(it) if it.facts.is_deleted => Some(Notice::BeingDeleted { machine: name, set }),
            Some(_) => None,
        }
    };
    replaced.iter().filter_map(notice).collect()
}

/// Notices about a key rotation: the hosts that block it, or its end.
pub(in crate::fleet) fn of_rotation(rotation: &Rotation, memory: &Memory) -> BTreeSet<Notice> {
    if let Some(but) = rotation.may_end(memory) {
        return [Notice::KeyExchanged { but: but.clone() }].into();
    }
    let mut notices: BTreeSet<_> = (rotation.waits_for.iter().cloned())
        .map(|address| Notice::KeyNotProven { address })
        .collect();
    if notices.is_empty() && rotation.user_data_due {
        notices.insert(Notice::KeyNotInUserData);
    } else if notices.is_empty() {
        let proven = rotation.proven.iter().cloned();
        notices.extend(proven.map(|address| Notice::KeyNotRemoved { address }));
    }
    notices
}

fn left(instance: &Assignment<'_>) -> Notice {
    Notice::Left {
        address: instance.address.clone(),
        node: instance.node_name().map(str::to_owned),
        because: instance.because.clone(),
        holds_slot: instance.node.is_some_and(|node| node.is_windows() && node.holds_slot()),
        others: None,
    }
}
