//! Which Node stands for which host.
//!
//! What people listed and what we recorded outranks what Nodes show: addresses and annotations are
//! claims, which a kubelet or a daemon may write for its own purposes.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::Ipv4Addr;

use super::Observed;
use crate::facts::NodeFacts;
use crate::names;

/// All Nodes, by what they are looked up by.
pub(super) struct Index<'a> {
    names: HashMap<&'a str, &'a NodeFacts>,
    addresses: HashMap<&'a str, Vec<&'a NodeFacts>>,
    origins: HashMap<&'a str, Vec<&'a NodeFacts>>,
}

impl<'a> Index<'a> {
    /// The Nodes sorted by name, so that the order in which a cache shows them does not matter.
    pub(super) fn of(nodes: &'a [NodeFacts]) -> Self {
        let mut sorted: Vec<&NodeFacts> = nodes.iter().collect();
        sorted.sort_by(|a, b| a.name.cmp(&b.name));
        let mut index = Self {
            names: HashMap::with_capacity(nodes.len()),
            addresses: HashMap::with_capacity(nodes.len()),
            origins: HashMap::new(),
        };
        for node in sorted {
            index.names.insert(&node.name, node);
            for address in &node.addresses {
                let there = index.addresses.entry(address).or_default();
                // One Node may show an address twice, as its name and as its internal name.
                if there.last().is_none_or(|last| last.name != node.name) {
                    there.push(node);
                }
            }
            if let Some(instance) = node.annotation(names::INSTANCE_ANNOTATION) {
                index.origins.entry(instance).or_default().push(node);
            }
        }
        index
    }

    pub(super) fn named(&self, name: &str) -> Option<&'a NodeFacts> {
        self.names.get(name).copied()
    }

    pub(super) fn at(&self, address: &str) -> &[&'a NodeFacts] {
        self.addresses.get(address).map_or(&[], Vec::as_slice)
    }

    pub(super) fn made_from(&self, address: &str) -> &[&'a NodeFacts] {
        self.origins.get(address).map_or(&[], Vec::as_slice)
    }
}

/// A host that a Node may stand for: listed, or on record and no longer listed.
pub(super) struct Subject<'a> {
    /// Its address as listed.
    pub(super) address: &'a str,
    /// What that resolves to, or did.
    pub(super) ipv4: Option<Ipv4Addr>,
    /// The same as Nodes show it.
    pub(super) shown: Option<String>,
    /// The Node that is on record of it.
    pub(super) node_on_record: Option<&'a str>,
    /// Whether people list it.
    pub(super) listed: bool,
}

/// What stands for one host.
#[derive(Clone, Debug)]
pub(super) enum Stand<'a> {
    /// No Node.
    Nobody,
    /// This Node.
    Node(&'a NodeFacts),
    /// Several Nodes claim to, and nothing tells which one is right.
    Contested(Vec<&'a NodeFacts>),
}

impl<'a> Stand<'a> {
    /// The Node, if it is certain which one.
    pub(super) fn node(&self) -> Option<&'a NodeFacts> {
        match self {
            Self::Node(node) => Some(node),
            Self::Nobody | Self::Contested(_) => None,
        }
    }
}

/// The answer for all hosts.
pub(super) struct Matching<'a> {
    stands: HashMap<&'a str, Stand<'a>>,
    /// Which host a Node stands for, by the Node's name.
    taken: HashMap<&'a str, &'a str>,
    /// Which host a Node may stand for that others claim as well, by the Node's name.
    contested: HashMap<&'a str, &'a str>,
    confirmed: HashSet<&'a str>,
    listed: HashSet<&'a str>,
}

