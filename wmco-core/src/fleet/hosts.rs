//! What is on record of hosts, beside what people list.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::Ipv4Addr;

use super::matching::{Index, Subject};
use super::{Assignments, Listed};
use crate::host_record::{HostRecord, KnownHosts};

/// An address and what is on record of it.
type Kept<'a> = (&'a str, &'a HostRecord);

/// The records, sorted by whether people list their hosts.
pub(super) struct Hosts<'a> {
    known: &'a KnownHosts,
    /// The record of an entry, by the entry's address: its own, or that of the same host under
    /// another name.
    of_entry: HashMap<&'a str, &'a HostRecord>,
    /// The entry that lists the host of a record whose own entry is gone, or another record of the same
    /// host.
    renamed: HashMap<&'a str, &'a str>,
    /// Records of the same host under other names, by the entry's address.
    former: HashMap<&'a str, Vec<&'a str>>,
    /// The first entry for the same host, by the address of each other one.
    listed_twice: HashMap<&'a str, &'a str>,
    /// The first damaged record of a host that was listed by name, so that it may be anywhere.
    damaged_name: Option<&'a str>,
    /// Records of hosts that nobody lists.
    pub(super) unlisted: BTreeMap<&'a str, &'a HostRecord>,
}

impl<'a> Hosts<'a> {
    pub(super) fn of(entries: &[Listed<'a>], known: &'a KnownHosts) -> Self {
        let listed: HashSet<&str> = entries.iter().map(|e| e.address).collect();
        let unlisted: BTreeMap<&str, &HostRecord> =
            known.records().filter(|(address, _)| !listed.contains(address)).collect();
        let mut hosts = Self {
            known,
            of_entry: HashMap::with_capacity(entries.len()),
            renamed: HashMap::new(),
            former: HashMap::new(),
            listed_twice: HashMap::new(),
            damaged_name: known.damaged().find(|address| address.parse::<Ipv4Addr>().is_err()),
            unlisted,
        };
        hosts.find_renamed(entries);
        hosts.find_listed_twice(entries);
        hosts.join_unlisted();
        hosts
    }

    /// Finds the records under which hosts of entries were listed before: those of the same address, and
    /// those of the same host at another one.
    fn find_renamed(&mut self, entries: &[Listed<'a>]) {
        let mut by_ipv4: HashMap<Ipv4Addr, Vec<Kept<'a>>> = HashMap::new();
        let mut by_identity: HashMap<_, Vec<Kept<'a>>> = HashMap::new();
        let mut nameless: HashMap<&str, Vec<Kept<'a>>> = HashMap::new();
        for (address, record) in &self.unlisted {
            let kept = (*address, *record);
            if let Some(ipv4) = record.ipv4 {
                by_ipv4.entry(ipv4).or_default().push(kept);
            }
            if let Some(identity) = record.identity() {
                by_identity.entry(identity).or_default().push(kept);
            } else if let Some(pinned) = record.pinned.as_deref().filter(|_| record.is_nameless()) {
                nameless.entry(pinned).or_default().push(kept);
            }
        }
        for entry in entries {
            let own = self.known.record(entry.address);
            // An entry that does not resolve now still means the host that is on its record.
            let ipv4 = entry.ipv4().or_else(|| own?.ipv4);
            let there = ipv4.and_then(|ipv4| by_ipv4.get(&ipv4)).into_iter().flatten().copied();
            // Two hosts had that address one after the other, if each has shown a key of its own.
            let pinned = own.and_then(|own| own.pinned.as_ref());
            let is_other = |record: &HostRecord| {
                pinned.zip(record.pinned.as_ref()).is_some_and(|(own, its)| own != its)
            };
            let mut former: Vec<Kept<'_>> = there.filter(|(_, record)| !is_other(record)).collect();
            // Until it was logged in to under this address, it has to be the one that was here before.
            let before = former.first().map(|(_, record)| *record);
            if let Some(seen) = own.filter(|own| own.pinned.is_some()).or(before) {
                // Each record is of one entry's host only, so the first takes them all.
                let same = seen.identity().and_then(|identity| by_identity.remove(&identity));
                let same = same.into_iter().flatten().filter(|(_, kept)| kept.is_same_host(seen));
                let alike = seen.pinned.as_deref().and_then(|pinned| nameless.remove(pinned));
                let known: HashSet<&str> = former.iter().map(|(address, _)| *address).collect();
                let elsewhere = same.chain(alike.into_iter().flatten());
                former.extend(elsewhere.filter(|(address, _)| !known.contains(address)));
            }
            // Of several the first: a key that is not its host's is a mismatch then, and no first use. One
            // that was never logged in to does not hide one that was.
            former.sort_by_key(|(address, record)| {
                (self.known.pin(address).is_none(), record.pinned.is_none())
            });
            for (address, _) in &former {
                self.renamed.entry(address).or_insert(entry.address);
            }
            if let Some(record) = own.or_else(|| former.first().map(|(_, record)| *record)) {
                self.of_entry.insert(entry.address, record);
            }
            if !former.is_empty() {
                let addresses = former.into_iter().map(|(address, _)| address).collect();
                self.former.insert(entry.address, addresses);
            }
        }
        self.unlisted.retain(|address, _| !self.renamed.contains_key(address));
    }

    /// Finds entries that were seen to lead to one host, by different addresses of it. The one that has a
    /// Node on record goes on with it.
    fn find_listed_twice(&mut self, entries: &[Listed<'a>]) {
        let own = |entry: &&Listed<'a>| Some((entry.address, self.known.record(entry.address)?));
        let mut recorded: Vec<_> = entries.iter().filter_map(|entry| own(&entry)).collect();
        recorded.sort_by_key(|(_, record)| record.node.is_none());
        let mut first: HashMap<_, (&str, &HostRecord)> = HashMap::new();
        for (address, record) in recorded {
            let Some(identity) = record.identity() else { continue };
            let (kept, other) = *first.entry(identity).or_insert((address, record));
            if kept != address && record.is_same_host(other) {
                self.listed_twice.insert(address, kept);
            }
        }
    }

    /// A host that was listed anew and left before its first record was forgotten has two. Were both
    /// worked on, the second would find a host that is not as its record says any more.
    fn join_unlisted(&mut self) {
        let mut records: Vec<_> = self.unlisted.iter().map(|(a, record)| (*a, *record)).collect();
        records.sort_by_key(|(address, record)| {
            let pin = self.known.pin(address);
            (record.identity().is_none(), record.node.is_none(), pin.is_none(), *address)
        });
        let mut at: HashMap<_, &str> = HashMap::new();
        let mut with_key: HashMap<&str, &str> = HashMap::new();
        let mut first: HashMap<_, (&str, &HostRecord)> = HashMap::new();
        for (address, record) in records {
            let there = record.ipv4.map(|ipv4| (ipv4, record.pinned.as_deref()));
            let there = there.map(|place| *at.entry(place).or_insert(address));
            let same = record.identity().map(|id| *first.entry(id).or_insert((address, record)));
            let same = same.filter(|(_, other)| record.is_same_host(other)).map(|(kept, _)| kept);
            let alike = record.pinned.as_deref().map(|key| *with_key.entry(key).or_insert(address));
            // One without a name was logged in to once, and nothing was done there yet.
            let alike = alike.filter(|_| record.is_nameless());
            let others = there.into_iter().chain(same).chain(alike);
            let kept = others.into_iter().find(|kept| *kept != address);
            if let Some(kept) = kept {
                self.renamed.insert(address, kept);
            }
        }
        self.unlisted.retain(|address, _| !self.renamed.contains_key(address));
    }

    /// The record of an entry.
    pub(super) fn of_entry(&self, address: &str) -> Option<&'a HostRecord> {
        self.of_entry.get(address).copied()
    }

    /// Nodes that are on record of an entry's host, under this address or a former one; the first counts.
    pub(super) fn nodes_of_entry(&self, address: &str) -> Vec<&'a str> {
        let names = std::iter::once(address).chain(self.former_addresses(address).iter().copied());
        names.filter_map(|name| self.known.record(name)?.node.as_deref()).collect()
    }

    /// Addresses under which the host of an entry was listed before.
    pub(super) fn former_addresses(&self, address: &str) -> &[&'a str] {
        self.former.get(address).map_or(&[], Vec::as_slice)
    }

    /// The entry that goes on with the host of this one, which is listed twice.
    pub(super) fn listed_first(&self, address: &str) -> Option<&'a str> {
        self.listed_twice.get(address).copied()
    }

