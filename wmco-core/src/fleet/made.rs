//! Machines of the Machine API, as far as they touch each other and what people list.

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;

use super::Because;
use crate::facts::NodeFacts;
use crate::machines::{Machine, Machines, Unfit, internal_ipv4};
use crate::names;

/// All Machines that people did not ask to leave alone.
pub(super) struct Made<'a> {
    machines: &'a Machines,
    /// By the address that they show, whatever phase they are in.
    at: HashMap<Ipv4Addr, Vec<&'a Machine>>,
    /// The same by the UID of the Node that they refer to.
    with_node: HashMap<&'a str, Vec<&'a Machine>>,
    /// The same by its name, without those that are being deleted.
    with_name: HashMap<&'a str, Vec<&'a Machine>>,
    /// The Machines that people asked to leave alone, by their address, and by the UID of their Node.
    ignored: (HashMap<Ipv4Addr, &'a Machine>, HashMap<&'a str, &'a Machine>),
}

impl<'a> Made<'a> {
    pub(super) fn of(machines: &'a Machines) -> Self {
        let ignored = || machines.iter().filter(|it| it.instance == Err(Unfit::Ignored));
        let at = ignored().filter_map(|it| Some((internal_ipv4(&it.facts)?, it)));
        let nodes = ignored().filter_map(|it| Some((it.facts.node.as_ref()?.uid.as_str(), it)));
        let nodes = nodes.filter(|(uid, _)| !uid.is_empty());
        let ignored = (at.collect(), nodes.collect());
        let mut made = Self {
            machines,
            at: HashMap::new(),
            with_node: HashMap::new(),
            with_name: HashMap::new(),
            ignored,
        };
        for machine in made.machines() {
            if let Some(ipv4) = internal_ipv4(&machine.facts) {
                made.at.entry(ipv4).or_default().push(machine);
            }
            if let Some(node) = machine.facts.node.as_ref().filter(|node| !node.uid.is_empty()) {
                made.with_node.entry(&node.uid).or_default().push(machine);
                if !machine.facts.is_deleted {
                    made.with_name.entry(&node.name).or_default().push(machine);
                }
            }
        }
        made
    }

    /// All of them, sorted by name.
    pub(super) fn machines(&self) -> impl Iterator<Item = &'a Machine> + use<'a> {
        self.machines.iter().filter(|machine| machine.instance != Err(Unfit::Ignored))
    }

    /// Why nothing else at an address is touched, if a Machine is there.
    pub(super) fn address_of_machine(&self, ipv4: Ipv4Addr) -> Option<Because> {
        let machine = self.at.get(&ipv4)?.first()?.facts.name.clone();
        Some(Because::AddressOfMachine { machine })
    }

    /// Whether people asked to leave the Machine alone that has this Node or a host at this address.
    pub(super) fn is_ignored(&self, node: &NodeFacts, ipv4: Option<Ipv4Addr>) -> bool {
        let (at, nodes) = &self.ignored;
        nodes.contains_key(node.uid.as_str()) || ipv4.is_some_and(|ipv4| at.contains_key(&ipv4))
    }

    /// Whether a Machine refers to a Node and shows another address than this one, even a Machine that
    /// people asked to leave alone.
    pub(super) fn is_elsewhere(&self, node: &NodeFacts, ipv4: Option<Ipv4Addr>) -> bool {
        let mut made = self.with_node.get(node.uid.as_str()).into_iter().flatten();
        made.any(|machine| is_elsewhere(machine, ipv4)) || self.is_ignored_elsewhere(node, ipv4)
    }

    /// The same of those that people asked to leave alone.
    pub(super) fn is_ignored_elsewhere(&self, node: &NodeFacts, ipv4: Option<Ipv4Addr>) -> bool {
        let machine = self.ignored.1.get(node.uid.as_str());
        machine.is_some_and(|machine| is_elsewhere(machine, ipv4))
    }

