//! Machines of the Machine API, with their conflicts among each other and with the list.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use crate::facts::NodeFacts;
use crate::fleet::Because;
use crate::machines::{Machine, Machines, Unfit, all_internal_ipv4};
use crate::names;

/// All Machines. One with the ignore label is no instance, and still has its address and its Node.
pub(in crate::fleet) struct MachineIndex<'a> {
    machines: &'a Machines,
    /// By their first address, whatever their phase.
    at: HashMap<Ipv4Addr, Vec<&'a Machine>>,
    /// Machines without the ignore label by their further addresses.
    also_at: HashMap<Ipv4Addr, Vec<&'a Machine>>,
    /// By the UID of the Node in their `nodeRef`.
    with_node: HashMap<&'a str, Vec<&'a Machine>>,
    /// By the name of that Node, without Machines that are being deleted.
    with_name: HashMap<&'a str, Vec<&'a Machine>>,
}

impl<'a> MachineIndex<'a> {
    pub(in crate::fleet) fn of(machines: &'a Machines) -> Self {
        let mut made = Self {
            machines,
            at: HashMap::new(),
            also_at: HashMap::new(),
            with_node: HashMap::new(),
            with_name: HashMap::new(),
        };
        // Those with the ignore label come last.
        let ignored = machines.iter().filter(|machine| is_ignored(machine));
        for machine in made.machines().chain(ignored) {
            let mut addresses = all_internal_ipv4(&machine.facts);
            if let Some(ipv4) = addresses.next() {
                made.at.entry(ipv4).or_default().push(machine);
            }
            for ipv4 in addresses.filter(|_| !is_ignored(machine)) {
                made.also_at.entry(ipv4).or_default().push(machine);
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

    /// All Machines without the ignore label, sorted by name.
    pub(in crate::fleet) fn machines(&self) -> impl Iterator<Item = &'a Machine> + use<'a> {
        self.machines.iter().filter(|machine| !is_ignored(machine))
    }

    /// The Machines that refer to a Node.
    fn of_node(&self, node: &NodeFacts) -> impl Iterator<Item = &'a Machine> {
        self.with_node.get(node.uid.as_str()).into_iter().flatten().copied()
    }

    /// Why nothing else at an address is touched, if a Machine has the address.
    pub(in crate::fleet) fn address_of_machine(&self, ipv4: Ipv4Addr) -> Option<Because> {
        let first = self.at.get(&ipv4).and_then(|there| there.first());
        let first = first.filter(|machine| !is_ignored(machine));
        let machine = first.or_else(|| self.also_at.get(&ipv4)?.first())?;
        Some(Because::AddressOfMachine { machine: machine.facts.name.clone() })
    }

    /// Whether a Machine with the ignore label has this Node or this address.
    pub(in crate::fleet) fn is_ignored(&self, node: &NodeFacts, ipv4: Option<Ipv4Addr>) -> bool {
        let at = ipv4.and_then(|ipv4| self.at.get(&ipv4)).into_iter().flatten().copied();
        self.of_node(node).chain(at).any(is_ignored)
    }

    /// Whether a Machine refers to a Node and has another address than this one, even a Machine with the ignore
    /// label.
    pub(in crate::fleet) fn is_elsewhere(&self, node: &NodeFacts, ipv4: Option<Ipv4Addr>) -> bool {
        self.of_node(node).any(|machine| is_elsewhere(machine, ipv4))
    }

    /// Like `is_elsewhere`, for Machines with the ignore label only.
    pub(super) fn is_ignored_elsewhere(&self, node: &NodeFacts, ipv4: Option<Ipv4Addr>) -> bool {
        self.of_node(node).any(|machine| is_ignored(machine) && is_elsewhere(machine, ipv4))
    }

    /// Whether a Machine may own a Node that looks listed: a Machine refers to the Node's name, or the Node names
    /// its Machine.
    pub(in crate::fleet) fn may_be_behind(&self, node: &NodeFacts) -> bool {
        let named = named_by(node).and_then(|name| self.machines.get(name));
        named.is_some() || self.is_referred_to_by_name(node)
    }

    /// Whether a Machine without the ignore label refers to the Node's name, as to the Node or to a deleted one.
    pub(in crate::fleet) fn is_referred_to_by_name(&self, node: &NodeFacts) -> bool {
        let named = self.with_name.get(node.name.as_str());
        named.and_then(|machines| machines.first()).is_some_and(|machine| !is_ignored(machine))
    }

    /// Another Machine with a host at an address of `machine`, even with the ignore label; of further addresses of both
    /// none counts.
    pub(in crate::fleet) fn beside(&self, machine: &Machine) -> Option<&'a Machine> {
        let mut own = all_internal_ipv4(&machine.facts);
        let first = own.next()?;
        let further = || own.find_map(|ipv4| other_of(machine, self.at.get(&ipv4)?));
        let also = || other_of(machine, self.also_at.get(&first)?);
        other_of(machine, self.at.get(&first)?).or_else(also).or_else(further)
    }

    /// Another Machine that refers to the Node of `machine`, even with the ignore label, or to a deleted Node of
    /// the same name.
    pub(in crate::fleet) fn sharing_node(&self, machine: &Machine) -> Option<&'a Machine> {
        let node = machine.facts.node.as_ref()?;
        let (uid, name) = (node.uid.as_str(), node.name.as_str());
        let by_uid = self.with_node.get(uid).into_iter().flatten();
        let others = by_uid.chain(self.with_name.get(name).into_iter().flatten()).copied();
        let others = others.filter(|other| other.facts.name != machine.facts.name);
        others.min_by_key(|other| is_ignored(other))
    }