    /// Entries whose hosts have shown a key, but no name yet, by that key's fingerprint: each may be the
    /// host of any record with that key.
    pub(super) fn unnamed(&self, entries: &[Listed<'a>]) -> HashMap<&'a str, &'a str> {
        let unnamed = entries.iter().filter_map(|entry| {
            let record = self.of_entry(entry.address)?;
            let pinned = record.pinned.as_deref().filter(|_| record.identity().is_none())?;
            Some((pinned, entry.address))
        });
        unnamed.collect()
    }

    /// The address of a record that cannot be read and may be the one of this entry's host.
    pub(super) fn damaged_record_of(&self, entry: &Listed<'a>) -> Option<&'a str> {
        let known = self.known;
        if known.is_damaged(entry.address) {
            return Some(entry.address);
        }
        if known.record(entry.address).is_some() || known.pin(entry.address).is_some() {
            return None;
        }
        // Nobody knows the address of a host that was listed by name.
        let there = || {
            let shown = entry.ipv4()?.to_string();
            known.damaged_address(&shown)
        };
        let former = !self.former_addresses(entry.address).is_empty();
        self.damaged_name.or_else(there).filter(|_| !former)
    }

    /// All hosts that a Node may stand for.
    pub(super) fn subjects(&self, entries: &[Listed<'a>]) -> Vec<Subject<'a>> {
        let listed = entries.iter().map(|entry| Subject {
            address: entry.address,
            ipv4: entry.ipv4(),
            shown: entry.ipv4().map(|ip| ip.to_string()),
            node_on_record: self.nodes_of_entry(entry.address).first().copied(),
            listed: true,
        });
        let left = self.unlisted.iter().map(|(address, record)| Subject {
            address,
            ipv4: record.ipv4,
            shown: record.ipv4.map(|ip| ip.to_string()),
            node_on_record: record.node.as_deref(),
            listed: false,
        });
        listed.chain(left).collect()
    }

    /// Keys of the ConfigMap that nobody needs: of hosts that are neither listed nor to be cleaned,
    /// and of hosts that are listed under another name now, once that has taken them over.
    pub(super) fn forgotten(
        &self,
        entries: &[Listed<'_>],
        out: &Assignments<'a>,
        index: &Index<'_>,
    ) -> BTreeSet<String> {
        let listed: HashSet<&str> = entries.iter().map(|e| e.address).collect();
        let of_node = |name: &str| !index.at(name).is_empty() || !index.made_from(name).is_empty();
        let taken_over = |address: &str| {
            self.renamed.get(address).is_some_and(|entry| {
                let untouched = self.known.record(address).is_some_and(HostRecord::is_untouched);
                let pinned = untouched || self.known.pin(entry).is_some();
                let own = self.known.record(entry);
                let node = self.known.record(address).and_then(|record| record.node.as_deref());
                pinned && own.is_some_and(|own| node.is_none() || own.node.is_some())
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
                || self.known.is_damaged(name)
                || of_node(name)
                || self.known.record(name).is_some_and(|record| !record_goes(name, record))
                || out.changes.contains_key(name);
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
