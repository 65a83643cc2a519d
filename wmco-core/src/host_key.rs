//! Public SSH host keys, in the forms that users and the cluster store.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD};
use serde::{Serialize, Serializer};

use crate::digest::Sha256;

/// Host key algorithms that may be pinned.
pub(crate) const ALGORITHMS: [&str; 5] =
    ["ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa"];

/// Fewest bytes of the modulus of an RSA key: 2,048 bits.
const RSA_BYTES: usize = 256;

/// Prefixes of fingerprints.
const FINGERPRINTS: [&str; 2] = ["SHA256:", "MD5:"];

/// A public host key in wire form. Source: RFC 4253, section 6.6; RFC 5656; RFC 8709.
///
/// It is read from the wire form in base64 or from an authorized-keys line
/// (`ALGORITHM BASE64 [COMMENT]`). Its text form is canonical base64, as in the annotation
/// [`HOST_KEY_ANNOTATION`](crate::names::HOST_KEY_ANNOTATION).
///
/// ```
/// use wmco_core::host_key::HostKey;
///
/// let text = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
/// let key: HostKey = format!("ssh-ed25519 {text} root@win-1").parse()?;
/// assert_eq!(key.algorithm(), "ssh-ed25519");
/// assert_eq!(key.to_string(), text);
/// assert!(key.fingerprint().starts_with("SHA256:"));
/// Ok::<(), wmco_core::host_key::BadHostKey>(())
/// ```
#[derive(Clone, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct HostKey {
    algorithm: &'static str,
    wire: Vec<u8>,
}

/// Why a text is not a [`HostKey`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadHostKey {
    /// The key's algorithm is unknown or weak.
    #[error("its algorithm is not supported, use one of {}", ALGORITHMS.join(", "))]
    Algorithm,
    /// Not base64.
    #[error("it is no base64 text, copy the second word of the host's public key file")]
    Base64,
    /// A fingerprint in place of a key.
    #[error(
        "it is a fingerprint, which the key does not follow from; copy the line from the host's \
             public key file or from `ssh-keyscan HOST`"
    )]
    Fingerprint,
    /// The word before the key names another algorithm than the key itself.
    #[error("its first word does not fit the key, copy the whole line from the public key file")]
    Mismatch,
    /// An RSA key that is too short to be secure.
    #[error(
        "it is an rsa key of about {bits} bits only, make the host one of 2048 bits or more, or use its other key"
    )]
    Short {
        /// Length of its modulus, in whole bytes.
        bits: usize,
    },
    /// The bytes are not a valid key of their algorithm.
    #[error("it is cut off or damaged, copy the whole line from the host's public key file")]
    Shape,
}

impl HostKey {
    /// Reads the wire form, as SSH servers send it.
    ///
    /// # Errors
    /// [`BadHostKey`] if it is no key, damaged, or of an algorithm that we do not trust.
    pub fn from_wire(wire: &[u8]) -> Result<Self, BadHostKey> {
        let fields = fields(wire).ok_or(BadHostKey::Shape)?;
        let [name, rest @ ..] = fields.as_slice() else { return Err(BadHostKey::Shape) };
        let algorithm = ALGORITHMS
            .into_iter()
            .find(|known| known.as_bytes() == *name)
            .ok_or(BadHostKey::Algorithm)?;
        if let ("ssh-rsa", [_, modulus]) = (algorithm, rest)
            && (1..RSA_BYTES).contains(&modulus.len())
        {
            // The first byte may be a zero that keeps the number positive.
            let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
            return Err(BadHostKey::Short { bits: 8 * (modulus.len() - zeros) });
        }
        if fits(algorithm, rest) {
            Ok(Self { algorithm, wire: wire.to_vec() })
        } else {
            Err(BadHostKey::Shape)
        }
    }

    /// Name of the algorithm, for example `ssh-ed25519`; the value of
    /// [`HOST_KEY_TYPE_ANNOTATION`](crate::names::HOST_KEY_TYPE_ANNOTATION).
    pub const fn algorithm(&self) -> &'static str {
        self.algorithm
    }

    /// `SHA256:` and the digest in base64 without padding, as OpenSSH prints it.
    pub fn fingerprint(&self) -> String {
        let digest = Sha256::of(&self.wire);
        format!("SHA256:{}", BASE64_STANDARD_NO_PAD.encode(digest.as_bytes()))
    }
}

impl FromStr for HostKey {
    type Err = BadHostKey;

    fn from_str(text: &str) -> Result<Self, BadHostKey> {
        let mut words = text.split_ascii_whitespace().peekable();
        let mut first = words.next().unwrap_or_default();
        // A line of `ssh-keyscan` or of a known_hosts file begins with the names of the host.
        if words.peek().is_some_and(|word| ALGORITHMS.contains(word)) {
            first = words.next().unwrap_or_default();
        }
        let (named, base64) = match words.next() {
            Some(key) => (Some(first), key),
            None => (None, first),
        };
        if [first, base64].iter().any(|word| FINGERPRINTS.iter().any(|form| word.starts_with(form)))
        {
            return Err(BadHostKey::Fingerprint);
        }
        let wire = BASE64_STANDARD.decode(base64).map_err(|_| BadHostKey::Base64)?;
        let key = Self::from_wire(&wire)?;
        if named.is_some_and(|named| named != key.algorithm) {
            return Err(BadHostKey::Mismatch);
        }
        Ok(key)
    }
}

/// Splits `wire` into its length-prefixed fields; `None` if other bytes remain.
fn fields(wire: &[u8]) -> Option<Vec<&[u8]>> {
    let mut fields = Vec::new();
    let mut rest = wire;
    while !rest.is_empty() {
        let (length, tail) = rest.split_first_chunk()?;
        let (field, tail) =
            tail.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
        fields.push(field);
        rest = tail;
    }
    Some(fields)
}