impl<'a> Matching<'a> {
    /// Matches `subjects`, the listed ones first in each round. A Node goes to the host that has it on
    /// record; then to the one that calls itself by its name, at its address; then to the one that it
    /// was made from; then to the one whose address it shows. What it claims counts only as long as it
    /// claims one host.
    pub(super) fn of(subjects: &[Subject<'a>], index: &Index<'a>, observed: &Observed<'a>) -> Self {
        let mut matching = Self {
            stands: HashMap::with_capacity(subjects.len()),
            taken: HashMap::with_capacity(subjects.len()),
            contested: HashMap::new(),
            confirmed: HashSet::new(),
            listed: subjects.iter().filter(|s| s.listed).map(|s| s.address).collect(),
        };
        let claims = Claims::of(subjects, observed);
        let (listed, left): (Vec<_>, Vec<_>) = subjects.iter().partition(|s| s.listed);
        let in_order = || listed.iter().chain(&left).copied();
        for subject in in_order() {
            let node = subject.node_on_record.and_then(|name| index.named(name));
            matching.settle(subject, node.as_slice());
        }
        for subject in in_order() {
            let Some(names) = observed.host_names.get(subject.address) else { continue };
            let fits = |node: &&&NodeFacts| names.iter().any(|name| names_node(name, node));
            let there = subject.nodes_at(index);
            let fitting: Vec<_> = there.iter().filter(fits).copied().collect();
            matching.settle(subject, &fitting);
            if matching.stand(subject.address).node().is_some_and(|node| fits(&&node)) {
                matching.confirmed.insert(subject.address);
            }
        }
        for subject in in_order() {
            let of_it_alone = |node: &&&NodeFacts| claims.of_others(subject, node).is_none();
            let not_named_by_others =
                |node: &&&NodeFacts| !claims.is_named_by_others(subject, node);
            let made = index.made_from(subject.address).iter().filter(not_named_by_others);
            let there: Vec<_> = made.clone().filter(|node| subject.is_at(node)).copied().collect();
            let made: Vec<_> = made.filter(of_it_alone).copied().collect();
            let both: Vec<_> = there.iter().filter(of_it_alone).copied().collect();
            // One that shows the address is more than one that only says that it was made from it.
            let best = [both, there, made].into_iter().find(|found| !found.is_empty());
            matching.settle(subject, &best.unwrap_or_default());
        }
        // Nobody lists the others, so what only shows their address is none of our business.
        for subject in listed {
            let made_from_it = |node: &NodeFacts| {
                let origin = node.annotation(names::INSTANCE_ANNOTATION);
                origin.is_none_or(|origin| origin == subject.address || !claims.is_subject(origin))
            };
            let there = subject.nodes_at(index).iter();
            let unclaimed = there.filter(|node| {
                made_from_it(node)
                    && claims.of_others(subject, node).is_none()
                    && !claims.is_named_by_others(subject, node)
            });
            matching.settle(subject, &unclaimed.copied().collect::<Vec<_>>());
        }
        matching
    }

    pub(super) fn stand(&self, address: &str) -> &Stand<'a> {
        self.stands.get(address).unwrap_or(&Stand::Nobody)
    }

