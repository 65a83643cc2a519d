//! An SSH host key that a person wrote down.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Serialize, Serializer};

/// Algorithms that a Windows host may be pinned with.
const ALGORITHMS: [&str; 5] =
    ["ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa"];

/// A public host key in wire form. Source: RFC 4253, section 6.6; RFC 5656; RFC 8709.
///
/// It is read from the wire form in base64 or from an authorized-keys line
/// (`ALGORITHM BASE64 [COMMENT]`), and kept as canonical base64, which is also what
/// [`HOST_KEY_ANNOTATION`](crate::names::HOST_KEY_ANNOTATION) holds.
#[derive(Clone, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct HostKey {
    algorithm: &'static str,
    base64: String,
}

/// Why a text is no [`HostKey`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadHostKey {
    /// The key's algorithm is unknown or weak.
    #[error("its algorithm is not supported, use one of {}", ALGORITHMS.join(", "))]
    Algorithm,
    /// Not base64.
    #[error("it is no base64 text, copy the second word of the host's public key file")]
    Base64,
    /// The word before the key names another algorithm than the key itself.
    #[error("its first word does not fit the key, copy the whole line from the public key file")]
    Mismatch,
    /// The bytes are no key of their algorithm.
    #[error("it is cut off or damaged, copy the whole line from the host's public key file")]
    Shape,
}

impl HostKey {
    /// Name of the algorithm, for example `ssh-ed25519`.
    pub const fn algorithm(&self) -> &'static str {
        self.algorithm
    }

    /// The wire form in base64 with padding.
    pub fn base64(&self) -> &str {
        &self.base64
    }
}

impl FromStr for HostKey {
    type Err = BadHostKey;

    fn from_str(text: &str) -> Result<Self, BadHostKey> {
        let mut words = text.split_ascii_whitespace();
        let first = words.next().unwrap_or_default();
        let (named, base64) = match words.next() {
            Some(key) => (Some(first), key),
            None => (None, first),
        };
        let wire = BASE64_STANDARD.decode(base64).map_err(|_| BadHostKey::Base64)?;
        let fields = fields(&wire).ok_or(BadHostKey::Shape)?;
        let [name, rest @ ..] = fields.as_slice() else { return Err(BadHostKey::Shape) };
        let algorithm = ALGORITHMS
            .into_iter()
            .find(|known| known.as_bytes() == *name)
            .ok_or(BadHostKey::Algorithm)?;
        if named.is_some_and(|named| named != algorithm) {
            return Err(BadHostKey::Mismatch);
        }
        if !fits(algorithm, rest) {
            return Err(BadHostKey::Shape);
        }
        Ok(Self { algorithm, base64: BASE64_STANDARD.encode(&wire) })
    }
}

/// The length-prefixed fields that `wire` consists of, if there is nothing else in it.
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

/// Whether `fields`, those after the name, are as many and as long as the algorithm says.
fn fits(algorithm: &str, fields: &[&[u8]]) -> bool {
    match (algorithm.strip_prefix("ecdsa-sha2-"), fields) {
        (Some(curve), [name, point]) => *name == curve.as_bytes() && !point.is_empty(),
        (None, [public]) => algorithm == "ssh-ed25519" && public.len() == 32,
        (None, [exponent, modulus]) => {
            algorithm == "ssh-rsa" && !exponent.is_empty() && modulus.len() >= 256
        }
        _ => false,
    }
}

impl fmt::Display for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.algorithm, self.base64)
    }
}

impl fmt::Debug for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostKey({self})")
    }
}

impl Serialize for HostKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(in crate::instances) fn wire(fields: &[&[u8]]) -> String {
        let length = |field: &&[u8]| u32::try_from(field.len()).unwrap().to_be_bytes();
        let bytes: Vec<u8> =
            fields.iter().flat_map(|field| [&length(field), *field].concat()).collect();
        BASE64_STANDARD.encode(bytes)
    }

    pub(in crate::instances) fn ed25519() -> String {
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
            assert_eq!(key.parse::<HostKey>().unwrap().base64(), key);
        }
    }

    #[test]
    fn damaged_keys_are_refused() {
        refused("", &BadHostKey::Shape);
        refused("ssh-ed25519", &BadHostKey::Base64);
        refused("AAAA", &BadHostKey::Shape);
        refused(&wire(&[b"ssh-ed25519", &[7; 31]]), &BadHostKey::Shape);
        refused(&wire(&[b"ssh-rsa", &[1, 0, 1], &[9; 128]]), &BadHostKey::Shape);
        refused(&wire(&[b"ecdsa-sha2-nistp256", b"nistp384", &[4; 65]]), &BadHostKey::Shape);
        refused(&wire(&[b"ssh-dss", &[1], &[2], &[3], &[4]]), &BadHostKey::Algorithm);
        refused(&format!("ssh-rsa {}", ed25519()), &BadHostKey::Mismatch);
    }

    proptest! {
        /// Whatever stands there, reading it ends, and what was read is written the same again.
        #[test]
        fn reading_is_total(text in "(ssh-ed25519 )?[A-Za-z0-9+/=]{0,80}( .{0,9})?") {
            if let Ok(key) = text.parse::<HostKey>() {
                prop_assert_eq!(key.base64().parse::<HostKey>(), Ok(key));
            }
        }
    }
}
