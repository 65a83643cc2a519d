//! Stored data under an address that is not listed.

use std::collections::BTreeSet;

use crate::host_record::{HostRecord, StoredHost};

/// Stored data under an address that is not listed: of a host that left or was renamed, or of a jump host.
pub(in crate::fleet) struct Unlisted<'a> {
    pub(in crate::fleet) address: &'a str,
    pub(in crate::fleet) kept: StoredHost<'a>,
    /// The known names of its host.
    pub(super) names: Option<&'a BTreeSet<String>>,
    /// The data under the other address where its host continues, if there is one.
    pub(super) successor: Option<StoredHost<'a>>,
}

/// The record of a host under an address that is not listed.
#[derive(Clone, Copy)]
pub(in crate::fleet) struct Former<'a> {
    /// Its number among all unlisted data.
    pub(in crate::fleet) number: usize,
    pub(in crate::fleet) address: &'a str,
    pub(in crate::fleet) kept: StoredHost<'a>,
    pub(in crate::fleet) record: &'a HostRecord,
}

impl<'a> Unlisted<'a> {
    /// The records whose hosts do not continue under another address.
    pub(super) fn records(all: &[Self]) -> impl Iterator<Item = Former<'a>> {
        all.iter().enumerate().filter_map(|(number, one)| one.former(number))
    }

    /// Its record, unless its host continues under another address; `number` is its index.
    pub(in crate::fleet) fn former(&self, number: usize) -> Option<Former<'a>> {
        let record = self.kept.record.filter(|_| self.successor.is_none())?;
        Some(Former { number, address: self.address, kept: self.kept, record })
    }

    /// Whether its record is to be deleted: another address has taken it over, or there was never anything to
    /// clean.
    pub(in crate::fleet) fn record_goes(&self) -> bool {
        let Some(record) = self.kept.record else { return false };
        match &self.successor {
            Some(_) => self.is_taken_over(),
            None => record.is_untouched(),
        }
    }

    /// Whether all its data is stored under its other address, too.
    pub(in crate::fleet) fn is_taken_over(&self) -> bool {
        let (Some(record), Some(other)) = (self.kept.record, self.successor) else { return false };
        // Another pin that nobody has shown there may be of another host.
        let has_key = |own: &HostRecord| {
            let is_its =
                other.pin == self.kept.pin || own.pinned.is_some() || record.pinned.is_none();
            record.is_untouched() || other.pin.is_some() && is_its
        };
        let has_node = |own: &HostRecord| record.node.is_none() || own.node.is_some();
        other.record.is_some_and(|own| has_key(own) && has_node(own))
    }
}
