//! All hosts of a pass: the listed ones and the recorded ones.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::net::Ipv4Addr;

use super::by_address::ByAddress;
use super::by_name::ByName;
use super::host::Host;
use super::same_host;
use super::unlisted::Unlisted;
use crate::fleet::Observed;
use crate::fleet::ascending::{Ascending, side_by_side};
use crate::instances::Entries;

/// All hosts that a Node may belong to: the listed ones, then those that are recorded but not listed, both sorted
/// by address.
pub(in crate::fleet) struct Hosts<'a> {
    all: Vec<Host<'a>>,
    listed: usize,
    /// Numbers of hosts.
    by_address: ByAddress<'a, usize>,
    /// The number of the first host with an IPv4 address.
    by_ipv4: HashMap<Ipv4Addr, usize>,
    /// The number of the first host that was at an IPv4 address: its entry is invalid now, or it left and is to be cleaned.
    was_at: HashMap<Ipv4Addr, usize>,
    /// The number of the first host that has a Node in its record, by the Node's name. If a host has several
    /// recorded Nodes, only the first counts.
    by_node: HashMap<&'a str, usize>,
    /// Listed hosts by all their names; names from the list outrank others. Built on first use, which is rare: only for Nodes
    /// that nothing else ties to a host.
    called: OnceCell<ByName>,
    /// All hosts by the names that they are known by. Built on first use as well.
    known: OnceCell<ByName>,
    /// All data under addresses that are not listed.
    pub(in crate::fleet) unlisted: Vec<Unlisted<'a>>,
    damaged: Damaged<'a>,
}

/// Addresses of records that cannot be read.
#[derive(Default)]
struct Damaged<'a> {
    by_ipv4: HashMap<Ipv4Addr, &'a str>,
    /// The first record of a host that was listed by name, so that its address is unknown.
    name: Option<&'a str>,
}

