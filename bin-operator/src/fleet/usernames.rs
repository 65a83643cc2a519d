//! User names, as they are kept: encrypted with the private key of the instances.

use std::collections::{BTreeMap, HashMap};

use wmco_core::digest::Sha256;
use wmco_core::secret::Secret;
use wmco_core::username::{self, Randomness};

use crate::keys::KeyFile;

/// What was encrypted and decrypted so far, with these files of private keys: another file of the same key
/// encrypts otherwise.
#[derive(Default)]
pub(super) struct Usernames {
    /// The files by the hashes of their public keys, the current one first.
    files: Vec<(Sha256, Secret)>,
    /// As encrypted last, since every encryption looks different, by user and key.
    sealed: BTreeMap<(String, Sha256), String>,
    /// As decrypted in this pass.
    opened: HashMap<String, Option<Opened>>,
    /// As decrypted in the pass before.
    earlier: HashMap<String, Option<Opened>>,
}

/// A decrypted user name, and the key that decrypted it; none if that was another file of it.
#[derive(Clone, Eq, PartialEq)]
struct Opened {
    user: String,
    key: Option<Sha256>,
}

/// The system gives no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the system has no random bytes, check its random device")]
pub(super) struct NoRandomBytes;

impl Usernames {
    /// Begins a pass with these files; what the last pass did not need is forgotten.
    pub(super) fn begin_pass<'a>(&mut self, files: impl IntoIterator<Item = &'a KeyFile>) {
        let file = |file: &KeyFile| (file.parsed.public().hash(), file.pem.clone());
        let files: Vec<_> = files.into_iter().map(file).collect();
        if self.files == files {
            self.earlier = std::mem::take(&mut self.opened);
        } else {
            *self = Self { files, ..Self::default() };
        }
    }

    /// Decrypts `text`, once, with whichever key does.
    pub(super) fn open(&mut self, text: &str) {
        if self.opened.contains_key(text) {
            return;
        }
        let with = |(key, pem): &(Sha256, Secret)| {
            let user = username::decrypt(text, pem).ok()?;
            Some(Opened { user, key: Some(*key) })
        };
        let with_other_end = |(_, pem): &(Sha256, Secret)| {
            let user = other_ends(pem).find_map(|pem| username::decrypt(text, &pem).ok())?;
            Some(Opened { user, key: None })
        };
        let mut open = || {
            let files = || self.files.iter();
            files().find_map(with).or_else(|| files().find_map(with_other_end))
        };
        let earlier = self.earlier.remove(text);
        let opened = earlier.unwrap_or_else(&mut open);
        self.opened.insert(text.to_owned(), opened);
    }

    /// The user name that `text` is, if it was decrypted before and is one.
    pub(super) fn opened(&self, text: &str) -> Option<String> {
        Some(self.opened.get(text)?.as_ref()?.user.clone())
    }

    /// `user`, encrypted with the key of this file: the text on record, if it was decrypted before and says the same, else
    /// the last one made.
    pub(super) fn seal(
        &mut self,
        user: &str,
        on_record: Option<&str>,
        file: &KeyFile,
    ) -> Result<String, NoRandomBytes> {
        let key = file.parsed.public().hash();
        let wanted = Opened { user: user.to_owned(), key: Some(key) };
        let says_the_same =
            |text: &&str| self.opened.get(*text).is_some_and(|it| it.as_ref() == Some(&wanted));
        if let Some(text) = on_record.filter(says_the_same) {
            return Ok(text.to_owned());
        }
        let by = (wanted.user, key);
        if let Some(text) = self.sealed.get(&by) {
            return Ok(text.clone());
        }
        let text = username::encrypt(user, &file.pem, &randomness()?);
        self.sealed.insert(by, text.clone());
        Ok(text)
    }
}

/// Fresh random bytes for one message.
fn randomness() -> Result<Randomness, NoRandomBytes> {
    Randomness::filled_by(getrandom::fill).map_err(|_| NoRandomBytes)
}

