//! Public keys that a host accepts: a key as a line of an authorized-keys file, and that file.

mod file;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::digest::Sha256;
use crate::host_key::{ALGORITHMS, BadHostKey, HostKey};
use crate::limits;

pub use file::{BadKeyExchange, after_options, exchange_keys};

/// A public key for logins.
///
/// It is read from a public key file: one line `ALGORITHM BASE64 [COMMENT]`, with empty lines and lines
/// that begin with `#` around it. Its text form is `ALGORITHM BASE64`: letters, digits, `+`, `/`, `=`,
/// `-` and one blank, so it can stand between quotes of any kind. Source: `docs/contract/ssh.md`, SSH5.
///
/// ```
/// use wmco_core::authorized_key::AuthorizedKey;
///
/// let line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
/// let key: AuthorizedKey = format!("# mine\n{line} me@home\n").parse()?;
/// assert_eq!(key.to_string(), line);
/// Ok::<(), wmco_core::authorized_key::BadAuthorizedKey>(())
/// ```
// Keys of hosts and of users have one wire form.
#[derive(Clone, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct AuthorizedKey(HostKey);

/// Why a text is not an [`AuthorizedKey`]. No message repeats the text.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadAuthorizedKey {
    /// The text is not a valid key of its algorithm.
    #[error(
        "the key is cut off or damaged, or an rsa key of fewer than {} bits; give the whole file of \
         a key that is long enough",
        limits::RSA_BITS
    )]
    Damaged,
    /// Only empty lines and comments.
    #[error("there is no key in it, give the public key file that `ssh-keygen` wrote")]
    Empty,
    /// A public key in PEM or in the form of RFC 4716.
    #[error(
        "the public key is in a form that OpenSSH does not read: `ssh-keygen -y -f FILE` prints the right one from the \
         private key, and `ssh-keygen -i{} -f FILE` converts an rsa key of this form", .0.option()
    )]
    Form(PublicKeyForm),
    /// The line does not begin with an algorithm.
    #[error("its line does not begin with one of {}, remove options in front of the key or give a key \
             of these kinds", ALGORITHMS.join(", "))]
    Kind,
    /// The key is longer than OpenSSH accepts.
    #[error("the key is longer than OpenSSH takes, make one of at most 16384 bits")]
    Long,
    /// The first word names another algorithm than the key itself.
    #[error("its first word does not fit the key, copy the whole line from the public key file")]
    Mismatch,
    /// A private key.
    #[error(
        "this is a private key, which must stay where it is; give its public half, which \
         `ssh-keygen -y -f FILE` prints"
    )]
    PrivateKey,
    /// More than one line with a key.
    #[error("there is more than one key in it, leave one and name a file for each")]
    Several,
}

/// Form of a public key that OpenSSH reads only to convert it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PublicKeyForm {
    /// PKCS#1, `BEGIN RSA PUBLIC KEY`.
    Pkcs1,
    /// PKCS#8, `BEGIN PUBLIC KEY`.
    Pkcs8,
    /// RFC 4716, `BEGIN SSH2 PUBLIC KEY`.
    Rfc4716,
}

impl PublicKeyForm {
    /// The form that `text` has.
    fn of(text: &str) -> Option<Self> {
        if text.contains("BEGIN SSH2 PUBLIC KEY") {
            Some(Self::Rfc4716)
        } else if text.contains("BEGIN RSA PUBLIC KEY-----") {
            Some(Self::Pkcs1)
        } else {
            let pem = text.contains("BEGIN ") && text.contains("PUBLIC KEY-----");
            pem.then_some(Self::Pkcs8)
        }
    }

    /// What tells `ssh-keygen -i` about it. Source: ssh-keygen(1).
    const fn option(self) -> &'static str {
        match self {
            Self::Pkcs1 => " -m PEM",
            Self::Pkcs8 => " -m PKCS8",
            Self::Rfc4716 => "",
        }
    }
}

impl AuthorizedKey {
    /// Reads the wire form, which the base64 of a key file contains. Source: RFC 4253, section 6.6.
    ///
    /// # Errors
    /// [`BadAuthorizedKey`] if it is no key, damaged, too long, or of a kind that the operator does not log in
    /// with.
    pub fn from_wire(wire: &[u8]) -> Result<Self, BadAuthorizedKey> {
        if wire.len() > limits::AUTHORIZED_KEY_BYTES {
            return Err(BadAuthorizedKey::Long);
        }
        HostKey::from_wire(wire).map(Self).map_err(|bad| match bad {
            BadHostKey::Algorithm => BadAuthorizedKey::Kind,
            _ => BadAuthorizedKey::Damaged,
        })
    }

    /// Name of the algorithm, for example `ssh-ed25519`.
    pub const fn algorithm(&self) -> &'static str {
        self.0.algorithm()
    }

    /// `SHA256:` and the digest of the wire form, as OpenSSH prints it.
    pub fn fingerprint(&self) -> String {
        self.0.fingerprint()
    }

    /// SHA-256 of its text form, which identifies the key on Nodes and in records: the value of
    /// [`PUBLIC_KEY_HASH_ANNOTATION`](crate::names::PUBLIC_KEY_HASH_ANNOTATION).
    pub fn hash(&self) -> Sha256 {
        Sha256::of(self.to_string().as_bytes())
    }
}

impl FromStr for AuthorizedKey {
    type Err = BadAuthorizedKey;

