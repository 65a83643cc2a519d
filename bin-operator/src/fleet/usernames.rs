//! User names, as they are kept: encrypted with the private key of the instances.

use std::collections::{BTreeMap, HashMap};

use wmco_core::digest::Sha256;
use wmco_core::secret::Secret;
use wmco_ssh::username::{self, Randomness, UsernameError};

/// What was encrypted and decrypted so far, with one key.
#[derive(Default)]
pub(super) struct Usernames {
    /// Hash of the public key.
    key: Option<Sha256>,
    /// As encrypted last, since every encryption looks different.
    sealed: BTreeMap<String, String>,
    /// As decrypted.
    opened: HashMap<String, Option<String>>,
}

impl Usernames {
    /// Forgets what belongs to another key than `key`.
    pub(super) fn use_key(&mut self, key: Sha256) {
        if self.key != Some(key) {
            *self = Self { key: Some(key), ..Self::default() };
        }
    }

    /// Decrypts `text`, once.
    pub(super) fn open(&mut self, text: &str, pem: &Secret) {
        if !self.opened.contains_key(text) {
            self.opened.insert(text.to_owned(), username::decrypt(text, pem).ok());
        }
    }

    /// The user name that `text` is, if it was decrypted before and is one.
    pub(super) fn opened(&self, text: &str) -> Option<String> {
        self.opened.get(text)?.clone()
    }

    /// `user`, encrypted: the text on record, if it was decrypted before and says the same, else the last
    /// one made.
    pub(super) fn seal(
        &mut self,
        user: &str,
        on_record: Option<&str>,
        pem: &Secret,
    ) -> Result<String, UsernameError> {
        let says_the_same = |text: &&str| self.opened(text).as_deref() == Some(user);
        if let Some(text) = on_record.filter(says_the_same) {
            return Ok(text.to_owned());
        }
        if let Some(text) = self.sealed.get(user) {
            return Ok(text.clone());
        }
        let text = username::encrypt(user, pem, &Randomness::from_os()?);
        self.sealed.insert(user.to_owned(), text.clone());
        Ok(text)
    }
}
