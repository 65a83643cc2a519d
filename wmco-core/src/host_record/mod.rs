//! Stored facts about a host, beside the pinned host key.
//!
//! They are stored where no host and no Windows node may write, so they can be trusted against a Node's
//! annotations, and they outlive the Node.

mod called;
mod change;
mod known;
mod records;

use std::net::Ipv4Addr;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

pub(crate) use called::{calls, forms};
pub use change::{ListedHost, RecordChange, RecordRefused};
pub use known::KnownHosts;
pub(crate) use known::StoredHost;
pub use records::{Records, TooManyListed, fit};

use crate::digest::Sha256;
use crate::host_key::HostKey;
use crate::names::objects::{HOST_KEYS_CONFIG_MAP, HOST_RECORD_SUFFIX};

/// The record of a host, a JSON value of the ConfigMap [`HOST_KEYS_CONFIG_MAP`] under [`HostRecord::key_name`].
///
/// An unknown fact is absent. Fields of a later version are ignored, and the names that fields had before are read.
///
/// ```
/// use wmco_core::host_record::HostRecord;
///
/// assert_eq!(HostRecord::key_name("10.0.0.5"), "10.0.0.5_host");
/// assert_eq!(HostRecord::address_in("10.0.0.5_host"), Some("10.0.0.5"));
/// let record: HostRecord = serde_json::from_str(r#"{"port": 2222}"#)?;
/// assert_eq!(record.port, Some(2222));
/// Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostRecord {
    /// The address that its address resolved to last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv4: Option<Ipv4Addr>,
    /// Name of its Node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The host name that it reported last, as Windows spells it; for a host that is about to be renamed the new
    /// name. While it has a Node that it registered by a name it is that name, whatever it reports.
    /// Source: `docs/contract/host.md`, HOST67.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_name: Option<String>,
    /// SSH user, encrypted as in annotation
    /// [`USERNAME_ANNOTATION`](crate::names::USERNAME_ANNOTATION).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// TCP port of its SSH server; 22 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Jump host, as in the line `via=` of an entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// Fingerprint of the host key that was pinned last. While it is set, a missing pin is no reason to trust the
    /// next key that the host shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<String>,
    /// Fingerprint of the jump host's key, after the name of that key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jump_pinned: Option<(String, String)>,
    /// Fingerprint of the host key with which our agent reported that the root folder is closed: only
    /// administrators may write below it, and its content is ours.
    #[serde(alias = "closedFor", default, skip_serializing_if = "Option::is_none")]
    pub root_closed_with_host_key: Option<String>,
    /// Whether its removal may proceed: it was within the limit for simultaneous removals, or confirmed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removal_confirmed: bool,
    /// UID of its Machine; absent for a listed host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The MachineSet that is to create a replacement, after the decision to delete this Machine. The record
    /// outlives the Machine until the MachineSet has its desired number of working Machines, and holds a disruption
    /// slot.
    #[serde(alias = "replacedIn", default, skip_serializing_if = "Option::is_none")]
    pub replacement_machine_set: Option<String>,
    /// The Machines of this MachineSet at that decision. What cannot be read is absent: a slot is not given up for it.
    #[serde(
        alias = "replacedOf",
        default,
        deserialize_with = "if_readable",
        skip_serializing_if = "Option::is_none"
    )]
    pub machines_before: Option<MachinesThen>,
    /// Hash of the public key that a rotation last proved by a login with that key alone.
    #[serde(alias = "letsIn", default, skip_serializing_if = "Option::is_none")]
    pub accepted_key: Option<Sha256>,
    /// Hash of the public key that a rotation removed from the host after that.
    #[serde(alias = "keyRemoved", default, skip_serializing_if = "Option::is_none")]
    pub removed_key: Option<Sha256>,
}

/// The Machines of a MachineSet when it was decided to replace one of them.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MachinesThen {
    /// Their number.
    pub count: usize,
    /// When the youngest of them was created: what is created later takes the place of one that is gone.
    #[schemars(with = "String")]
    pub newest: Timestamp,
}

fn if_readable<'de, D: Deserializer<'de>>(input: D) -> Result<Option<MachinesThen>, D::Error> {
    Ok(MachinesThen::deserialize(serde_json::Value::deserialize(input)?).ok())
}

impl HostRecord {
    /// Key of the record of the host with the listed address `address`. No entry and no jump host has such a key.
    pub fn key_name(address: &str) -> String {
        format!("{address}{HOST_RECORD_SUFFIX}")
    }

    /// The address in the key of a record; `None` for other keys.
    pub fn address_in(key_name: &str) -> Option<&str> {
        key_name.strip_suffix(HOST_RECORD_SUFFIX)
    }

