//! Machines that are being replaced, and the health of the others.

use std::collections::BTreeMap;

use super::{Assignment, Because, Desired, Observed, Replacement};
use crate::facts::NodeFacts;
use crate::host_record::{HostRecord, RecordChange};
use crate::machines::{Machine, Machines, Unfit, key};

/// Replacements in progress, each with its MachineSet.
pub(super) struct Replaced<'a> {
    /// By the Machine's name.
    sets: BTreeMap<&'a str, &'a str>,
    /// The UIDs of these Machines, where they are known.
    uids: BTreeMap<&'a str, &'a str>,
}

/// Health of the Machines.
pub(super) struct Health<'a> {
    pub(super) machines: &'a Machines,
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

    pub(super) fn assignment<'b>(
        &self,
        machine: &Machine,
        instances: &'b [Assignment<'a>],
    ) -> Option<&'b Assignment<'a>> {
        instances.get(*self.numbers.get(machine.facts.name.as_str())?)
    }

    /// Whether an instance works, with the operator's version.
    pub(super) fn is_healthy(&self, assignment: &Assignment<'_>) -> bool {
        let version = assignment.node.and_then(NodeFacts::version);
        works(assignment) && version == Some(self.version)
    }

    /// The MachineSet of an instance's Machine.
    pub(super) fn set_of(&self, assignment: &Assignment<'_>) -> Option<&'a str> {
        let owner = self.machines.with_key(&assignment.address)?.facts.machine_set.as_ref()?;
        Some(owner.name.as_str())
    }

    /// The Machines of a MachineSet that are not being deleted.
    fn of_set(&self, set: &str) -> impl Iterator<Item = &'a Machine> {
        let is_of = move |machine: &&Machine| {
            let owner = machine.facts.machine_set.as_ref();
            owner.is_some_and(|owner| owner.name == set) && !machine.facts.is_deleted
        };
        self.machines.iter().filter(is_of)
    }

    /// Whether a MachineSet has its desired number of working Machines. A deleted MachineSet counts as complete.
    ///
    /// Versions do not count: upgrades take slots of their own. Machines with the ignore label count as working.
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

/// Whether an instance works: it is a ready node with any configured version.
pub(super) fn works(assignment: &Assignment<'_>) -> bool {
    let is_node = |node: &NodeFacts| node.ready && node.version().is_some();
    assignment.node.is_some_and(is_node) && !matches!(assignment.because, Because::Unfit(_))
}

impl<'a> Replaced<'a> {
    /// Counts Machines with a fresh permit, and recorded or remembered replacements whose Machine is deleted.
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
        for (name, begun) in observed.replacing {
            let machine = health.machines.get(name).map(|machine| &machine.facts);
            let is_there =
                machine.is_some_and(|it| !it.is_deleted && Some(&it.uid) == begun.uid.as_ref());
            if !is_there && !health.is_whole(&begun.set, instances) {
                sets.entry(name).or_insert(&begun.set);
            }
        }
        let uid = |name: &'a str| {
            let known = observed.replacing.get(name).and_then(|begun| begun.uid.as_deref());
            let recorded = || observed.hosts.record(&key(name))?.machine.as_deref();
            let shown = || Some(health.machines.get(name)?.facts.uid.as_str());
            Some((name, known.or_else(recorded).or_else(shown)?))
        };
        let uids = sets.keys().filter_map(|name| uid(name)).collect();
        Self { sets, uids }
    }

    /// Changes that put replacements back on record of which somebody deleted the record.
    pub(super) fn off_record(
        &self,
        machines: &Machines,
        observed: &Observed<'_>,
    ) -> BTreeMap<String, RecordChange> {
        let lost = self.iter().filter(|(name, _)| {
            let record = observed.hosts.record(&key(name));
            let is_there = machines.get(name).is_some_and(|machine| !machine.facts.is_deleted);
            record.is_none() && !is_there && !observed.hosts.is_damaged(&key(name))
        });
        let change = |(name, set): (&str, &str)| {
            let machine = self.uids.get(name).map(|uid| (*uid).to_owned());
            (key(name), RecordChange::Replaced { machine, set: set.to_owned() })
        };
        lost.map(change).collect()
    }

    /// All replacements, as they are remembered until the next pass.
    pub(super) fn remembered(&self) -> BTreeMap<String, Replacement> {
        let one = |(name, set): (&str, &str)| {
            let uid = self.uids.get(name).map(|uid| (*uid).to_owned());
            (name.to_owned(), Replacement { set: set.to_owned(), uid })
        };
        self.iter().map(one).collect()
    }

    /// Adds a replacement in this MachineSet.
    pub(super) fn begin(&mut self, machine: &'a str, set: &'a str) {
        self.sets.insert(machine, set);
    }

    /// Number of slots that replacements hold.
    pub(super) fn count(&self) -> usize {
        self.sets.len()
    }

    /// Number of slots by MachineSet.
    pub(super) fn by_set(&self) -> BTreeMap<&'a str, usize> {
        let mut by_set = BTreeMap::new();
        for set in self.sets.values() {
            *by_set.entry(*set).or_default() += 1;
        }
        by_set
    }

    /// The MachineSet that holds a slot until this instance, which does not work now, works.
    pub(super) fn waits_for(
        &self,
        instance: &Assignment<'_>,
        health: &Health<'a>,
    ) -> Option<&'a str> {
        let set = health.set_of(instance).filter(|_| !works(instance))?;
        self.sets.values().any(|held| *held == set).then_some(set)
    }

    /// Whether the replacement of this Machine is in progress.
    pub(super) fn contains(&self, machine: &str) -> bool {
        self.sets.contains_key(machine)
    }

    /// All replacements, each with its MachineSet.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.sets.iter().map(|(machine, set)| (*machine, *set))
    }
}

/// Whether a Machine is deleted, or another one has its name.
pub(super) fn is_gone(machines: &Machines, name: &str, record: &HostRecord) -> bool {
    let machine = machines.get(name).map(|machine| &machine.facts);
    machine.is_none_or(|facts| facts.is_deleted || record.machine.as_ref() != Some(&facts.uid))
}
