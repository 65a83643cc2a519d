//! User names, as they are kept: encrypted with the private key of the instances.

use std::collections::{BTreeMap, HashMap};

use wmco_core::secret::Secret;
use wmco_ssh::username::{self, Randomness, UsernameError};

/// What was encrypted and decrypted so far, with one file of a private key: another file of the same key
/// encrypts otherwise.
#[derive(Default)]
pub(super) struct Usernames {
    pem: Secret,
    /// As encrypted last, since every encryption looks different.
    sealed: BTreeMap<String, String>,
    /// As decrypted in this pass.
    opened: HashMap<String, Option<String>>,
    /// As decrypted in the pass before.
    earlier: HashMap<String, Option<String>>,
}

impl Usernames {
    /// Begins a pass with this file of the key; what the last pass did not need is forgotten.
    pub(super) fn begin_pass(&mut self, pem: &Secret) {
        if self.pem == *pem {
            self.earlier = std::mem::take(&mut self.opened);
        } else {
            *self = Self { pem: pem.clone(), ..Self::default() };
        }
    }

    /// Decrypts `text`, once.
    pub(super) fn open(&mut self, text: &str) {
        if self.opened.contains_key(text) {
            return;
        }
        let earlier = self.earlier.remove(text);
        let user = earlier.unwrap_or_else(|| username::decrypt(text, &self.pem).ok());
        self.opened.insert(text.to_owned(), user);
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
    ) -> Result<String, UsernameError> {
        let says_the_same = |text: &&str| self.opened(text).as_deref() == Some(user);
        if let Some(text) = on_record.filter(says_the_same) {
            return Ok(text.to_owned());
        }
        if let Some(text) = self.sealed.get(user) {
            return Ok(text.clone());
        }
        let text = username::encrypt(user, &self.pem, &Randomness::from_os()?);
        self.sealed.insert(user.to_owned(), text.clone());
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same key in two files.
    fn files() -> [Secret; 2] {
        let pem = "-----BEGIN OPENSSH PRIVATE KEY-----\nkey\n-----END OPENSSH PRIVATE KEY-----";
        [Secret::new(pem), Secret::new(format!("{pem}\n"))]
    }

    fn sealed(user: &str, pem: &Secret) -> String {
        username::encrypt(user, pem, &Randomness::from_os().unwrap())
    }

    fn pass(names: &mut Usernames, on_record: &str, pem: &Secret) -> String {
        names.begin_pass(pem);
        names.open(on_record);
        names.seal("core", Some(on_record)).unwrap()
    }

    #[test]
    fn a_user_name_on_record_is_kept_from_pass_to_pass() {
        let [pem, _] = files();
        let (mut names, on_record) = (Usernames::default(), sealed("core", &pem));
        for _ in 0..3 {
            assert_eq!(pass(&mut names, &on_record, &pem), on_record);
        }
        let other = pass(&mut names, &sealed("other", &pem), &pem);
        assert_eq!(username::decrypt(&other, &pem).unwrap(), "core");
        assert_eq!(pass(&mut names, "", &pem), other, "every encryption looks different");
        assert_eq!(names.opened.len() + names.earlier.len(), 2, "{:?}", names.opened);
    }

    /// Else a later process could not read whom to log in as.
    #[test]
    fn a_user_name_on_record_is_sealed_anew_for_another_file_of_the_same_key() {
        let [before, now] = files();
        let (mut names, on_record) = (Usernames::default(), sealed("core", &before));
        assert_eq!(pass(&mut names, &on_record, &before), on_record);
        let due = pass(&mut names, &on_record, &now);
        assert_eq!(username::decrypt(&due, &now).unwrap(), "core");
    }

    #[test]
    fn a_user_name_is_read_again_once_the_file_is_right() {
        let [right, wrong] = files();
        let (mut names, on_record) = (Usernames::default(), sealed("core", &right));
        for (pem, expected) in [(&wrong, None), (&right, Some("core"))] {
            names.begin_pass(pem);
            names.open(&on_record);
            assert_eq!(names.opened(&on_record).as_deref(), expected);
        }
    }
}
