//! The ConfigMap of host keys, parsed once.

use std::collections::BTreeMap;

use super::HostRecord;
use crate::host_key::{BadHostKey, HostKey};
use crate::names::objects::MACHINE_KEY_SUFFIX;

/// The ConfigMap [`HOST_KEYS_CONFIG_MAP`](crate::names::objects::HOST_KEYS_CONFIG_MAP), parsed once.
///
/// ```
/// use wmco_core::host_record::KnownHosts;
///
/// let data = [("10.0.0.5", "AAAA..."), ("10.0.0.5_host", r#"{"node": "win-1"}"#)];
/// let known = KnownHosts::read(data);
/// assert_eq!(known.pin("10.0.0.5"), Some("AAAA..."));
/// assert_eq!(known.record("10.0.0.5").unwrap().node.as_deref(), Some("win-1"));
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct KnownHosts(BTreeMap<String, Values>);

/// Data under one name: of a host by its listed address, of a jump host by its key's name.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StoredHost<'a> {
    /// The text of the pinned key.
    pub(crate) pin: Option<&'a str>,
    /// The record, if it can be read.
    pub(crate) record: Option<&'a HostRecord>,
    /// Whether there is a record that cannot be read.
    pub(crate) is_damaged: bool,
}

/// The values under one name.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Values {
    pin: Option<KeptKey>,
    record: Option<HostRecord>,
    is_damaged: bool,
}

/// A stored pinned key: its text and the parsed key.
#[derive(Clone, Debug, Eq, PartialEq)]
struct KeptKey {
    text: String,
    key: Result<HostKey, BadHostKey>,
}

impl KnownHosts {
    /// Makes a value without hosts.
    pub(crate) const fn none() -> Self {
        Self(BTreeMap::new())
    }

    /// Reads the ConfigMap's data. A record that is not valid JSON counts as damaged.
    pub fn read<K, V>(data: impl IntoIterator<Item = (K, V)>) -> Self
    where
        K: AsRef<str>,
        V: AsRef<str>,
    {
        let mut known = Self::default();
        for (key, value) in data {
            let (key, value) = (key.as_ref(), value.as_ref());
            match HostRecord::address_in(key) {
                None => known.0.entry(key.to_owned()).or_default().pin = Some(KeptKey::read(value)),
                Some(address) => {
                    let values = known.0.entry(address.to_owned()).or_default();
                    match HostRecord::parse(value) {
                        Some(record) => values.record = Some(record),
                        None => values.is_damaged = true,
                    }
                }
            }
        }
        known
    }

    /// The text of a pinned key: of a host by its listed address, of a jump host by
    /// [`Jump::key_name`](crate::instances::Jump::key_name).
    pub fn pin(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.kept().pin
    }

    /// The pinned key, parsed.
    pub fn pinned_key(&self, name: &str) -> Option<Result<&HostKey, &BadHostKey>> {
        self.0.get(name)?.pin.as_ref().map(|pin| pin.key.as_ref())
    }

    /// Names of all pinned keys.
    pub fn pins(&self) -> impl Iterator<Item = &str> {
        self.all().filter(|(_, kept)| kept.pin.is_some()).map(|(name, _)| name)
    }

    /// The record of the host with the listed address `address`.
    pub fn record(&self, address: &str) -> Option<&HostRecord> {
        self.0.get(address)?.record.as_ref()
    }

    /// All records, by listed address.
    pub fn records(&self) -> impl Iterator<Item = (&str, &HostRecord)> {
        self.all().filter_map(|(address, kept)| Some((address, kept.record?)))
    }

    /// Addresses of records that cannot be read.
    pub fn damaged(&self) -> impl Iterator<Item = &str> {
        self.all().filter(|(_, kept)| kept.is_damaged).map(|(address, _)| address)
    }

    /// Whether the record of the host with the listed address `address` cannot be read. Its content may matter, so
    /// nothing is done with that host, and none of its data is deleted, until an administrator removes the record.
    pub fn is_damaged(&self, address: &str) -> bool {
        self.0.get(address).is_some_and(|values| values.is_damaged)
    }

    /// Whether the ConfigMap is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Data of hosts of Machines, by the Machine's name.
    pub(crate) fn of_machines(&self) -> impl Iterator<Item = (&str, StoredHost<'_>)> {
        self.all().filter_map(|(key, kept)| Some((key.strip_suffix(MACHINE_KEY_SUFFIX)?, kept)))
    }

    /// All other data, by name.
    pub(crate) fn of_others(&self) -> impl Iterator<Item = (&str, StoredHost<'_>)> {
        self.all().filter(|(key, _)| !key.ends_with(MACHINE_KEY_SUFFIX))
    }

    /// All data, by name.
    fn all(&self) -> impl Iterator<Item = (&str, StoredHost<'_>)> {
        self.0.iter().map(|(name, values)| (name.as_str(), values.kept()))
    }
}

impl Values {
    fn kept(&self) -> StoredHost<'_> {
        StoredHost {
            pin: self.pin.as_ref().map(|pin| pin.text.as_str()),
            record: self.record.as_ref(),
            is_damaged: self.is_damaged,
        }
    }
}

impl KeptKey {
    fn read(text: &str) -> Self {
        Self { text: text.to_owned(), key: text.parse() }
    }
}
