//! Public keys as a line of an authorized-keys file, and their hash on nodes.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use russh::keys::key::parse_public_key;
use russh::keys::ssh_key::public::KeyData;
use russh::keys::{Algorithm, HashAlg, ssh_key};
use wmco_core::authorized_key::{AuthorizedKey, BadAuthorizedKey, after_options};
use wmco_core::digest::Sha256;

/// The public half of a key pair.
///
/// ```
/// use wmco_ssh::PublicKey;
///
/// let line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
/// let key = PublicKey::from_authorized_keys(&format!("# mine\n{line} me@home\n"))?;
/// assert_eq!(key.authorized_key(), line);
/// assert!(key.hash().to_string().starts_with("394cb0357cef"));
/// Ok::<(), wmco_ssh::KeyError>(())
/// ```
#[derive(Clone, Eq, PartialEq)]
pub struct PublicKey {
    data: KeyData,
}

impl PublicKey {
    pub(super) const fn new(data: KeyData) -> Self {
        Self { data }
    }

    /// Parses the first key of an authorized-keys text; comments, options and invalid lines are ignored.
    ///
    /// # Errors
    /// [`KeyError::NoPublicKey`](super::KeyError::NoPublicKey) if there is none.
    pub fn from_authorized_keys(text: &str) -> Result<Self, super::KeyError> {
        text.lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .find_map(|line| read(line).or_else(|| read(text_after_options(line)?)))
            .ok_or(super::KeyError::NoPublicKey)
    }

    /// Returns kind and base64, separated by a blank, without comment and line end.
    pub fn authorized_key(&self) -> String {
        format!("{} {}", self.data.algorithm().as_str(), STANDARD.encode(self.wire()))
    }

    /// Returns the SHA-256 of [`Self::authorized_key`]; the value of
    /// [`PUBLIC_KEY_HASH_ANNOTATION`](wmco_core::names::PUBLIC_KEY_HASH_ANNOTATION).
    pub fn hash(&self) -> Sha256 {
        Sha256::of(self.authorized_key().as_bytes())
    }

    /// Returns `SHA256:` and the digest of the wire form, as OpenSSH prints it.
    pub fn fingerprint(&self) -> String {
        self.data.fingerprint(HashAlg::Sha256).to_string()
    }

    /// Returns the algorithm and the fingerprint.
    pub(crate) fn named(&self) -> String {
        format!("{} {}", self.data.algorithm().as_str(), self.fingerprint())
    }

    /// Returns kind and length, for example `RSA 4096`, `ECDSA nistp256` or `ED25519`.
    pub fn kind(&self) -> String {
        match (self.data.algorithm(), self.rsa_bits()) {
            (Algorithm::Rsa { .. }, Some(bits)) => format!("RSA {bits}"),
            (Algorithm::Ecdsa { curve }, _) => format!("ECDSA {}", curve.as_str()),
            (Algorithm::Ed25519, _) => "ED25519".to_owned(),
            (other, _) => other.as_str().to_owned(),
        }
    }

    /// Returns the length of the modulus; `None` for other kinds.
    pub(super) fn rsa_bits(&self) -> Option<u32> {
        let modulus = self.data.rsa()?.n().as_positive_bytes()?;
        let unused = modulus.first()?.leading_zeros();
        Some(u32::try_from(modulus.len()).ok()?.checked_mul(8)?.saturating_sub(unused))
    }

    #[expect(clippy::expect_used, reason = "only lengths beyond 4 GiB have no wire form")]
    fn wire(&self) -> Vec<u8> {
        ssh_key::PublicKey::new(self.data.clone(), "")
            .to_bytes()
            .expect("a key that was read has a wire form")
    }
}

/// Converts to the form that a host's authorized keys have.
///
/// ```
/// use wmco_core::authorized_key::AuthorizedKey;
/// use wmco_ssh::PublicKey;
///
/// let line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
/// let key = PublicKey::from_authorized_keys(line)?;
/// assert_eq!(AuthorizedKey::try_from(&key)?.to_string(), line);
/// Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl TryFrom<&PublicKey> for AuthorizedKey {
    type Error = BadAuthorizedKey;

    /// # Errors
    /// [`BadAuthorizedKey`] for a kind of key that the operator does not use for login.
    fn try_from(key: &PublicKey) -> Result<Self, BadAuthorizedKey> {
        Self::from_wire(&key.wire())
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.named())
    }
}

/// Parses `KIND BASE64 [COMMENT]`.
fn read(line: &str) -> Option<PublicKey> {
    let mut words = line.split_ascii_whitespace();
    let (kind, base64) = (words.next()?, words.next()?);
    let wire = STANDARD.decode(base64).ok()?;
    let data = parse_public_key(&wire).ok()?.key_data().clone();
    let key = PublicKey::new(data);
    (key.data.algorithm().as_str() == kind && key.wire() == wire).then_some(key)
}

/// Returns the rest of the line after its options.
fn text_after_options(line: &str) -> Option<&str> {
    str::from_utf8(after_options(line.as_bytes())?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

    #[test]
    fn hashes_are_those_of_the_vectors() {
        #[derive(serde::Deserialize)]
        struct Case {
            name: String,
            input: Input,
            expect: Expect,
        }
        #[derive(serde::Deserialize)]
        struct Input {
            authorized_key: String,
        }
        #[derive(serde::Deserialize)]
        struct Expect {
            hash: Option<String>,
        }
        let cases: Vec<Case> =
            serde_json::from_str(include_str!("../../tests/vectors/pubkey_hash.json")).unwrap();
        assert_eq!(cases.len(), 9);
        for case in cases {
            let key = PublicKey::from_authorized_keys(&case.input.authorized_key).ok();
            assert_eq!(key.map(|key| key.hash().to_string()), case.expect.hash, "{}", case.name);
        }
    }

    #[test]
    fn the_hash_of_the_contract() {
        assert_eq!(
            PublicKey::from_authorized_keys(LINE).unwrap().hash().to_string(),
            "394cb0357cefcb7cbe8da2a7ff052c6beca6ec5c51750812a33c11b6368021e2"
        );
    }

    #[test]
    fn quoted_options_may_hold_blanks() {
        let line = format!(r#"command="echo \"a b\" c",no-pty {LINE} me@home"#);
        assert_eq!(PublicKey::from_authorized_keys(&line).unwrap().authorized_key(), LINE);
    }

    #[test]
    fn a_kind_that_is_not_the_keys_own_is_refused() {
        let line = LINE.replace("ssh-ed25519", "ssh-rsa");
        assert!(PublicKey::from_authorized_keys(&line).is_err());
    }
}
