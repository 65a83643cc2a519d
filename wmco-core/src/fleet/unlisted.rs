//! Stored data under an address that is not listed.

use std::collections::BTreeSet;

use crate::host_record::{HostRecord, StoredHost};

/// Stored data under an address that is not listed: of a host that left or was renamed, or of a jump host.
pub(super) struct Unlisted<'a> {
    pub(super) address: &'a str,
    pub(super) kept: StoredHost<'a>,
    /// The known names of its host.
    pub(super) names: Option<&'a BTreeSet<String>>,
    /// The other address under which its host continues, if there is one.
    pub(super) successor: Option<Successor<'a>>,
}

/// Another address of a host.
#[derive(Clone, Copy)]
pub(super) struct Successor<'a> {
    /// The data stored there.
    pub(super) kept: StoredHost<'a>,
}

/// The record of a host under an address that is not listed.
#[derive(Clone, Copy)]
pub(super) struct Former<'a> {
    /// Its number among all unlisted data.
    pub(super) number: usize,
    pub(super) address: &'a str,
    pub(super) kept: StoredHost<'a>,
    pub(super) record: &'a HostRecord,
}

impl<'a> Unlisted<'a> {
    /// The records whose hosts do not continue under another address.
    pub(super) fn records(all: &[Self]) -> impl Iterator<Item = Former<'a>> {
        all.iter().enumerate().filter_map(|(number, one)| one.former(number))
    }

    /// Its record, unless its host continues under another address; `number` is its index.
    pub(super) fn former(&self, number: usize) -> Option<Former<'a>> {
        let record = self.kept.record.filter(|_| self.successor.is_none())?;
        Some(Former { number, address: self.address, kept: self.kept, record })
    }

    /// Whether its record is to be deleted: another address has taken it over, or there was never anything to
    /// clean.
    pub(super) fn record_goes(&self) -> bool {
        let Some(record) = self.kept.record else { return false };
        match &self.successor {
            Some(successor) => successor.has_taken_over(record),
            None => record.is_untouched(),
        }
    }

    /// Whether all its data is stored under its other address, too.
    pub(super) fn is_taken_over(&self) -> bool {
        let record = self.kept.record;
        self.successor
            .zip(record)
            .is_some_and(|(successor, record)| successor.has_taken_over(record))
    }
}

impl Successor<'_> {
    fn has_taken_over(&self, former: &HostRecord) -> bool {
        let has_key = former.is_untouched() || self.kept.pin.is_some();
        let has_node = |own: &HostRecord| former.node.is_none() || own.node.is_some();
        has_key && self.kept.record.is_some_and(has_node)
    }
}