    /// The host that a Node stands for.
    pub(super) fn host_of(&self, node: &str) -> Option<&'a str> {
        self.taken.get(node).copied()
    }

    /// Whether the host calls itself by the Node's name, so that both say the same.
    pub(super) fn is_confirmed(&self, address: &str) -> bool {
        self.confirmed.contains(address)
    }

    /// The Node of another listed host that shows the address of `subject`, too, unless the subject's
    /// host is known to call itself by another name: it may be the same host, listed twice.
    pub(super) fn maybe_same_host(
        &self,
        subject: &Subject<'a>,
        index: &Index<'a>,
        observed: &Observed<'a>,
    ) -> Option<&'a NodeFacts> {
        let names = observed.host_names.get(subject.address);
        let may_be = |node: &&&NodeFacts| {
            self.taken.get(node.name.as_str()).is_some_and(|host| self.listed.contains(host))
                && names.is_none_or(|names| names.iter().any(|name| names_node(name, node)))
        };
        subject.nodes_at(index).iter().find(may_be).copied()
    }

    /// The host that a Node claims together with others.
    pub(super) fn contested_host_of(&self, node: &str) -> Option<&'a str> {
        self.contested.get(node).copied()
    }

    fn free(&self, nodes: &[&'a NodeFacts]) -> Vec<&'a NodeFacts> {
        let free = |node: &&&NodeFacts| {
            let name = node.name.as_str();
            !self.taken.contains_key(name) && !self.contested.contains_key(name)
        };
        nodes.iter().filter(free).copied().collect()
    }

    /// Gives the subject what the best evidence found, if it has nothing yet.
    fn settle(&mut self, subject: &Subject<'a>, found: &[&'a NodeFacts]) {
        if self.stands.contains_key(subject.address) {
            return;
        }
        let found = self.free(found);
        match found.as_slice() {
            [] => {}
            [node] => {
                self.taken.insert(&node.name, subject.address);
                self.stands.insert(subject.address, Stand::Node(node));
            }
            _ => {
                self.contested.extend(found.iter().map(|n| (n.name.as_str(), subject.address)));
                self.stands.insert(subject.address, Stand::Contested(found));
            }
        }
    }
}

impl Subject<'_> {
    fn is_at(&self, node: &NodeFacts) -> bool {
        self.shown.as_ref().is_some_and(|ip| node.addresses.contains(ip))
    }

    fn nodes_at<'b, 'a>(&self, index: &'b Index<'a>) -> &'b [&'a NodeFacts] {
        self.shown.as_ref().map_or(&[], |ip| index.at(ip))
    }
}

/// Which addresses belong to which host.
struct Claims<'a, 's> {
    by_address: HashMap<&'s str, &'a str>,
    /// Hosts by the names that they are known by, whole and up to the first dot, in lower case.
    by_name: HashMap<String, BTreeSet<&'a str>>,
    subjects: HashSet<&'a str>,
}

impl<'a, 's> Claims<'a, 's> {
    fn of(subjects: &'s [Subject<'a>], observed: &Observed<'_>) -> Self {
        let mut by_address = HashMap::with_capacity(subjects.len());
        let mut by_name: HashMap<String, BTreeSet<&str>> = HashMap::new();
        for subject in subjects {
            for name in observed.host_names.get(subject.address).into_iter().flatten() {
                for form in [name.as_str(), first_label(name)] {
                    by_name.entry(form.to_lowercase()).or_default().insert(subject.address);
                }
            }
        }
        for subject in subjects {
            // The listed ones come first.
            if let Some(shown) = &subject.shown {
                by_address.entry(shown.as_str()).or_insert(subject.address);
            }
        }
        let subjects = subjects.iter().map(|subject| subject.address).collect();
        Self { by_address, by_name, subjects }
    }

    /// Whether another host than `subject` is known by the Node's name.
    fn is_named_by_others(&self, subject: &Subject<'_>, node: &NodeFacts) -> bool {
        let hosts = self.by_name.get(&node.name.to_lowercase());
        hosts.is_some_and(|hosts| hosts.iter().any(|host| *host != subject.address))
    }

    fn is_subject(&self, address: &str) -> bool {
        self.subjects.contains(address)
    }

    /// The host, another one than `subject`, whose address the Node shows.
    fn of_others(&self, subject: &Subject<'_>, node: &NodeFacts) -> Option<&'a str> {
        let owner = |address: &str| self.by_address.get(address).copied();
        // Two entries for one address are told elsewhere.
        let own = subject.shown.as_deref().and_then(owner);
        let mut owners = node.addresses.iter().filter_map(|address| owner(address));
        owners.find(|owner| *owner != subject.address && Some(*owner) != own)
    }
}

/// Whether a host that calls itself `reported` may have registered `node`: by its whole name or by the
/// first label of it.
fn names_node(reported: &str, node: &NodeFacts) -> bool {
    [reported, first_label(reported)].iter().any(|name| name.eq_ignore_ascii_case(&node.name))
}

fn first_label(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}