    /// The command with which an administrator gives up a host that is neither listed nor reachable: it is not
    /// cleaned.
    pub fn give_up_command(namespace: &str, address: &str) -> String {
        let record = Self::key_name(address);
        format!(
            r#"kubectl patch configmap {HOST_KEYS_CONFIG_MAP} -n {namespace} --type merge -p '{{"data":{{"{address}":null,"{record}":null}}}}'"#
        )
    }

    /// Whether the operator never logged in to the host and it has no Node, so that there is nothing to clean.
    pub const fn is_untouched(&self) -> bool {
        self.pinned.is_none() && self.node.is_none()
    }

    /// Reads a record from JSON; `None` if the text is not a record.
    pub fn parse(json: &str) -> Option<Self> {
        let value: serde_json::Value = serde_json::from_str(json).ok()?;
        // serde would also accept a list, as the fields in their order.
        serde_json::from_value(value).ok().filter(|_| json.trim_start().starts_with('{'))
    }

    /// Identifies a host under any listed address: its key, and the first label in lower case of its Node's name,
    /// or of its own name before it has a Node. Machines from one image share a key; hosts that share both cannot
    /// be nodes of one cluster. `None` before the first contact.
    pub fn identity(&self) -> Option<(&str, String)> {
        // A host with a Node may report any name.
        let name = self.node.as_deref().or(self.host_name.as_deref())?;
        let label = name.split('.').next().filter(|label| !label.is_empty())?;
        Some((self.pinned.as_deref()?, label.to_lowercase()))
    }

    /// The name by which the host with the key of the record registered its Node, if it did so by the name on record.
    /// A host that shows the same key and calls itself otherwise is another one of the same image, or was renamed.
    pub(crate) fn registered(&self, node: &str) -> Option<&str> {
        self.host_name.as_deref().filter(|name| calls(name, node))
    }

    /// The Node on record of the host that goes on record as `told`. A host with another name than the one that registered
    /// the Node has none; that name stays on record while there is the Node.
    fn node_of(&self, told: Option<&str>) -> Option<&String> {
        let has_it = |node: &&String| {
            self.registered(node).is_none() || told.is_none_or(|told| calls(told, node))
        };
        self.node.as_ref().filter(has_it)
    }

    /// Whether it had a login but has reported no name yet, and has nothing of ours.
    pub(crate) const fn is_nameless(&self) -> bool {
        self.host_name.is_none() && self.node.is_none() && self.root_closed_with_host_key.is_none()
    }

    /// The record with `key` as the host's key. If the key is new, the host was reinstalled, and it is unknown what it is
    /// called and which of our keys it accepts.
    pub(super) fn showing(self, key: &HostKey) -> Self {
        let shown = Some(key.fingerprint());
        let same = self.pinned == shown;
        let is_first = self.pinned.is_none();
        Self {
            pinned: shown,
            host_name: self.host_name.filter(|_| same || is_first),
            accepted_key: self.accepted_key.filter(|_| same),
            removed_key: self.removed_key.filter(|_| same),
            ..self
        }
    }

    /// Whether the host with `key` was reported as closed. Another key means another host, or a reinstalled one.
    pub fn is_closed_for(&self, key: &HostKey) -> bool {
        self.root_closed_with_host_key.as_ref() == Some(&key.fingerprint())
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
        record.root_closed_with_host_key = Some(key.fingerprint());
        assert!(record.is_closed_for(&key));
        record.root_closed_with_host_key = Some("SHA256:another".to_owned());
        assert!(!record.is_closed_for(&key));
    }

    #[test]
    fn former_names_of_fields_are_read_and_written_no_more() {
        let hash = Sha256::of(b"key");
        let former = format!(
            r#"{{"closedFor": "SHA256:a", "replacedIn": "win", "letsIn": "{hash}", "keyRemoved": "{hash}",
                "replacedOf": {{"count": 3, "newest": "2026-01-01T00:00:00Z"}}}}"#
        );
        let record = HostRecord::parse(&former).unwrap();
        assert_eq!((record.accepted_key, record.removed_key), (Some(hash), Some(hash)));
        assert_eq!(record.machines_before.map(|before| before.count), Some(3));
        let written = serde_json::to_string(&record).unwrap();
        for name in ["closedFor", "replacedIn", "replacedOf", "letsIn", "keyRemoved"] {
            assert!(!written.contains(name), "{written}");
        }
        assert_eq!(HostRecord::parse(&written), Some(record));
    }

    #[test]
    fn what_is_unknown_is_not_written_and_not_needed() {
        let record: HostRecord = serde_json::from_str(r#"{"later": 1}"#).unwrap();
        assert_eq!(record, HostRecord::default());
        assert_eq!(serde_json::to_string(&record).unwrap(), "{}");
    }
}
