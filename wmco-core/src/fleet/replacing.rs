//! Which Machine is deleted next, so that its MachineSet makes another.
//!
//! A Machine whose host refuses our key can only be made anew. That takes a slot of the disruption budget
//! from the decision until its MachineSet has as many Machines that work again, and it waits while anything
//! else of its MachineSet is not healthy: ready and with the operator's version, nothing less. Source:
//! `spec/operator.md`, section 6.1 and section 13, rows 18 to 20.

use std::collections::{BTreeMap, BTreeSet};

use super::slots::Slots;
use super::{Assignment, Assignments, Because, Desired, Held, Intent, Observed, ReplacementPermit};
use crate::facts::NodeFacts;
use crate::host_record::{HostRecord, RecordChange};
use crate::machines::{Machine, Machines, Unfit, key};

/// Replacements that have begun and are not over, each with the MachineSet that makes another.
pub(super) struct Replaced<'a> {
    /// By the name of the Machine.
    sets: BTreeMap<&'a str, &'a str>,
}

/// How the Machines stand.
pub(super) struct Health<'a> {
    machines: &'a Machines,
    version: &'a str,
    /// Numbers of assignments by the Machine's name.
    numbers: BTreeMap<&'a str, usize>,
}

impl<'a> Health<'a> {
    pub(super) fn of(desired: &Desired<'a>, instances: &[Assignment<'a>]) -> Self {
        let numbers = instances.iter().enumerate().filter_map(|(number, assignment)| {
            let machine = desired.machines.with_key(&assignment.address)?;
            Some((machine.facts.name.as_str(), number))
        });
        Self { machines: desired.machines, version: desired.version, numbers: numbers.collect() }
    }

    fn assignment<'b>(
        &self,
        machine: &Machine,
        instances: &'b [Assignment<'a>],
    ) -> Option<&'b Assignment<'a>> {
        instances.get(*self.numbers.get(machine.facts.name.as_str())?)
    }

    /// Whether an instance does what it is there for, with the operator's version.
    fn is_healthy(&self, assignment: &Assignment<'_>) -> bool {
        let version = assignment.node.and_then(NodeFacts::version);
        works(assignment) && version == Some(self.version)
    }

    /// The MachineSet of the Machine behind an instance.
    fn set_of(&self, assignment: &Assignment<'_>) -> Option<&'a str> {
        let owner = self.machines.with_key(&assignment.address)?.facts.machine_set.as_ref()?;
        Some(owner.name.as_str())
    }

    /// The Machines that a MachineSet has and keeps.
    fn of_set(&self, set: &str) -> impl Iterator<Item = &'a Machine> {
        let is_of = move |machine: &&Machine| {
            let owner = machine.facts.machine_set.as_ref();
            owner.is_some_and(|owner| owner.name == set) && !machine.facts.is_deleted
        };
        self.machines.iter().filter(is_of)
    }

    /// Whether a MachineSet has as many Machines that work as it is to have; so has one that is gone.
    ///
    /// Which version they run is the business of upgrades, which take slots of their own, and those that
    /// are ignored are people's own.
    fn is_whole(&self, set: &str, instances: &[Assignment<'a>]) -> bool {
        let Some(facts) = self.machines.set(set).filter(|facts| !facts.is_deleted) else {
            return true;
        };
        let work = self.of_set(set).filter(|machine| {
            machine.instance == Err(Unfit::Ignored)
                || self.assignment(machine, instances).is_some_and(works)
        });
        work.count() >= facts.replicas
    }
}

/// Whether an instance is of use: it is ready and has become a node, of whatever version.
fn works(assignment: &Assignment<'_>) -> bool {
    let is_node = |node: &NodeFacts| node.ready && node.version().is_some();
    assignment.node.is_some_and(is_node) && !matches!(assignment.because, Because::Unfit(_))
}

impl<'a> Replaced<'a> {
    /// Counts those that were permitted a moment ago, and those on record whose Machine is deleted.
    pub(super) fn of(
        health: &Health<'a>,
        observed: &Observed<'a>,
        instances: &[Assignment<'a>],
    ) -> Self {
        let granted = health.machines.iter().filter(|machine| {
            observed.replaced.contains(&machine.facts.name) && !machine.facts.is_deleted
        });
        let set_of = |machine: &'a Machine| Some(machine.facts.machine_set.as_ref()?.name.as_str());
        let granted = granted.filter_map(|it| Some((it.facts.name.as_str(), set_of(it)?)));
        let mut sets: BTreeMap<_, _> = granted.collect();
        for (name, kept) in observed.hosts.of_machines() {
            let Some(record) = kept.record else { continue };
            let Some(set) = record.replaced_in.as_deref() else { continue };
            if is_gone(health.machines, name, record) && !health.is_whole(set, instances) {
                sets.insert(name, set);
            }
        }
        Self { sets }
    }

    /// How many slots they hold.
    pub(super) fn count(&self) -> usize {
        self.sets.len()
    }

    /// How many slots each MachineSet holds.
    pub(super) fn by_set(&self) -> BTreeMap<&'a str, usize> {
        let mut by_set = BTreeMap::new();
        for set in self.sets.values() {
            *by_set.entry(*set).or_default() += 1;
        }
        by_set
    }

