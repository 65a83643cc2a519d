//! The encrypted user name that every Windows node carries, in the Go operator's form.
//!
//! The value of [`USERNAME_ANNOTATION`](wmco_core::names::USERNAME_ANNOTATION) is an OpenPGP message
//! encrypted with a passphrase, which is the private key file, byte by byte. It hides little from
//! anybody who matters, but other programs and a Go operator that takes over read and write it.
//!
//! # Why a codec of our own
//! OpenPGP libraries refuse the armour's tag and the short partial lengths that the Go operator
//! writes, so armour and packet framing have to be done here in any case. What is left is one packet
//! of each kind and one cipher mode, on AES and SHA that SSH brings along: one more crate instead of
//! a hundred, some of them a second, older generation of the cryptography in this program. It is
//! tested against the Go operator's output and against GnuPG in both directions.
//!
//! Source: `spec/ssh.md`, section 2.4; RFC 4880, sections 3.7, 4.2, 5.3, 5.9, 5.13 and 6.

mod armor;
mod packet;

use wmco_core::names;
use wmco_core::secret::Secret;
use zeroize::Zeroizing;

use packet::Packets;

/// Random bytes that one message needs: salt, content key, and the start of the content.
const RANDOM_BYTES: usize = packet::SALT + packet::KEY + packet::BLOCK;

/// Why a user name cannot be read or written. No variant repeats the text.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum UsernameError {
    /// The text is no such message, or was altered or cut.
    #[error(
        "the node's encrypted user name is damaged ({problem}), remove the annotation `{}` to have \
         it written again",
        names::USERNAME_ANNOTATION
    )]
    Damaged {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The system gives no random bytes.
    #[error("the system has no random bytes, check its random device")]
    Random,
    /// It is a message, but of a form that the Go operator never wrote.
    #[error(
        "the node's encrypted user name uses {what}, which is not supported, remove the annotation \
         `{}` to have it written again",
        names::USERNAME_ANNOTATION
    )]
    Unsupported {
        /// What it uses.
        what: &'static str,
    },
    /// It was encrypted with another key, or altered.
    #[error(
        "the node's user name was encrypted with another private key, \
         remove the annotation `{}` to have it written again",
        names::USERNAME_ANNOTATION
    )]
    WrongKey,
}

/// The random part of a message. Give fixed bytes for tests only.
#[derive(Clone)]
pub struct Randomness(Zeroizing<[u8; RANDOM_BYTES]>);

impl Randomness {
    /// From the operating system.
    ///
    /// # Errors
    /// [`UsernameError::Random`] if it has none.
    pub fn from_os() -> Result<Self, UsernameError> {
        let mut bytes = Zeroizing::new([0; RANDOM_BYTES]);
        getrandom::fill(&mut *bytes).map_err(|_| UsernameError::Random)?;
        Ok(Self(bytes))
    }

