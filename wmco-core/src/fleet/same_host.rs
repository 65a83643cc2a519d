//! Which entries and records are of one host.

use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};
use std::net::Ipv4Addr;

use super::host::Host;
use super::unlisted::{Former, Successor, Unlisted};
use crate::host_record::{HostRecord, Kept};

/// Records that nobody lists, by what tells their hosts.
#[derive(Default)]
struct Index<'a> {
    by_ipv4: HashMap<Ipv4Addr, Vec<Former<'a>>>,
    by_identity: HashMap<(&'a str, String), Vec<Former<'a>>>,
    /// Those without an identity that have told no name, by key.
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

    /// The records of a listed host. One that is of it wherever it was is handed out once.
    fn take_former_of(&mut self, host: &Host<'a>) -> Vec<Former<'a>> {
        let own = host.kept.record;
        // An entry that does not resolve now still means the host that is on its record.
        let ipv4 = host.ipv4.or_else(|| own?.ipv4);
        let there = ipv4.and_then(|ipv4| self.by_ipv4.get(&ipv4)).into_iter().flatten().copied();
        // Two hosts had that address one after the other, if each has shown a key of its own.
        let pinned = own.and_then(|own| own.pinned.as_ref());
        let is_other = |record: &HostRecord| {
            pinned.zip(record.pinned.as_ref()).is_some_and(|(own, its)| own != its)
        };
        let mut found: Vec<_> = there.filter(|former| !is_other(former.record)).collect();
        // Until it was logged in to under this address, it has to be the one that was here before.
        let before = found.first().map(|former| former.record);
        if let Some(seen) = own.filter(|own| own.pinned.is_some()).or(before) {
            // Each record is of one entry's host only, so the first takes them all.
            let same = seen.identity().and_then(|identity| self.by_identity.remove(&identity));
            let same = same.into_iter().flatten().filter(|it| it.record.is_same_host(seen));
            let alike = seen.pinned.as_deref().and_then(|pinned| self.nameless.remove(pinned));
            let known: HashSet<usize> = found.iter().map(|former| former.number).collect();
            let elsewhere = same.chain(alike.into_iter().flatten());
            found.extend(elsewhere.filter(|former| !known.contains(&former.number)));
        }
        // Of several the first: a key that is not its host's is a mismatch then, and no first use. One
        // that was never logged in to does not hide one that was.
        found.sort_by_key(|it| (it.kept.pin.is_none(), it.record.pinned.is_none()));
        found
    }
}

/// Finds the records under which hosts of entries were listed before: those of the same address, and
/// those of the same host at another one.
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

/// Finds entries that were seen to lead to one host, by different addresses of it. The one that has a
/// Node on record goes on with it.
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

/// A host that was listed anew and left before its first record was forgotten has two. Were both
/// worked on, the second would find a host that is not as its record says any more.
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
        // One without a name was logged in to once, and nothing was done there yet.
        let alike = alike.filter(|_| record.is_nameless());
        let others = there.into_iter().chain(same).chain(alike);
        if let Some(kept) = others.into_iter().find(|kept| kept.number != it.number) {
            goes_on(unlisted, it, kept.kept);
        }
    }
}

/// Numbers of records that are not the only one with their key; one without a key is like another. All
/// others are of hosts of their own.
#[derive(Default)]
pub(super) struct SharedKeys<'a> {
    /// The first record with a key, until there is a second one.
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

/// Notes that the host of a record goes on under another address, where `kept` is kept of it. The first
/// such address counts.
fn goes_on<'a>(unlisted: &mut [Unlisted<'a>], former: Former<'a>, kept: Kept<'a>) {
    if let Some(one) = unlisted.get_mut(former.number) {
        one.successor.get_or_insert(Successor { kept });
    }
}
