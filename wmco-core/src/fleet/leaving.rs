//! Which hosts and Nodes leave the cluster, because nobody lists them any more.

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;

use super::hosts::Hosts;
use super::matching::{Index, Matching, Stand};
use super::{Assignment, Assignments, Because, Listed, Observed, shown_address};
use crate::facts::NodeFacts;
use crate::fleet::Intent;
use crate::host_record::{HostRecord, RecordChange};
use crate::names;

/// All that the question depends on.
pub(super) struct Leaving<'a, 'b> {
    hosts: &'b Hosts<'a>,
    index: &'b Index<'a>,
    matching: &'b Matching<'a>,
    observed: &'b Observed<'a>,
    entries: EntryIndex<'a>,
    /// An entry that is about to be looked at for the first time.
    look_due: Option<String>,
    /// Entries of which nothing but a key is known, by its fingerprint.
    unnamed: HashMap<&'a str, &'a str>,
}

/// All entries, by what a Node may mean them by.
struct EntryIndex<'a> {
    /// By the address as listed, now or before.
    listed: HashMap<&'a str, Listed<'a>>,
    /// By any address: as listed, of its host, and that which its host had.
    at: HashMap<String, Listed<'a>>,
    /// By the Node on record.
    of_node: HashMap<&'a str, Listed<'a>>,
    /// Those that do not resolve or parse.
    broken: HashSet<&'a str>,
    /// The first of these by a name of which nothing is known.
    unknown: Option<Listed<'a>>,
}

impl<'a> EntryIndex<'a> {
    fn of(entries: &[Listed<'a>], hosts: &Hosts<'a>) -> Self {
        let mut index = Self {
            listed: entries.iter().map(|entry| (entry.address, *entry)).collect(),
            at: HashMap::with_capacity(entries.len()),
            of_node: HashMap::new(),
            broken: HashSet::new(),
            unknown: None,
        };
        for entry in entries {
            let record = hosts.of_entry(entry.address);
            let ipv4 = entry.ipv4().or_else(|| record?.ipv4);
            for text in [Some(entry.address.to_owned()), ipv4.map(|ip| ip.to_string())]
                .into_iter()
                .flatten()
            {
                index.at.entry(text).or_insert(*entry);
            }
            for node in hosts.nodes_of_entry(entry.address) {
                index.of_node.entry(node).or_insert(*entry);
            }
            for former in hosts.former_addresses(entry.address) {
                index.listed.entry(former).or_insert(*entry);
            }
            if entry.ipv4().is_none() {
                index.broken.insert(entry.address);
                let is_name = entry.address.parse::<Ipv4Addr>().is_err();
                index.unknown = index.unknown.or((is_name && record.is_none()).then_some(*entry));
            }
        }
        index
    }
}

impl<'a, 'b> Leaving<'a, 'b> {
    /// The question about `entries`, after `out` has what to do with them.
    pub(super) fn of(
        entries: &[Listed<'a>],
        hosts: &'b Hosts<'a>,
        index: &'b Index<'a>,
        matching: &'b Matching<'a>,
        observed: &'b Observed<'a>,
        out: &Assignments<'a>,
    ) -> Self {
        let unseen = |instance: &&Assignment<'_>| {
            let record = observed.hosts.record(&instance.address);
            instance.intent != Intent::Leave
                && observed.untried.contains(&instance.address)
                && record.is_none_or(|record| record.pinned.is_none())
        };
        let look_due = out.instances.iter().find(unseen).map(|instance| instance.address.clone());
        let unnamed = hosts.unnamed(entries);
        let entries = EntryIndex::of(entries, hosts);
        Self { hosts, index, matching, observed, entries, look_due, unnamed }
    }

    /// Decides about every host on record and every Node of ours that no entry stands for.
    pub(super) fn decide(&self, out: &mut Assignments<'a>) {
        for (address, record) in &self.hosts.unlisted {
            self.host(address, record, out);
        }
        let ours = |node: &&NodeFacts| {
            node.is_windows() && node.is_byoh() && self.matching.host_of(&node.name).is_none()
        };
        for node in self.observed.nodes.iter().filter(ours) {
            self.node(node, out);
        }
    }