    /// Fixed bytes.
    pub fn fixed(bytes: [u8; RANDOM_BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }
}

/// Encrypts `user`. Each call gives another text, unless `randomness` is the same.
///
/// ```
/// use wmco_core::secret::Secret;
/// use wmco_ssh::username::{Randomness, decrypt, encrypt};
///
/// let key = Secret::new("-----BEGIN ...");
/// let text = encrypt("Administrator", &key, &Randomness::from_os()?);
/// assert_eq!(decrypt(&text, &key)?, "Administrator");
/// # Ok::<(), wmco_ssh::username::UsernameError>(())
/// ```
pub fn encrypt(user: &str, passphrase: &Secret, randomness: &Randomness) -> String {
    armor::write(&packet::seal(user.as_bytes(), passphrase, &randomness.0))
}

/// Decrypts what [`encrypt`] or the Go operator wrote; the form with begin and end lines, which Go
/// operators up to 3.1.0 wrote, is read as well.
///
/// # Errors
/// [`UsernameError`].
pub fn decrypt(text: &str, passphrase: &Secret) -> Result<String, UsernameError> {
    let message = armor::read(text)?;
    let content = packet::open(Packets::new(&message), passphrase)?;
    String::from_utf8(content.to_vec())
        .map_err(|_| UsernameError::Damaged { problem: "it is no text" })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const VECTOR: &str = "wx4EBwMIAAECAwQFBgdgolraPjDE2J1hnXJ1Wa7JLv3S5gHNghLaKsn3SygXdZu3<wmcoMarker>4t13YxiIKEx7k8RFDWppXKIjJj+YLx0UfXtsBicApV1yxfHAX6c7/yIRTOziCPir<wmcoMarker>af3gJgA=<wmcoMarker>=4Xfh";

    fn key() -> Secret {
        Secret::new("wmco-test-passphrase")
    }

    fn text(user: &str) -> String {
        encrypt(user, &key(), &Randomness::fixed([7; RANDOM_BYTES]))
    }

    #[test]
    fn the_go_operators_message_is_read() {
        assert_eq!(decrypt(VECTOR, &key()).unwrap(), "Administrator");
    }

    #[test]
    fn the_form_of_old_versions_is_read() {
        let body = VECTOR.replace("<wmcoMarker>", "\n");
        for separator in ["\n", "\r\n"] {
            let old =
                format!("-----BEGIN ENCRYPTED DATA-----\n\n{body}\n-----END ENCRYPTED DATA-----");
            let old = old.replace('\n', separator);
            assert_eq!(decrypt(&old, &key()).unwrap(), "Administrator");
            let marked = old.replace(separator, "<wmcoMarker>");
            assert_eq!(decrypt(&marked, &key()).unwrap(), "Administrator");
        }
    }

    #[test]
    fn the_stored_form_is_one_line_of_short_pieces() {
        let text = text(&"long name ".repeat(20));
        assert!(!text.contains('\n'));
        assert!(text.split("<wmcoMarker>").all(|line| line.len() <= 64));
        let last = text.split("<wmcoMarker>").last().unwrap();
        assert!(last.len() == 5 && last.starts_with('='), "{last}");
    }

    #[test]
    fn every_message_is_another_one() {
        let one = encrypt("core", &key(), &Randomness::from_os().unwrap());
        let other = encrypt("core", &key(), &Randomness::from_os().unwrap());
        assert_ne!(one, other);
    }

    #[test]
    fn an_empty_passphrase_and_an_empty_name_are_fine() {
        let none = Secret::default();
        let text = encrypt("", &none, &Randomness::fixed([1; RANDOM_BYTES]));
        assert_eq!(decrypt(&text, &none).unwrap(), "");
    }

    #[test]
    fn another_passphrase_is_named() {
        for passphrase in ["", "other", "wmco-test-passphrase\n"] {
            assert_eq!(decrypt(VECTOR, &Secret::new(passphrase)), Err(UsernameError::WrongKey));
        }
    }

    #[test]
    fn what_is_no_message_is_damaged() {
        for text in [
            "",
            "HELLO",
            "-----BEGIN ENCRYPTED DATA-----\n\n#\n-----END ENCRYPTED DATA-----",
            &VECTOR[..100],
            &VECTOR.replace("4Xfh", "4Xfi"),
        ] {
            let refused = decrypt(text, &key());
            assert!(matches!(refused, Err(UsernameError::Damaged { .. })), "{text}: {refused:?}");
        }
    }

    #[test]
    fn errors_repeat_nothing() {
        let error = decrypt("HELLO", &key()).unwrap_err();
        assert!(!error.to_string().contains("HELLO"));
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(user in ".{0,300}", pass: Vec<u8>, random: [u8; 32]) {
            let mut bytes = [3; RANDOM_BYTES];
            bytes[..32].copy_from_slice(&random);
            let passphrase = Secret::new(pass);
            let text = encrypt(&user, &passphrase, &Randomness::fixed(bytes));
            prop_assert_eq!(decrypt(&text, &passphrase).unwrap(), user);
        }

        /// No change of a message goes unnoticed, and none makes the reader panic.
        #[test]
        fn altered_messages_are_refused(at in 0_usize..90, flip in 1_u8..=255) {
            let mut message = armor::read(&text("Administrator")).unwrap();
            prop_assume!(at < message.len());
            message[at] ^= flip;
            let opened = decrypt(&armor::write(&message), &key());
            prop_assert_ne!(opened.as_deref(), Ok("Administrator"));
            prop_assert!(opened.is_err());
        }

        #[test]
        fn any_bytes_are_an_error(message: Vec<u8>) {
            prop_assert!(decrypt(&armor::write(&message), &key()).is_err());
        }

        #[test]
        fn any_text_is_an_error(text in ".{0,200}") {
            prop_assert!(decrypt(&text, &key()).is_err());
        }
    }
}
