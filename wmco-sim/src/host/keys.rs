//! Host keys of a simulated host.

use russh::keys::key::safe_rng;
use russh::keys::ssh_key::private::{KeypairData, RsaKeypair};
use russh::keys::{Algorithm, EcdsaCurve, PrivateKey};

use super::SimHostError;

/// Kind of an SSH host key.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum HostKeyKind {
    /// ECDSA over P-256, what a Windows host is usually reached with.
    EcdsaP256,
    /// Ed25519.
    Ed25519,
    /// RSA with 2048 bits; making one takes about a second.
    Rsa,
}

impl HostKeyKind {
    /// A new key of this kind.
    pub(super) fn generate(self) -> Result<PrivateKey, SimHostError> {
        let mut rng = safe_rng();
        let key = match self {
            Self::EcdsaP256 => {
                PrivateKey::random(&mut rng, Algorithm::Ecdsa { curve: EcdsaCurve::NistP256 })
            }
            Self::Ed25519 => PrivateKey::random(&mut rng, Algorithm::Ed25519),
            Self::Rsa => RsaKeypair::random(&mut rng, 2048)
                .and_then(|pair| PrivateKey::new(KeypairData::Rsa(pair), "")),
        };
        key.map_err(|source| SimHostError::HostKey { kind: self, source })
    }
}
