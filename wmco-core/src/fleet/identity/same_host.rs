//! Which entries and records are one host.
//!
//! A record belongs to the host of one that counts more if both have one [`Identifier`], the better evidence first:
//!
//! | both have | but they are of two hosts if |
//! | --- | --- |
//! | the address | their keys or Nodes differ: one host had the address after the other; of two records without an entry also if one has no key, and they do not have one Node |
//! | the key and the name | their Nodes differ: a host that has a Node may report any name |
//! | the key | it has told a name or has something of ours: hosts that were made from one image have one key |

use std::collections::hash_map::{Entry, HashMap};
use std::net::Ipv4Addr;

use super::host::Host;
use super::unlisted::{Former, Unlisted};
use crate::host_record::{HostRecord, StoredHost};

#[derive(Eq, Hash, PartialEq)]
enum Identifier<'a> {
    Address(Ipv4Addr),
    KeyAndName(&'a str, String),
    Key(&'a str),
}

impl<'a> Identifier<'a> {
    fn all_of(record: &'a HostRecord) -> impl Iterator<Item = Self> {
        record.ipv4.map(Self::Address).into_iter().chain(Self::with_key(record))
    }

    fn with_key(record: &'a HostRecord) -> impl Iterator<Item = Self> {
        let key = record.pinned.as_deref().map(Self::Key);
        Self::key_and_name(record).into_iter().chain(key)
    }

    fn key_and_name(record: &'a HostRecord) -> Option<Self> {
        record.identity().map(|(key, name)| Self::KeyAndName(key, name))
    }

    /// Whether a record that has it is of another host than one that counts more.
    fn is_of_another(&self, record: &HostRecord, than: &HostRecord) -> bool {
        let differ = |one: &Option<String>, other: &Option<String>| {
            one.as_ref().zip(other.as_ref()).is_some_and(|(one, other)| one != other)
        };
        let other_node = || differ(&record.node, &than.node);
        match self {
            Self::Address(_) => differ(&record.pinned, &than.pinned) || other_node(),
            Self::KeyAndName(..) => other_node(),
            Self::Key(_) => !record.is_nameless(),
        }
    }
}

/// Records that are not listed, by their identifiers.
#[derive(Default)]
struct Known<'a>(HashMap<Identifier<'a>, Vec<Former<'a>>>);

impl<'a> Known<'a> {
    fn add(&mut self, former: Former<'a>) {
        for by in Identifier::all_of(former.record) {
            self.0.entry(by).or_default().push(former);
        }
    }

    /// Takes the records of a listed host, those that count most first.
    fn take_former_of(&mut self, host: &Host<'a>) -> Vec<Former<'a>> {
        let own = host.kept.record;
        // An entry that does not resolve now still refers to the host in its record.
        let ipv4 = host.ipv4.or_else(|| own?.ipv4);
        let mut found = Vec::new();
        if let Some(at) = ipv4.map(Identifier::Address) {
            let there = self.0.get(&at).into_iter().flatten().copied();
            found
                .extend(there.filter(|it| own.is_none_or(|own| !at.is_of_another(it.record, own))));
        }
        // Before the first login under this address, the former record at the same address identifies the host.
        let before = || found.iter().map(|former| former.record).find(|it| it.pinned.is_some());
        if let Some(seen) = own.filter(|own| own.pinned.is_some()).or_else(before) {
            for by in Identifier::with_key(seen) {
                // Each record belongs to a single entry's host, so the first host takes its own.
                let Some(known) = self.0.get_mut(&by) else { continue };
                let same = known.extract_if(.., |it| !by.is_of_another(it.record, seen));
                found.extend(same.filter(|it| ipv4.is_none() || it.record.ipv4 != ipv4));
            }
        }
        // A wrong key is to be a mismatch and not a first use; a record without a login hides none with one.
        found.sort_by_key(|it| (it.kept.pin.is_none(), it.record.pinned.is_none()));
        found
    }
}

/// Finds former records of listed hosts.
pub(super) fn find_former<'a>(listed: &mut [Host<'a>], unlisted: &mut [Unlisted<'a>]) {
    if listed.is_empty() || Unlisted::records(unlisted).next().is_none() {
        return;
    }
    let mut known = Known::default();
    Unlisted::records(unlisted).for_each(|former| known.add(former));
    for host in listed {
        host.former = known.take_former_of(host);
        for former in &host.former {
            let is_first = host.first_at_ipv4.is_none_or(|first| first == host.number);
            goes_on(unlisted, *former, host.kept, is_first);
        }
    }
}

/// Of each host the first record with an identifier, which counts more than those that follow, and whose it is.
struct First<'a, T>(HashMap<Identifier<'a>, Vec<(T, &'a HostRecord)>>);

impl<'a, T: Copy> First<'a, T> {
    /// Whose a record is that `of` has: that of an earlier one, if they are of one host.
    fn same(&mut self, by: Identifier<'a>, record: &'a HostRecord, of: T) -> Option<T> {
        let entry = self.0.entry(by);
        // A host without a key may have been at an address before or after one with a key, so both are cleaned, unless
        // they had one Node.
        let is_alike = |than: &HostRecord| {
            record.pinned.is_some() == than.pinned.is_some()
                || record.node.is_some() && record.node == than.node
        };
        let is_same = |than: &HostRecord, by: &Identifier<'_>| {
            !by.is_of_another(record, than) && is_alike(than)
        };
        match entry {
            Entry::Vacant(first) => {
                first.insert(vec![(of, record)]);
                None
            }
            Entry::Occupied(mut first) => {
                let found = first.get().iter().find(|(_, than)| is_same(than, first.key()));
                let whose = found.map(|(whose, _)| *whose);
                // Records with one key and names of their own are compared by these.
                if whose.is_none() && !matches!(first.key(), Identifier::Key(_)) {
                    first.get_mut().push((of, record));
                }
                whose
            }
        }
    }
}

/// How many records have each key, or none. Nearly all hosts have keys of their own, and what is alike shares its key.
struct Keys<'a>(HashMap<Option<&'a str>, usize>);

