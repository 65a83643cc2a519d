//! The keys with which the operator logs in, while one is in use and while it is exchanged for the next.
//!
//! Every host is reached with any key of the Secret. During a rotation the next key is put on a host
//! through the current one and proven by a login with it alone; only when every host lets it in, the
//! current one is taken off, one host after another. What each host lets in is on its
//! [record](crate::host_record::HostRecord::lets_in). Source: `spec/features.md`, N11.

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
/// record.lets_in = Some(to);
/// assert_eq!(keys.offered(Some(&record)), [to, from]);
/// # Ok::<(), wmco_core::authorized_key::BadAuthorizedKey>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LoginKeys {
    current: Sha256,
    rotation: Option<KeyRotation>,
}

/// The exchange of one key for another on all hosts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeyRotation {
    /// The current key.
    pub from: AuthorizedKey,
    /// The next one.
    pub to: AuthorizedKey,
}

/// What a rotation asks of one host now.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyExchange {
    /// The key that it is to let in.
    pub add: AuthorizedKey,
    /// The key that it is not to let in any more.
    pub remove: Option<AuthorizedKey>,
}

impl LoginKeys {
    /// One key, with this hash of its public half, and no rotation.
    pub const fn one(current: Sha256) -> Self {
        Self { current, rotation: None }
    }

    /// Two keys.
    pub fn rotating(rotation: KeyRotation) -> Self {
        Self { current: rotation.from.hash(), rotation: Some(rotation) }
    }

    /// The rotation, while there is a next key.
    pub const fn rotation(&self) -> Option<&KeyRotation> {
        self.rotation.as_ref()
    }

    /// Hash of the key with which the user name of a host is encrypted and its Node marked: the current one
    /// until it was taken off the host, so that a rotation can be taken back.
    pub fn sealing(&self, record: Option<&HostRecord>) -> Sha256 {
        let next = self.rotation.as_ref().filter(|rotation| rotation.is_over(record));
        next.map_or(self.current, |rotation| rotation.to.hash())
    }

    /// Hash of the key that a host is known to let in, else of the current one.
    pub fn own(&self, record: Option<&HostRecord>) -> Sha256 {
        let next = self.rotation.as_ref().filter(|rotation| rotation.is_proven(record));
        next.map_or(self.current, |rotation| rotation.to.hash())
    }

    /// Hashes of the keys that are offered to a host, in this order: first its [own](Self::own).
    pub fn offered(&self, record: Option<&HostRecord>) -> Vec<Sha256> {
        let own = self.own(record);
        let next = self.rotation.as_ref().map(|rotation| rotation.to.hash());
        let others = [Some(self.current), next].into_iter().flatten().filter(|key| *key != own);
        std::iter::once(own).chain(others).collect()
    }

    /// The key that a host lets in and that is in the Secret no more, if the current one was taken off it:
    /// then the Secret has the wrong keys, and not the host.
    pub fn lost(&self, record: Option<&HostRecord>) -> Option<Sha256> {
        let record = record.filter(|record| record.key_removed == Some(self.current))?;
        record.lets_in.filter(|key| !self.offered(None).contains(key))
    }

    /// Tells sets of keys apart, in whatever order they are offered.
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
    /// Whether a host is known to let the next key in.
    pub fn is_proven(&self, record: Option<&HostRecord>) -> bool {
        record.is_some_and(|record| record.lets_in == Some(self.to.hash()))
    }

    /// Whether the current key was taken off that host.
    pub fn is_over(&self, record: Option<&HostRecord>) -> bool {
        let from = Some(self.from.hash());
        self.is_proven(record) && record.is_some_and(|record| record.key_removed == from)
    }

    /// What is to be done on a host; `may_remove` once every host lets the next key in.
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

    /// From one key to another.
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
        let known = |lets_in| HostRecord { lets_in, ..HostRecord::default() };
        let gone = Some(Sha256::of(b"the key of a rotation before"));
        for (lets_in, offered) in [
            (None, [from, to]),
            (Some(from), [from, to]),
            (Some(to), [to, from]),
            (gone, [from, to]),
        ] {
            assert_eq!(keys.offered(Some(&known(lets_in))), offered, "{lets_in:?}");
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
