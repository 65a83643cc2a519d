//! Machines that are being replaced, until their MachineSets are whole again.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::health::{Health, works};
use crate::facts::MachineFacts;
use crate::fleet::{Assignment, Replacement};
use crate::host_record::{HostRecord, MachinesThen, RecordChange};
use crate::machines::{Machine, Machines, key, name_in};

/// Replacements in progress, by the Machine's name.
pub(in crate::fleet) struct Replacements(BTreeMap<String, Replacement>);

impl Replacements {
    /// Counts Machines with a fresh permit, and recorded or remembered replacements whose Machine is deleted.
    pub(in crate::fleet) fn of(health: &Health<'_>, instances: &[Assignment<'_>]) -> Self {
        let Health { machines, memory, observed, .. } = health;
        let granted = machines.iter().filter(|machine| {
            memory.grants().has_machine(&machine.facts.name) && !machine.facts.is_deleted
        });
        let granted = granted.filter_map(|machine| {
            let begun = || Some(memory.replacing().get(&machine.facts.name)?.set.clone());
            let owner = machine.facts.machine_set.as_ref().map(|owner| owner.name.clone());
            let set = owner.or_else(begun)?;
            let (of, uid) = (health.machines_of(&set), Some(machine.facts.uid.clone()));
            Some((machine.facts.name.clone(), Replacement { set, uid, of }))
        });
        let mut all: BTreeMap<_, _> = granted.collect();
        for (name, kept) in observed.hosts.of_machines() {
            let Some(record) = kept.record else { continue };
            let Some(set) = record.replacement_machine_set.clone() else { continue };
            let (of, uid) = (record.machines_before, record.machine.clone());
            if is_gone(machines, name, record) && !health.is_whole(&set, of, instances) {
                all.insert(name.to_owned(), Replacement { set, uid, of });
            }
        }
        for (name, begun) in memory.replacing() {
            let machine = machines.get(name).map(|machine| &machine.facts);
            let is_there =
                machine.is_some_and(|it| !it.is_deleted && Some(&it.uid) == begun.uid.as_ref());
            if !is_there && !health.is_whole(&begun.set, begun.of, instances) {
                all.entry(name.clone()).or_insert_with(|| begun.clone());
            }
        }
        Self(all)
    }

    /// Changes that put replacements back on record of which somebody deleted the record, or put an older one in its place.
    pub(in crate::fleet) fn off_record(
        &self,
        health: &Health<'_>,
    ) -> BTreeMap<String, RecordChange> {
        let (machines, hosts) = (health.machines, health.observed.hosts);
        let lost = self.0.iter().filter(|(name, set)| {
            let record = hosts.record(&key(name));
            let is_there = machines.get(name).is_some_and(|machine| !machine.facts.is_deleted);
            let is_lost = record.is_none_or(|record| {
                record.replacement_machine_set.is_none() && record.machine == set.uid
            });
            is_lost && !is_there && !hosts.is_damaged(&key(name))
        });
        let change = |(name, it): (&String, &Replacement)| {
            let (machine, set, of) = (it.uid.clone(), it.set.clone(), it.of);
            (key(name), RecordChange::Replaced { machine, set, of })
        };
        lost.map(change).collect()
    }

    /// All replacements, as they are remembered until the next pass.
    pub(in crate::fleet) fn remembered(&self) -> BTreeMap<String, Replacement> {
        self.0.clone()
    }

    /// Adds a replacement in this MachineSet.
    pub(super) fn begin(
        &mut self,
        machine: &Machine,
        set: &str,
        of: Option<MachinesThen>,
    ) -> Replacement {
        let MachineFacts { name, uid, .. } = &machine.facts;
        let begun = Replacement { set: set.to_owned(), uid: Some(uid.clone()), of };
        self.0.insert(name.clone(), begun.clone());
        begun
    }

    /// The MachineSet that holds a slot until this instance, which does not work now, works.
    pub(super) fn waits_for<'a>(
        &self,
        instance: &Assignment<'_>,
        health: &Health<'a>,
    ) -> Option<&'a str> {
        if self.0.is_empty() || works(instance) {
            return None;
        }
        let set = health.set_of(instance)?;
        self.0.values().any(|held| held.set == set).then_some(set)
    }

    /// The Machines that may fill the place of one that is gone: successors, those that have been unready for long or that
    /// we have cordoned, and once all successors work any other one. One that only lacks a mark, or is not ready for a moment,
    /// does not go out of service while another one is gone. Where nobody noted which are successors, all may.
    pub(super) fn stand_ins<'a>(
        &self,
        health: &Health<'a>,
        instances: &[Assignment<'a>],
    ) -> BTreeSet<&'a str> {
        let memory = health.memory;
        let works = |machine: &&Machine| health.is_working(machine, instances);
        let is_cordoned = |it: &Assignment<'_>| {
            it.node.is_some_and(|node| node.is_cordoned_by_us() && !node.serves())
        };
        let of_set = |(set, since): (&str, Option<Timestamp>)| -> Vec<&'a str> {
            let came = move |machine: &Machine| since.is_none_or(|_| machine.facts.created > since);
            let successors = health.of_set(set).filter(|machine| came(machine));
            let is_over = successors.filter(works).count() >= self.awaited(set, came, health);
            let may = move |machine: &&Machine| {
                is_over
                    || came(machine)
                    || memory.is_unready(&machine.facts.name)
                    || health.assignment(machine, instances).is_some_and(is_cordoned)
            };
            health.of_set(set).filter(may).map(|machine| machine.facts.name.as_str()).collect()
        };
        self.since(health).into_iter().flat_map(of_set).collect()
    }

    /// The MachineSet that has a place open which this instance may fill, as one of the `stand_ins`.
    pub(super) fn filled_by<'a>(
        &self,
        instance: &Assignment<'_>,
        stand_ins: &BTreeSet<&str>,
        health: &Health<'a>,
    ) -> Option<&'a str> {
        let may_fill = stand_ins.contains(name_in(&instance.address)?);
        self.waits_for(instance, health).filter(|_| may_fill)
    }

    /// How many successors a MachineSet waits for: as many of its Machines as are gone, or have a permit to go, and as it
    /// still is to have.
    fn awaited(&self, set: &str, came: impl Fn(&Machine) -> bool, health: &Health<'_>) -> usize {
        let of_set = || self.0.values().filter(|held| held.set == set);
        let replicas = health.machines.set(set).map_or(0, |set| set.replicas);
        let then = of_set().filter_map(|held| Some(held.of?.count)).max();
        let wanted = then.map_or(replicas, |then| then.min(replicas));
        let stays = |machine: &&Machine| !came(machine) && !self.contains(&machine.facts.name);
        let stay = health.of_set(set).filter(stays).count();
        of_set().count().min(wanted.saturating_sub(stay))
    }

    /// The Machines that have taken the place of those that are gone.
    pub(super) fn successors<'a>(&self, health: &Health<'a>) -> BTreeSet<&'a str> {
        let of_set = |(set, since): (&str, Option<Timestamp>)| -> Vec<&'a str> {
            let came = move |machine: &&Machine| since.is_some() && machine.facts.created > since;
            health.of_set(set).filter(came).map(|machine| machine.facts.name.as_str()).collect()
        };
        self.since(health).into_iter().flat_map(of_set).collect()
    }

    /// MachineSets of which Machines are gone, each with the time of its youngest Machine when the first of these was to go:
    /// what was created later takes the place of one. When a Machine was created only the API server tells, and no host can
    /// change it. `None` if nobody noted it.
    fn since(&self, health: &Health<'_>) -> BTreeMap<&str, Option<Timestamp>> {
        let is_gone = |name: &str, uid: Option<&String>| {
            let machine = health.machines.get(name).map(|machine| &machine.facts);
            machine.is_none_or(|it| it.is_deleted || uid.is_some_and(|uid| *uid != it.uid))
        };
        let mut since: BTreeMap<&str, Option<Timestamp>> = BTreeMap::new();
        for (_, gone) in self.0.iter().filter(|(name, it)| is_gone(name, it.uid.as_ref())) {
            let newest = gone.of.map(|of| of.newest);
            let earliest = since.entry(&gone.set).or_insert(newest);
            *earliest = (*earliest).min(newest);
        }
        since
    }

    /// Whether the replacement of this Machine is in progress.
    pub(in crate::fleet) fn contains(&self, machine: &str) -> bool {
        self.0.contains_key(machine)
    }

    /// Whether it is this very Machine that is replaced, not another one of its name.
    pub(in crate::fleet) fn is_of(&self, machine: &MachineFacts) -> bool {
        let known = self.0.get(&machine.name).and_then(|it| it.uid.as_ref());
        known.is_none_or(|uid| *uid == machine.uid)
    }

    /// All replacements, each with its MachineSet.
    pub(in crate::fleet) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(machine, it)| (machine.as_str(), it.set.as_str()))
    }
}

/// Whether a Machine is deleted, or another one has its name.
pub(super) fn is_gone(machines: &Machines, name: &str, record: &HostRecord) -> bool {
    let machine = machines.get(name).map(|machine| &machine.facts);
    machine.is_none_or(|facts| facts.is_deleted || record.machine.as_ref() != Some(&facts.uid))
}
