//! User names, as they are kept: encrypted with the private key of the instances.

use std::collections::{BTreeMap, HashMap};

use super::{Randomness, decrypt, encrypt};
use crate::digest::Sha256;
use crate::fleet::Assignment;
use crate::host_record::KnownHosts;
use crate::login_keys::LoginKeys;
use crate::names;
use crate::pass::UserNames;
use crate::secret::Secret;

/// What was encrypted and decrypted so far, with these files of private keys: another file of the same key
/// encrypts otherwise.
#[derive(Default)]
pub struct Usernames {
    /// The current one first.
    files: Vec<KeyFile>,
    /// As encrypted last, since every encryption looks different, by user and key.
    sealed: BTreeMap<(String, Sha256), String>,
    /// As decrypted in this pass.
    opened: HashMap<String, Option<Opened>>,
    /// As decrypted in the pass before.
    earlier: HashMap<String, Option<Opened>>,
}

/// A file with a private key.
#[derive(Clone, Eq, PartialEq)]
pub struct KeyFile {
    /// Hash of the public half of the key.
    pub hash: Sha256,
    /// The file, which is the passphrase.
    pub pem: Secret,
}

/// A decrypted user name, and the key that decrypted it; none if that was another file of it.
#[derive(Clone, Eq, PartialEq)]
struct Opened {
    user: String,
    key: Option<Sha256>,
}

impl Usernames {
    /// Begins a pass with these files; what the last pass did not need is forgotten.
    pub fn begin_pass(&mut self, files: Vec<KeyFile>) {
        if self.files == files {
            self.earlier = std::mem::take(&mut self.opened);
        } else {
            *self = Self { files, ..Self::default() };
        }
    }

    /// Decrypts `text`, once, with whichever key does.
    pub fn open(&mut self, text: &str) {
        if self.opened.contains_key(text) {
            return;
        }
        let with = |file: &KeyFile| {
            let user = decrypt(text, &file.pem).ok()?;
            Some(Opened { user, key: Some(file.hash) })
        };
        let with_other_end = |file: &KeyFile| {
            let user = other_ends(&file.pem).find_map(|pem| decrypt(text, &pem).ok())?;
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
    pub fn opened(&self, text: &str) -> Option<String> {
        Some(self.opened.get(text)?.as_ref()?.user.clone())
    }

    /// `user`, encrypted with the key of this hash: the text on record, if it was decrypted before and says the same, else
    /// the last one made. `None` if there is no such key.
    ///
    /// # Errors
    /// There is no `randomness`, which a new text needs.
    pub fn seal<E>(
        &mut self,
        user: &str,
        on_record: Option<&str>,
        key: Sha256,
        randomness: impl FnOnce() -> Result<Randomness, E>,
    ) -> Result<Option<String>, E> {
        let wanted = Opened { user: user.to_owned(), key: Some(key) };
        let says_the_same =
            |text: &&str| self.opened.get(*text).is_some_and(|it| it.as_ref() == Some(&wanted));
        if let Some(text) = on_record.filter(says_the_same) {
            return Ok(Some(text.to_owned()));
        }
        let by = (wanted.user, key);
        if let Some(text) = self.sealed.get(&by) {
            return Ok(Some(text.clone()));
        }
        let Some(file) = self.files.iter().find(|file| file.hash == key) else { return Ok(None) };
        let text = encrypt(user, &file.pem, &randomness()?);
        self.sealed.insert(by, text.clone());
        Ok(Some(text))
    }
}

/// User names that are encrypted as they are needed, with random bytes of the caller.
pub struct Sealing<'a, F> {
    /// Those that are known.
    pub usernames: &'a mut Usernames,
    /// Gives fresh bytes for one message.
    pub randomness: F,
}

impl<E, F: FnMut() -> Result<Randomness, E>> UserNames for Sealing<'_, F> {
    type Error = E;

    fn sealed(
        &mut self,
        assignment: &Assignment<'_>,
        hosts: &KnownHosts,
        keys: &LoginKeys,
    ) -> Result<Option<String>, E> {
        sealed_username(assignment, hosts, keys, self.usernames, &mut self.randomness)
    }

    fn opened(&self, text: &str) -> Option<String> {
        self.usernames.opened(text)
    }
}

/// The encrypted user name of an instance that somebody asks for; the one in use is decrypted for `usernames`.
fn sealed_username<E>(
    assignment: &Assignment<'_>,
    hosts: &KnownHosts,
    keys: &LoginKeys,
    usernames: &mut Usernames,
    randomness: impl FnOnce() -> Result<Randomness, E>,
) -> Result<Option<String>, E> {
    let in_use = username_in_use(assignment, hosts);
    if let Some(text) = in_use {
        usernames.open(text);
    }
    let Some(instance) = assignment.instance else { return Ok(None) };
    let key = keys.sealing(assignment.record(hosts));
    usernames.seal(&instance.username, in_use, key, randomness)
}

