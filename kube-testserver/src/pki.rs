//! Keys and certificates of the cluster.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::authority::{Authority, CertificateError};
use super::tokens::TokenIssuer;

/// The authority for the server's certificate and all client certificates, and the key for tokens.
pub(crate) struct Pki {
    /// The authority.
    pub(super) authority: Authority,
    tokens: TokenIssuer,
    /// How far the clock of certificates is ahead of the machine's, in seconds.
    ahead: AtomicI64,
}

impl fmt::Debug for Pki {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pki").finish_non_exhaustive()
    }
}

impl Pki {
    /// Makes an authority and the key for tokens.
    ///
    /// # Errors
    /// The key generator failed.
    pub(crate) fn new() -> Result<Self, CertificateError> {
        Ok(Self {
            authority: Authority::new()?,
            tokens: TokenIssuer::generate().map_err(|_| CertificateError::no_randomness())?,
            ahead: AtomicI64::new(0),
        })
    }

    /// The authority's certificate in PEM.
    pub(crate) fn ca_pem(&self) -> &str {
        self.authority.pem()
    }

    /// Answers an approved certificate request, like [`Authority::sign`].
    pub(crate) fn sign(&self, request: &Value, now: Timestamp) -> Option<Value> {
        self.authority.sign(request, self.certificate_time(now))
    }

    /// Moves the clock of certificates.
    pub(crate) fn set_seconds_ahead(&self, seconds: i64) {
        self.ahead.store(seconds, Ordering::Relaxed);
    }

    /// What the clock of certificates shows at `now`.
    pub(crate) fn certificate_time(&self, now: Timestamp) -> Timestamp {
        now.saturating_add(SignedDuration::from_secs(self.ahead.load(Ordering::Relaxed)))
            .unwrap_or(now)
    }

    /// The issuer of service account tokens.
    pub(crate) fn tokens(&self) -> &TokenIssuer {
        &self.tokens
    }
}
