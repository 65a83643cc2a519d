//! The ConfigMap of host keys, read once.

use std::collections::{BTreeMap, BTreeSet};

use super::HostRecord;
use crate::host_key::{BadHostKey, HostKey};

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
pub struct KnownHosts {
    pins: BTreeMap<String, KeptKey>,
    records: BTreeMap<String, HostRecord>,
    /// Addresses of records that cannot be read.
    damaged: BTreeSet<String>,
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
                None => drop(known.pins.insert(key.to_owned(), KeptKey::read(value))),
                Some(address) => match HostRecord::parse(value) {
                    Some(record) => drop(known.records.insert(address.to_owned(), record)),
                    None => drop(known.damaged.insert(address.to_owned())),
                },
            }
        }
        known
    }

    /// The pinned key of a host, by its address as listed, or of a jump host, by
    /// [`Jump::key_name`](crate::instances::Jump::key_name), as it is written there.
    pub fn pin(&self, name: &str) -> Option<&str> {
        self.pins.get(name).map(|kept| kept.text.as_str())
    }

    /// The same key, if it is one.
    pub fn pinned_key(&self, name: &str) -> Option<Result<&HostKey, &BadHostKey>> {
        self.pins.get(name).map(|kept| kept.key.as_ref())
    }

    /// Names of all pinned keys.
    pub fn pins(&self) -> impl Iterator<Item = &str> {
        self.pins.keys().map(String::as_str)
    }

    /// The record of the host listed as `address`.
    pub fn record(&self, address: &str) -> Option<&HostRecord> {
        self.records.get(address)
    }

    /// All records, by address as listed.
    pub fn records(&self) -> impl Iterator<Item = (&str, &HostRecord)> {
        self.records.iter().map(|(address, record)| (address.as_str(), record))
    }

    /// Addresses of records that cannot be read.
    pub fn damaged(&self) -> impl Iterator<Item = &str> {
        self.damaged.iter().map(String::as_str)
    }

    /// The same address, if its record cannot be read.
    pub(crate) fn damaged_address(&self, address: &str) -> Option<&str> {
        self.damaged.get(address).map(String::as_str)
    }

    /// Whether the record of the host listed as `address` cannot be read. What it said may matter, so
    /// nothing is done with that host, and nothing of it is forgotten, until a person has removed it.
    pub fn is_damaged(&self, address: &str) -> bool {
        self.damaged.contains(address)
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.pins.is_empty() && self.records.is_empty() && self.damaged.is_empty()
    }
}

impl KeptKey {
    fn read(text: &str) -> Self {
        Self { text: text.to_owned(), key: text.parse() }
    }
}
