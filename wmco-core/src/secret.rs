//! Values that must never be printed.

use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

/// Secret bytes or text: printed as `[redacted]`, and wiped from memory when the last clone is dropped.
///
/// It has no `Serialize` on purpose: code that sends it out must call [`Secret::expose`], which is visible in a
/// review.
///
/// ```
/// use wmco_core::secret::Secret;
///
/// let token = Secret::new(b"abc.def".to_vec());
/// assert_eq!(format!("{token:?}"), "[redacted]");
/// assert_eq!(token.expose(), b"abc.def");
/// ```
#[derive(Clone, Default, Eq, PartialEq)]
pub struct Secret(Arc<Zeroizing<Vec<u8>>>);

impl Secret {
    /// Stores `bytes`.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(Arc::new(Zeroizing::new(bytes.into())))
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
