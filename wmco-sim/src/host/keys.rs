//! Host keys of a simulated host.

use russh::keys::key::safe_rng;
use russh::keys::ssh_key::private::{KeypairData, RsaKeypair};
use russh::keys::{Algorithm, EcdsaCurve, PrivateKey};

use super::SimHostError;

/// Kind of an SSH host key.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum HostKeyKind {
    /// ECDSA over P-256, the usual host key of a Windows host.
    EcdsaP256,
    /// ECDSA over P-384.
    EcdsaP384,
    /// ECDSA over P-521.
    EcdsaP521,
    /// Ed25519.
    Ed25519,
    /// RSA with 2048 bits; its generation takes about a second.
    Rsa,
}

impl HostKeyKind {
    /// Generates a key of this kind.
    pub(super) fn generate(self) -> Result<PrivateKey, SimHostError> {
        let mut rng = safe_rng();
        let ecdsa = |curve| PrivateKey::random(&mut safe_rng(), Algorithm::Ecdsa { curve });
        let key = match self {
            Self::EcdsaP256 => ecdsa(EcdsaCurve::NistP256),
            Self::EcdsaP384 => ecdsa(EcdsaCurve::NistP384),
            Self::EcdsaP521 => ecdsa(EcdsaCurve::NistP521),
            Self::Ed25519 => PrivateKey::random(&mut rng, Algorithm::Ed25519),
            Self::Rsa => RsaKeypair::random(&mut rng, 2048)
                .and_then(|pair| PrivateKey::new(KeypairData::Rsa(pair), "")),
        };
        key.map_err(|source| SimHostError::HostKey { kind: self, source })
    }
}