    fn from_str(text: &str) -> Result<Self, BadAuthorizedKey> {
        if text.contains("PRIVATE KEY-----") || text.contains("PuTTY-User-Key-File-") {
            return Err(BadAuthorizedKey::PrivateKey);
        }
        if let Some(form) = PublicKeyForm::of(text) {
            return Err(BadAuthorizedKey::Form(form));
        }
        let mut lines =
            text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        match (lines.next(), lines.next()) {
            (Some(line), None) => read(line),
            (None, _) => Err(BadAuthorizedKey::Empty),
            (Some(_), Some(_)) => Err(BadAuthorizedKey::Several),
        }
    }
}

/// Reads `ALGORITHM BASE64 [COMMENT]`.
fn read(line: &str) -> Result<AuthorizedKey, BadAuthorizedKey> {
    let mut words = line.split_ascii_whitespace();
    let kind = words.next().filter(|kind| ALGORITHMS.contains(kind));
    let kind = kind.ok_or(BadAuthorizedKey::Kind)?;
    let base64 = words.next().ok_or(BadAuthorizedKey::Damaged)?;
    let wire = BASE64_STANDARD.decode(base64).map_err(|_| BadAuthorizedKey::Damaged)?;
    match AuthorizedKey::from_wire(&wire) {
        Ok(key) if key.algorithm() == kind => Ok(key),
        Ok(_) | Err(BadAuthorizedKey::Kind) => Err(BadAuthorizedKey::Mismatch),
        Err(bad) => Err(bad),
    }
}

impl fmt::Display for AuthorizedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.algorithm(), self.0)
    }
}

impl fmt::Debug for AuthorizedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AuthorizedKey({} {})", self.algorithm(), self.fingerprint())
    }
}

impl Serialize for AuthorizedKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AuthorizedKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for AuthorizedKey {
    fn schema_name() -> Cow<'static, str> {
        "AuthorizedKey".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^[a-z0-9-]+ [A-Za-z0-9+/]+={0,2}$"})
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::host_key::tests::{ed25519, wire};

    #[track_caller]
    fn refused(text: &str, why: &BadAuthorizedKey) {
        assert_eq!(text.parse::<AuthorizedKey>().as_ref(), Err(why), "{text}");
    }

    fn line() -> String {
        format!("ssh-ed25519 {}", ed25519())
    }

    #[test]
    fn comments_and_line_ends_are_left_out() {
        for text in [
            line(),
            format!("{}\n", line()),
            format!("\r\n# mine\r\n\t{} me@home # 1\r\n\r\n", line()),
        ] {
            assert_eq!(text.parse::<AuthorizedKey>().unwrap().to_string(), line(), "{text}");
        }
    }

    #[test]
    fn each_mistake_has_its_own_answer() {
        let rsa = |modulus: usize| {
            format!("ssh-rsa {}", wire(&[b"ssh-rsa", &[1, 0, 1], &vec![9; modulus]]))
        };
        refused("", &BadAuthorizedKey::Empty);
        refused("\n# ssh-ed25519\n", &BadAuthorizedKey::Empty);
        refused(&format!("{}\n{}\n", line(), line()), &BadAuthorizedKey::Several);
        refused(&ed25519(), &BadAuthorizedKey::Kind);
        refused(&format!("no-pty {}", line()), &BadAuthorizedKey::Kind);
        refused("ssh-dss AAAA", &BadAuthorizedKey::Kind);
        refused("ssh-ed25519", &BadAuthorizedKey::Damaged);
        refused("ssh-ed25519 AAAA", &BadAuthorizedKey::Damaged);
        refused("ssh-ed25519 'AAAA'", &BadAuthorizedKey::Damaged);
        refused(&rsa(128), &BadAuthorizedKey::Damaged);
        assert!(rsa(2049).parse::<AuthorizedKey>().is_ok(), "16384 bits");
        refused(&rsa(2200), &BadAuthorizedKey::Long);
        refused(&line().replace("ssh-ed25519", "ssh-rsa"), &BadAuthorizedKey::Mismatch);
    }

    #[test]
    fn what_is_no_public_key_file_is_named() {
        let pem = |label: &str| format!("-----BEGIN {label}-----\nAAAA\n-----END {label}-----\n");
        for label in ["OPENSSH PRIVATE KEY", "RSA PRIVATE KEY", "ENCRYPTED PRIVATE KEY"] {
            refused(&pem(label), &BadAuthorizedKey::PrivateKey);
        }
        // Both halves in one file.
        refused(&format!("{}\n{}", line(), pem("PRIVATE KEY")), &BadAuthorizedKey::PrivateKey);
        refused("PuTTY-User-Key-File-3: ssh-ed25519\n", &BadAuthorizedKey::PrivateKey);
        refused(&pem("PUBLIC KEY"), &BadAuthorizedKey::Form(PublicKeyForm::Pkcs8));
        refused(&pem("RSA PUBLIC KEY"), &BadAuthorizedKey::Form(PublicKeyForm::Pkcs1));
        let rfc4716 = BadAuthorizedKey::Form(PublicKeyForm::Rfc4716);
        refused("---- BEGIN SSH2 PUBLIC KEY ----\nAAAA\n", &rfc4716);
    }

    proptest! {
        /// Whatever was read cannot end a text in quotes, and is read again as the same.
        #[test]
        fn the_text_form_is_harmless(text in "(ssh-ed25519|ssh-rsa) [A-Za-z0-9+/='\"`$]{0,90}|ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI[A-Za-z0-9+/]{43}( .{0,20})?") {
            if let Ok(key) = text.parse::<AuthorizedKey>() {
                let text = key.to_string();
                let allowed = |c: char| c.is_ascii_alphanumeric() || "+/=- ".contains(c);
                prop_assert!(text.chars().all(allowed), "{}", text);
                prop_assert_eq!(text.parse(), Ok(key));
            }
        }
    }
}
