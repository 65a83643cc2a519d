//! SHA-256 digests in the form of `sha256sum`.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256 as Hasher};

/// A SHA-256 digest; its text form is 64 lower-case hexadecimal digits.
///
/// ```
/// use wmco_core::digest::Sha256;
///
/// let digest = Sha256::of(b"");
/// assert!(digest.to_string().starts_with("e3b0c442"));
/// assert_eq!(digest.to_string().parse(), Ok(digest));
/// ```
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Sha256([u8; 32]);

/// Error of a text that is not 64 hexadecimal digits.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{text}` is no SHA-256 digest, write 64 hexadecimal digits")]
pub struct NotADigest {
    text: String,
}

impl Sha256 {
    /// Digest of `content`.
    pub fn of(content: &[u8]) -> Self {
        Self(Hasher::digest(content).into())
    }

    /// Makes a digest from its 32 bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sha256({self})")
    }
}

impl FromStr for Sha256 {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let bad = || NotADigest { text: text.to_owned() };
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return Err(bad());
        }
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| bad())?;
            if pair.starts_with('+') {
                return Err(bad());
            }
            *byte = u8::from_str_radix(pair, 16).map_err(|_| bad())?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Sha256 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Sha256 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Sha256 {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Sha256".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^[0-9a-f]{64}$"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upper_case_is_read_and_lower_case_written() {
        let digest = Sha256::of(b"abc");
        assert_eq!(digest.to_string().to_uppercase().parse(), Ok(digest));
        assert!(digest.to_string().starts_with("ba7816bf"));
    }

    #[test]
    fn other_texts_are_refused() {
        let signs = format!("{}+f", "0".repeat(62));
        for text in ["", "e3", &"g".repeat(64), &"0".repeat(65), &signs, &"ä".repeat(32)] {
            assert!(text.parse::<Sha256>().is_err(), "{text}");
        }
    }
}