    /// The MachineSet that holds a slot because of what is the matter with this instance, too: it is of no
    /// use, and the slot is held until it is.
    pub(super) fn waits_for(
        &self,
        instance: &Assignment<'_>,
        health: &Health<'a>,
    ) -> Option<&'a str> {
        let set = health.set_of(instance).filter(|_| !works(instance))?;
        self.sets.values().any(|held| *held == set).then_some(set)
    }

    /// Whether the replacement of this Machine is not over.
    pub(super) fn contains(&self, machine: &str) -> bool {
        self.sets.contains_key(machine)
    }

    /// Those that hold a slot though their Machine is gone, each with its MachineSet.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.sets.iter().map(|(machine, set)| (*machine, *set))
    }
}

/// Whether a Machine is deleted, or another one has its name.
fn is_gone(machines: &Machines, name: &str, record: &HostRecord) -> bool {
    let machine = machines.get(name).map(|machine| &machine.facts);
    machine.is_none_or(|facts| facts.is_deleted || record.machine.as_ref() != Some(&facts.uid))
}

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
    let refuses = |assignment: &Assignment<'_>| {
        matches!(assignment.intent, Intent::Configure(_))
            && observed.refused.contains(&assignment.address)
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
    for (_, number, machine) in refusing {
        let gate = Gate {
            health,
            replaced: &replaced,
            refusing: &names,
            desired,
            instances: &out.instances,
        };
        let name = machine.facts.name.as_str();
        let Some(assignment) = out.instances.get(number) else { continue };
        let begun = replaced.contains(name) || replaced.waits_for(assignment, health).is_some();
        let held = match gate.set_for(machine, assignment) {
            Err(held) => Some(held),
            Ok(_) if !begun && !slots.take(assignment.node_name()) => Some(Held::Budget),
            Ok(set) => {
                replaced.sets.insert(name, set);
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
struct Gate<'a, 'b> {
    health: &'b Health<'a>,
    replaced: &'b Replaced<'a>,
    /// Names of all Machines whose hosts refuse our key.
    refusing: &'b BTreeSet<&'b str>,
    desired: &'b Desired<'a>,
    instances: &'b [Assignment<'a>],
}

impl<'a> Gate<'a, '_> {
    /// The MachineSet that makes another one, if nothing speaks against that now.
    ///
    /// While its node holds a slot, or its MachineSet holds one because of it, the others may wait for that
    /// slot, so it does not wait for them.
    fn set_for(&self, machine: &'a Machine, assignment: &Assignment<'_>) -> Result<&'a str, Held> {
        let owner = machine.facts.machine_set.as_ref().ok_or(Held::NobodyMakesAnother)?;
        let set = self.health.machines.set(&owner.name);
        let set = set.filter(|set| set.uid == owner.uid && !set.is_deleted && set.replicas > 0);
        let set = set.ok_or(Held::NobodyMakesAnother)?;
        let alive: Vec<&Machine> = self.health.of_set(&set.name).collect();
        if alive.len() > set.replicas {
            return Err(Held::TooMany);
        }
        if alive.len() < set.replicas {
            return Err(Held::TooFew);
        }
        let holds_slot = assignment.node.is_some_and(NodeFacts::holds_slot);
        let is_awaited = holds_slot || self.replaced.waits_for(assignment, self.health).is_some();
        let mut siblings = alive.iter().filter(|it| it.facts.name != machine.facts.name);
        let is_in_the_way = |sibling: &&&Machine| {
            let is_replaced = self.replaced.contains(&sibling.facts.name);
            is_replaced || !is_awaited && self.is_unhealthy(sibling)
        };
        let sibling = siblings.find(is_in_the_way);
        let own = key(&machine.facts.name);
        let others = self.instances.iter().filter(|other| other.address != own);
        let mut unhealthy = others.filter(|other| !is_awaited && self.is_out_of_order(other));
        let other = unhealthy.nth(self.desired.budget.saturating_sub(1));
        let first = sibling.map(|it| key(&it.facts.name)).or(other.map(|it| it.address.clone()));
        first.map_or(Ok(&set.name), |first| Err(Held::Unhealthy { first }))
    }

    /// Whether a Machine of the same MachineSet has to get well first. Those that refuse our key wait for
    /// their own turn.
    fn is_unhealthy(&self, sibling: &Machine) -> bool {
        let name = sibling.facts.name.as_str();
        if sibling.instance == Err(Unfit::Ignored) || self.refusing.contains(name) {
            return false;
        }
        let assignment = self.health.assignment(sibling, self.instances);
        !assignment.is_some_and(|assignment| self.health.is_healthy(assignment))
    }

    /// Whether another instance was a node and is none that works.
    fn is_out_of_order(&self, other: &Assignment<'_>) -> bool {
        let machine = self.health.machines.with_key(&other.address);
        let waits = machine.is_some_and(|machine| {
            machine.facts.is_deleted || self.refusing.contains(machine.facts.name.as_str())
        });
        let is_ours = machine.is_some() || other.intent != Intent::Leave;
        other.node.is_some() && is_ours && !waits && !self.health.is_healthy(other)
    }
}
