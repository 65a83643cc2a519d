//! What Nodes say of hosts: which Nodes show a host's address, and which say that they were made from it.

use std::collections::HashMap;

use super::host::Host;
use super::hosts::Hosts;
use crate::facts::NodeFacts;
use crate::names;

/// A Node, and its place among all Nodes of the pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node<'a> {
    pub(super) number: usize,
    pub(super) facts: &'a NodeFacts,
}

impl<'a> Node<'a> {
    pub(super) fn all(nodes: &'a [NodeFacts]) -> impl Iterator<Item = Self> {
        nodes.iter().enumerate().map(|(number, facts)| Self { number, facts })
    }

    /// The address as listed that it says it was made from.
    pub(super) fn origin(&self) -> Option<&'a str> {
        self.facts.annotation(names::INSTANCE_ANNOTATION)
    }
}

/// All Nodes, by what ties them to hosts.
pub(super) struct Evidence<'a> {
    names: HashMap<&'a str, Node<'a>>,
    /// By the number of the first host at an address that they show.
    at: Groups<'a>,
    /// By the number of the host that they say they were made from.
    made_from: Groups<'a>,
}

impl<'a> Evidence<'a> {
    pub(super) fn of(nodes: &'a [NodeFacts], hosts: &Hosts<'a>) -> Self {
        let count = hosts.all().len();
        let mut names = HashMap::with_capacity(nodes.len());
        let (mut at, mut made_from) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for node in Node::all(nodes) {
            names.insert(node.facts.name.as_str(), node);
            let shown = node.facts.addresses.iter();
            at.extend(shown.filter_map(|shown| Some((hosts.first_at(shown)?, node))));
            let origin = node.origin().and_then(|origin| hosts.named(origin));
            made_from.extend(origin.map(|host| (host.number, node)));
        }
        Self { names, at: Groups::of(count, at), made_from: Groups::of(count, made_from) }
    }

    pub(super) fn named(&self, name: &str) -> Option<Node<'a>> {
        self.names.get(name).copied()
    }

    /// The Nodes that show the host's address, sorted by name.
    pub(super) fn at(&self, host: &Host<'_>) -> &[Node<'a>] {
        host.first_at_ipv4.map_or(&[], |first| self.at.get(first))
    }

    /// The Nodes that say they were made from the host, sorted by name.
    pub(super) fn made_from(&self, host: &Host<'_>) -> &[Node<'a>] {
        self.made_from.get(host.number)
    }
}

/// Lists of Nodes by a number, one after the other.
struct Groups<'a> {
    /// Where each list begins, and the last one ends.
    begins: Vec<usize>,
    nodes: Vec<Node<'a>>,
}

impl<'a> Groups<'a> {
    /// Each list is sorted by name, so that the order in which a cache shows the Nodes does not matter.
    fn of(count: usize, mut pairs: Vec<(usize, Node<'a>)>) -> Self {
        let name = |node: Node<'a>| node.facts.name.as_str();
        pairs.sort_by(|(a, x), (b, y)| a.cmp(b).then_with(|| name(*x).cmp(name(*y))));
        // One Node may show an address twice, as its name and as its internal name.
        pairs.dedup_by_key(|(group, node)| (*group, node.number));
        let mut begins = Vec::with_capacity(count + 1);
        for (place, (group, _)) in pairs.iter().enumerate() {
            begins.resize(begins.len().max(group + 1), place);
        }
        begins.resize(count + 1, pairs.len());
        Self { begins, nodes: pairs.into_iter().map(|(_, node)| node).collect() }
    }

    fn get(&self, group: usize) -> &[Node<'a>] {
        let bounds = self.begins.get(group).zip(self.begins.get(group + 1));
        bounds.and_then(|(begin, end)| self.nodes.get(*begin..*end)).unwrap_or_default()
    }
}
