//! Finds the entry that a Node or a leaving host may belong to, whatever Node that entry has.

use std::collections::HashMap;

use super::hosts::Hosts;
use crate::facts::NodeFacts;
use crate::host_record::{HostRecord, forms};
use crate::instances::AlsoNamed;
use crate::names;

/// All entries, by all names and addresses by which people or records call their hosts.
pub(in crate::fleet) struct ClaimedEntries<'a, 'b> {
    hosts: &'b Hosts<'a>,
    /// Numbers of entries, which follow the order of their addresses; of several the first.
    called: HashMap<AlsoNamed, usize>,
    /// The same by names of Nodes: a host may register one by the first label of its name.
    of_node: HashMap<AlsoNamed, usize>,
    /// The same by the names that hosts reported when they were put on record, wherever their entries lead now.
    reported: HashMap<AlsoNamed, usize>,
    /// The first invalid entry whose host we know nothing of, since no login to it ever succeeded.
    unknown: Option<&'a str>,
    /// Entries of which only a key is known and no name, by its fingerprint: each may be the host of any record with that
    /// key.
    nameless: HashMap<&'a str, &'a str>,
}

impl<'a, 'b> ClaimedEntries<'a, 'b> {
    pub(in crate::fleet) fn of(hosts: &'b Hosts<'a>) -> Self {
        let mut entries = Self {
            hosts,
            called: HashMap::new(),
            of_node: HashMap::new(),
            reported: HashMap::new(),
            unknown: None,
            nameless: HashMap::new(),
        };
        for host in hosts.listed() {
            let record = host.record();
            let former = host.former.iter().map(|former| former.address);
            let texts = std::iter::once(host.address).chain(former).map(AlsoNamed::of);
            let ipv4 = host.ipv4.or_else(|| record?.ipv4).map(|it| AlsoNamed::Address(it.into()));
            let also = host.also.into_iter().flatten().cloned();
            for by in texts.chain(ipv4).chain(also) {
                entries.called.entry(by).or_insert(host.number);
            }
            let reported = host.records().filter_map(|record| record.host_name.as_deref());
            for name in reported {
                entries.reported.entry(AlsoNamed::of(name)).or_insert(host.number);
            }
            let written = std::iter::once(host.address).chain(host.also_names()).flat_map(forms);
            for name in written.chain(host.nodes_on_record()) {
                entries.of_node.entry(AlsoNamed::of(name)).or_insert(host.number);
            }
            if let Some(record) = record.filter(|record| record.identity().is_none()) {
                let pinned = record.pinned.as_deref();
                entries.nameless.extend(pinned.map(|pinned| (pinned, host.address)));
            }
            if host.is_broken() && record.is_none_or(HostRecord::is_untouched) {
                entries.unknown.get_or_insert(host.address);
            }
        }
        entries
    }

    /// The entry whose host is called so.
    pub(in crate::fleet) fn called(&self, text: &str) -> Option<&'a str> {
        self.address(self.called.get(&AlsoNamed::of(text)))
    }

    /// The entry whose host may register a Node with this name.
    pub(in crate::fleet) fn of_node(&self, name: &str) -> Option<&'a str> {
        self.address(self.of_node.get(&AlsoNamed::of(name)))
    }

    /// The entry whose host has reported this name, wherever the entry leads now.
    pub(in crate::fleet) fn reported(&self, name: &str) -> Option<&'a str> {
        self.address(self.reported.get(&AlsoNamed::of(name)))
    }

    fn address(&self, number: Option<&usize>) -> Option<&'a str> {
        Some(self.hosts.numbered(*number?)?.address)
    }

    /// The first entry that has anything in common with the Node: its name, the host that it was made from, an address.
    pub(in crate::fleet) fn claimed_by(&self, node: &NodeFacts) -> Option<&'a str> {
        let texts = node.annotation(names::INSTANCE_ANNOTATION).into_iter();
        let texts = texts.chain(node.addresses.iter().map(String::as_str));
        let called = texts.filter_map(|text| self.called.get(&AlsoNamed::of(text)));
        self.address(called.chain(self.of_node.get(&AlsoNamed::of(&node.name))).min())
    }

    /// An invalid entry of whose host nothing is known, so that it may be any: a Node need not show all addresses of its
    /// host.
    pub(in crate::fleet) const fn unknown(&self) -> Option<&'a str> {
        self.unknown
    }

    /// An entry that has told no name, and may be the host with this key, or any without one.
    pub(in crate::fleet) fn nameless(&self, pinned: Option<&str>) -> Option<&'a str> {
        match pinned {
            Some(pinned) => self.nameless.get(pinned).copied(),
            None => self.nameless.values().copied().min(),
        }
    }
}
