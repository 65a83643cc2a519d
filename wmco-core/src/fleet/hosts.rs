//! Which hosts there are: what people list, beside what is on record.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use super::Observed;
use super::by_address::ByAddress;
use super::host::Host;
use super::same_host;
use super::side_by_side::{Beside, side_by_side};
use super::unlisted::Unlisted;
use crate::host_record::Kept;
use crate::instances::Entries;

/// All hosts that a Node may stand for: the listed ones, then those on record that nobody lists, both
/// sorted by address.
pub(super) struct Hosts<'a> {
    all: Vec<Host<'a>>,
    listed: usize,
    /// Numbers of hosts.
    by_address: ByAddress<'a, usize>,
    /// The number of the first host with an IPv4 address.
    by_ipv4: HashMap<Ipv4Addr, usize>,
    /// All that is kept under addresses that nobody lists.
    pub(super) unlisted: Vec<Unlisted<'a>>,
    damaged: Damaged<'a>,
}

/// Addresses of records that cannot be read.
#[derive(Default)]
struct Damaged<'a> {
    by_ipv4: HashMap<Ipv4Addr, &'a str>,
    /// The first of a host that was listed by name, so that it may be anywhere.
    name: Option<&'a str>,
}

impl<'a> Hosts<'a> {
    pub(super) fn of(entries: &'a Entries, observed: &Observed<'a>) -> Self {
        let mut names = Beside::new(observed.host_names.iter().map(|(a, names)| (a.as_str(), names)));
        let mut untried = Beside::new(observed.untried.iter().map(|a| (a.as_str(), ())));
        let (mut all, mut unlisted) = (Vec::new(), Vec::new());
        let mut damaged = Damaged::default();
        for (address, entry, kept) in side_by_side(entries.iter(), observed.hosts.all()) {
            if kept.is_some_and(Kept::is_damaged) {
                damaged.insert(address);
            }
            let names = names.at(address);
            if let Some(entry) = entry {
                let instance = entry.as_ref().ok();
                all.push(Host {
                    number: all.len(),
                    address,
                    is_listed: true,
                    instance,
                    ipv4: instance.map(|instance| instance.ipv4),
                    first_at_ipv4: None,
                    kept,
                    former: Vec::new(),
                    listed_first: None,
                    names,
                    is_untried: untried.at(address).is_some(),
                });
            } else {
                unlisted.extend(kept.map(|kept| Unlisted { address, kept, names, successor: None }));
            }
        }
        same_host::find_former(&mut all, &mut unlisted);
        same_host::find_listed_twice(&mut all);
        same_host::join_unlisted(&mut unlisted);
        let listed = all.len();
        for it in unlisted.iter().filter(|it| it.successor.is_none()) {
            let Some(record) = it.kept.record() else { continue };
            all.push(Host {
                number: all.len(),
                address: it.address,
                is_listed: false,
                instance: None,
                ipv4: record.ipv4,
                first_at_ipv4: None,
                kept: Some(it.kept),
                former: Vec::new(),
                listed_first: None,
                names: it.names,
                is_untried: false,
            });
        }
        let mut by_address = ByAddress::with_capacity(all.len());
        let mut by_ipv4 = HashMap::with_capacity(all.len());
        for host in &mut all {
            by_address.or_insert(host.address, host.number);
            host.first_at_ipv4 = host.ipv4.map(|ipv4| *by_ipv4.entry(ipv4).or_insert(host.number));
        }
        Self { all, listed, by_address, by_ipv4, unlisted, damaged }
    }

    pub(super) fn all(&self) -> &[Host<'a>] {
        &self.all
    }

    /// Those that people list.
    pub(super) fn listed(&self) -> &[Host<'a>] {
        self.all.get(..self.listed).unwrap_or_default()
    }

    /// Those on record that nobody lists.
    pub(super) fn left(&self) -> &[Host<'a>] {
        self.all.get(self.listed..).unwrap_or_default()
    }

    pub(super) fn numbered(&self, number: usize) -> Option<&Host<'a>> {
        self.all.get(number)
    }

    /// The host with this address as listed.
    pub(super) fn named(&self, address: &str) -> Option<&Host<'a>> {
        self.numbered(self.by_address.get(address)?)
    }

    /// The number of the first host at an address that a Node shows, if that is an IPv4 address.
    pub(super) fn first_at(&self, shown: &str) -> Option<usize> {
        self.by_ipv4.get(&shown.parse().ok()?).copied()
    }

    /// The address of a record that cannot be read and may be the one of this listed host.
    pub(super) fn damaged_record_of(&self, host: &Host<'a>) -> Option<&'a str> {
        if host.kept.is_some_and(Kept::is_damaged) {
            return Some(host.address);
        }
        if host.own_record().is_some() || host.pin().is_some() || !host.former.is_empty() {
            return None;
        }
        // Nobody knows the address of a host that was listed by name.
        let there = || self.damaged.by_ipv4.get(&host.ipv4?).copied();
        self.damaged.name.or_else(there)
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
