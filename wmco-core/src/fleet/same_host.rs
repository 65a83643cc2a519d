//! Finds entries and records of the same host.

use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};
use std::net::Ipv4Addr;

use super::host::Host;
use super::unlisted::{Former, Unlisted};
use crate::host_record::{HostRecord, StoredHost};

/// Records that are not listed, by facts that identify their hosts.
#[derive(Default)]
struct Index<'a> {
    by_ipv4: HashMap<Ipv4Addr, Vec<Former<'a>>>,
    by_identity: HashMap<(&'a str, String), Vec<Former<'a>>>,
    /// Records without an identity and without a name, by key.
    nameless: HashMap<&'a str, Vec<Former<'a>>>,
}

impl<'a> Index<'a> {
    fn of(records: impl Iterator<Item = Former<'a>>) -> Self {
        let mut index = Self::default();
        for former in records {
            let record = former.record;
            if let Some(ipv4) = record.ipv4 {
                index.by_ipv4.entry(ipv4).or_default().push(former);
            }
            if let Some(identity) = record.identity() {
                index.by_identity.entry(identity).or_default().push(former);
            } else if let Some(pinned) = record.pinned.as_deref().filter(|_| record.is_nameless()) {
                index.nameless.entry(pinned).or_default().push(former);
            }
        }
        index
    }

    /// Takes the records of a listed host. A record that matches by identity is taken only once.
    fn take_former_of(&mut self, host: &Host<'a>) -> Vec<Former<'a>> {
        let own = host.kept.record;
        // An entry that does not resolve now still refers to the host in its record.
        let ipv4 = host.ipv4.or_else(|| own?.ipv4);
        let there = ipv4.and_then(|ipv4| self.by_ipv4.get(&ipv4)).into_iter().flatten().copied();
        // If both have shown different keys, two hosts had this address one after the other.
        let pinned = own.and_then(|own| own.pinned.as_ref());
        let is_other = |record: &HostRecord| {
            pinned.zip(record.pinned.as_ref()).is_some_and(|(own, its)| own != its)
        };
        let mut found: Vec<_> = there.filter(|former| !is_other(former.record)).collect();
        // Before the first login under this address, the former record at the same address identifies the host.
        let before = found.first().map(|former| former.record);
        if let Some(seen) = own.filter(|own| own.pinned.is_some()).or(before) {
            // Each record belongs to a single entry's host, so the first host takes them all.
            let same = seen.identity().and_then(|identity| self.by_identity.remove(&identity));
            let same = same.into_iter().flatten().filter(|it| it.record.is_same_host(seen));
            let alike = seen.pinned.as_deref().and_then(|pinned| self.nameless.remove(pinned));
            let known: HashSet<usize> = found.iter().map(|former| former.number).collect();
            let elsewhere = same.chain(alike.into_iter().flatten());
            found.extend(elsewhere.filter(|former| !known.contains(&former.number)));
        }
        // Sorted so that records with a pinned key come first: then a wrong key is a mismatch and not a first use.
        // A record without a login does not hide one with a login.
        found.sort_by_key(|it| (it.kept.pin.is_none(), it.record.pinned.is_none()));
        found
    }
}

/// Finds former records of listed hosts: records with the same address, and records of the same host at another
/// address.
pub(super) fn find_former<'a>(listed: &mut [Host<'a>], unlisted: &mut [Unlisted<'a>]) {
    let mut records = Unlisted::records(unlisted).peekable();
    if records.peek().is_none() {
        return;
    }
    let mut index = Index::of(records);
    for host in listed {
        host.former = index.take_former_of(host);
        for former in &host.former {
            goes_on(unlisted, *former, host.kept);
        }
    }
}

/// Finds entries that lead to one host by different addresses. The entry with a recorded Node keeps the host.
pub(super) fn find_listed_twice(listed: &mut [Host<'_>], shared_keys: SharedKeys<'_>) {
    let mut first: HashMap<_, (usize, &HostRecord)> = HashMap::new();
    let sharing = shared_keys.sorted();
    for has_node in [true, false] {
        for number in &sharing {
            let Some(host) = listed.get_mut(*number) else { continue };
            let record = host.kept.record.filter(|own| own.node.is_some() == has_node);
            let Some((record, identity)) = record.and_then(|own| Some((own, own.identity()?)))
            else {
                continue;
            };
            let (kept, other) = *first.entry(identity).or_insert((host.number, record));
            if kept != host.number && record.is_same_host(other) {
                host.listed_first = Some(kept);
            }
        }
    }
}

/// Joins records of one host. A host that was listed again and removed before its first record was deleted has two
/// records. If both were processed, the second worker would find a host that no longer matches its record.
pub(super) fn join_unlisted(unlisted: &mut [Unlisted<'_>]) {
    let mut shared_keys = SharedKeys::default();
    for it in Unlisted::records(unlisted) {
        shared_keys.add(it.number, Some(it.record));
    }
    let sharing = shared_keys.sorted().into_iter();
    let records = sharing.filter_map(|number| unlisted.get(number)?.former(number));
    let mut records: Vec<_> = records.map(|it| (it, it.record.identity())).collect();
    records.sort_by_key(|(it, identity)| {
        (identity.is_none(), it.record.node.is_none(), it.kept.pin.is_none())
    });
    let mut at: HashMap<_, Former<'_>> = HashMap::new();
    let mut with_key: HashMap<&str, Former<'_>> = HashMap::new();
    let mut first: HashMap<_, Former<'_>> = HashMap::new();
    for (it, identity) in records {
        let record = it.record;
        let there = record.ipv4.map(|ipv4| (ipv4, record.pinned.as_deref()));
        let there = there.map(|place| *at.entry(place).or_insert(it));
        let same = identity.map(|identity| *first.entry(identity).or_insert(it));
        let same = same.filter(|kept| record.is_same_host(kept.record));
        let alike = record.pinned.as_deref().map(|key| *with_key.entry(key).or_insert(it));
        // A record without a name had one login, and no work was done there yet.
        let alike = alike.filter(|_| record.is_nameless());
        let others = there.into_iter().chain(same).chain(alike);
        if let Some(kept) = others.into_iter().find(|kept| kept.number != it.number) {
            goes_on(unlisted, it, kept.kept);
        }
    }
}

/// Numbers of records that share their key with another record; records without a key count as sharing. All other
/// records belong to distinct hosts.
#[derive(Default)]
pub(super) struct SharedKeys<'a> {
    /// The first record with a key, until a second one is added.
    first: HashMap<Option<&'a str>, Option<usize>>,
    sharing: Vec<usize>,
}

impl<'a> SharedKeys<'a> {
    pub(super) fn add(&mut self, number: usize, record: Option<&'a HostRecord>) {
        let Some(record) = record else { return };
        match self.first.entry(record.pinned.as_deref()) {
            Entry::Vacant(first) => drop(first.insert(Some(number))),
            Entry::Occupied(mut first) => {
                self.sharing.extend(first.get_mut().take());
                self.sharing.push(number);
            }
        }
    }

    fn sorted(mut self) -> Vec<usize> {
        self.sharing.sort_unstable();
        self.sharing
    }
}

/// Records that a host continues under another address, with the data `kept` there. The first such address counts.
fn goes_on<'a>(unlisted: &mut [Unlisted<'a>], former: Former<'a>, kept: StoredHost<'a>) {
    if let Some(one) = unlisted.get_mut(former.number) {
        one.successor.get_or_insert(kept);
    }
}
