//! Which Machine is deleted next, so that its MachineSet makes another.
//!
//! A Machine whose host does not let us in can only be made anew. That takes a slot of the disruption budget
//! from the decision until its MachineSet has as many Machines that work again, and it waits while anything
//! else of its MachineSet is not healthy: ready and with the operator's version, nothing less. Source:
//! `spec/operator.md`, section 6.1 and section 13, rows 18 to 20.

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

/// Gives permits to Machines whose hosts refuse our key, as long as there are `slots`. One that is of no
/// use goes in the slot that its MachineSet holds until it is.
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
    // Who is of no use as it is comes first: that disrupts nobody.
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

/// Takes back what is on record of Machines that are not to be replaced any more.
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

/// What has to be right before a Machine is deleted.
struct Gate<'a> {
    /// The MachineSets of all Machines whose hosts refuse our key.
    sets: BTreeMap<&'a str, Siblings<'a>>,
    /// One instance more than the budget allows that was a node and is none that works.
    unhealthy: Option<String>,
    user_data_ready: bool,
    hosts: &'a KnownHosts,
    keys: Option<&'a LoginKeys>,
}

/// The Machines that a MachineSet has and keeps.
struct Siblings<'a> {
    names: BTreeSet<&'a str>,
    /// The first that has to get well before another one goes. Those that refuse our key wait for their own
    /// turn.
    unhealthy: Option<&'a str>,
}

impl<'a> Gate<'a> {
    /// Looks at everything once; `refusing` are the names of all Machines whose hosts refuse our key.
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

    /// Whether the host of a Machine has ever let us in: its key is kept since.
    fn was_in(&self, machine: &str) -> bool {
        let address = key(machine);
        let pinned = |record: &HostRecord| record.pinned.is_some();
        self.hosts.pin(&address).is_some() || self.hosts.record(&address).is_some_and(pinned)
    }

    /// The MachineSet that makes another one, if nothing speaks against that now.
    ///
    /// While its node holds a slot, or its MachineSet holds one because of it, the others may wait for that
    /// slot, so it does not wait for them.
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
        // One that let us in once had its user data run, and is none of those that were made meanwhile.
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
