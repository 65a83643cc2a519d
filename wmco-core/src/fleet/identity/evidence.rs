//! Evidence from Nodes about hosts: the addresses of Nodes, and the hosts that they claim to be made from.

use super::host::Host;
use super::hosts::Hosts;
use super::machine_index::MachineIndex;
use super::node::{Kind, Node};
use crate::facts::NodeFacts;

/// All Nodes, by the facts that tie them to hosts.
pub(in crate::fleet) struct Evidence<'a> {
    nodes: Vec<Node<'a>>,
    /// By the number of the first host that has the Node in its record.
    on_record: Vec<Option<usize>>,
    at: NodesOfHosts,
    made_from: NodesOfHosts,
}

/// Numbers of Nodes by the number of a host: the first host at an address of the Node, or the one that the Node claims to
/// be made from. Those of a host are sorted by name, so that the order of a cache does not matter.
#[derive(Default)]
struct NodesOfHosts {
    nodes: Vec<usize>,
    /// Where those of a host begin; those of the next one follow.
    begin: Vec<usize>,
}

impl NodesOfHosts {
    fn of(mut pairs: Vec<(usize, usize)>, hosts: usize, nodes: &[NodeFacts]) -> Self {
        pairs.sort_unstable_by_key(|(host, node)| (*host, nodes.get(*node).map(|it| &it.name)));
        // A Node may have an address twice, as its name and as its internal name.
        pairs.dedup();
        let mut begin = Vec::with_capacity(hosts + 1);
        for (at, (host, _)) in pairs.iter().enumerate() {
            begin.resize(begin.len().max(host + 1), at);
        }
        begin.resize(hosts + 1, pairs.len());
        Self { nodes: pairs.into_iter().map(|(_, node)| node).collect(), begin }
    }

    fn get(&self, host: usize) -> &[usize] {
        let range = self.begin.get(host).zip(self.begin.get(host + 1));
        range.and_then(|(begin, end)| self.nodes.get(*begin..*end)).unwrap_or_default()
    }
}

impl<'a> Evidence<'a> {
    /// Scans each Node once.
    pub(in crate::fleet) fn of(
        nodes: &'a [NodeFacts],
        hosts: &Hosts<'a>,
        made: &MachineIndex<'_>,
    ) -> Self {
        let count = hosts.all().len();
        let mut evidence = Self {
            nodes: Vec::with_capacity(nodes.len()),
            on_record: vec![None; count],
            at: NodesOfHosts::default(),
            made_from: NodesOfHosts::default(),
        };
        let (mut all_at, mut all_made_from) = (Vec::with_capacity(nodes.len()), Vec::new());
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
            all_at.extend(at.map(|host| (host, number)));
            let made_from = node.origin().and_then(|origin| hosts.number_of(origin));
            // The Machine API's statement about the Node outranks it, and Nodes of Machines get no origin from us.
            let made_from = made_from.filter(|host| {
                node.kind != Kind::FromMachine && !made.is_elsewhere(facts, ipv4_of(host))
            });
            all_made_from.extend(made_from.map(|host| (host, number)));
        }
        evidence.at = NodesOfHosts::of(all_at, count, nodes);
        evidence.made_from = NodesOfHosts::of(all_made_from, count, nodes);
        evidence
    }

    pub(in crate::fleet) fn nodes(&self) -> &[Node<'a>] {
        &self.nodes
    }

    /// The Node in the host's record, unless an earlier host has it in its record, too.
    pub(super) fn on_record(&self, host: &Host<'_>) -> Option<Node<'a>> {
        self.node(self.on_record.get(host.number).copied()??)
    }

    /// The Nodes with the host's address, sorted by name.
    pub(in crate::fleet) fn at(&self, host: &Host<'_>) -> impl Iterator<Item = Node<'a>> {
        let first = host.first_at_ipv4.into_iter();
        first.flat_map(|first| self.nodes_of(&self.at, first))
    }

    /// The Nodes that claim to be made from the host, sorted by name.
    pub(in crate::fleet) fn made_from(&self, host: &Host<'_>) -> impl Iterator<Item = Node<'a>> {
        self.nodes_of(&self.made_from, host.number)
    }

    fn nodes_of(&self, of: &NodesOfHosts, host: usize) -> impl Iterator<Item = Node<'a>> {
        of.get(host).iter().filter_map(|number| self.node(*number))
    }

    fn node(&self, number: usize) -> Option<Node<'a>> {
        self.nodes.get(number).copied()
    }
}
