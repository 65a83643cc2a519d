//! What the operator keeps of a host that it works on, beside the pinned host key.
//!
//! It lies where no host and no Windows node may write, so it may be believed when a Node's
//! annotations say something else, and it outlives the Node.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::host_key::HostKey;
use crate::instances::Instance;
use crate::limits::SSH_PORT;
use crate::names::objects::{HOST_KEYS_CONFIG_MAP, HOST_RECORD_SUFFIX};

/// One host's record, a JSON value of the ConfigMap
/// [`HOST_KEYS_CONFIG_MAP`] under
/// [`HostRecord::key_name`].
///
/// A field that nobody knows is absent. Fields of a later version are passed over.
///
/// ```
/// use wmco_core::host_record::HostRecord;
///
/// assert_eq!(HostRecord::key_name("10.0.0.5"), "10.0.0.5_host");
/// assert_eq!(HostRecord::address_in("10.0.0.5_host"), Some("10.0.0.5"));
/// let record: HostRecord = serde_json::from_str(r#"{"port": 2222}"#)?;
/// assert_eq!(record.port, Some(2222));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostRecord {
    /// What its address resolved to last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv4: Option<Ipv4Addr>,
    /// Name of its Node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// SSH user, encrypted as in annotation
    /// [`USERNAME_ANNOTATION`](crate::names::USERNAME_ANNOTATION).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// TCP port of its SSH server; absent: 22.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Jump host, as in the line `via=` of an entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// Fingerprint of the host key that was pinned last. While it is here a missing pin is no reason
    /// to trust the next key that the host shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<String>,
    /// The same of its jump host, after the name under which that key is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jump_pinned: Option<(String, String)>,
    /// Fingerprint of the host key with which an agent of ours said that the root folder is closed:
    /// only administrators may write below it, and what lies there is ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_for: Option<String>,
    /// Whether its removal may go on: it was within the limit for removals at once, or confirmed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removal_confirmed: bool,
}

/// The ConfigMap [`HOST_KEYS_CONFIG_MAP`], read once.
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
    pins: BTreeMap<String, String>,
    records: BTreeMap<String, HostRecord>,
    damaged: BTreeSet<String>,
}

impl KnownHosts {
    /// Reads the ConfigMap's data. A record that is no JSON counts as absent.
    pub fn read<K, V>(data: impl IntoIterator<Item = (K, V)>) -> Self
    where
        K: AsRef<str>,
        V: AsRef<str>,
    {
        let mut known = Self::default();
        for (key, value) in data {
            let (key, value) = (key.as_ref(), value.as_ref());
            match HostRecord::address_in(key) {
                None => drop(known.pins.insert(key.to_owned(), value.to_owned())),
                Some(address) => match serde_json::from_str(value) {
                    Ok(record) => drop(known.records.insert(address.to_owned(), record)),
                    Err(_) => drop(known.damaged.insert(key.to_owned())),
                },
            }
        }
        known
    }

    /// The pinned key of a host, by its address as listed, or of a jump host, by
    /// [`Jump::key_name`](crate::instances::Jump::key_name): base64 of the wire form, unchecked.
    pub fn pin(&self, name: &str) -> Option<&str> {
        self.pins.get(name).map(String::as_str)
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

    /// Keys of records that cannot be read.
    pub fn damaged(&self) -> impl Iterator<Item = &str> {
        self.damaged.iter().map(String::as_str)
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.pins.is_empty() && self.records.is_empty() && self.damaged.is_empty()
    }
}

impl HostRecord {
    /// Key of the record of the host listed as `address`. No entry and no jump host has such a key.
    pub fn key_name(address: &str) -> String {
        format!("{address}{HOST_RECORD_SUFFIX}")
    }

    /// The address whose record has this key, if it is the key of a record.
    pub fn address_in(key_name: &str) -> Option<&str> {
        key_name.strip_suffix(HOST_RECORD_SUFFIX)
    }

    /// The command by which a person gives up a host that nobody lists and nobody reaches: nothing is
    /// cleaned there then.
    pub fn give_up_command(namespace: &str, address: &str) -> String {
        let record = Self::key_name(address);
        format!(
            r#"kubectl patch configmap {HOST_KEYS_CONFIG_MAP} -n {namespace} --type merge -p '{{"data":{{"{address}":null,"{record}":null}}}}'"#
        )
    }

    /// The record of a listed host, from its entry and from what was on record of it before.
    ///
    /// `username` is encrypted; `node` is the Node that stands for it beyond doubt, if there is one.
    #[must_use]
    pub fn of_listed(
        before: Option<&Self>,
        instance: &Instance,
        username: &str,
        node: Option<&str>,
    ) -> Self {
        let before = before.cloned().unwrap_or_default();
        Self {
            ipv4: Some(instance.ipv4),
            node: node.map(str::to_owned).or(before.node),
            username: Some(username.to_owned()),
            port: (instance.port != SSH_PORT).then_some(instance.port),
            via: instance.via.as_ref().map(ToString::to_string),
            pinned: before.pinned,
            jump_pinned: before.jump_pinned,
            closed_for: before.closed_for,
            removal_confirmed: false,
        }
    }

    /// Whether we never logged in to the host and it has no Node, so that nothing of ours is there.
    pub const fn is_untouched(&self) -> bool {
        self.pinned.is_none() && self.node.is_none()
    }

    /// Whether the host that shows `key` was seen closed. Another key means another host, or one that
    /// was installed anew.
    pub fn is_closed_for(&self, key: &HostKey) -> bool {
        self.closed_for.as_ref() == Some(&key.fingerprint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

    #[test]
    fn another_key_is_another_host() {
        let key: HostKey = KEY.parse().unwrap();
        let mut record = HostRecord::default();
        assert!(!record.is_closed_for(&key));
        record.closed_for = Some(key.fingerprint());
        assert!(record.is_closed_for(&key));
        record.closed_for = Some("SHA256:another".to_owned());
        assert!(!record.is_closed_for(&key));
    }

    #[test]
    fn what_is_unknown_is_not_written_and_not_needed() {
        let record: HostRecord = serde_json::from_str(r#"{"later": 1}"#).unwrap();
        assert_eq!(record, HostRecord::default());
        assert_eq!(serde_json::to_string(&record).unwrap(), "{}");
    }
}
