//! Keys and certificates of the cluster.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::authority::{Authority, CertificateError};
use super::tokens::TokenIssuer;

/// The authority for the server's certificate and all client certificates, and the key for tokens.
pub(crate) struct Pki {
    /// The authority.
    pub(super) authority: Authority,
    tokens: TokenIssuer,
    longest_lifetime: SignedDuration,
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
    pub(crate) fn new(longest_lifetime: SignedDuration) -> Result<Self, CertificateError> {
        Ok(Self {
            authority: Authority::new()?,
            tokens: TokenIssuer::generate().map_err(|_| CertificateError::no_randomness())?,
            longest_lifetime,
        })
    }

    /// The authority's certificate in PEM.
    pub(crate) fn ca_pem(&self) -> &str {
        self.authority.pem()
    }

    /// Answers an approved certificate request, like [`Authority::sign`].
    pub(crate) fn sign(&self, request: &Value, now: Timestamp) -> Option<Value> {
        self.authority.sign_for_at_most(self.longest_lifetime, request, now)
    }

    /// The issuer of service account tokens.
    pub(crate) fn tokens(&self) -> &TokenIssuer {
        &self.tokens
    }
}
