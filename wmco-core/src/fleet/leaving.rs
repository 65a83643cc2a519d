//! Decides which hosts and Nodes are removed because they are no longer listed.

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;

use super::claimed::ClaimedEntries;
use super::evidence::Evidence;
use super::host::{Host, forms};
use super::hosts::Hosts;
use super::machine_index::MachineIndex;
use super::matching::{Matching, NodeOfHost};
use super::node::{Kind, Node, contested, shows};
use super::{Assignment, Assignments, Because, Intent, Observed, shown_address};
use crate::facts::NodeFacts;
use crate::host_record::RecordChange;
use crate::machines::name_in;
use crate::names;

/// Decides about every recorded host and every Node of ours without an entry. `look_due` is an entry that is about
/// to be contacted for the first time.
pub(super) fn decide<'a>(
    hosts: &Hosts<'a>,
    made: &MachineIndex<'a>,
    evidence: &Evidence<'a>,
    matching: &Matching<'a>,
    observed: &Observed<'a>,
    look_due: Option<&'a str>,
    out: &mut Assignments<'a>,
) {
    let is_ours =
        |node: &Node<'_>| node.kind == Kind::FromEntry && matching.host_of(*node).is_none();
    let nodes: Vec<Node<'a>> = evidence.nodes().iter().copied().filter(is_ours).collect();
    if nodes.is_empty() && hosts.left().is_empty() {
        return;
    }
    let leaving = Leaving {
        hosts,
        made,
        matching,
        observed,
        entries: ClaimedEntries::of(hosts),
        of_machines: names_of_machines(observed),
        look_due,
        unnamed: unnamed(hosts),
    };
    for host in hosts.left() {
        leaving.host(host, out);
    }
    let at = nodes_at_addresses_of(&nodes, observed.nodes);
    for node in nodes {
        leaving.node(node, &at, out);
    }
}

/// Inputs of the decision.
struct Leaving<'a, 'b> {
    hosts: &'b Hosts<'a>,
    made: &'b MachineIndex<'a>,
    matching: &'b Matching<'a>,
    observed: &'b Observed<'a>,
    entries: ClaimedEntries<'a, 'b>,
    /// Names of Machines' hosts, in all forms in lower case.
    of_machines: HashSet<String>,
    /// An entry that is about to be contacted for the first time.
    look_due: Option<&'a str>,
    /// Entries of which only a key is known, by its fingerprint.
    unnamed: HashMap<&'a str, &'a str>,
}

/// All Nodes at the addresses of leaving Nodes whose hosts would be adopted, sorted by name.
type NodesAt<'a> = HashMap<Ipv4Addr, Vec<&'a NodeFacts>>;