    /// Whether a Machine may be behind a Node that calls itself listed: one refers to its name, or it says
    /// itself which one.
    pub(super) fn may_be_behind(&self, node: &NodeFacts) -> bool {
        let named = named_by(node).and_then(|name| self.machines.get(name));
        named.is_some() || self.with_name.contains_key(node.name.as_str())
    }

    /// Another one that has a host at the address of `machine`, even one that people asked to leave alone.
    /// One that is being deleted gave it back, or is about to.
    pub(super) fn beside(&self, machine: &Machine, ipv4: Ipv4Addr) -> Option<&'a Machine> {
        let others = self.at.get(&ipv4).into_iter().flatten().copied();
        let others = others.filter(|other| other.instance.is_ok());
        let mut others = others.chain(self.ignored.0.get(&ipv4).copied());
        others.find(|it| it.facts.name != machine.facts.name)
    }

    /// Another one that refers to the Node of `machine`, even one that people asked to leave alone, or to
    /// one of its name that is gone.
    pub(super) fn sharing_node(&self, machine: &Machine) -> Option<&'a Machine> {
        let node = machine.facts.node.as_ref()?;
        let (uid, name) = (node.uid.as_str(), node.name.as_str());
        let others = self.with_node.get(uid).into_iter().chain(self.with_name.get(name)).flatten();
        let others = others.chain(self.ignored.1.get(uid)).copied();
        others.into_iter().find(|other| other.facts.name != machine.facts.name)
    }

    /// Another one at an address that a Node shows.
    pub(super) fn at_node(&self, machine: &Machine, node: &NodeFacts) -> Option<&'a Machine> {
        let mut shown = node.addresses.iter().filter_map(|shown| shown.parse().ok());
        shown.find_map(|ipv4| self.beside(machine, ipv4))
    }

    /// Whether a Machine is behind a Node: one refers to it, or it says so itself and nothing speaks
    /// against that. The Node of a Machine that people asked to leave alone is theirs to list.
    pub(super) fn is_behind(&self, node: &NodeFacts) -> bool {
        if self.with_node.contains_key(node.uid.as_str()) {
            return true;
        }
        let named = named_by(node);
        let is_ignored = |name| {
            let machine = self.machines.get(name);
            machine.is_some_and(|machine| machine.instance == Err(Unfit::Ignored))
        };
        node.belongs_to_machine() && !named.is_some_and(is_ignored)
    }

    /// The Nodes that Machines refer to, by UID.
    pub(super) fn nodes<'n>(&self, nodes: &'n [NodeFacts]) -> HashMap<&'n str, &'n NodeFacts> {
        if self.with_node.is_empty() {
            return HashMap::new();
        }
        let of_machine = |node: &&NodeFacts| self.with_node.contains_key(node.uid.as_str());
        nodes.iter().filter(of_machine).map(|node| (node.uid.as_str(), node)).collect()
    }

    /// Names of the Nodes that Machines refer to in vain, if there is another one with such a name.
    pub(super) fn other_nodes<'n>(&self, nodes: &'n [NodeFacts]) -> HashSet<&'n str> {
        let referred = self.with_node.values().flatten();
        let referred: HashMap<&str, &str> = referred
            .filter_map(|machine| machine.facts.node.as_ref())
            .map(|node| (node.name.as_str(), node.uid.as_str()))
            .collect();
        if referred.is_empty() {
            return HashSet::new();
        }
        let is_other = |node: &&NodeFacts| {
            referred.get(node.name.as_str()).is_some_and(|uid| *uid != node.uid)
        };
        nodes.iter().filter(is_other).map(|node| node.name.as_str()).collect()
    }
}

/// Whether a Machine shows another address.
fn is_elsewhere(machine: &Machine, ipv4: Option<Ipv4Addr>) -> bool {
    let at = internal_ipv4(&machine.facts);
    at.is_some() && ipv4.is_some() && at != ipv4
}

/// The name of the Machine that a Node says is behind it.
fn named_by(node: &NodeFacts) -> Option<&str> {
    let named = node.annotation(names::MACHINE_ANNOTATION)?;
    Some(named.rsplit_once('/').map_or(named, |(_, name)| name))
}
