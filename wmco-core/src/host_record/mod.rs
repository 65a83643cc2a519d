//! What the operator keeps of a host that it works on, beside the pinned host key.
//!
//! It lies where no host and no Windows node may write, so it may be believed when a Node's
//! annotations say something else, and it outlives the Node.

mod change;
mod known;

use std::net::Ipv4Addr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use change::{ListedHost, RecordChange, RecordRefused};
pub(crate) use known::Kept;
pub use known::KnownHosts;

use crate::digest::Sha256;
use crate::host_key::HostKey;
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
    /// The name that it reported last, as Windows spells it; of a host that is about to be renamed its
    /// new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_name: Option<String>,
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
    /// UID of its Machine; absent: people listed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The MachineSet that is to make another Machine in its place: that this one is deleted was decided.
    /// The record outlives the Machine until the MachineSet has as many Machines that work as it is to have,
    /// and holds a disruption slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_in: Option<String>,
    /// Hash of the public key that a rotation last proved to let us in, by a login with it alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lets_in: Option<Sha256>,
    /// Hash of the public key that a rotation took off the host after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_removed: Option<Sha256>,
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

    /// Whether we never logged in to the host and it has no Node, so that nothing of ours is there.
    pub const fn is_untouched(&self) -> bool {
        self.pinned.is_none() && self.node.is_none()
    }

    /// Reads it from its JSON form; `None` if it is none.
    pub fn parse(json: &str) -> Option<Self> {
        let value: serde_json::Value = serde_json::from_str(json).ok()?;
        // A list would be read as the fields in their order.
        serde_json::from_value(value).ok().filter(|_| json.trim_start().starts_with('{'))
    }

    /// What tells hosts apart that may be listed under any address: the key that it shows, and the name
    /// of its Node, or its own before it has one, up to the first dot in lower case. Machines that were
    /// made from one image share a key; those that share both cannot be nodes of one cluster. `None`
    /// before the first look.
    pub fn identity(&self) -> Option<(&str, String)> {
        // A host may report anything once it has a Node.
        let name = self.node.as_deref().or(self.host_name.as_deref())?;
        let label = name.split('.').next().filter(|label| !label.is_empty())?;
        Some((self.pinned.as_deref()?, label.to_lowercase()))
    }

    /// Whether it was logged in to once, has told no name yet, and nothing of ours is there.
    pub(crate) const fn is_nameless(&self) -> bool {
        self.host_name.is_none() && self.node.is_none() && self.closed_for.is_none()
    }

    /// Whether both are of one host: their identity is the same and they do not have different Nodes.
    ///
    /// ```
    /// use wmco_core::host_record::HostRecord;
    ///
    /// let read = |json| serde_json::from_str::<HostRecord>(json);
    /// let before = read(r#"{"pinned": "SHA256:a", "node": "win-1"}"#)?;
    /// assert!(before.is_same_host(&read(r#"{"pinned": "SHA256:a", "hostName": "WIN-1"}"#)?));
    /// assert!(!before.is_same_host(&read(r#"{"pinned": "SHA256:a", "hostName": "WIN-2"}"#)?));
    /// assert!(!before.is_same_host(&read(r#"{"pinned": "SHA256:b", "hostName": "WIN-1"}"#)?));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn is_same_host(&self, other: &Self) -> bool {
        let other_node = self.node.as_ref().zip(other.node.as_ref()).is_some_and(|(a, b)| a != b);
        self.identity().is_some() && self.identity() == other.identity() && !other_node
    }

    /// The same of a host that shows `key`. With another key than before it was installed anew, so nobody
    /// knows which keys of ours it lets in.
    pub(super) fn showing(self, key: &HostKey) -> Self {
        let shown = Some(key.fingerprint());
        let same = self.pinned == shown;
        Self {
            pinned: shown,
            lets_in: self.lets_in.filter(|_| same),
            key_removed: self.key_removed.filter(|_| same),
            ..self
        }
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