impl<'a> Hosts<'a> {
    pub(in crate::fleet) fn of(entries: Option<&'a Entries>, observed: &Observed<'a>) -> Self {
        let mut names =
            Ascending::new(observed.host_names.iter().map(|(a, names)| (a.as_str(), names)));
        let mut never_contacted =
            Ascending::new(observed.never_contacted.iter().map(|a| (a.as_str(), ())));
        let listed = || {
            let with_names = |entries: &'a Entries| {
                entries.iter().map(|(key, entry)| (key, (entry, entries.names_of(key))))
            };
            entries.into_iter().flat_map(with_names)
        };
        let mut hosts = Self::with_capacity(entries.map_or(0, |all| all.iter().size_hint().0));
        for (address, entry, kept) in side_by_side(listed(), observed.hosts.of_others()) {
            let kept = kept.unwrap_or_default();
            if kept.is_damaged {
                hosts.damaged.insert(address);
            }
            let names = names.at(address);
            match entry {
                Some((entry, also)) => {
                    let is_never_contacted = never_contacted.at(address).is_some();
                    hosts.push(Host::listed(address, entry, also, kept, names, is_never_contacted));
                }
                None => hosts.unlisted.push(Unlisted { address, kept, names, successor: None }),
            }
        }
        hosts.listed = hosts.all.len();
        same_host::find_former(&mut hosts.all, &mut hosts.unlisted);
        same_host::find_listed_twice(&mut hosts.all);
        same_host::join_unlisted(&mut hosts.unlisted);
        for host in hosts.all.iter().filter(|host| !host.former.is_empty()) {
            note_node(&mut hosts.by_node, host);
        }
        let left: Vec<_> = hosts.unlisted.iter().filter_map(Host::left).collect();
        hosts.all.reserve(left.len());
        for host in left {
            hosts.push(host);
        }
        hosts
    }

    fn with_capacity(count: usize) -> Self {
        Self {
            all: Vec::with_capacity(count),
            listed: 0,
            by_address: ByAddress::with_capacity(count),
            by_ipv4: HashMap::with_capacity(count),
            was_at: HashMap::new(),
            by_node: HashMap::with_capacity(count),
            called: OnceCell::new(),
            known: OnceCell::new(),
            unlisted: Vec::new(),
            damaged: Damaged::default(),
        }
    }

    /// Adds a host and sets its number.
    fn push(&mut self, host: Host<'a>) {
        let number = self.all.len();
        self.by_address.or_insert(host.address, number);
        let first = host.ipv4.map(|ipv4| *self.by_ipv4.entry(ipv4).or_insert(number));
        let was_there = host.kept.record.filter(|record| {
            if host.is_listed() { host.ipv4.is_none() } else { !record.is_untouched() }
        });
        if let Some(ipv4) = was_there.and_then(|record| record.ipv4) {
            self.was_at.entry(ipv4).or_insert(number);
        }
        let host = Host { number, first_at_ipv4: first, ..host };
        note_node(&mut self.by_node, &host);
        self.all.push(host);
    }

    pub(in crate::fleet) fn all(&self) -> &[Host<'a>] {
        &self.all
    }

    /// The listed hosts.
    pub(in crate::fleet) fn listed(&self) -> &[Host<'a>] {
        self.all.get(..self.listed).unwrap_or_default()
    }

    /// The recorded hosts that are not listed.
    pub(in crate::fleet) fn left(&self) -> &[Host<'a>] {
        self.all.get(self.listed..).unwrap_or_default()
    }

    pub(in crate::fleet) fn numbered(&self, number: usize) -> Option<&Host<'a>> {
        self.all.get(number)
    }

    /// The host with this listed address.
    pub(in crate::fleet) fn named(&self, address: &str) -> Option<&Host<'a>> {
        self.numbered(self.number_of(address)?)
    }

    /// The number of the host with this listed address.
    pub(super) fn number_of(&self, address: &str) -> Option<usize> {
        self.by_address.get(address)
    }

    /// The number of the first host at a Node's address, if that is an IPv4 address.
    pub(in crate::fleet) fn first_at(&self, shown: &str) -> Option<usize> {
        self.by_ipv4.get(&shown.parse().ok()?).copied()
    }

    /// The first host at an IPv4 address, and the first one that was there.
    pub(in crate::fleet) fn at(&self, ipv4: Ipv4Addr) -> impl Iterator<Item = &Host<'a>> {
        let there = [&self.by_ipv4, &self.was_at].into_iter().filter_map(move |at| at.get(&ipv4));
        there.filter_map(|number| self.numbered(*number))
    }

    /// The number of the first host with the Node in its record.
    pub(in crate::fleet) fn first_with_node_on_record(&self, name: &str) -> Option<usize> {
        self.by_node.get(name).copied()
    }

    /// The listed host that has this name of a Node, so that its kubelet may have registered the Node.
    pub(in crate::fleet) fn called(&self, node: &str) -> Option<&Host<'a>> {
        let called = self.called.get_or_init(|| {
            let written = self.listed().iter().map(|host| (host.address, host.number));
            let also = self.listed().iter();
            let also = also.flat_map(|host| host.also_names().map(|name| (name, host.number)));
            ByName::of(written.chain(also).chain(self.listed().iter().flat_map(Host::known_names)))
        });
        self.numbered(called.first(node)?)
    }

    /// Whether another host than this one is known by this name of a Node.
    pub(super) fn knows_other(&self, node: &str, than: usize) -> bool {
        let known =
            self.known.get_or_init(|| ByName::of(self.all.iter().flat_map(Host::known_names)));
        known.has_other(node, than)
    }

    /// The address of an unreadable record of the host at an IPv4 address.
    pub(in crate::fleet) fn damaged_record_at(&self, ipv4: Ipv4Addr) -> Option<&'a str> {
        self.damaged.by_ipv4.get(&ipv4).copied()
    }

    /// The address of an unreadable record that may belong to this listed host.
    pub(in crate::fleet) fn damaged_record_of(&self, host: &Host<'a>) -> Option<&'a str> {
        if host.kept.is_damaged {
            return Some(host.address);
        }
        let kept = host.kept;
        if kept.record.is_some() || kept.pin.is_some() || !host.former.is_empty() {
            return None;
        }
        // The address of a host that was listed by name is unknown.
        let there = || self.damaged_record_at(host.ipv4?);
        self.damaged.name.or_else(there)
    }
}

/// Indexes the host under its recorded Node; of several hosts with one Node the first counts.
fn note_node<'a>(by_node: &mut HashMap<&'a str, usize>, host: &Host<'a>) {
    if let Some(node) = host.nodes_on_record().next() {
        let first = by_node.entry(node).or_insert(host.number);
        *first = host.number.min(*first);
    }
}

impl<'a> Damaged<'a> {
    fn insert(&mut self, address: &'a str) {
        match address.parse() {
            Ok(ipv4) => drop(self.by_ipv4.insert(ipv4, address)),
            Err(_) => drop(self.name.get_or_insert(address)),
        }
    }
}
