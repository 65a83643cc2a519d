//! Stored data under an address that is not listed.

use std::collections::BTreeSet;

use crate::host_record::{HostRecord, StoredHost};

/// Stored data under an address that is not listed: of a host that left or was renamed, or of a jump host.
pub(super) struct Unlisted<'a> {
    pub(super) address: &'a str,
    pub(super) kept: StoredHost<'a>,
    /// The known names of its host.
    pub(super) names: Option<&'a BTreeSet<String>>,
    /// The data under the other address where its host continues, if there is one.
    pub(super) successor: Option<StoredHost<'a>>,
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
            Some(_) => self.is_taken_over(),
            None => record.is_untouched(),
        }
    }

    /// Whether all its data is stored under its other address, too.
    pub(super) fn is_taken_over(&self) -> bool {
        let (Some(record), Some(other)) = (self.kept.record, self.successor) else { return false };
        let has_key = record.is_untouched() || other.pin.is_some();
        let has_node = |own: &HostRecord| record.node.is_none() || own.node.is_some();
        has_key && other.record.is_some_and(has_node)
    }
}