/// The same file with other ends, as people and tools write them.
fn other_ends(pem: &Secret) -> impl Iterator<Item = Secret> {
    let trimmed = pem.expose().trim_ascii_end();
    ["", "\n", "\r\n"].into_iter().map(move |end| Secret::new([trimmed, end.as_bytes()].concat()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use wmco_ssh::PrivateKey;

    use super::*;

    fn file(pem: String) -> KeyFile {
        let pem = Secret::new(pem);
        KeyFile { parsed: Arc::new(PrivateKey::parse(&pem).unwrap()), pem }
    }

    /// The same key in two files.
    fn files() -> [KeyFile; 2] {
        let pem = rcgen::KeyPair::generate().unwrap().serialize_pem();
        [file(pem.clone()), file(format!("{pem}\n"))]
    }

    fn sealed(user: &str, file: &KeyFile) -> String {
        username::encrypt(user, &file.pem, &randomness().unwrap())
    }

    fn pass(names: &mut Usernames, on_record: &str, files: &[&KeyFile], own: &KeyFile) -> String {
        names.begin_pass(files.iter().copied());
        names.open(on_record);
        names.seal("core", Some(on_record), own).unwrap()
    }

    #[test]
    fn every_message_has_random_bytes_of_its_own() {
        let [file, _] = files();
        assert_ne!(sealed("core", &file), sealed("core", &file));
    }

    #[test]
    fn a_user_name_on_record_is_kept_from_pass_to_pass() {
        let [file, _] = files();
        let (mut names, on_record) = (Usernames::default(), sealed("core", &file));
        for _ in 0..3 {
            assert_eq!(pass(&mut names, &on_record, &[&file], &file), on_record);
        }
        let other = pass(&mut names, &sealed("other", &file), &[&file], &file);
        assert_eq!(username::decrypt(&other, &file.pem).unwrap(), "core");
        let again = pass(&mut names, "", &[&file], &file);
        assert_eq!(again, other, "every encryption looks different");
        assert_eq!(names.opened.len() + names.earlier.len(), 2);
    }

    /// Else a later process could not read whom to log in as.
    #[test]
    fn a_user_name_on_record_is_sealed_anew_for_another_file_of_the_same_key() {
        let [before, now] = files();
        let (mut names, on_record) = (Usernames::default(), sealed("core", &before));
        assert_eq!(pass(&mut names, &on_record, &[&before], &before), on_record);
        let due = pass(&mut names, &on_record, &[&now], &now);
        assert_eq!(username::decrypt(&due, &now.pem).unwrap(), "core");
    }

    #[test]
    fn a_user_name_is_read_again_once_the_file_is_right() {
        let [[right, _], [wrong, _]] = [files(), files()];
        let (mut names, on_record) = (Usernames::default(), sealed("core", &right));
        for (file, expected) in [(&wrong, None), (&right, Some("core"))] {
            names.begin_pass([file]);
            names.open(&on_record);
            assert_eq!(names.opened(&on_record).as_deref(), expected);
        }
    }

    /// The same key may be written with another end of the file when it becomes the current key.
    #[test]
    fn a_user_name_is_read_with_another_end_of_the_file() {
        let [before, now] = files();
        let (mut names, on_record) = (Usernames::default(), sealed("core", &before));
        names.begin_pass([&now]);
        names.open(&on_record);
        assert_eq!(names.opened(&on_record).as_deref(), Some("core"));
    }

    /// A host is reached with both keys while they are exchanged, and its user name follows the key that
    /// it lets in, so that the one before can go.
    #[test]
    fn a_user_name_is_read_with_both_keys_and_sealed_with_the_own_one() {
        let [[current, _], [next, _]] = [files(), files()];
        let (mut names, before) = (Usernames::default(), sealed("core", &current));
        let both = [&current, &next];
        assert_eq!(pass(&mut names, &before, &both, &current), before);
        let after = pass(&mut names, &before, &both, &next);
        assert_eq!(username::decrypt(&after, &next.pem).unwrap(), "core");
        assert_eq!(pass(&mut names, &after, &both, &next), after);
        assert_eq!(pass(&mut names, &after, &[&next], &next), after, "the key before is gone");
        assert_eq!(names.opened(&after).as_deref(), Some("core"));
    }
}
