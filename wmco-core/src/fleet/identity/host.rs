//! A host, with all facts about it except those from Nodes.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use super::unlisted::{Former, Unlisted};
use crate::facts::NodeFacts;
use crate::host_record::{HostRecord, StoredHost, calls};
use crate::instances::{AlsoNamed, EntryError, Instance};

/// A host that a Node may belong to: listed, or recorded and no longer listed.
pub(in crate::fleet) struct Host<'a> {
    /// Its number among all hosts of the pass; 0 until it is set.
    pub(in crate::fleet) number: usize,
    /// Its listed address; also the key of its host key.
    pub(in crate::fleet) address: &'a str,
    /// Its entry, if it is listed. An invalid entry protects its Node.
    pub(super) entry: Option<&'a Result<Instance, EntryError>>,
    /// The further names and addresses of its entry.
    pub(super) also: Option<&'a BTreeSet<AlsoNamed>>,
    /// The IPv4 address that its address resolves to, or resolved to when it was listed.
    pub(in crate::fleet) ipv4: Option<Ipv4Addr>,
    /// The number of the first host with that IPv4 address.
    pub(in crate::fleet) first_at_ipv4: Option<usize>,
    /// Its data in the ConfigMap of host keys.
    pub(in crate::fleet) kept: StoredHost<'a>,
    /// Records of the same host under addresses that are no longer listed; the first counts most.
    pub(in crate::fleet) former: Vec<Former<'a>>,
    /// The number of the listed host that takes over this host, which is listed twice.
    pub(in crate::fleet) listed_first: Option<usize>,
    /// The names that the host is known by.
    pub(super) names: Option<&'a BTreeSet<String>>,
    /// Whether the host has never been contacted.
    pub(in crate::fleet) is_never_contacted: bool,
}

impl<'a> Host<'a> {
    /// Makes a listed host.
    pub(in crate::fleet) fn listed(
        address: &'a str,
        entry: &'a Result<Instance, EntryError>,
        also: &'a BTreeSet<AlsoNamed>,
        kept: StoredHost<'a>,
        names: Option<&'a BTreeSet<String>>,
        is_never_contacted: bool,
    ) -> Self {
        let ipv4 = entry.as_ref().ok().map(|instance| instance.ipv4);
        let also = Some(also).filter(|also| !also.is_empty());
        Self {
            entry: Some(entry),
            also,
            is_never_contacted,
            ..Self::new(address, ipv4, kept, names)
        }
    }

    /// Makes a host that is recorded but not listed; `None` if it continues under another address.
    pub(in crate::fleet) fn left(it: &Unlisted<'a>) -> Option<Self> {
        let record = it.kept.record.filter(|_| it.successor.is_none())?;
        Some(Self::new(it.address, record.ipv4, it.kept, it.names))
    }

    fn new(
        address: &'a str,
        ipv4: Option<Ipv4Addr>,
        kept: StoredHost<'a>,
        names: Option<&'a BTreeSet<String>>,
    ) -> Self {
        Self {
            number: 0,
            address,
            entry: None,
            also: None,
            ipv4,
            first_at_ipv4: None,
            kept,
            former: Vec::new(),
            listed_first: None,
            names,
            is_never_contacted: false,
        }
    }

    /// Its record: under its own address, or of the same host under a former address.
    pub(in crate::fleet) fn record(&self) -> Option<&'a HostRecord> {
        self.kept.record.or_else(|| self.former.first().map(|former| former.record))
    }

    /// Whether the removal of what is on record is confirmed; `None` if there is nothing to remove.
    pub(in crate::fleet) fn removal_confirmed(&self) -> Option<bool> {
        let record = self.kept.record.filter(|record| !record.is_untouched())?;
        Some(record.removal_confirmed)
    }

    /// Nodes in its records; the first counts.
    pub(super) fn nodes_on_record(&self) -> impl Iterator<Item = &'a str> {
        self.records().filter_map(|record| record.node.as_deref())
    }

    /// Whether it is listed.
    pub(in crate::fleet) const fn is_listed(&self) -> bool {
        self.entry.is_some()
    }

    /// Its valid entry.
    pub(in crate::fleet) fn instance(&self) -> Option<&'a Instance> {
        self.entry?.as_ref().ok()
    }

    /// The further names of its entry.
    pub(super) fn also_names(&self) -> impl Iterator<Item = &'a str> {
        self.also.into_iter().flatten().filter_map(|also| match also {
            AlsoNamed::Name(name) => Some(name.as_str()),
            AlsoNamed::Address(_) => None,
        })
    }

    /// The names that it is known by, with its number.
    pub(super) fn known_names(&self) -> impl Iterator<Item = (&'a str, usize)> + use<'a> {
        let number = self.number;
        self.names.into_iter().flatten().map(move |name| (name.as_str(), number))
    }

    /// Its records, under this address or a former one.
    pub(super) fn records(&self) -> impl Iterator<Item = &'a HostRecord> {
        self.kept.record.into_iter().chain(self.former.iter().map(|former| former.record))
    }

    /// Whether its entry is invalid.
    pub(super) fn is_broken(&self) -> bool {
        self.entry.is_some_and(Result::is_err)
    }

    /// Whether its name is being looked up.
    pub(in crate::fleet) fn is_pending(&self) -> bool {
        self.entry.is_some_and(|entry| entry.as_ref().is_err_and(EntryError::is_pending))
    }

    /// Whether one of its names matches the Node's name; `None` if no name of the host is known.
    pub(super) fn names_node(&self, node: &NodeFacts) -> Option<bool> {
        Some(self.names?.iter().any(|name| calls(name, &node.name)))
    }
}