/// Whether the `fields` after the name have the number and lengths that the algorithm requires.
fn fits(algorithm: &str, fields: &[&[u8]]) -> bool {
    match (algorithm.strip_prefix("ecdsa-sha2-"), fields) {
        (Some(curve), [name, point]) => *name == curve.as_bytes() && !point.is_empty(),
        (None, [public]) => algorithm == "ssh-ed25519" && public.len() == 32,
        (None, [exponent, modulus]) => {
            algorithm == "ssh-rsa" && !exponent.is_empty() && modulus.len() >= RSA_BYTES
        }
        _ => false,
    }
}

impl fmt::Display for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64_STANDARD.encode(&self.wire))
    }
}

impl fmt::Debug for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostKey({} {})", self.algorithm, self.fingerprint())
    }
}

impl Serialize for HostKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn wire(fields: &[&[u8]]) -> String {
        let length = |field: &&[u8]| u32::try_from(field.len()).unwrap().to_be_bytes();
        let bytes: Vec<u8> =
            fields.iter().flat_map(|field| [&length(field), *field].concat()).collect();
        BASE64_STANDARD.encode(bytes)
    }

    pub(crate) fn ed25519() -> String {
        wire(&[b"ssh-ed25519", &[7; 32]])
    }

    #[track_caller]
    fn refused(text: &str, why: &BadHostKey) {
        assert_eq!(text.parse::<HostKey>().as_ref(), Err(why), "{text}");
    }

    #[test]
    fn both_forms_give_the_same_key() {
        let bare: HostKey = ed25519().parse().unwrap();
        let line: HostKey = format!("ssh-ed25519 {} root@win-1", ed25519()).parse().unwrap();
        assert_eq!(bare, line);
        assert_eq!(bare.algorithm(), "ssh-ed25519");
        assert_eq!(bare.to_string().parse(), Ok(bare));
    }

    #[test]
    fn each_algorithm_is_read() {
        let keys = [
            wire(&[b"ssh-rsa", &[1, 0, 1], &[9; 257]]),
            wire(&[b"ecdsa-sha2-nistp256", b"nistp256", &[4; 65]]),
            wire(&[b"ecdsa-sha2-nistp521", b"nistp521", &[4; 133]]),
        ];
        for key in keys {
            assert_eq!(key.parse::<HostKey>().unwrap().to_string(), key);
        }
    }

    #[test]
    fn damaged_keys_are_refused() {
        refused("", &BadHostKey::Shape);
        refused("ssh-ed25519", &BadHostKey::Base64);
        refused("AAAA", &BadHostKey::Shape);
        refused(&wire(&[b"ssh-ed25519", &[7; 31]]), &BadHostKey::Shape);
        refused(&wire(&[b"ssh-rsa", &[1, 0, 1], &[9; 128]]), &BadHostKey::Short { bits: 1024 });
        refused(&wire(&[b"ecdsa-sha2-nistp256", b"nistp384", &[4; 65]]), &BadHostKey::Shape);
        refused(&wire(&[b"ssh-ed25519", &[7; 32], b"x"]), &BadHostKey::Shape);
        refused(&wire(&[b"rsa-sha2-256", &[3], &[5]]), &BadHostKey::Algorithm);
        refused(&wire(&[b"ssh-dss", &[1], &[2], &[3], &[4]]), &BadHostKey::Algorithm);
        refused(&format!("ssh-rsa {}", ed25519()), &BadHostKey::Mismatch);
    }

    #[test]
    fn fingerprints_are_told() {
        for text in ["SHA256:ZkAslGjFiUHdGf", "256 SHA256:ZkAslGjFiUHdGf root@win-1 (ED25519)"] {
            refused(text, &BadHostKey::Fingerprint);
        }
    }

    #[test]
    fn the_fingerprint_is_that_of_ssh_keygen() {
        // ssh-keygen -lf of the line in `docs/contract/ssh.md`, SSH6.
        let text = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
        let key: HostKey = format!("{text}\n").parse().unwrap();
        assert_eq!(key.fingerprint(), "SHA256:ZkAslGjFiUHdGf/WUL8rQvkib4PTvQatUV0OUQSncCA");
    }

    proptest! {
        /// Reading any text terminates, and writing the result gives the same text again.
        #[test]
        fn reading_is_total(text in "(ssh-ed25519 )?[A-Za-z0-9+/=]{0,80}( .{0,9})?") {
            if let Ok(key) = text.parse::<HostKey>() {
                prop_assert_eq!(key.to_string().parse::<HostKey>(), Ok(key));
            }
        }
    }

    #[test]
    fn lines_of_ssh_keyscan_are_read() {
        let text = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
        let line = format!("win-1.example,10.0.0.5 ssh-ed25519 {text}");
        assert_eq!(line.parse::<HostKey>().unwrap().to_string(), text);
        assert_eq!(
            format!("10.0.0.5 ssh-rsa {text}").parse::<HostKey>(),
            Err(BadHostKey::Mismatch)
        );
    }

    #[test]
    fn short_rsa_key_is_named_with_its_length() {
        let field =
            |bytes: &[u8]| [&u32::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat();
        for modulus in [vec![0x5a; 128], [vec![0], vec![0xda; 128]].concat()] {
            let wire = [field(b"ssh-rsa"), field(&[1, 0, 1]), field(&modulus)].concat();
            assert_eq!(HostKey::from_wire(&wire), Err(BadHostKey::Short { bits: 1024 }));
        }
    }
}
