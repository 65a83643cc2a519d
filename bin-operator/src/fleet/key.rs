//! The private keys with which the operator logs in to hosts.

use std::sync::Arc;
use std::time::Duration;

use wmco_core::authorized_key::AuthorizedKey;
use wmco_core::host_record::HostRecord;
use wmco_core::login_keys::{KeyRotation, LoginKeys};
use wmco_core::names::objects::{NEXT_PRIVATE_KEY_KEY, PRIVATE_KEY_KEY, PRIVATE_KEY_SECRET};
use wmco_core::secret::Secret;
use wmco_ssh::PrivateKey;

use crate::problems::Found;
use crate::snapshot;
use crate::sources::Sources;

/// The keys of the Secret and what follows from them.
pub(super) struct Keys {
    current: KeyFile,
    /// While the current one is exchanged.
    next: Option<KeyFile>,
    /// Both, as far as decisions need them.
    pub(super) facts: LoginKeys,
}

/// A private key as it stands in the Secret.
#[derive(Clone)]
pub(super) struct KeyFile {
    pub(super) pem: Secret,
    pub(super) parsed: Arc<PrivateKey>,
}

impl Keys {
    /// Reads them from their Secret. What is wrong there goes to `problems`, also with the key that comes
    /// next, which holds up nothing.
    pub(super) fn read(sources: &Sources, namespace: &str, problems: &mut Found) -> Option<Self> {
        let mut tell = |problem: String| problems.insert(problem.into(), Duration::ZERO);
        let Some(pem) = snapshot::private_key(sources, namespace) else {
            tell(format!(
                "secret {PRIVATE_KEY_SECRET} has no key {PRIVATE_KEY_KEY}, create it with the private key \
                 of the instances"
            ));
            return None;
        };
        let current = match KeyFile::parse(pem) {
            Ok(current) => current,
            Err(problem) => {
                tell(format!("secret {PRIVATE_KEY_SECRET}: {problem}"));
                return None;
            }
        };
        let one = LoginKeys::one(current.parsed.public().hash());
        let Some(pem) = snapshot::next_private_key(sources, namespace) else {
            return Some(Self { current, next: None, facts: one });
        };
        match current.rotation_to(pem) {
            Ok((next, rotation)) => {
                let facts = LoginKeys::rotating(rotation);
                Some(Self { current, next: Some(next), facts })
            }
            Err(problem) => {
                tell(format!("secret {PRIVATE_KEY_SECRET}, key {NEXT_PRIVATE_KEY_KEY}: {problem}"));
                Some(Self { current, next: None, facts: one })
            }
        }
    }

    /// The current one, then the next.
    pub(super) fn files(&self) -> impl Iterator<Item = &KeyFile> {
        std::iter::once(&self.current).chain(&self.next)
    }

    /// The one that the host with this record is known to let in, else the current one.
    pub(super) fn own(&self, record: Option<&HostRecord>) -> &KeyFile {
        let own = self.facts.own(record);
        let next = self.next.as_ref().filter(|next| next.parsed.public().hash() == own);
        next.unwrap_or(&self.current)
    }

    /// All of them, for who logs in.
    pub(super) fn parsed(&self) -> Arc<[Arc<PrivateKey>]> {
        self.files().map(|file| Arc::clone(&file.parsed)).collect()
    }
}

impl KeyFile {
    fn parse(pem: Secret) -> Result<Self, String> {
        match PrivateKey::parse(&pem) {
            Ok(parsed) => Ok(Self { pem, parsed: Arc::new(parsed) }),
            Err(error) => Err(crate::chain(&error)),
        }
    }

    /// The key in `pem`, if this one can be exchanged for it.
    fn rotation_to(&self, pem: Secret) -> Result<(Self, KeyRotation), String> {
        let next = Self::parse(pem)?;
        let line = |file: &Self| {
            AuthorizedKey::try_from(file.parsed.public()).map_err(|error| crate::chain(&error))
        };
        let from = line(self).map_err(|problem| {
            format!("the key in {PRIVATE_KEY_KEY} cannot be exchanged: {problem}")
        })?;
        let to = line(&next)?;
        if from == to {
            return Err(format!(
                "it is the key in {PRIVATE_KEY_KEY}, write another one or take it out"
            ));
        }
        Ok((next, KeyRotation { from, to }))
    }
}
