//! Decides which Machine is deleted next, so that its MachineSet creates a replacement.
//!
//! A Machine whose host refuses our keys can only be replaced. The replacement takes a slot of the disruption
//! budget from the decision until its MachineSet has the desired number of working Machines again, and it waits
//! while any other Machine of its MachineSet is unhealthy, that is, not ready with the operator's version. Until a
//! successor works, no other Machine of the set goes, ready or not, within the budget or not. Source:
//! `docs/contract/machines.md`, MACH12 to MACH15.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::health::Health;
use super::ledger::Ledger;
use super::replacements::{Replacements, is_gone};
use super::siblings::{Siblings, was_node};
use crate::facts::{MachineSetFacts, NodeFacts};
use crate::fleet::memory::UserData;
use crate::fleet::{Assignment, Assignments, Because, Held, Intent, ReplacementPermit};
use crate::host_record::{HostRecord, KnownHosts, RecordChange};
use crate::limits;
use crate::login_keys::KeyState;
use crate::machines::{Machine, Machines, key};

/// The Machines whose hosts do not let us in, by the number of their instance.
pub(super) struct Refusing<'a>(BTreeMap<usize, &'a Machine>);

impl<'a> Refusing<'a> {
    /// Finds them, and clears the record of those that are no longer to be replaced.
    pub(in crate::fleet) fn of(health: &Health<'a>, out: &mut Assignments<'_>) -> Self {
        let Health { desired, memory, machines, .. } = *health;
        let stranded = out.rotation.as_ref().map(|rotation| rotation.stranded(memory));
        let refuses = |assignment: &Assignment<'_>| {
            let address = &assignment.address;
            desired.keys.is_some()
                && matches!(assignment.intent, Intent::Configure(_))
                && (memory.is_refused(address)
                    || stranded.as_ref().is_some_and(|stranded| stranded.contains(address)))
        };
        let refusing = out.instances.iter().enumerate().filter(|(_, it)| refuses(it));
        let refusing = refusing.filter_map(|(number, it)| {
            let machine = machines.with_key(&it.address)?;
            Some((number, machine))
        });
        let refusing = Self(refusing.collect());
        no_longer(health, &refusing.names(), out);
        refusing
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Numbers of their instances.
    pub(super) fn numbers(&self) -> impl Iterator<Item = usize> {
        self.0.keys().copied()
    }

    fn names(&self) -> BTreeSet<&'a str> {
        self.0.values().map(|machine| machine.facts.name.as_str()).collect()
    }
}

/// Decides about the Machine of the instance with this number. What begins is put on record first.
pub(super) fn decide<'a, 'b: 'a>(
    number: usize,
    gate: &Gate<'a>,
    health: &Health<'a>,
    replaced: &mut Replacements,
    ledger: &mut Ledger<'a>,
    out: &mut Assignments<'b>,
) {
    let Health { desired, observed, .. } = *health;
    let Some(assignment) = out.instances.get_mut(number) else { return };
    let Some(machine) = health.machines.with_key(&assignment.address) else { return };
    let name = machine.facts.name.as_str();
    let begun = replaced.contains(name) || replaced.waits_for(assignment, health).is_some();
    let decided = gate.set_for(machine, assignment, health, replaced).and_then(|set| {
        if !begun && desired.blocked {
            return Err(Held::ClusterUnfit);
        }
        if !begun && !ledger.admit(assignment.node_name(), None) {
            return Err(Held::Budget);
        }
        let of = health.machines_of(&set.name);
        let begun = replaced.begin(machine, &set.name, of);
        let record = observed.hosts.record(&assignment.address);
        let is_noted =
            record.is_some_and(|it| it.replacement_machine_set.as_ref() == Some(&set.name));
        // What is noted of the MachineSet may be old: the Machine may have waited since.
        if !is_noted || record.is_some_and(|it| it.machines_before != of) {
            let change = RecordChange::ToReplace { set: set.name.clone(), of };
            out.changes.insert(assignment.address.clone(), change);
        }
        if is_noted { Ok(begun) } else { Err(Held::RecordDue) }
    });
    match decided {
        Err(held) => assignment.because = Because::ReplacementHeld(held),
        Ok(begun) => {
            out.replacing.insert(name.to_owned(), begun);
            assignment.node_name().map(|node| out.waiting.remove(node));
            let permit = ReplacementPermit::for_machine(name, &machine.facts.uid);
            assignment.intent = Intent::Replace(permit);
            assignment.because = Because::LoginRefused;
        }
    }
}

/// Clears the record of Machines that are no longer to be replaced.
fn no_longer(health: &Health<'_>, refusing: &BTreeSet<&str>, out: &mut Assignments<'_>) {
    let Health { observed, memory, machines, .. } = *health;
    for (name, kept) in observed.hosts.of_machines() {
        let Some(record) = kept.record.filter(|record| record.replacement_machine_set.is_some())
        else {
            continue;
        };
        let goes_on = refusing.contains(name) || memory.grants().has_machine(name);
        if !goes_on && !memory.may_have_predecessor() && !is_gone(machines, name, record) {
            out.changes.insert(key(name), RecordChange::ToKeep);
        }
    }
}

/// The MachineSet that would make another Machine which lets us in.
fn set_of<'a>(machine: &Machine, machines: &'a Machines) -> Result<&'a MachineSetFacts, Held> {
    let owner = machine.facts.machine_set.as_ref().ok_or(Held::NobodyMakesAnother)?;
    let set = machines.set(&owner.name);
    let set = set.filter(|set| set.uid == owner.uid && !set.is_deleted && set.replicas > 0);
    let set = set.ok_or(Held::NobodyMakesAnother)?;
    set.mistake().map_or(Ok(set), |mistake| Err(Held::WrongTemplate { mistake }))
}

