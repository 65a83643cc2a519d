//! The ConfigMap of host keys, read once.

use std::collections::BTreeMap;

use super::HostRecord;
use crate::host_key::{BadHostKey, HostKey};
use crate::names::objects::MACHINE_KEY_SUFFIX;

/// The ConfigMap [`HOST_KEYS_CONFIG_MAP`](crate::names::objects::HOST_KEYS_CONFIG_MAP), read once.
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

/// What is kept under one name: of a host by its address as listed, of a jump host by its key's name.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kept<'a> {
    /// The pinned key as it is written.
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

/// A pinned key as it is kept.
#[derive(Clone, Debug, Eq, PartialEq)]
struct KeptKey {
    text: String,
    key: Result<HostKey, BadHostKey>,
}

impl KnownHosts {
    /// Reads the ConfigMap's data. A record that is no JSON is there, but tells nothing.
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

    /// The pinned key of a host, by its address as listed, or of a jump host, by
    /// [`Jump::key_name`](crate::instances::Jump::key_name), as it is written there.
    pub fn pin(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.kept().pin
    }

    /// The same key, if it is one.
    pub fn pinned_key(&self, name: &str) -> Option<Result<&HostKey, &BadHostKey>> {
        self.0.get(name)?.pin.as_ref().map(|pin| pin.key.as_ref())
    }

    /// Names of all pinned keys.
    pub fn pins(&self) -> impl Iterator<Item = &str> {
        self.all().filter(|(_, kept)| kept.pin.is_some()).map(|(name, _)| name)
    }

    /// The record of the host listed as `address`.
    pub fn record(&self, address: &str) -> Option<&HostRecord> {
        self.0.get(address)?.record.as_ref()
    }

    /// All records, by address as listed.
    pub fn records(&self) -> impl Iterator<Item = (&str, &HostRecord)> {
        self.all().filter_map(|(address, kept)| Some((address, kept.record?)))
    }

    /// Addresses of records that cannot be read.
    pub fn damaged(&self) -> impl Iterator<Item = &str> {
        self.all().filter(|(_, kept)| kept.is_damaged).map(|(address, _)| address)
    }

    /// Whether the record of the host listed as `address` cannot be read. What it said may matter, so
    /// nothing is done with that host, and nothing of it is forgotten, until a person has removed it.
    pub fn is_damaged(&self, address: &str) -> bool {
        self.0.get(address).is_some_and(|values| values.is_damaged)
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is kept of hosts of Machines, by the Machine's name.
    pub(crate) fn of_machines(&self) -> impl Iterator<Item = (&str, Kept<'_>)> {
        self.all().filter_map(|(key, kept)| Some((key.strip_suffix(MACHINE_KEY_SUFFIX)?, kept)))
    }

    /// All the rest, by name.
    pub(crate) fn of_others(&self) -> impl Iterator<Item = (&str, Kept<'_>)> {
        self.all().filter(|(key, _)| !key.ends_with(MACHINE_KEY_SUFFIX))
    }

    /// All that is kept, by name.
    fn all(&self) -> impl Iterator<Item = (&str, Kept<'_>)> {
        self.0.iter().map(|(name, values)| (name.as_str(), values.kept()))
    }
}

impl Values {
    fn kept(&self) -> Kept<'_> {
        Kept {
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
