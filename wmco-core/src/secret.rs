//! Values that must never be printed.

use std::fmt;

use zeroize::Zeroizing;

/// Secret bytes or text: printed as `[redacted]`, wiped from memory on drop.
///
/// It deliberately has no `Serialize`: what leaves the process is taken out with
/// [`Secret::expose`], where a reader sees it.
///
/// ```
/// use wmco_core::secret::Secret;
///
/// let token = Secret::new(b"abc.def".to_vec());
/// assert_eq!(format!("{token:?}"), "[redacted]");
/// assert_eq!(token.expose(), b"abc.def");
/// ```
#[derive(Clone, Default, Eq, PartialEq)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes over `bytes`.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(Zeroizing::new(bytes.into()))
    }

    /// The bytes themselves; keep them away from logs and errors.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}
