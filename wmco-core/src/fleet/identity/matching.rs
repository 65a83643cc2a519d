//! Matches Nodes with hosts.
//!
//! The list of instances and the operator's records outrank facts from Nodes: addresses and annotations are claims,
//! which a kubelet or a daemon may write for its own purposes.

use std::cell::OnceCell;
use std::collections::HashMap;

use super::evidence::Evidence;
use super::host::{Host, forms};
use super::hosts::Hosts;
use super::node::{Kind, Node};
use crate::fleet::Because;

/// The Node of a host.
#[derive(Clone, Debug, Default)]
pub(in crate::fleet) enum NodeOfHost<'a> {
    /// No Node.
    #[default]
    Nobody,
    /// This Node.
    Node(Node<'a>),
    /// Several Nodes claim the host, and nothing decides between them.
    Contested(Vec<Node<'a>>),
}

impl<'a> NodeOfHost<'a> {
    /// Why nothing is done with the host and what claims to be its Node.
    pub(in crate::fleet) fn obstacle(&self) -> Option<Because> {
        match self {
            Self::Contested(nodes) => {
                let nodes = nodes.iter().map(|node| node.facts.name.clone()).collect();
                Some(Because::Contested { nodes })
            }
            Self::Node(node) => match node.kind {
                Kind::OtherSystem => Some(Because::OtherSystem),
                Kind::FromMachine => Some(Because::MachineBehind),
                Kind::FromEntry | Kind::Unmarked => None,
            },
            Self::Nobody => None,
        }
    }

    /// The Node, if it is certain.
    pub(in crate::fleet) fn node(&self) -> Option<Node<'a>> {
        match self {
            Self::Node(node) => Some(*node),
            Self::Nobody | Self::Contested(_) => None,
        }
    }
}

/// The result for all hosts.
pub(in crate::fleet) struct Matching<'a> {
    /// By the host's number.
    stands: Vec<NodeOfHost<'a>>,
    /// By the host's number: whether a name of the host is the Node's name.
    confirmed: Vec<bool>,
    /// By the Node's number: the number of its host, or of the one that it claims with others.
    hosts: Vec<Option<usize>>,
}

impl<'a> Matching<'a> {
    /// Matches all hosts, the listed ones first in each round. A Node goes to the host with the Node in its record;
    /// then to the host with its name and its address; then to the host that it was made from; then to the host
    /// with its address. A Node's claims count only if it claims a single host.
    pub(in crate::fleet) fn of(hosts: &Hosts<'a>, evidence: &Evidence<'a>) -> Self {
        let count = hosts.all().len();
        let mut matching = Self {
            stands: vec![NodeOfHost::Nobody; count],
            confirmed: vec![false; count],
            hosts: vec![None; evidence.nodes().len()],
        };
        for host in hosts.all() {
            matching.settle(host, evidence.on_record(host));
        }
        for host in hosts.all() {
            let fits = |node: &Node<'_>| host.names_node(node.facts) == Some(true);
            if matching.is_open(host) {
                matching.settle(host, evidence.at(host).filter(fits));
            }
            let confirmed = matching.stand(host).node().is_some_and(|node| fits(&node));
            if let Some(known) = matching.confirmed.get_mut(host.number) {
                *known = confirmed;
            }
        }
        let claims = Claims::of(hosts);
        for host in hosts.all() {
            if matching.is_open(host) {
                matching.settle(host, claims.made_from(host, evidence));
            }
        }
        // Other hosts are not listed, so a Node that only has their address is not ours.
        for host in hosts.listed() {
            if matching.is_open(host) {
                matching.settle(host, claims.unclaimed_at(host, evidence));
            }
        }
        matching
    }

    pub(in crate::fleet) fn stand(&self, host: &Host<'_>) -> &NodeOfHost<'a> {
        self.stands.get(host.number).unwrap_or(&NodeOfHost::Nobody)
    }

    /// Whether the host's own name is the Node's name, so that both agree.
    pub(in crate::fleet) fn is_confirmed(&self, host: &Host<'_>) -> bool {
        self.confirmed.get(host.number).is_some_and(|confirmed| *confirmed)
    }

    /// The number of the Node's host.
    pub(in crate::fleet) fn host_of(&self, node: Node<'_>) -> Option<usize> {
        self.claimed_by(node).filter(|host| !self.is_contested(*host))
    }

    /// The number of the host that the Node and other Nodes claim.
    pub(in crate::fleet) fn contested_host_of(&self, node: Node<'_>) -> Option<usize> {
        self.claimed_by(node).filter(|host| self.is_contested(*host))
    }

    /// Another listed host whose Node also has the address of `host`, unless `host` is known by another name: it
    /// may be the same host, listed twice.
    pub(in crate::fleet) fn maybe_same_host<'b>(
        &self,
        host: &Host<'a>,
        hosts: &'b Hosts<'a>,
        evidence: &Evidence<'a>,
    ) -> Option<&'b Host<'a>> {
        evidence.at(host).find_map(|node| {
            let other = hosts.numbered(self.host_of(node)?)?;
            let may_be = other.is_listed() && host.names_node(node.facts) != Some(false);
            may_be.then_some(other)
        })
    }

