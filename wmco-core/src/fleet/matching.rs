//! Which Node stands for which host.
//!
//! What people listed and what we recorded outranks what Nodes show: addresses and annotations are
//! claims, which a kubelet or a daemon may write for its own purposes.

use std::cell::OnceCell;
use std::collections::HashMap;

use super::evidence::Evidence;
use super::host::{Host, forms};
use super::hosts::Hosts;
use super::node::Node;

/// What stands for one host.
#[derive(Clone, Debug, Default)]
pub(super) enum Stand<'a> {
    /// No Node.
    #[default]
    Nobody,
    /// This Node.
    Node(Node<'a>),
    /// Several Nodes claim to, and nothing tells which one is right.
    Contested(Vec<Node<'a>>),
}

impl<'a> Stand<'a> {
    /// The Node, if it is certain which one.
    pub(super) fn node(&self) -> Option<Node<'a>> {
        match self {
            Self::Node(node) => Some(*node),
            Self::Nobody | Self::Contested(_) => None,
        }
    }
}

/// Which host a Node stands for, by the host's number.
#[derive(Clone, Copy, Debug)]
enum Role {
    /// For this one.
    StandsFor(usize),
    /// For this one, or another Node does.
    Contests(usize),
}

/// The answer for all hosts.
pub(super) struct Matching<'a> {
    /// By the host's number.
    stands: Vec<Stand<'a>>,
    /// By the host's number: whether the host calls itself by the Node's name.
    confirmed: Vec<bool>,
    /// By the Node's number.
    roles: Vec<Option<Role>>,
}

impl<'a> Matching<'a> {
    /// Matches all hosts, the listed ones first in each round. A Node goes to the host that has it on
    /// record; then to the one that calls itself by its name, at its address; then to the one that it
    /// was made from; then to the one whose address it shows. What it claims counts only as long as it
    /// claims one host.
    pub(super) fn of(hosts: &Hosts<'a>, evidence: &Evidence<'a>) -> Self {
        let count = hosts.all().len();
        let mut matching = Self {
            stands: vec![Stand::Nobody; count],
            confirmed: vec![false; count],
            roles: vec![None; evidence.nodes().len()],
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
        // Nobody lists the others, so what only shows their address is none of our business.
        for host in hosts.listed() {
            if matching.is_open(host) {
                matching.settle(host, claims.unclaimed_at(host, evidence));
            }
        }
        matching
    }

    pub(super) fn stand(&self, host: &Host<'_>) -> &Stand<'a> {
        self.stands.get(host.number).unwrap_or(&Stand::Nobody)
    }

    /// Whether the host calls itself by the Node's name, so that both say the same.
    pub(super) fn is_confirmed(&self, host: &Host<'_>) -> bool {
        self.confirmed.get(host.number).is_some_and(|confirmed| *confirmed)
    }

    /// The number of the host that a Node stands for.
    pub(super) fn host_of(&self, node: Node<'_>) -> Option<usize> {
        match self.role(node)? {
            Role::StandsFor(host) => Some(host),
            Role::Contests(_) => None,
        }
    }

    /// The number of the host that a Node claims together with others.
    pub(super) fn contested_host_of(&self, node: Node<'_>) -> Option<usize> {
        match self.role(node)? {
            Role::StandsFor(_) => None,
            Role::Contests(host) => Some(host),
        }
    }

    /// Another listed host whose Node shows the address of `host`, too, unless `host` is known to call
    /// itself by another name: it may be the same one, listed twice.
    pub(super) fn maybe_same_host<'b>(
        &self,
        host: &Host<'a>,
        hosts: &'b Hosts<'a>,
        evidence: &Evidence<'a>,
    ) -> Option<&'b Host<'a>> {
        evidence.at(host).find_map(|node| {
            let other = hosts.numbered(self.host_of(node)?)?;
            let may_be = other.is_listed && host.names_node(node.facts) != Some(false);
            may_be.then_some(other)
        })
    }

    fn role(&self, node: Node<'_>) -> Option<Role> {
        self.roles.get(node.number).copied().flatten()
    }

    fn is_open(&self, host: &Host<'_>) -> bool {
        matches!(self.stand(host), Stand::Nobody)
    }

    /// Gives the host, which has nothing yet, what the best evidence found.
    fn settle(&mut self, host: &Host<'_>, found: impl IntoIterator<Item = Node<'a>>) {
        let found = found.into_iter();
        let free: Vec<Node<'a>> = found.filter(|node| self.role(*node).is_none()).collect();
        let (stand, role) = match free.as_slice() {
            [] => return,
            [node] => (Stand::Node(*node), Role::StandsFor(host.number)),
            several => (Stand::Contested(several.to_vec()), Role::Contests(host.number)),
        };
        if let Some(open) = self.stands.get_mut(host.number) {
            *open = stand;
        }
        for node in free {
            if let Some(free) = self.roles.get_mut(node.number) {
                *free = Some(role);
            }
        }
    }
}

/// Which addresses and names belong to which host.
struct Claims<'a, 'b> {
    hosts: &'b Hosts<'a>,
    /// Numbers of hosts by the names that they are known by, in all forms in lower case; `None`: several.
    /// Only Nodes that are on record of no host and have no host's name are asked for, so mostly nobody
    /// needs it.
    by_name: OnceCell<HashMap<String, Option<usize>>>,
}

impl<'a, 'b> Claims<'a, 'b> {
    const fn of(hosts: &'b Hosts<'a>) -> Self {
        Self { hosts, by_name: OnceCell::new() }
    }

    /// The Nodes that say they were made from the host, if nothing speaks against the best of them.
    fn made_from(&self, host: &Host<'a>, evidence: &Evidence<'a>) -> Vec<Node<'a>> {
        let made = evidence.made_from(host);
        let made: Vec<_> = made.filter(|node| !self.is_named_by_others(host, *node)).collect();
        let is_there = |node: &Node<'a>| self.is_at(host, *node);
        let of_it_alone = |node: &Node<'a>| !self.shows_others(host, *node);
        let there: Vec<_> = made.iter().copied().filter(is_there).collect();
        let both: Vec<_> = there.iter().copied().filter(of_it_alone).collect();
        let made: Vec<_> = made.into_iter().filter(of_it_alone).collect();
        // One that shows the address is more than one that only says that it was made from it.
        [both, there, made].into_iter().find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// The Nodes that show the address of the host and say nothing of another one.
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

    /// Whether the Node shows the host's address.
    fn is_at(&self, host: &Host<'_>, node: Node<'_>) -> bool {
        let Some(own) = host.first_at_ipv4 else { return false };
        self.shown_by(node).any(|shown| shown == own)
    }

    /// Whether the Node shows the address of another host. Two entries for one address are told
    /// elsewhere.
    fn shows_others(&self, host: &Host<'_>, node: Node<'_>) -> bool {
        self.shown_by(node).any(|shown| shown != host.number && Some(shown) != host.first_at_ipv4)
    }

    /// Numbers of the first hosts at the addresses that the Node shows.
    fn shown_by(&self, node: Node<'a>) -> impl Iterator<Item = usize> {
        node.facts.addresses.iter().filter_map(|shown| self.hosts.first_at(shown))
    }
}
