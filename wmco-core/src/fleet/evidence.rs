//! Evidence from Nodes about hosts: the addresses of Nodes, and the hosts that they claim to be made from.

use super::host::Host;
use super::hosts::Hosts;
use super::machine_index::MachineIndex;
use super::node::{Kind, Node};
use crate::facts::NodeFacts;

/// All Nodes, by the facts that tie them to hosts.
pub(super) struct Evidence<'a> {
    nodes: Vec<Node<'a>>,
    /// By the number of the first host that has the Node in its record.
    on_record: Vec<Option<usize>>,
    /// By the number of the first host at an address of the Node.
    at: Vec<NodeNumbers>,
    /// By the number of the host that the Node claims to be made from.
    made_from: Vec<NodeNumbers>,
}

/// Numbers of Nodes.
#[derive(Clone, Default)]
enum NodeNumbers {
    #[default]
    None,
    One(usize),
    Several(Vec<usize>),
}

impl<'a> Evidence<'a> {
    /// Scans each Node once.
    pub(super) fn of(nodes: &'a [NodeFacts], hosts: &Hosts<'a>, made: &MachineIndex<'_>) -> Self {
        let count = hosts.all().len();
        let mut evidence = Self {
            nodes: Vec::with_capacity(nodes.len()),
            on_record: vec![None; count],
            at: vec![NodeNumbers::None; count],
            made_from: vec![NodeNumbers::None; count],
        };
        for (number, facts) in nodes.iter().enumerate() {
            let node = Node::read(number, facts, made);
            evidence.nodes.push(node);
            let host = hosts.first_with_node_on_record(&facts.name);
            if let Some(found) = host.and_then(|host| evidence.on_record.get_mut(host)) {
                *found = Some(number);
            }
            let ipv4_of = |host: &usize| hosts.numbered(*host).and_then(|host| host.ipv4);
            let at = facts.addresses.iter().filter_map(|shown| hosts.first_at(shown));
            for host in at.filter(|host| !made.is_ignored_elsewhere(facts, ipv4_of(host))) {
                if let Some(there) = evidence.at.get_mut(host) {
                    there.push(number);
                }
            }
            let made_from = node.origin().and_then(|origin| hosts.number_of(origin));
            // The Machine API's statement about the Node outranks it, and Nodes of Machines get no origin from us.
            let made_from = made_from.filter(|host| {
                node.kind != Kind::FromMachine && !made.is_elsewhere(facts, ipv4_of(host))
            });
            if let Some(made) = made_from.and_then(|host| evidence.made_from.get_mut(host)) {
                made.push(number);
            }
        }
        for several in evidence.at.iter_mut().chain(&mut evidence.made_from) {
            several.sort(nodes);
        }
        evidence
    }

    pub(super) fn nodes(&self) -> &[Node<'a>] {
        &self.nodes
    }

    /// The Node in the host's record, unless an earlier host has it in its record, too.
    pub(super) fn on_record(&self, host: &Host<'_>) -> Option<Node<'a>> {
        self.node(self.on_record.get(host.number).copied()??)
    }

    /// The Nodes with the host's address, sorted by name.
    pub(super) fn at(&self, host: &Host<'_>) -> impl Iterator<Item = Node<'a>> {
        let there = host.first_at_ipv4.and_then(|first| self.at.get(first));
        self.listed(there)
    }

    /// The Nodes that claim to be made from the host, sorted by name.
    pub(super) fn made_from(&self, host: &Host<'_>) -> impl Iterator<Item = Node<'a>> {
        self.listed(self.made_from.get(host.number))
    }

    fn listed(&self, few: Option<&NodeNumbers>) -> impl Iterator<Item = Node<'a>> {
        let numbers = few.map_or(&[][..], NodeNumbers::as_slice);
        numbers.iter().filter_map(|number| self.node(*number))
    }

    fn node(&self, number: usize) -> Option<Node<'a>> {
        self.nodes.get(number).copied()
    }
}

impl NodeNumbers {
    fn as_slice(&self) -> &[usize] {
        match self {
            Self::None => &[],
            Self::One(one) => std::slice::from_ref(one),
            Self::Several(several) => several,
        }
    }

    /// Adds the current Node. A Node may have an address twice, as its name and as its internal name.
    fn push(&mut self, number: usize) {
        match self {
            Self::None => *self = Self::One(number),
            Self::One(one) if *one == number => {}
            Self::One(one) => *self = Self::Several(vec![*one, number]),
            Self::Several(several) if several.last() == Some(&number) => {}
            Self::Several(several) => several.push(number),
        }
    }

    /// Sorts by name, so that the order of Nodes in a cache does not matter.
    fn sort(&mut self, nodes: &[NodeFacts]) {
        if let Self::Several(several) = self {
            several.sort_by_key(|number| nodes.get(*number).map(|node| &node.name));
        }
    }
}
