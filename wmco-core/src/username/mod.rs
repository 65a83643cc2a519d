//! The encrypted user name on every Windows node, in the Go operator's form.
//!
//! The value of [`USERNAME_ANNOTATION`](crate::names::USERNAME_ANNOTATION) is an OpenPGP message encrypted with a
//! passphrase, which is the private key file, byte by byte. It protects little, but other programs, and a Go
//! operator that takes over, read and write it.
//!
//! # Why a codec of our own
//! OpenPGP libraries refuse the armor's tag and the short partial lengths that the Go operator writes, so armor and
//! packet framing have to be done here in any case. The rest is one packet of each kind and one cipher mode, with
//! the AES and SHA crates that SSH already needs: one more crate in the operator instead of a hundred, some of them
//! an older generation of its cryptography. It is tested against the Go operator's output and against GnuPG in both
//! directions.
//!
//! Source: `docs/contract/ssh.md`, SSH10 to SSH16; RFC 4880, sections 3.7, 4.2, 5.3, 5.9, 5.13 and 6.

mod armor;
mod kept;
mod packet;

use crate::names;
use crate::secret::Secret;
use zeroize::Zeroizing;

pub use kept::{KeyFile, Sealing, Usernames};
use packet::Packets;

/// Number of random bytes that one message needs: salt, content key, and the start of the content.
pub const RANDOM_BYTES: usize = packet::SALT + packet::KEY + packet::BLOCK;

/// Why a user name cannot be read or written. No variant repeats the text.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum UsernameError {
    /// The text is not such a message, or was altered or truncated.
    #[error(
        "the node's encrypted user name is damaged ({problem}), remove the annotation `{}` to have \
         it written again",
        names::USERNAME_ANNOTATION
    )]
    Damaged {
        /// The problem with the value.
        problem: &'static str,
    },
    /// A message in a form that the Go operator never wrote.
    #[error(
        "the node's encrypted user name uses {what}, which is not supported, remove the annotation \
         `{}` to have it written again",
        names::USERNAME_ANNOTATION
    )]
    Unsupported {
        /// The unsupported feature.
        what: &'static str,
    },
    /// The message was encrypted with another key, or altered.
    #[error(
        "the node's user name was encrypted with another private key, \
         remove the annotation `{}` to have it written again",
        names::USERNAME_ANNOTATION
    )]
    WrongKey,
}

/// The random part of a single message. The caller provides the bytes, for example from `getrandom::fill`, because
/// this crate makes no system calls.
#[derive(Clone)]
pub struct Randomness(Zeroizing<[u8; RANDOM_BYTES]>);

impl Randomness {
    /// Makes it from bytes of a cryptographic source.
    pub fn new(bytes: [u8; RANDOM_BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Lets a cryptographic source fill the bytes in place, so that no copy stays in memory.
    ///
    /// ```
    /// use wmco_core::username::Randomness;
    ///
    /// let refused = Randomness::filled_by(|_bytes| Err("the source is empty"));
    /// assert_eq!(refused.err(), Some("the source is empty"));
    /// ```
    ///
    /// # Errors
    /// The error of the source.
    pub fn filled_by<E>(fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<Self, E> {
        let mut bytes = Zeroizing::new([0; RANDOM_BYTES]);
        fill(bytes.as_mut_slice())?;
        Ok(Self(bytes))
    }
}

/// Encrypts `user`. Another `randomness` gives another text.
///
/// ```
/// use wmco_core::secret::Secret;
/// use wmco_core::username::{RANDOM_BYTES, Randomness, decrypt, encrypt};
///
/// let key = Secret::new("-----BEGIN ...");
/// let bytes = [7; RANDOM_BYTES]; // for the example: take new ones from the system for each message
/// let text = encrypt("Administrator", &key, &Randomness::new(bytes));
/// assert_eq!(decrypt(&text, &key)?, "Administrator");
/// Ok::<(), wmco_core::username::UsernameError>(())
/// ```
pub fn encrypt(user: &str, passphrase: &Secret, randomness: &Randomness) -> String {
    armor::write(&packet::seal(user.as_bytes(), passphrase, &randomness.0))
}

/// Decrypts a text from [`encrypt`] or the Go operator, also in the form with begin and end lines that Go operators
/// up to 3.1.0 wrote.
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
        encrypt(user, &key(), &Randomness::new([7; RANDOM_BYTES]))
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
    fn other_random_bytes_make_another_message() {
        let one = encrypt("core", &key(), &Randomness::new([1; RANDOM_BYTES]));
        let other = encrypt("core", &key(), &Randomness::new([2; RANDOM_BYTES]));
        assert_ne!(one, other);
    }

    #[test]
    fn an_empty_passphrase_and_an_empty_name_are_fine() {
        let none = Secret::default();
        let text = encrypt("", &none, &Randomness::new([1; RANDOM_BYTES]));
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
            let text = encrypt(&user, &passphrase, &Randomness::new(bytes));
            prop_assert_eq!(decrypt(&text, &passphrase).unwrap(), user);
        }

        /// Every change of a message is detected, and no change makes the reader panic.
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