    /// Another Machine at an address of a Node.
    pub(in crate::fleet) fn at_node(
        &self,
        machine: &Machine,
        node: &NodeFacts,
    ) -> Option<&'a Machine> {
        let mut shown = node.addresses.iter().filter_map(|shown| shown.parse().ok());
        shown.find_map(|ipv4| other_of(machine, self.at.get(&ipv4)?))
    }

    /// Whether a Machine owns a Node: a Machine refers to it, or the Node says so and nothing contradicts it. The
    /// Node of a Machine with the ignore label may be listed.
    pub(in crate::fleet) fn is_behind(&self, node: &NodeFacts) -> bool {
        let named = || named_by(node).and_then(|name| self.machines.get(name));
        self.of_node(node).any(|machine| !is_ignored(machine))
            || node.belongs_to_machine() && !named().is_some_and(is_ignored)
    }

    /// The Nodes that Machines refer to, by UID.
    pub(in crate::fleet) fn nodes<'n>(
        &self,
        nodes: &'n [NodeFacts],
    ) -> HashMap<&'n str, &'n NodeFacts> {
        if self.with_node.is_empty() {
            return HashMap::new();
        }
        let is_meant = |node: &&NodeFacts| self.with_node.contains_key(node.uid.as_str());
        nodes.iter().filter(is_meant).map(|node| (node.uid.as_str(), node)).collect()
    }
}

/// The first of these Machines that is another one with a host. One that is being deleted gives its address back.
fn other_of<'a>(machine: &Machine, all: &[&'a Machine]) -> Option<&'a Machine> {
    let is_other = |other: &&Machine| {
        other.facts.name != machine.facts.name && (other.instance.is_ok() || is_ignored(other))
    };
    all.iter().copied().find(is_other)
}

/// Whether people asked to leave a Machine alone.
fn is_ignored(machine: &Machine) -> bool {
    machine.instance == Err(Unfit::Ignored)
}

/// Whether a Machine has another address.
fn is_elsewhere(machine: &Machine, ipv4: Option<Ipv4Addr>) -> bool {
    let mut at = all_internal_ipv4(&machine.facts).peekable();
    let has_address = at.peek().is_some();
    has_address && ipv4.is_some_and(|ipv4| at.all(|own| own != ipv4))
}

/// The name of the Machine in a Node's annotation.
fn named_by(node: &NodeFacts) -> Option<&str> {
    let named = node.annotation(names::MACHINE_ANNOTATION)?;
    Some(named.rsplit_once('/').map_or(named, |(_, name)| name))
}
