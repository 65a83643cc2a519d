//! One host, and all that is known of it beside what Nodes say.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use super::unlisted::{Former, Unlisted};
use crate::facts::NodeFacts;
use crate::host_record::{HostRecord, Kept};
use crate::instances::Instance;

/// A host that a Node may stand for: listed, or on record and no longer listed.
pub(super) struct Host<'a> {
    /// Its place among all hosts of the pass; 0 until it has one.
    pub(super) number: usize,
    /// Its address as listed; also the key of its host key.
    pub(super) address: &'a str,
    /// Whether people list it.
    pub(super) is_listed: bool,
    /// Its entry; `None` also when that is broken, which protects its Node.
    pub(super) instance: Option<&'a Instance>,
    /// What its address resolves to, or did when people listed it.
    pub(super) ipv4: Option<Ipv4Addr>,
    /// The number of the first host with that.
    pub(super) first_at_ipv4: Option<usize>,
    /// What is kept under its address.
    pub(super) kept: Kept<'a>,
    /// Whether its removal may go on by its record.
    pub(super) removal_confirmed: bool,
    /// Records of the same host under addresses that nobody lists any more; the first counts most.
    pub(super) former: Vec<Former<'a>>,
    /// The number of the listed host that goes on with this one, which is listed twice.
    pub(super) listed_first: Option<usize>,
    /// The names that it is known by.
    pub(super) names: Option<&'a BTreeSet<String>>,
    /// Whether nobody has tried to look at it yet.
    pub(super) is_untried: bool,
}

impl<'a> Host<'a> {
    /// One that people list.
    pub(super) fn listed(
        address: &'a str,
        instance: Option<&'a Instance>,
        kept: Kept<'a>,
        names: Option<&'a BTreeSet<String>>,
        is_untried: bool,
    ) -> Self {
        let ipv4 = instance.map(|instance| instance.ipv4);
        let is_listed = true;
        Self { is_listed, instance, is_untried, ..Self::new(address, ipv4, kept, names) }
    }

    /// One on record that nobody lists, unless it goes on under another address.
    pub(super) fn left(it: &Unlisted<'a>) -> Option<Self> {
        let record = it.kept.record.filter(|_| it.successor.is_none())?;
        Some(Self::new(it.address, record.ipv4, it.kept, it.names))
    }

    fn new(
        address: &'a str,
        ipv4: Option<Ipv4Addr>,
        kept: Kept<'a>,
        names: Option<&'a BTreeSet<String>>,
    ) -> Self {
        Self {
            number: 0,
            address,
            is_listed: false,
            instance: None,
            ipv4,
            first_at_ipv4: None,
            kept,
            removal_confirmed: kept.record.is_some_and(|record| record.removal_confirmed),
            former: Vec::new(),
            listed_first: None,
            names,
            is_untried: false,
        }
    }

    /// Its record: that under its own address, or that of the same host under a former one.
    pub(super) fn record(&self) -> Option<&'a HostRecord> {
        self.kept.record.or_else(|| self.former.first().map(|former| former.record))
    }

    /// Nodes that are on record of it, under this address or a former one; the first counts.
    pub(super) fn nodes_on_record(&self) -> impl Iterator<Item = &'a str> {
        let former = self.former.iter().map(|former| former.record);
        let records = self.kept.record.into_iter().chain(former);
        records.filter_map(|record| record.node.as_deref())
    }

    /// Whether its entry is broken.
    pub(super) const fn is_broken(&self) -> bool {
        self.is_listed && self.instance.is_none()
    }

    /// Whether it calls itself by the Node's name; `None` if it is known by no name.
    pub(super) fn names_node(&self, node: &NodeFacts) -> Option<bool> {
        Some(self.names?.iter().any(|name| calls(name, node)))
    }
}

/// Whether a host that is called `name` may have registered `node`: by its whole name or by the first label
/// of it.
pub(super) fn calls(name: &str, node: &NodeFacts) -> bool {
    forms(name).iter().any(|name| name.eq_ignore_ascii_case(&node.name))
}

/// What a host that calls itself `name` may be registered as.
pub(super) fn forms(name: &str) -> [&str; 2] {
    [name, name.split('.').next().unwrap_or(name)]
}
