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

/// Which keys of ours a host accepts, as far as its record tells: the state of the exchange on this host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeyState {
    /// Nothing is known: no rotation has proven anything there, or its proof is of a key that is no longer in the Secret.
    Unknown,
    /// The current key. Whether it accepts the next one is not known.
    Current,
    /// The next key, proven by a login with that key alone, and still the current one.
    Both,
    /// The next key; the current one was removed.
    Next,
    /// A key that is no longer in the Secret, while the one there was removed: the Secret is wrong, not the host.
    Lost {
        /// Hash of the key that it accepts.
        key: Sha256,
    },
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

    /// The state of the host with this record.
    pub fn state(&self, record: Option<&HostRecord>) -> KeyState {
        let next = self.rotation.as_ref().map(|rotation| rotation.to.hash());
        let is_removed = record.is_some_and(|record| record.removed_key == Some(self.current));
        match (record.and_then(|record| record.accepted_key), is_removed) {
            (Some(key), false) if Some(key) == next => KeyState::Both,
            (Some(key), true) if Some(key) == next => KeyState::Next,
            (Some(key), _) if key == self.current => KeyState::Current,
            (Some(key), true) => KeyState::Lost { key },
            (None, _) | (Some(_), false) => KeyState::Unknown,
        }
    }

    /// Hash of the key that encrypts the user name of a host and marks its Node: the current key until it is
    /// removed from the host, so that a rotation can be undone.
    pub fn sealing(&self, record: Option<&HostRecord>) -> Sha256 {
        match (self.state(record), &self.rotation) {
            (KeyState::Next, Some(rotation)) => rotation.to.hash(),
            (_, _) => self.current,
        }
    }

    /// Hashes of the keys that are offered to a host, in order: first the next one where it is proven, else the current
    /// one.
    pub fn offered(&self, record: Option<&HostRecord>) -> Vec<Sha256> {
        let next = self.rotation.as_ref().map(|rotation| rotation.to.hash());
        let mut keys: Vec<_> = [Some(self.current), next].into_iter().flatten().collect();
        if self.state(record).accepts_next() {
            keys.reverse();
        }
        keys
    }

    /// The exchange that is due on a host in this state; `may_remove` is set once every host accepts the next key.
    pub fn next(&self, state: KeyState, may_remove: bool) -> Option<KeyExchange> {
        let KeyRotation { from, to } = self.rotation.as_ref()?;
        let exchange = |remove| KeyExchange { add: to.clone(), remove };
        match state {
            KeyState::Unknown | KeyState::Current | KeyState::Lost { .. } => Some(exchange(None)),
            KeyState::Both => may_remove.then(|| exchange(Some(from.clone()))),
            KeyState::Next => None,
        }
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

impl KeyState {
    /// Whether the host is known to accept the next key.
    pub const fn accepts_next(self) -> bool {
        match self {
            Self::Both | Self::Next => true,
            Self::Unknown | Self::Current | Self::Lost { .. } => false,
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

    /// Every record, with and without a next key, and what follows.
    #[test]
    fn the_record_of_a_host_is_a_state_of_its_exchange() {
        use KeyState::{Both, Current, Next, Unknown};
        let rotating = LoginKeys::rotating(rotation());
        let [from, to] = [rotation().from.hash(), rotation().to.hash()];
        let (one, gone) = (LoginKeys::one(from), Sha256::of(b"the key of a rotation before"));
        let lost = |key| KeyState::Lost { key };
        // What the host accepts, what was removed from it; its state while keys are exchanged, and its state else.
        for (accepted_key, removed_key, exchanging, alone) in [
            (None, None, Unknown, Unknown),
            (None, Some(from), Unknown, Unknown),
            (Some(from), None, Current, Current),
            (Some(from), Some(gone), Current, Current),
            (Some(from), Some(from), Current, Current),
            (Some(to), None, Both, Unknown),
            (Some(to), Some(gone), Both, Unknown),
            (Some(to), Some(from), Next, lost(to)),
            (Some(gone), None, Unknown, Unknown),
            (Some(gone), Some(to), Unknown, Unknown),
            (Some(gone), Some(from), lost(gone), lost(gone)),
        ] {
            let record = HostRecord { accepted_key, removed_key, ..HostRecord::default() };
            let record = Some(&record);
            assert_eq!(rotating.state(record), exchanging, "{record:?}");
            assert_eq!(one.state(record), alone, "{record:?}");
            // The current key goes only once all accept the next, and it seals user names until then.
            let removed =
                |may| rotating.next(exchanging, may).is_some_and(|it| it.remove.is_some());
            assert_eq!((removed(false), removed(true)), (false, exchanging == Both));
            let is_over = exchanging == Next;
            assert_eq!(rotating.next(exchanging, true).is_none(), is_over, "{record:?}");
            assert_eq!(rotating.sealing(record), if is_over { to } else { from }, "{record:?}");
            assert_eq!((one.next(alone, true), one.sealing(record)), (None, from), "{record:?}");
        }
        assert_eq!((rotating.state(None), one.state(None)), (Unknown, Unknown));
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
