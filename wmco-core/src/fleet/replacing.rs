//! Decides which Machine is deleted next, so that its MachineSet creates a replacement.
//!
//! A Machine whose host refuses our keys can only be replaced. The replacement takes a slot of the disruption
//! budget from the decision until its MachineSet has the desired number of working Machines again, and it waits
//! while any other Machine of its MachineSet is unhealthy, that is, not ready with the operator's version. Source:
//! `docs/contract/machines.md`, MACH12 to MACH15.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::replaced::{Health, Replaced, is_gone};
use super::slots::Slots;
use super::{Assignment, Assignments, Because, Desired, Held, Intent, Observed, ReplacementPermit};
use crate::facts::NodeFacts;
use crate::host_record::{HostRecord, KnownHosts, RecordChange};
use crate::limits;
use crate::login_keys::LoginKeys;
use crate::machines::{Machine, Machines, Unfit, key};

/// Gives permits to Machines whose hosts refuse our key, as long as there are `slots`. A Machine that does not work
/// uses the slot that its MachineSet holds because of it.
pub(super) fn hand_out<'a>(
    health: &Health<'a>,
    mut replaced: Replaced<'a>,
    mut slots: Slots,
    desired: &Desired<'a>,
    observed: &Observed<'a>,
    out: &mut Assignments<'a>,
) {
    let stranded = out.rotation.as_ref().map(|rotation| rotation.stranded(observed));
    let refuses = |assignment: &Assignment<'_>| {
        let address = &assignment.address;
        matches!(assignment.intent, Intent::Configure(_))
            && (observed.refused.contains(address)
                || stranded.as_ref().is_some_and(|stranded| stranded.contains(address)))
    };
    let machines = desired.machines;
    let refusing = out.instances.iter().enumerate().filter(|(_, it)| refuses(it));
    let refusing = refusing.filter_map(|(number, assignment)| {
        Some((number, assignment, machines.with_key(&assignment.address)?))
    });
    let mut refusing: Vec<_> =
        refusing.map(|(number, it, machine)| (health.is_healthy(it), number, machine)).collect();
    // Instances that do not work come first: their deletion disrupts nothing.
    refusing.sort_by_key(|(healthy, number, _)| (*healthy, *number));
    let names: BTreeSet<&str> = refusing.iter().map(|it| it.2.facts.name.as_str()).collect();
    no_longer(machines, observed, &names, out);
    if refusing.is_empty() {
        return;
    }
    let gate = Gate::of(health, &names, desired, observed, &out.instances);
    for (_, number, machine) in refusing {
        let name = machine.facts.name.as_str();
        let Some(assignment) = out.instances.get(number) else { continue };
        let begun = replaced.contains(name) || replaced.waits_for(assignment, health).is_some();
        let held = match gate.set_for(machine, assignment, health, &replaced) {
            Err(held) => Some(held),
            Ok(_) if !begun && desired.blocked => Some(Held::ClusterUnfit),
            Ok(_) if !begun && !slots.take(assignment.node_name()) => Some(Held::Budget),
            Ok(set) => {
                replaced.begin(name, set);
                let address = key(name);
                let record = observed.hosts.record(&address);
                if record.is_some_and(|record| record.replaced_in.as_deref() == Some(set)) {
                    None
                } else {
                    let change = RecordChange::ReplacedIn(Some(set.to_owned()));
                    out.changes.insert(address, change);
                    Some(Held::RecordDue)
                }
            }
        };
        let Some(assignment) = out.instances.get_mut(number) else { continue };
        if let Some(held) = held {
            assignment.because = Because::ReplacementHeld(held);
        } else {
            let permit = ReplacementPermit::for_machine(name, &machine.facts.uid);
            assignment.intent = Intent::Replace(permit);
            assignment.because = Because::LoginRefused;
        }
    }
}

/// Clears the record of Machines that are no longer to be replaced.
fn no_longer<'a>(
    machines: &Machines,
    observed: &Observed<'a>,
    refusing: &BTreeSet<&str>,
    out: &mut Assignments<'a>,
) {
    for (name, kept) in observed.hosts.of_machines() {
        let Some(record) = kept.record.filter(|record| record.replaced_in.is_some()) else {
            continue;
        };
        let goes_on = refusing.contains(name) || observed.replaced.contains(name);
        if !goes_on && !is_gone(machines, name, record) {
            out.changes.insert(key(name), RecordChange::ReplacedIn(None));
        }
    }
}

/// The conditions for the deletion of a Machine.
struct Gate<'a> {
    /// The MachineSets of all Machines whose hosts refuse our key.
    sets: BTreeMap<&'a str, Siblings<'a>>,
    /// The instance with which the number of unhealthy nodes reaches the budget.
    unhealthy: Option<String>,
    user_data_ready: bool,
    hosts: &'a KnownHosts,
    keys: Option<&'a LoginKeys>,
}

/// The Machines of a MachineSet that are not being deleted.
struct Siblings<'a> {
    names: BTreeSet<&'a str>,
    /// The first unhealthy Machine, which has to recover before another one is deleted. Machines that refuse our
    /// key do not count.
    unhealthy: Option<&'a str>,
}

