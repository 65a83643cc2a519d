//! What is on record of hosts, beside what people list.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use super::matching::Subject;
use super::{Assignments, Listed, Observed};
use crate::host_record::{HostRecord, KnownHosts};
use crate::names;

/// The records, sorted by whether people list their hosts.
pub(super) struct Hosts<'a> {
    known: &'a KnownHosts,
    /// The record of an entry, by the entry's address: its own, or that of the same host under
    /// another name.
    of_entry: BTreeMap<&'a str, &'a HostRecord>,
    /// The entry that lists the host of a record whose own entry is gone, or another record of the same
    /// host: with the same address and key.
    renamed: BTreeMap<&'a str, &'a str>,
    /// The first record of the same host under another name, by the entry's address.
    former: BTreeMap<&'a str, &'a str>,
    /// Records of hosts that nobody lists.
    pub(super) unlisted: BTreeMap<&'a str, &'a HostRecord>,
}

impl<'a> Hosts<'a> {
    pub(super) fn of(entries: &[&'a Listed], known: &'a KnownHosts) -> Self {
        let listed: BTreeSet<&str> = entries.iter().map(|e| e.address.as_str()).collect();
        let mut unlisted: BTreeMap<&str, &HostRecord> =
            known.records().filter(|(address, _)| !listed.contains(address)).collect();
        let mut by_ipv4: BTreeMap<Ipv4Addr, Vec<&str>> = BTreeMap::new();
        for (address, record) in &unlisted {
            if let Some(ipv4) = record.ipv4 {
                by_ipv4.entry(ipv4).or_default().push(address);
            }
        }
        let (mut of_entry, mut renamed) = (BTreeMap::new(), BTreeMap::new());
        let mut former_of = BTreeMap::new();
        for entry in entries {
            let own = known.record(&entry.address);
            // An entry that does not resolve now still means the host that is on its record.
            let ipv4 = entry.ipv4.or_else(|| own?.ipv4);
            let former = ipv4.and_then(|ipv4| by_ipv4.get(&ipv4)).map_or(&[][..], Vec::as_slice);
            for address in former {
                renamed.entry(*address).or_insert(entry.address.as_str());
            }
            // Of several the first: a key that is not its host's is a mismatch then, and no first use.
            let inherited = former.first().and_then(|one| {
                former_of.insert(entry.address.as_str(), *one);
                unlisted.get(one).copied()
            });
            if let Some(record) = own.or(inherited) {
                of_entry.insert(entry.address.as_str(), record);
            }
        }
        unlisted.retain(|address, _| !renamed.contains_key(address));
        // A host that was renamed and left before its first record was forgotten has two.
        let mut first: BTreeMap<_, &str> = BTreeMap::new();
        for (address, record) in &unlisted {
            let Some(ipv4) = record.ipv4 else { continue };
            let kept = first.entry((ipv4, record.pinned.as_deref())).or_insert(address);
            if kept != address && known.pin(kept).is_none() {
                renamed.insert(std::mem::replace(kept, *address), *address);
            } else if kept != address {
                renamed.insert(*address, *kept);
            }
        }
        unlisted.retain(|address, _| !renamed.contains_key(address));
        Self { known, of_entry, renamed, former: former_of, unlisted }
    }

    /// The record of an entry.
    pub(super) fn of_entry(&self, address: &str) -> Option<&'a HostRecord> {
        self.of_entry.get(address).copied()
    }

    /// The address under which the host of an entry was listed before.
    pub(super) fn former_address(&self, address: &str) -> Option<&'a str> {
        self.former.get(address).copied()
    }

    /// All hosts that a Node may stand for.
    pub(super) fn subjects(&self, entries: &[&'a Listed]) -> Vec<Subject<'a>> {
        let listed = entries.iter().map(|entry| Subject {
            address: &entry.address,
            ipv4: entry.ipv4,
            record: self.of_entry(&entry.address),
            listed: true,
        });
        let left = self.unlisted.iter().map(|(address, record)| Subject {
            address,
            ipv4: record.ipv4,
            record: Some(record),
            listed: false,
        });
        listed.chain(left).collect()
    }

    /// Keys of the ConfigMap that nobody needs: of hosts that are neither listed nor to be cleaned,
    /// and of hosts that are listed under another name now, once that has taken them over.
    pub(super) fn forgotten(
        &self,
        entries: &[&Listed],
        out: &Assignments,
        observed: &Observed<'_>,
    ) -> BTreeSet<String> {
        let listed: BTreeSet<&str> = entries.iter().map(|e| e.address.as_str()).collect();
        let nodes: BTreeSet<&str> = observed
            .nodes
            .iter()
            .flat_map(|node| {
                let made = node.annotation(names::INSTANCE_ANNOTATION);
                node.addresses.iter().map(String::as_str).chain(made)
            })
            .collect();
        let taken_over = |address: &str| {
            self.renamed.get(address).is_some_and(|entry| {
                let pinned = self.known.pin(address).is_none() || self.known.pin(entry).is_some();
                pinned && self.known.record(entry).is_some()
            })
        };
        let record_goes = |address: &str, record: &HostRecord| {
            taken_over(address) || (self.unlisted.contains_key(address) && record.is_untouched())
        };
        let mut forgotten = BTreeSet::new();
        for (address, record) in self.known.records() {
            if record_goes(address, record) {
                forgotten.insert(HostRecord::key_name(address));
            }
        }
        for name in self.known.pins() {
            let kept = listed.contains(name)
                || nodes.contains(name)
                || self.known.record(name).is_some_and(|record| !record_goes(name, record))
                || out.records.contains_key(name);
            if (!kept || taken_over(name)) && !is_of_jump_host(name) {
                forgotten.insert(name.to_owned());
            }
        }
        forgotten
    }
}

/// Whether a pinned key is a jump host's: those are forgotten by
/// [`jump_keys_in_use`](super::jump_keys_in_use).
fn is_of_jump_host(name: &str) -> bool {
    name.contains('_')
}
