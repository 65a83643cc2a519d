//! The private keys with which the operator logs in to hosts, as their Secret has them.

use std::sync::Arc;

use wmco_core::authorized_key::AuthorizedKey;
use wmco_core::login_keys::{KeyRotation, LoginKeys};
use wmco_core::names::objects::{NEXT_PRIVATE_KEY_KEY, PRIVATE_KEY_KEY, PRIVATE_KEY_SECRET};
use wmco_core::secret::Secret;
use wmco_core::username;
use wmco_ssh::PrivateKey;

/// The keys of the Secret and what follows from them.
pub struct Keys {
    current: KeyFile,
    /// While the current one is exchanged.
    next: Option<KeyFile>,
    /// Both, as far as decisions need them.
    pub facts: LoginKeys,
}

/// What the Secret has under both names.
pub struct KeySecret {
    /// The key in use.
    pub current: Option<Secret>,
    /// The key to come, while keys are exchanged.
    pub next: Option<Secret>,
}

/// A private key as it stands in the Secret.
#[derive(Clone)]
pub struct KeyFile {
    /// The file, with which user names are encrypted.
    pub pem: Secret,
    /// The key in it.
    pub parsed: Arc<PrivateKey>,
}

impl Keys {
    /// Reads the `secret`, if it is there. Reports each problem; a problem of the next key holds up nothing.
    pub fn parse(secret: Option<KeySecret>, mut tell: impl FnMut(String)) -> Option<Self> {
        let Some(KeySecret { current, next }) = secret else {
            tell(format!(
                "secret {PRIVATE_KEY_SECRET} is absent, create it with the private key of the instances in \
                 {PRIVATE_KEY_KEY}"
            ));
            return None;
        };
        let Some(pem) = current else {
            tell(format!(
                "secret {PRIVATE_KEY_SECRET} has no key {PRIVATE_KEY_KEY}, write the private key of the instances \
                 there"
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
        let Some(pem) = next else {
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
    pub fn files(&self) -> impl Iterator<Item = &KeyFile> {
        std::iter::once(&self.current).chain(&self.next)
    }

    /// The same, to encrypt user names with.
    pub fn passphrases(&self) -> Vec<username::KeyFile> {
        let file = |file: &KeyFile| username::KeyFile {
            hash: file.parsed.public().hash(),
            pem: file.pem.clone(),
        };
        self.files().map(file).collect()
    }

    /// All of them, for who logs in.
    pub fn parsed(&self) -> Arc<[Arc<PrivateKey>]> {
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
