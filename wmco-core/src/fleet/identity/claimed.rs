//! Finds the entry that a Node or a leaving host may belong to, whatever Node that entry has.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use super::by_address::ByAddress;
use super::host::Host;
use super::hosts::Hosts;
use crate::facts::NodeFacts;
use crate::host_record::HostRecord;
use crate::instances::AlsoNamed;
use crate::names;

/// All entries, by the facts that a Node may refer to. Their numbers follow the order of their addresses.
pub(in crate::fleet) struct ClaimedEntries<'a, 'b> {
    hosts: &'b Hosts<'a>,
    /// By a former listed address.
    former: ByAddress<'a, usize>,
    /// By any address: as listed, of the host, and the host's former one.
    at: ByAddress<'a, usize>,
    /// By the further names and addresses of the entry.
    also: HashMap<&'a AlsoNamed, usize>,
    /// By the recorded Node.
    of_node: HashMap<&'a str, usize>,
    /// The first invalid entry whose host we know nothing of, since no login to it ever succeeded.
    unknown: Option<&'a str>,
}

impl<'a, 'b> ClaimedEntries<'a, 'b> {
    pub(in crate::fleet) fn of(hosts: &'b Hosts<'a>) -> Self {
        let count = hosts.listed().len();
        let mut entries = Self {
            hosts,
            former: ByAddress::with_capacity(0),
            at: ByAddress::with_capacity(count),
            also: HashMap::new(),
            of_node: HashMap::with_capacity(count),
            unknown: None,
        };
        for host in hosts.listed() {
            let record = host.record();
            entries.at.or_insert(host.address, host.number);
            if let Some(ipv4) = host.ipv4.or_else(|| record?.ipv4) {
                entries.at.or_insert_ipv4(ipv4, host.number);
            }
            for also in host.also.into_iter().flatten() {
                entries.also.entry(also).or_insert(host.number);
            }
            for node in host.nodes_on_record() {
                entries.of_node.entry(node).or_insert(host.number);
            }
            for former in &host.former {
                entries.former.or_insert(former.address, host.number);
            }
            if host.is_broken() && record.is_none_or(HostRecord::is_untouched) {
                entries.unknown.get_or_insert(host.address);
            }
        }
        entries
    }

    /// The entry with this listed address, now or before, or with this further name or address.
    pub(in crate::fleet) fn named(&self, address: &str) -> Option<&'b Host<'a>> {
        let listed = self.hosts.named(address).filter(|host| host.is_listed());
        let formerly = || self.hosts.numbered(self.former.get(address)?);
        listed.or_else(formerly).or_else(|| self.also_named(address))
    }

    /// The entry whose host has this name or address as well, by `names=`.
    pub(in crate::fleet) fn also_named(&self, text: &str) -> Option<&'b Host<'a>> {
        if self.also.is_empty() {
            return None;
        }
        self.hosts.numbered(*self.also.get(&AlsoNamed::of(text))?)
    }

    /// The entry whose address the Node has, that the Node was made from, or that has a record of the Node.
    pub(in crate::fleet) fn claimed_by(&self, node: &NodeFacts) -> Option<&'a str> {
        let made_from = node.annotation(names::INSTANCE_ANNOTATION);
        let made_from = made_from.and_then(|origin| self.named(origin)).map(|host| host.number);
        let recorded = self.of_node.get(node.name.as_str()).copied();
        let shown = node.addresses.iter().filter_map(|address| {
            let also = || self.also_named(address).map(|host| host.number);
            self.at.get(address).or_else(also)
        });
        let first = made_from.into_iter().chain(recorded).chain(shown).min();
        Some(self.hosts.numbered(first?)?.address)
    }

    /// An invalid entry that may be the host with this record or address: an entry with that address, or any about which
    /// nothing is known, since a Node need not show all addresses of its host.
    pub(in crate::fleet) fn broken_one_of(
        &self,
        address: &str,
        ipv4: Option<Ipv4Addr>,
    ) -> Option<&'a str> {
        let broken = |text: &str| {
            let host = self.hosts.named(text).filter(|host| host.is_broken());
            host.map(|host| host.address)
        };
        broken(address).or_else(|| broken(&ipv4?.to_string())).or(self.unknown)
    }
}
