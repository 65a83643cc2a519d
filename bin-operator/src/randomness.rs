//! Random bytes of the system.

use wmco_core::username::Randomness;

/// The system gives no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the system has no random bytes, check its random device")]
pub(crate) struct NoRandomBytes;

/// Fresh random bytes for one message.
///
/// # Errors
/// The system gives none.
pub(crate) fn randomness() -> Result<Randomness, NoRandomBytes> {
    Randomness::filled_by(getrandom::fill).map_err(|_| NoRandomBytes)
}

#[cfg(test)]
mod tests {
    use wmco_core::secret::Secret;
    use wmco_core::username::encrypt;

    use super::*;

    #[test]
    fn random_bytes_are_fresh_for_each_message() {
        let sealed = || encrypt("core", &Secret::new("key"), &randomness().unwrap());
        assert_ne!(sealed(), sealed());
    }
}