    fn claimed_by(&self, node: Node<'_>) -> Option<usize> {
        self.hosts.get(node.number).copied().flatten()
    }

    fn is_contested(&self, host: usize) -> bool {
        matches!(self.stands.get(host), Some(NodeOfHost::Contested(_)))
    }

    fn is_open(&self, host: &Host<'_>) -> bool {
        matches!(self.stand(host), NodeOfHost::Nobody)
    }

    /// Assigns the best Nodes found to a host that has none yet.
    fn settle(&mut self, host: &Host<'_>, found: impl IntoIterator<Item = Node<'a>>) {
        let found = found.into_iter();
        let free: Vec<Node<'a>> = found.filter(|node| self.claimed_by(*node).is_none()).collect();
        for node in &free {
            if let Some(of) = self.hosts.get_mut(node.number) {
                *of = Some(host.number);
            }
        }
        let Some(open) = self.stands.get_mut(host.number) else { return };
        *open = match free.as_slice() {
            [] => return,
            [node] => NodeOfHost::Node(*node),
            _ => NodeOfHost::Contested(free),
        };
    }
}

/// Addresses and names of hosts.
struct Claims<'a, 'b> {
    hosts: &'b Hosts<'a>,
    /// Numbers of hosts by their names, in all forms in lower case; `None` if several hosts have the name. Built on
    /// first use, which is rare: only for Nodes that no record and no name ties to a host.
    by_name: OnceCell<HashMap<String, Option<usize>>>,
}

impl<'a, 'b> Claims<'a, 'b> {
    const fn of(hosts: &'b Hosts<'a>) -> Self {
        Self { hosts, by_name: OnceCell::new() }
    }

    /// The Nodes that were made from the host, if nothing contradicts the best of them.
    fn made_from(&self, host: &Host<'a>, evidence: &Evidence<'a>) -> Vec<Node<'a>> {
        let made = evidence.made_from(host);
        let made: Vec<_> = made.filter(|node| !self.is_named_by_others(host, *node)).collect();
        let is_there = |node: &Node<'a>| self.is_at(host, *node);
        let of_it_alone = |node: &Node<'a>| !self.shows_others(host, *node);
        let there: Vec<_> = made.iter().copied().filter(is_there).collect();
        let both: Vec<_> = there.iter().copied().filter(of_it_alone).collect();
        let made: Vec<_> = made.into_iter().filter(of_it_alone).collect();
        // A Node with the host's address is better evidence than a Node that only names the host as its origin.
        [both, there, made].into_iter().find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// The Nodes with the host's address that point to no other host.
    fn unclaimed_at(&self, host: &Host<'a>, evidence: &Evidence<'a>) -> Vec<Node<'a>> {
        let made_from_it = |node: &Node<'a>| {
            let origin = node.origin().and_then(|origin| self.hosts.number_of(origin));
            origin.is_none_or(|origin| origin == host.number)
        };
        let unclaimed = evidence.at(host).filter(|node| {
            made_from_it(node)
                && !self.shows_others(host, *node)
                && !self.is_named_by_others(host, *node)
        });
        unclaimed.collect()
    }

    /// Whether another host than `host` is known by the Node's name.
    fn is_named_by_others(&self, host: &Host<'_>, node: Node<'_>) -> bool {
        let by_name = self.by_name.get_or_init(|| self.names());
        let named = by_name.get(&node.facts.name.to_lowercase());
        named.is_some_and(|named| *named != Some(host.number))
    }

    fn names(&self) -> HashMap<String, Option<usize>> {
        let mut by_name = HashMap::new();
        for host in self.hosts.all() {
            for form in host.names.into_iter().flatten().flat_map(|name| forms(name)) {
                let one = by_name.entry(form.to_lowercase()).or_insert(Some(host.number));
                *one = one.filter(|number| *number == host.number);
            }
        }
        by_name
    }

    /// Whether the Node has the host's address.
    fn is_at(&self, host: &Host<'_>, node: Node<'_>) -> bool {
        let Some(own) = host.first_at_ipv4 else { return false };
        self.shown_by(node).any(|shown| shown == own)
    }

    /// Whether the Node has the address of another host. Two entries for one address are reported elsewhere.
    fn shows_others(&self, host: &Host<'_>, node: Node<'_>) -> bool {
        self.shown_by(node).any(|shown| shown != host.number && Some(shown) != host.first_at_ipv4)
    }

    /// Numbers of the first hosts at the Node's addresses.
    fn shown_by(&self, node: Node<'a>) -> impl Iterator<Item = usize> {
        node.facts.addresses.iter().filter_map(|shown| self.hosts.first_at(shown))
    }
}