impl<'a> Keys<'a> {
    fn of(records: impl Iterator<Item = &'a HostRecord>) -> Self {
        let mut keys: HashMap<_, usize> = HashMap::new();
        records.for_each(|record| *keys.entry(record.pinned.as_deref()).or_default() += 1);
        Self(keys)
    }

    fn are_shared(&self, record: &HostRecord) -> bool {
        self.0.get(&record.pinned.as_deref()).is_some_and(|count| *count > 1)
    }

    /// Whether a record may be of the host of another one.
    fn are_any_alike(&self, record: &HostRecord) -> bool {
        self.are_shared(record) || self.0.contains_key(&None)
    }
}

/// Finds entries that lead to one host by different addresses. The entry with a recorded Node keeps the host.
pub(super) fn find_listed_twice(listed: &mut [Host<'_>]) {
    let keys = Keys::of(listed.iter().filter_map(|host| host.kept.record));
    if keys.0.values().all(|count| *count == 1) {
        return;
    }
    let mut first = First(HashMap::new());
    for has_node in [true, false] {
        for host in &mut *listed {
            let record = host.kept.record.filter(|own| own.node.is_some() == has_node);
            let record = record.filter(|own| keys.are_shared(own));
            let named = record.and_then(|own| Some((own, Identifier::key_and_name(own)?)));
            if let Some((own, by)) = named {
                host.listed_first = first.same(by, own, host.number);
            }
        }
    }
}

/// Joins records of one host. A host that was listed again and removed before its first record was deleted has two
/// records. If both were processed, the second worker would find a host that no longer matches its record.
pub(super) fn join_unlisted(unlisted: &mut [Unlisted<'_>]) {
    let keys = Keys::of(Unlisted::records(unlisted).map(|it| it.record));
    let mut records: Vec<_> =
        Unlisted::records(unlisted).filter(|it| keys.are_any_alike(it.record)).collect();
    records.sort_by_cached_key(|it| {
        (it.record.identity().is_none(), it.record.node.is_none(), it.kept.pin.is_none())
    });
    let mut first = First(HashMap::new());
    for it in records {
        let same = Identifier::all_of(it.record).map(|by| first.same(by, it.record, it));
        if let Some(kept) = same.fold(None, Option::or) {
            goes_on(unlisted, it, kept.kept, false);
        }
    }
}

/// Notes that a host continues under another address, with the data `kept` there. Of several that are the first at theirs,
/// one counts that has not taken everything over yet.
fn goes_on<'a>(
    unlisted: &mut [Unlisted<'a>],
    former: Former<'a>,
    kept: StoredHost<'a>,
    is_first: bool,
) {
    if let Some(one) = unlisted.get_mut(former.number)
        && (one.successor.is_none() || is_first && one.is_taken_over())
    {
        one.successor = Some(kept);
    }
}
