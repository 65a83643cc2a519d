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
    at: NodesOfHosts,
    made_from: NodesOfHosts,
}

/// Numbers of Nodes by the number of a host, each pair once: the first host at an address of the Node, or the one that the
/// Node claims to be made from. Sorted by host and then by the Node's name, so that the order of a cache does not matter.
type NodesOfHosts = Vec<(usize, usize)>;

impl<'a> Evidence<'a> {
    /// Scans each Node once.
    pub(super) fn of(nodes: &'a [NodeFacts], hosts: &Hosts<'a>, made: &MachineIndex<'_>) -> Self {
        let count = hosts.all().len();
        let mut evidence = Self {
            nodes: Vec::with_capacity(nodes.len()),
            on_record: vec![None; count],
            at: Vec::with_capacity(count),
            made_from: Vec::new(),
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
            let at = at.filter(|host| !made.is_ignored_elsewhere(facts, ipv4_of(host)));
            evidence.at.extend(at.map(|host| (host, number)));
            let made_from = node.origin().and_then(|origin| hosts.number_of(origin));
            // The Machine API's statement about the Node outranks it, and Nodes of Machines get no origin from us.
            let made_from = made_from.filter(|host| {
                node.kind != Kind::FromMachine && !made.is_elsewhere(facts, ipv4_of(host))
            });
            evidence.made_from.extend(made_from.map(|host| (host, number)));
        }
        for pairs in [&mut evidence.at, &mut evidence.made_from] {
            pairs.sort_unstable_by_key(|(host, node)| (*host, nodes.get(*node).map(|it| &it.name)));
            // A Node may have an address twice, as its name and as its internal name.
            pairs.dedup();
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
        let first = host.first_at_ipv4.into_iter();
        first.flat_map(|first| self.nodes_of(&self.at, first))
    }

    /// The Nodes that claim to be made from the host, sorted by name.
    pub(super) fn made_from(&self, host: &Host<'_>) -> impl Iterator<Item = Node<'a>> {
        self.nodes_of(&self.made_from, host.number)
    }

    fn nodes_of(&self, pairs: &[(usize, usize)], host: usize) -> impl Iterator<Item = Node<'a>> {
        let begin = pairs.partition_point(|(before, _)| *before < host);
        let rest = pairs.iter().skip(begin).take_while(move |(it, _)| *it == host);
        rest.filter_map(|(_, number)| self.node(*number))
    }

    fn node(&self, number: usize) -> Option<Node<'a>> {
        self.nodes.get(number).copied()
    }
}
