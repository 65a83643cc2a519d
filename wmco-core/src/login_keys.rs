//! The keys with which the operator logs in, also during the exchange for a new key.
//!
//! Any key of the Secret may be used to log in to a host. During a rotation, the next key is added to a host
//! through the current key and proven by a login with the next key alone; only when every host accepts it, the
//! current key is removed from one host after another. The [record](crate::host_record::HostRecord::accepted_key) of
//! each host says which key it accepts. Source: `docs/contract/lifecycle.md`, LIFE35 to LIFE37.

use schemars::JsonSchema;
use serde::Serialize;

use crate::authorized_key::AuthorizedKey;
use crate::digest::Sha256;
use crate::host_record::HostRecord;

/// The public halves of the keys in the operator's Secret.
///
/// ```
/// use wmco_core::host_record::HostRecord;
/// use wmco_core::login_keys::{KeyRotation, LoginKeys};
///
/// let key = |last| format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4{last}");
/// let rotation = KeyRotation { from: key('f').parse()?, to: key('e').parse()? };
/// let [from, to] = [rotation.from.hash(), rotation.to.hash()];
/// let keys = LoginKeys::rotating(rotation);
/// let mut record = HostRecord::default();
/// assert_eq!(keys.offered(Some(&record)), [from, to]);
/// record.accepted_key = Some(to);
/// assert_eq!(keys.offered(Some(&record)), [to, from]);
/// Ok::<(), wmco_core::authorized_key::BadAuthorizedKey>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LoginKeys {
    current: Sha256,
    rotation: Option<KeyRotation>,
}

/// The exchange of the current key for the next one on all hosts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeyRotation {
    /// The current key.
    pub from: AuthorizedKey,
    /// The next key.
    pub to: AuthorizedKey,
}

/// The change of keys that a rotation needs on one host now.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyExchange {
    /// The key to add.
    pub add: AuthorizedKey,
    /// The key to remove.
    pub remove: Option<AuthorizedKey>,
}

impl LoginKeys {
    /// Makes a set of one key, by the hash of its public half, without a rotation.
    pub const fn one(current: Sha256) -> Self {
        Self { current, rotation: None }
    }

    /// Makes a set of two keys.
    pub fn rotating(rotation: KeyRotation) -> Self {
        Self { current: rotation.from.hash(), rotation: Some(rotation) }
    }

    /// The rotation, while there is a next key.
    pub const fn rotation(&self) -> Option<&KeyRotation> {
        self.rotation.as_ref()
    }

    /// Hash of the key that encrypts the user name of a host and marks its Node: the current key until it is
    /// removed from the host, so that a rotation can be undone.
    pub fn sealing(&self, record: Option<&HostRecord>) -> Sha256 {
        let next = self.rotation.as_ref().filter(|rotation| rotation.is_over(record));
        next.map_or(self.current, |rotation| rotation.to.hash())
    }

    /// Hash of the key that a host is known to accept, else of the current key.
    pub fn own(&self, record: Option<&HostRecord>) -> Sha256 {
        let next = self.rotation.as_ref().filter(|rotation| rotation.is_proven(record));
        next.map_or(self.current, |rotation| rotation.to.hash())
    }

    /// Hashes of the keys that are offered to a host, in order; its [own](Self::own) key comes first.
    pub fn offered(&self, record: Option<&HostRecord>) -> Vec<Sha256> {
        let own = self.own(record);
        let next = self.rotation.as_ref().map(|rotation| rotation.to.hash());
        let others = [Some(self.current), next].into_iter().flatten().filter(|key| *key != own);
        std::iter::once(own).chain(others).collect()
    }

    /// The key that a host accepts but that is no longer in the Secret, if the current key was removed from the
    /// host: then the Secret is wrong, not the host.
    pub fn lost(&self, record: Option<&HostRecord>) -> Option<Sha256> {
        let record = record.filter(|record| record.removed_key == Some(self.current))?;
        record.accepted_key.filter(|key| !self.offered(None).contains(key))
    }

    /// Identifies a set of keys, whatever their order.
    pub fn id(offered: &[Sha256]) -> Sha256 {
        match offered {
            [one] => *one,
            several => {
                let mut sorted: Vec<_> = several.to_vec();
                sorted.sort_unstable();
                Sha256::of(&sorted.iter().flat_map(Sha256::as_bytes).copied().collect::<Vec<_>>())
            }
        }
    }
}

impl KeyRotation {
    /// Whether a host is known to accept the next key.
    pub fn is_proven(&self, record: Option<&HostRecord>) -> bool {
        record.is_some_and(|record| record.accepted_key == Some(self.to.hash()))
    }

    /// Whether the current key was removed from the host.
    pub fn is_over(&self, record: Option<&HostRecord>) -> bool {
        let from = Some(self.from.hash());
        self.is_proven(record) && record.is_some_and(|record| record.removed_key == from)
    }

    /// The exchange that is due on a host; `may_remove` is set once every host accepts the next key.
    pub fn due(&self, record: Option<&HostRecord>, may_remove: bool) -> Option<KeyExchange> {
        let exchange = |remove| KeyExchange { add: self.to.clone(), remove };
        match (self.is_proven(record), self.is_over(record)) {
            (false, _) => Some(exchange(None)),
            (true, false) if may_remove => Some(exchange(Some(self.from.clone()))),
            (true, _) => None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A rotation from one key to another.
    pub(crate) fn rotation() -> KeyRotation {
        let key = |last: char| {
            let base64 = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4";
            format!("ssh-ed25519 {base64}{last}").parse().unwrap()
        };
        KeyRotation { from: key('f'), to: key('e') }
    }

    #[test]
    fn a_host_is_offered_first_what_it_is_known_to_let_in() {
        let keys = LoginKeys::rotating(rotation());
        let [from, to] = [rotation().from.hash(), rotation().to.hash()];
        let known = |accepted_key| HostRecord { accepted_key, ..HostRecord::default() };
        let gone = Some(Sha256::of(b"the key of a rotation before"));
        for (accepted_key, offered) in [
            (None, [from, to]),
            (Some(from), [from, to]),
            (Some(to), [to, from]),
            (gone, [from, to]),
        ] {
            assert_eq!(keys.offered(Some(&known(accepted_key))), offered, "{accepted_key:?}");
        }
        assert_eq!(keys.offered(None), [from, to]);
        assert_eq!(LoginKeys::one(to).offered(Some(&known(Some(from)))), [to]);
    }

    #[test]
    fn the_order_of_keys_makes_no_other_set() {
        let [a, b] = [Sha256::of(b"a"), Sha256::of(b"b")];
        assert_eq!(LoginKeys::id(&[a, b]), LoginKeys::id(&[b, a]));
        assert_ne!(LoginKeys::id(&[a, b]), LoginKeys::id(&[a]));
        assert_eq!(LoginKeys::id(&[a]), a);
    }
}