impl<'a> Leaving<'a, '_> {
    /// Decides about a recorded host that is not listed: it is cleaned, and its Node is deleted if it has one.
    fn host(&self, host: &Host<'a>, out: &mut Assignments<'a>) {
        let Some(record) = host.kept.record.filter(|record| !record.is_untouched()) else { return };
        let stand = self.matching.stand(host);
        let node = stand.node().map(|node| node.facts);
        let because = match stand {
            NodeOfHost::Contested(nodes) => contested(nodes),
            NodeOfHost::Node(node) if node.kind == Kind::OtherSystem => Because::OtherSystem,
            NodeOfHost::Node(node) if node.kind == Kind::FromMachine => Because::MachineBehind,
            NodeOfHost::Node(_) | NodeOfHost::Nobody => {
                let claimed = node.and_then(|node| {
                    self.entries
                        .claimed_by(node)
                        .or_else(|| self.called_as_listed(node, record.ipv4))
                });
                let claimed =
                    claimed.or_else(|| self.also_listed(host.address, record.ipv4)).or_else(|| {
                        self.entries.broken_one_of(host.address, record.ipv4, node.is_some())
                    });
                match (claimed, self.machine_at(record.ipv4)) {
                    (Some(entry), _) => Because::MayBeListed { address: entry.to_owned() },
                    (None, Some(because)) => because,
                    (None, None) => self.unless_look_due(record.pinned.as_deref()),
                }
            }
        };
        out.instances.push(assignment(host.address.to_owned(), node, because));
    }

    /// Decides about a Node of ours that belongs to no listed or recorded host.
    fn node(&self, node: Node<'a>, at: &NodesAt<'a>, out: &mut Assignments<'a>) {
        let contested = self.matching.contested_host_of(node);
        let contested = contested.and_then(|host| Some(self.hosts.numbered(host)?.address));
        let origin = node.origin();
        let node = node.facts;
        let leave = |because| assignment(shown_address(node), Some(node), because);
        let ipv4 = usable_ipv4(node);
        let claimed = self
            .entries
            .claimed_by(node)
            .or_else(|| Some(self.hosts.called(node)?.address))
            .or_else(|| self.entries.broken_one_of(origin.unwrap_or(&node.name), ipv4, true));
        if let Some(address) = contested.or(claimed) {
            let because = Because::MayBeListed { address: address.to_owned() };
            out.instances.push(leave(because));
            return;
        }
        if let Some(because) = self.machine_at(ipv4) {
            out.instances.push(leave(because));
            return;
        }
        if self.made.is_ignored(node, ipv4)
            || self.made.may_be_behind(node)
            || self.of_machines.contains(&node.name.to_lowercase())
        {
            // No record says that it was listed, and its kubelet may have written our label.
            out.instances.push(leave(Because::MachineBehind));
            return;
        }
        let shown = shown_address(node);
        let texts = [origin.map(str::to_owned), ipv4.map(|ip| ip.to_string()), Some(shown.clone())];
        let known = self.observed.hosts;
        if let Some(address) = texts.into_iter().flatten().find(|text| known.is_damaged(text)) {
            out.instances.push(leave(Because::RecordDamaged { address }));
            return;
        }
        if node.is_deleted {
            // Its host was cleaned and forgotten, or is unknown.
            out.instances.push(leave(Because::NodeDeleted));
            return;
        }
        let username = node.annotation(names::USERNAME_ANNOTATION);
        // Only a Node of the Go operator, which writes no origin, describes its host. A Node of ours had a record,
        // so its own annotations do not count.
        let (Some(ipv4), Some(username), None) = (ipv4, username, origin) else {
            // The data under this name belongs to another host.
            let others = self.entries.named(&shown).is_some() || known.record(&shown).is_some();
            // Otherwise it is unknown how to reach its host; the removal reports that.
            let because = Because::MayBeListed { address: shown };
            out.instances.push(leave(if others { because } else { self.unless_look_due(None) }));
            return;
        };
        let address = ipv4.to_string();
        let others = at.get(&ipv4).into_iter().flatten().find(|other| other.name != node.name);
        let adopted = |change: &RecordChange| match change {
            RecordChange::Adopted { node, .. } => Some(node.clone()),
            _ => None,
        };
        let recorded = known.record(&address).map(|record| record.node.clone());
        let recorded = recorded.or_else(|| out.changes.get(&address).map(adopted));
        let shared = |node| Because::AddressShared { node };
        let recorded = recorded.map(|node| match node {
            Some(node) => shared(node),
            None => Because::MayBeListed { address: address.clone() },
        });
        if let Some(because) = others.map(|other| shared(other.name.clone())).or(recorded) {
            out.instances.push(leave(because));
            return;
        }
        // A Node of the Go operator is the only source of facts about its host.
        let change =
            RecordChange::Adopted { ipv4, node: node.name.clone(), username: username.to_owned() };
        out.changes.insert(address.clone(), change);
        out.instances.push(assignment(address, Some(node), Because::RecordDue));
    }

    /// The entry that the Node of a recorded host at `ipv4` may belong to, by its name. A reported name does not
    /// protect a Node that has the address of its own host; a listed name does.
    fn called_as_listed(&self, node: &NodeFacts, ipv4: Option<Ipv4Addr>) -> Option<&'a str> {
        let entry = self.hosts.called(node)?;
        let is_there = ipv4.is_some_and(|ipv4| shows(node, ipv4));
        (!is_there || entry.is_called_by_list(node)).then_some(entry.address)
    }

    /// The entry that a recorded host at `ipv4` is by `names=`: it has the key that the host had before, or its address.
    fn also_listed(&self, key: &str, ipv4: Option<Ipv4Addr>) -> Option<&'a str> {
        let at = || self.entries.also_named(&ipv4?.to_string());
        Some(self.entries.also_named(key).or_else(at)?.address)
    }

    /// Why the host is left if a Machine has its address now.
    fn machine_at(&self, ipv4: Option<Ipv4Addr>) -> Option<Because> {
        self.made.address_of_machine(ipv4?)
    }

    /// The reason to remove it, unless an entry whose host has never been contacted may be another address of it.
    fn unless_look_due(&self, pinned: Option<&str>) -> Because {
        let alike = pinned.and_then(|pinned| self.unnamed.get(pinned).copied());
        match alike.or(self.look_due) {
            Some(address) => Because::LookDue { address: address.to_owned() },
            None => Because::Unlisted,
        }
    }
}

fn names_of_machines(observed: &Observed<'_>) -> HashSet<String> {
    let known = observed.host_names.iter().filter(|(address, _)| name_in(address).is_some());
    let names = known.flat_map(|(_, names)| names);
    names.flat_map(|name| forms(name)).map(str::to_lowercase).collect()
}

/// Entries whose hosts have shown a key but no name yet, by the key's fingerprint: each may be the host of any
/// record with that key.
fn unnamed<'a>(hosts: &Hosts<'a>) -> HashMap<&'a str, &'a str> {
    let unnamed = hosts.listed().iter().filter_map(|host| {
        let record = host.record()?;
        let pinned = record.pinned.as_deref().filter(|_| record.identity().is_none())?;
        Some((pinned, host.address))
    });
    unnamed.collect()
}

/// All Nodes with the address of one of the `leaving` Nodes.
fn nodes_at_addresses_of<'a>(leaving: &[Node<'a>], nodes: &'a [NodeFacts]) -> NodesAt<'a> {
    let adoptable = leaving.iter().filter(|node| node.origin().is_none());
    let mut at: NodesAt<'a> =
        adoptable.filter_map(|node| Some((usable_ipv4(node.facts)?, Vec::new()))).collect();
    if at.is_empty() {
        return at;
    }
    for node in nodes {
        for ipv4 in node.addresses.iter().filter_map(|shown| shown.parse().ok()) {
            if let Some(there) = at.get_mut(&ipv4) {
                there.push(node);
            }
        }
    }
    for there in at.values_mut() {
        there.sort_by(|a, b| a.name.cmp(&b.name));
    }
    at
}

fn usable_ipv4(node: &NodeFacts) -> Option<Ipv4Addr> {
    node.usable_address()?.parse().ok()
}

fn assignment(address: String, node: Option<&NodeFacts>, because: Because) -> Assignment<'_> {
    let intent = match because {
        Because::Unlisted => Intent::Remove(None),
        _ => Intent::Leave,
    };
    Assignment {
        address,
        formerly: Vec::new(),
        instance: None,
        node,
        confirmed: false,
        intent,
        because,
    }
}
