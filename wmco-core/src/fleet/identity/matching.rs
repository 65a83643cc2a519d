//! Matches Nodes with hosts, in rounds: each gives Nodes that are free to hosts without one.
//!
//! | [`Round`] | hosts | get the Node |
//! | --- | --- | --- |
//! | `OnRecord` | all | in their record |
//! | `Named` | all | with their address and one of their names |
//! | `MadeFrom` | all | that was made from them, unless names or addresses say otherwise; best with their address |
//! | `There` | listed | with their address, if it claims no other host |
//!
//! The list of instances and the operator's records outrank facts from Nodes: addresses and annotations are claims,
//! which a kubelet or a daemon may write for its own purposes. Of other hosts than listed ones a Node that only has their
//! address is not ours.

use super::evidence::Evidence;
use super::host::Host;
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
    /// Matches all hosts, the listed ones first in each round.
    pub(in crate::fleet) fn of(hosts: &Hosts<'a>, evidence: &Evidence<'a>) -> Self {
        let count = hosts.all().len();
        let mut matching = Self {
            stands: vec![NodeOfHost::Nobody; count],
            confirmed: vec![false; count],
            hosts: vec![None; evidence.nodes().len()],
        };
        let claims = Claims { hosts, evidence };
        for round in [Round::OnRecord, Round::Named, Round::MadeFrom, Round::There] {
            let hosts = if round == Round::There { hosts.listed() } else { hosts.all() };
            for host in hosts {
                if matching.is_open(host) {
                    matching.settle(host, claims.nodes_of(host, round));
                }
                if round == Round::Named {
                    let found = matching.stand(host).node();
                    let confirmed = found.is_some_and(|node| is_named(host, &node));
                    if let Some(known) = matching.confirmed.get_mut(host.number) {
                        *known = confirmed;
                    }
                }
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

    /// Assigns the free ones of the Nodes found to a host that has none yet.
    fn settle(&mut self, host: &Host<'_>, mut free: Vec<Node<'a>>) {
        free.retain(|node| self.claimed_by(*node).is_none());
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

/// Why a Node belongs to a host, the best reason first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Round {
    OnRecord,
    Named,
    MadeFrom,
    There,
}

/// Finds the Nodes of hosts.
struct Claims<'a, 'b> {
    hosts: &'b Hosts<'a>,
    evidence: &'b Evidence<'a>,
}

impl<'a> Claims<'a, '_> {
    /// The Nodes that belong to a host for the reason of this round.
    fn nodes_of(&self, host: &Host<'a>, round: Round) -> Vec<Node<'a>> {
        match round {
            Round::OnRecord => self.evidence.on_record(host).into_iter().collect(),
            Round::Named => self.evidence.at(host).filter(|node| is_named(host, node)).collect(),
            Round::MadeFrom => self.made_from(host),
            Round::There => self.unclaimed_at(host),
        }
    }

    /// The Nodes that were made from the host, if nothing contradicts the best of them.
    fn made_from(&self, host: &Host<'a>) -> Vec<Node<'a>> {
        let made = self.evidence.made_from(host);
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
    fn unclaimed_at(&self, host: &Host<'a>) -> Vec<Node<'a>> {
        let made_from_it = |node: &Node<'a>| {
            let origin = node.origin().and_then(|origin| self.hosts.number_of(origin));
            origin.is_none_or(|origin| origin == host.number)
        };
        let unclaimed = self.evidence.at(host).filter(|node| {
            made_from_it(node)
                && !self.shows_others(host, *node)
                && !self.is_named_by_others(host, *node)
        });
        unclaimed.collect()
    }

    /// Whether another host than `host` is known by the Node's name.
    fn is_named_by_others(&self, host: &Host<'_>, node: Node<'_>) -> bool {
        self.hosts.knows_other(&node.facts.name, host.number)
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

/// Whether one of the host's names is the Node's.
fn is_named(host: &Host<'_>, node: &Node<'_>) -> bool {
    host.names_node(node.facts) == Some(true)
}