    /// A host on record that nobody lists: it is cleaned, and its Node goes, if it has one.
    fn host(&self, address: &str, record: &HostRecord, out: &mut Assignments<'a>) {
        if record.is_untouched() {
            return;
        }
        let stand = self.matching.stand(address);
        let because = match stand {
            Stand::Contested(nodes) => Because::contested(nodes),
            Stand::Node(node) if !node.is_windows() => Because::OtherSystem,
            Stand::Node(node) if node.belongs_to_machine() => Because::MachineBehind,
            Stand::Node(_) | Stand::Nobody => {
                let claimed = stand.node().and_then(|node| self.claimed_entry(node));
                match claimed.or_else(|| self.broken_entry_of(address, record.ipv4)) {
                    Some(entry) => Because::MayBeListed { address: entry.to_owned() },
                    None => self.unless_look_due(record.pinned.as_deref()),
                }
            }
        };
        out.instances.push(assignment(address.to_owned(), stand.node(), because));
    }

    /// A Node of ours that stands for no host that is listed or on record.
    fn node(&self, node: &'a NodeFacts, out: &mut Assignments<'a>) {
        let leave = |because| assignment(shown_address(node), Some(node), because);
        let contested = self.matching.contested_host_of(&node.name);
        let ipv4 = node.usable_address().and_then(|text| text.parse().ok());
        let origin = node.annotation(names::INSTANCE_ANNOTATION);
        let claimed = self
            .claimed_entry(node)
            .or_else(|| self.broken_entry_of(origin.unwrap_or(&node.name), ipv4));
        if let Some(address) = contested.or(claimed) {
            let because = Because::MayBeListed { address: address.to_owned() };
            out.instances.push(leave(because));
            return;
        }
        let shown = shown_address(node);
        let texts = [origin.map(str::to_owned), ipv4.map(|ip| ip.to_string()), Some(shown.clone())];
        let hosts = self.observed.hosts;
        if let Some(address) = texts.into_iter().flatten().find(|text| hosts.is_damaged(text)) {
            out.instances.push(leave(Because::RecordDamaged { address }));
            return;
        }
        if node.is_deleted {
            // Its host was cleaned and forgotten, or nobody knows it.
            out.instances.push(leave(Because::NodeDeleted));
            return;
        }
        let username = node.annotation(names::USERNAME_ANNOTATION);
        // Only a Node of the Go operator, which writes no origin, tells of its host. One of ours had a
        // record, so what it says now is worth nothing.
        let (Some(ipv4), Some(username), None) = (ipv4, username, origin) else {
            // What is kept under that name is another host's.
            let is_entry = self.entries.listed.contains_key(shown.as_str());
            let others = is_entry || hosts.record(&shown).is_some();
            // Otherwise nobody knows how to reach its host, which people are told when it is tried.
            let because = Because::MayBeListed { address: shown };
            out.instances.push(leave(if others { because } else { self.unless_look_due(None) }));
            return;
        };
        let address = ipv4.to_string();
        let others = self.index.at(&address).iter().find(|other| other.name != node.name);
        let adopted = |change: &RecordChange| match change {
            RecordChange::Adopted { node, .. } => Some(node.clone()),
            _ => None,
        };
        let recorded = hosts.record(&address).map(|record| record.node.clone());
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
        // It comes from the Go operator, which knows nothing but the Node.
        let change =
            RecordChange::Adopted { ipv4, node: node.name.clone(), username: username.to_owned() };
        out.changes.insert(address.clone(), change);
        out.instances.push(assignment(address, Some(node), Because::RecordDue));
    }

    /// It leaves, unless an entry whose host nobody has seen yet may be another address of it.
    fn unless_look_due(&self, pinned: Option<&str>) -> Because {
        let alike = pinned.and_then(|pinned| self.unnamed.get(pinned).copied());
        match alike.or(self.look_due.as_deref()) {
            Some(address) => Because::LookDue { address: address.to_owned() },
            None => Because::Unlisted,
        }
    }

    /// The entry whose address a Node shows, that it says it was made from, or that has it on record.
    fn claimed_entry(&self, node: &NodeFacts) -> Option<&'a str> {
        let entries = &self.entries;
        let made_from = node.annotation(names::INSTANCE_ANNOTATION);
        let made_from = made_from.and_then(|origin| entries.listed.get(origin));
        let recorded = entries.of_node.get(node.name.as_str());
        let shown = node.addresses.iter().filter_map(|address| entries.at.get(address));
        let all = made_from.into_iter().chain(recorded).chain(shown);
        all.map(|entry| entry.address).min()
    }

    /// A broken entry that may mean the host on record or at an address: one that is its address, or
    /// any name of which nothing is known.
    fn broken_entry_of(&self, address: &str, ipv4: Option<Ipv4Addr>) -> Option<&'a str> {
        let broken = |text: &str| self.entries.broken.get(text).copied();
        let unknown = || self.entries.unknown.map(|entry| entry.address);
        broken(address).or_else(|| broken(&ipv4?.to_string())).or_else(unknown)
    }
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
