//! What the operator keeps of a host that it works on, beside the pinned host key.
//!
//! It lies where no host and no Windows node may write, so it may be believed when a Node's
//! annotations say something else, and it outlives the Node.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::host_key::HostKey;
use crate::names::objects::HOST_RECORD_SUFFIX;

/// One host's record, a JSON value of the ConfigMap
/// [`HOST_KEYS_CONFIG_MAP`](crate::names::objects::HOST_KEYS_CONFIG_MAP) under
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
    /// Fingerprint of the host key with which an agent of ours said that the root folder is closed:
    /// only administrators may write below it, and what lies there is ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_for: Option<String>,
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