/// The encrypted user name in use for an instance: from the record, or from the Node of a Machine, which the Go
/// operator also reads.
fn username_in_use<'a>(assignment: &Assignment<'a>, hosts: &'a KnownHosts) -> Option<&'a str> {
    let is_machine = assignment.instance.is_some_and(|instance| instance.machine.is_some());
    let on_node = || assignment.node?.annotation(names::USERNAME_ANNOTATION);
    let on_record = assignment.record(hosts).and_then(|record| record.username.as_deref());
    on_record.or_else(|| on_node().filter(|_| is_machine))
}

/// The same file with other ends, as people and tools write them.
fn other_ends(pem: &Secret) -> impl Iterator<Item = Secret> {
    let trimmed = pem.expose().trim_ascii_end();
    ["", "\n", "\r\n"].into_iter().map(move |end| Secret::new([trimmed, end.as_bytes()].concat()))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::super::RANDOM_BYTES;
    use super::*;

    /// Other bytes each time.
    fn randomness() -> Randomness {
        static COUNT: AtomicU8 = AtomicU8::new(0);
        Randomness::new([COUNT.fetch_add(1, Ordering::Relaxed); RANDOM_BYTES])
    }

    /// The same key in two files.
    fn files(key: &str) -> [KeyFile; 2] {
        let file = |end| KeyFile {
            hash: Sha256::of(key.as_bytes()),
            pem: Secret::new(format!("-----BEGIN {key}{end}")),
        };
        [file(""), file("\n")]
    }

    fn sealed(user: &str, file: &KeyFile) -> String {
        encrypt(user, &file.pem, &randomness())
    }

    fn pass(names: &mut Usernames, on_record: &str, files: &[&KeyFile], own: &KeyFile) -> String {
        names.begin_pass(files.iter().map(|file| (*file).clone()).collect());
        names.open(on_record);
        let fresh = || Ok::<_, Infallible>(randomness());
        names.seal("core", Some(on_record), own.hash, fresh).unwrap().unwrap()
    }

    #[test]
    fn a_user_name_on_record_is_kept_from_pass_to_pass() {
        let [file, _] = files("a");
        let (mut names, on_record) = (Usernames::default(), sealed("core", &file));
        for _ in 0..3 {
            assert_eq!(pass(&mut names, &on_record, &[&file], &file), on_record);
        }
        let other = pass(&mut names, &sealed("other", &file), &[&file], &file);
        assert_eq!(decrypt(&other, &file.pem).unwrap(), "core");
        let again = pass(&mut names, "", &[&file], &file);
        assert_eq!(again, other, "every encryption looks different");
        assert_eq!(names.opened.len() + names.earlier.len(), 2);
    }

    /// Else a later process could not read whom to log in as.
    #[test]
    fn a_user_name_on_record_is_sealed_anew_for_another_file_of_the_same_key() {
        let [before, now] = files("a");
        let (mut names, on_record) = (Usernames::default(), sealed("core", &before));
        assert_eq!(pass(&mut names, &on_record, &[&before], &before), on_record);
        let due = pass(&mut names, &on_record, &[&now], &now);
        assert_eq!(decrypt(&due, &now.pem).unwrap(), "core");
    }

    #[test]
    fn a_user_name_is_read_again_once_the_file_is_right() {
        let [[right, _], [wrong, _]] = [files("a"), files("b")];
        let (mut names, on_record) = (Usernames::default(), sealed("core", &right));
        for (file, expected) in [(&wrong, None), (&right, Some("core"))] {
            names.begin_pass(vec![file.clone()]);
            names.open(&on_record);
            assert_eq!(names.opened(&on_record).as_deref(), expected);
        }
    }

    /// The same key may be written with another end of the file when it becomes the current key.
    #[test]
    fn a_user_name_is_read_with_another_end_of_the_file() {
        let [before, now] = files("a");
        let (mut names, on_record) = (Usernames::default(), sealed("core", &before));
        names.begin_pass(vec![now]);
        names.open(&on_record);
        assert_eq!(names.opened(&on_record).as_deref(), Some("core"));
    }

    /// A host is reached with both keys while they are exchanged, and its user name follows the key that
    /// it lets in, so that the one before can go.
    #[test]
    fn a_user_name_is_read_with_both_keys_and_sealed_with_the_own_one() {
        let [[current, _], [next, _]] = [files("a"), files("b")];
        let (mut names, before) = (Usernames::default(), sealed("core", &current));
        let both = [&current, &next];
        assert_eq!(pass(&mut names, &before, &both, &current), before);
        let after = pass(&mut names, &before, &both, &next);
        assert_eq!(decrypt(&after, &next.pem).unwrap(), "core");
        assert_eq!(pass(&mut names, &after, &both, &next), after);
        assert_eq!(pass(&mut names, &after, &[&next], &next), after, "the key before is gone");
        assert_eq!(names.opened(&after).as_deref(), Some("core"));
    }

    #[test]
    fn without_its_key_and_without_random_bytes_no_user_name_is_sealed() {
        let [file, _] = files("a");
        let mut names = Usernames::default();
        let none = || Err("the device is gone");
        assert_eq!(names.seal("core", None, file.hash, none), Ok(None));
        names.begin_pass(vec![file.clone()]);
        assert_eq!(names.seal("core", None, file.hash, none), Err("the device is gone"));
    }
}