impl<'a> Gate<'a> {
    /// Scans everything once; `refusing` are the names of all Machines whose hosts refuse our key.
    fn of(
        health: &Health<'a>,
        refusing: &BTreeSet<&'a str>,
        desired: &Desired<'a>,
        observed: &Observed<'a>,
        instances: &[Assignment<'a>],
    ) -> Self {
        let owner = |name: &&'a str| {
            let machine = &health.machines.get(name)?.facts;
            Some(machine.machine_set.as_ref()?.name.as_str())
        };
        let sets: BTreeSet<&str> = refusing.iter().filter_map(owner).collect();
        let is_unhealthy = |sibling: &&&Machine| {
            let name = sibling.facts.name.as_str();
            let assignment = health.assignment(sibling, instances);
            sibling.instance != Err(Unfit::Ignored)
                && !refusing.contains(name)
                && !assignment.is_some_and(|assignment| health.is_healthy(assignment))
        };
        let mut siblings: BTreeMap<&str, Vec<&Machine>> = BTreeMap::new();
        for machine in health.machines.iter().filter(|machine| !machine.facts.is_deleted) {
            let owner = machine.facts.machine_set.as_ref().map(|owner| owner.name.as_str());
            if let Some(set) = owner.filter(|owner| sets.contains(owner)) {
                siblings.entry(set).or_default().push(machine);
            }
        }
        let siblings = siblings.into_iter().map(|(set, machines)| {
            let unhealthy = machines.iter().find(is_unhealthy);
            let unhealthy = unhealthy.map(|machine| machine.facts.name.as_str());
            let names = machines.iter().map(|machine| machine.facts.name.as_str()).collect();
            (set, Siblings { names, unhealthy })
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
        let unhealthy = unhealthy.nth(desired.budget.saturating_sub(1));
        Self {
            sets: siblings.collect(),
            unhealthy: unhealthy.map(|instance| instance.address.clone()),
            user_data_ready: observed.user_data_ready,
            hosts: observed.hosts,
            keys: desired.keys,
        }
    }

    /// Whether the operator has ever logged in to the host of a Machine; its key is stored since then.
    fn was_in(&self, machine: &str) -> bool {
        let address = key(machine);
        let pinned = |record: &HostRecord| record.pinned.is_some();
        self.hosts.pin(&address).is_some() || self.hosts.record(&address).is_some_and(pinned)
    }

    /// The MachineSet that creates the replacement, if the Machine may be deleted now.
    ///
    /// A Machine whose node holds a slot, or because of which its MachineSet holds a slot, does not wait for the
    /// others, because they may wait for that slot.
    fn set_for(
        &self,
        machine: &'a Machine,
        assignment: &Assignment<'_>,
        health: &Health<'a>,
        replaced: &Replaced<'a>,
    ) -> Result<&'a str, Held> {
        let owner = machine.facts.machine_set.as_ref().ok_or(Held::NobodyMakesAnother)?;
        let set = health.machines.set(&owner.name);
        let set = set.filter(|set| set.uid == owner.uid && !set.is_deleted && set.replicas > 0);
        let set = set.ok_or(Held::NobodyMakesAnother)?;
        let record = self.hosts.record(&assignment.address);
        if let Some(key) = self.keys.and_then(|keys| keys.lost(record)) {
            return Err(Held::KeyLost { key });
        }
        if !self.user_data_ready {
            return Err(Held::UserDataDue);
        }
        let siblings = self.sets.get(owner.name.as_str()).ok_or(Held::NobodyMakesAnother)?;
        let own = machine.facts.name.as_str();
        let is_gone = |name: &&str| !siblings.names.contains(name);
        let of_set = replaced.iter().filter(|(_, held_by)| *held_by == set.name);
        let gone = of_set.map(|(machine, _)| machine).filter(is_gone).count();
        // A Machine with an earlier login has run its user data, so it was not created by these replacements.
        if gone >= limits::REPLACED_IN_VAIN && assignment.node.is_none() && !self.was_in(own) {
            return Err(Held::InVain { replaced: gone });
        }
        match siblings.names.len().cmp(&set.replicas) {
            Ordering::Greater => return Err(Held::TooMany),
            Ordering::Less => return Err(Held::TooFew),
            Ordering::Equal => {}
        }
        let is_replaced = |name: &&str| *name != own && siblings.names.contains(name);
        let replaced_beside = replaced.iter().map(|(machine, _)| machine).find(is_replaced);
        let holds_slot = assignment.node.is_some_and(NodeFacts::holds_slot);
        let is_awaited = holds_slot || replaced.waits_for(assignment, health).is_some();
        let unhealthy = siblings.unhealthy.filter(|_| !is_awaited);
        let first = replaced_beside.or(unhealthy).map(key);
        let first = first.or_else(|| self.unhealthy.clone().filter(|_| !is_awaited));
        first.map_or(Ok(&set.name), |first| Err(Held::Unhealthy { first }))
    }
}