/// The conditions for the deletion of a Machine.
pub(super) struct Gate<'a> {
    /// The MachineSets of all Machines whose hosts refuse our key.
    sets: BTreeMap<&'a str, Siblings<'a>>,
    /// The instance with which the number of unhealthy nodes reaches the budget.
    unhealthy: Option<String>,
}

impl<'a> Gate<'a> {
    /// Scans everything once.
    pub(in crate::fleet) fn of(
        health: &Health<'a>,
        refusing: &Refusing<'a>,
        successors: &BTreeSet<&'a str>,
        instances: &[Assignment<'a>],
    ) -> Self {
        let owner = |machine: &&'a Machine| Some(machine.facts.machine_set.as_ref()?.name.as_str());
        let sets: BTreeSet<&str> = refusing.0.values().filter_map(owner).collect();
        let refusing = refusing.names();
        let mut siblings: BTreeMap<&str, Vec<&Machine>> = BTreeMap::new();
        for machine in health.machines.iter().filter(|machine| !machine.facts.is_deleted) {
            let owner = machine.facts.machine_set.as_ref().map(|owner| owner.name.as_str());
            if let Some(set) = owner.filter(|owner| sets.contains(owner)) {
                siblings.entry(set).or_default().push(machine);
            }
        }
        let sets = siblings.into_iter().map(|(set, machines)| {
            (set, Siblings::of(&machines, &refusing, successors, health, instances))
        });
        let is_out_of_order = |other: &&Assignment<'_>| {
            let machine = health.machines.with_key(&other.address);
            let waits = machine.is_some_and(|machine| {
                machine.facts.is_deleted || refusing.contains(machine.facts.name.as_str())
            });
            let is_ours = machine.is_some() || other.intent != Intent::Leave;
            other.node.is_some() && is_ours && !waits && !health.is_healthy(other)
        };
        let mut unhealthy = instances.iter().filter(is_out_of_order);
        let unhealthy = unhealthy.nth(health.desired.budget.saturating_sub(1));
        Self { sets: sets.collect(), unhealthy: unhealthy.map(|instance| instance.address.clone()) }
    }

    /// The MachineSet that creates the replacement, if the Machine may be deleted now.
    ///
    /// A Machine whose node holds a slot, or because of which its MachineSet holds a slot, does not wait for the
    /// others, because they may wait for that slot; [`succession`](Siblings::succession) says whose turn it is.
    fn set_for(
        &self,
        machine: &'a Machine,
        assignment: &Assignment<'_>,
        health: &Health<'a>,
        replaced: &Replacements,
    ) -> Result<&'a MachineSetFacts, Held> {
        let set = set_of(machine, health.machines)?;
        let Health { desired, observed, memory, .. } = *health;
        let record = observed.hosts.record(&assignment.address);
        if let Some(KeyState::Lost { key }) = desired.keys.map(|keys| keys.state(record)) {
            return Err(Held::KeyLost { key });
        }
        match memory.user_data() {
            UserData::Due => return Err(Held::UserDataDue),
            UserData::Fresh => return Err(Held::UserDataFresh),
            UserData::Settled => {}
        }
        let siblings = self.sets.get(set.name.as_str()).ok_or(Held::NobodyMakesAnother)?;
        let own = machine.facts.name.as_str();
        let is_gone = |name: &&str| !siblings.names.contains(name);
        let of_set = replaced.iter().filter(|(_, held_by)| *held_by == set.name);
        let gone = of_set.map(|(machine, _)| machine).filter(is_gone).count();
        let has_only_mark = assignment.node.is_some_and(|it| it.holds_slot() && it.serves());
        let turn = if gone == 0 && !has_only_mark {
            Ok(())
        } else {
            siblings.succession(gone > 0, machine, assignment, memory)
        };
        let is_new = !was_node(machine) && !let_us_in(&assignment.address, observed.hosts);
        let waits_for_successor = matches!(turn, Err(Held::Unhealthy { .. }));
        let in_vain = gone.saturating_sub(siblings.succeeded());
        let is_in_vain = is_new || siblings.has_only_joined(own, assignment, memory);
        if in_vain >= limits::FAILED_SUCCESSORS && (is_in_vain || waits_for_successor) {
            return Err(Held::SuccessorsFailed { replaced: in_vain });
        }
        match siblings.names.len().cmp(&set.replicas) {
            Ordering::Greater => return Err(Held::TooMany),
            Ordering::Less => return Err(Held::TooFew),
            Ordering::Equal => {}
        }
        let is_replaced = |name: &&str| *name != own && siblings.names.contains(name);
        if let Some((first, _)) = replaced.iter().find(|(machine, _)| is_replaced(machine)) {
            return Err(Held::ReplacedFirst { first: key(first) });
        }
        turn?;
        let holds_slot = assignment.node.is_some_and(NodeFacts::holds_slot);
        if holds_slot || replaced.waits_for(assignment, health).is_some() {
            return Ok(set);
        }
        let first = siblings.first_unhealthy().map(key).or_else(|| self.unhealthy.clone());
        first.map_or(Ok(set), |first| Err(Held::Unhealthy { first }))
    }
}

/// Whether the host of a Machine, by its key, let us in.
fn let_us_in(address: &str, hosts: &KnownHosts) -> bool {
    let pinned = |record: &HostRecord| record.pinned.is_some();
    hosts.pin(address).is_some() || hosts.record(address).is_some_and(pinned)
}
