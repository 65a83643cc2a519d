//! What may happen to Machines.

use wmco_core::facts::Reference;
use wmco_core::names;

use super::World;
use super::machines::{Machine, annotation, internal};

/// Most Machines that people ask for.
const MOST: usize = 4;

/// Something that happens to Machines; the numbers choose one, or a MachineSet, or any host.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MachineEvent {
    /// The operator's view of all Machines becomes current.
    CacheCatchesUp,
    /// People ask for another number of Machines of a MachineSet.
    Scale(usize, usize),
    /// A person deletes a Machine.
    Delete(usize),
    /// A person asks for a Machine to be left alone.
    Ignore(usize),
    /// No longer.
    Heed(usize),
    /// A Machine shows the address of any host.
    Move(usize, usize),
    /// A Machine refers to a Node that is not there.
    ReferInVain(usize),
    /// A Machine refers to no Node, though it runs.
    ReferToNone(usize),
    /// A Machine refers to the Node of any host.
    ReferTo(usize, usize),
    /// The Machine API tells the truth of a Machine again.
    TellTruth(usize),
    /// A Node says that another key, or none, lets us in.
    OtherHash(usize, bool),
    /// Somebody writes other user data for new Machines, which the operator puts right, sometimes before a pass has
    /// seen it.
    EditUserData { is_seen: bool },
    /// The Node of any host says that people listed it.
    ClaimListed(usize),
    /// The Node of any host says that a Machine is behind it.
    ClaimMachine(usize, usize),
}

impl World {
    pub(super) fn happen_to_machines(&mut self, event: MachineEvent) {
        self.excuse();
        match event {
            MachineEvent::CacheCatchesUp => self.machines_catch_up(),
            MachineEvent::EditUserData { is_seen } => {
                self.api.made.user_data.edit(is_seen, self.now);
            }
            MachineEvent::Scale(at, replicas) => self.scale(at, replicas),
            MachineEvent::Delete(at)
            | MachineEvent::Ignore(at)
            | MachineEvent::Heed(at)
            | MachineEvent::ReferInVain(at)
            | MachineEvent::ReferToNone(at)
            | MachineEvent::TellTruth(at) => self.happen_to_machine(event, at),
            MachineEvent::Move(at, other) => {
                let address = self.hosts[other % self.ours()].address;
                if let Some(machine) = self.machine_with_host(at) {
                    machine.facts.addresses = vec![internal(address)];
                    machine.confused = true;
                }
            }
            MachineEvent::ReferTo(at, other) => {
                let other = &self.hosts[other % self.ours()].name;
                let node = self.api.nodes.get(other).map(|node| node.facts.clone());
                if let (Some(node), Some(machine)) = (node, self.machine_with_host(at)) {
                    machine.facts.node = Some(Reference { name: node.name, uid: node.uid });
                    machine.confused = true;
                }
            }
            MachineEvent::ClaimListed(at) => self.say_on_node(at % self.ours(), |node| {
                node.facts.labels.insert(names::BYOH_LABEL.into(), names::TRUE.into());
            }),
            MachineEvent::OtherHash(at, empty) => {
                let hash = if empty { "" } else { "of another key" };
                self.say_on_node(at % self.ours(), |node| {
                    node.annotate(names::PUBLIC_KEY_HASH_ANNOTATION, hash);
                });
            }
            MachineEvent::ClaimMachine(at, other) => {
                if let Some(other) = self.machine_with_host(other).map(|it| it.facts.name.clone()) {
                    self.say_on_node(at, |n| {
                        n.annotate(names::MACHINE_ANNOTATION, &annotation(&other));
                    });
                }
            }
        }
    }

    /// People ask for no more than there is room for.
    fn scale(&mut self, at: usize, replicas: usize) {
        let sets = &mut self.api.made.sets;
        let all: usize = sets.values().map(|set| set.replicas).sum();
        let count = sets.len().max(1);
        if let Some(set) = sets.values_mut().nth(at % count) {
            set.replicas = replicas.min(MOST.saturating_sub(all - set.replicas));
        }
    }

    fn happen_to_machine(&mut self, event: MachineEvent, at: usize) {
        let Some(machine) = self.machine_with_host(at) else { return };
        match event {
            MachineEvent::Delete(_) => machine.facts.is_deleted = true,
            MachineEvent::Ignore(_) => machine.facts.is_ignored = true,
            MachineEvent::TellTruth(_) => {
                let name = machine.facts.name.clone();
                self.tell_truth(&name);
            }
            MachineEvent::ReferInVain(_) => {
                if let Some(node) = &mut machine.facts.node {
                    node.uid = format!("nobody of {}", machine.facts.uid);
                    machine.confused = true;
                }
            }
            MachineEvent::ReferToNone(_) => {
                machine.facts.node = None;
                machine.confused = true;
            }
            MachineEvent::Heed(_) => {
                machine.facts.is_ignored = false;
                let host = machine.host;
                let name = host.map(|number| self.hosts[number].name.clone());
                if let Some(node) = name.and_then(|name| self.api.nodes.get_mut(&name)) {
                    node.taken |= node.is_disrupted();
                }
            }
            _ => {}
        }
    }

    /// One of the Machines that have a host.
    fn machine_with_host(&mut self, at: usize) -> Option<&mut Machine> {
        let machines = self.api.made.machines.values_mut();
        let mut hosted: Vec<_> = machines.filter(|machine| machine.host.is_some()).collect();
        let count = hosted.len().max(1);
        (at % count < hosted.len()).then(|| hosted.swap_remove(at % count))
    }

    fn say_on_node(&mut self, at: usize, change: impl FnOnce(&mut super::api::Node)) {
        let Some(host) = self.hosts.get(at) else { return };
        self.api.nodes.get_mut(&host.name).map(change);
    }

    pub(super) fn tell_truth(&mut self, name: &str) {
        let Self { hosts, api, .. } = self;
        let Some(machine) = api.made.machines.get_mut(name) else { return };
        machine.confused = false;
        if let Some(host) = machine.host.map(|number| &hosts[number]) {
            machine.facts.addresses = vec![internal(host.address)];
            let node = api.nodes.get(&host.name).map(|node| &node.facts);
            let own = node.map(|it| Reference { name: it.name.clone(), uid: it.uid.clone() });
            let before = machine.facts.node.take().filter(|it| it.name == host.name);
            machine.facts.node = own.or(before);
        }
    }
}
