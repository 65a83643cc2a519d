//! Keys and signatures of requests: known kinds, accepted strengths, and the verification.

use std::fmt;

use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};

use crate::der::{Fault, ParseError, Reader, tag};

/// The fewest bits of an RSA modulus that we accept. Source: `docs/contract/certificate-requests.md`, CSR33.
const RSA_LEAST_BITS: usize = 2048;
/// The most bits of an RSA modulus that the verifier accepts.
const RSA_MOST_BITS: usize = 8192;

/// The content of an object identifier; displays as `1.2.840.113549`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Oid<'a>(pub &'a [u8]);

/// Named elliptic curves that we accept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Curve {
    /// NIST P-256, also known as secp256r1.
    P256,
    /// NIST P-384, also known as secp384r1.
    P384,
}

/// A public key, borrowed from a request. Displays as its name, for example `RSA-2048`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PublicKey<'a> {
    /// An uncompressed point (65 or 97 bytes, the first is 4); not known to be on the curve.
    Ecdsa(Curve, &'a [u8]),
    /// The 32 bytes of RFC 8032.
    Ed25519(&'a [u8]),
    /// The `RSAPublicKey` in DER, and the bits of its modulus.
    Rsa(&'a [u8], usize),
    /// A kind of key that we do not accept: its algorithm, and its curve if it is elliptic.
    Unsupported(Oid<'a>, Option<Oid<'a>>),
}

/// A signature algorithm. Displays as its name, for example `ECDSA with SHA-256`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SignatureAlgorithm<'a> {
    /// ECDSA with SHA-256.
    EcdsaSha256,
    /// ECDSA with SHA-384.
    EcdsaSha384,
    /// Ed25519.
    Ed25519,
    /// RSA with PKCS#1 v1.5 padding and SHA-256.
    RsaSha256,
    /// RSA with PKCS#1 v1.5 padding and SHA-384.
    RsaSha384,
    /// RSA with PKCS#1 v1.5 padding and SHA-512.
    RsaSha512,
    /// An algorithm that we do not accept.
    Unsupported(Oid<'a>),
}

/// Why a request's own signature proves nothing.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// The signature algorithm is weak, unknown, or belongs to another kind of key.
    #[error("{key} keys need another signature algorithm than {algorithm}")]
    Algorithm {
        /// Name of the key.
        key: String,
        /// Name of the algorithm.
        algorithm: String,
    },
    /// The key is weak or of an unknown kind.
    #[error("the key is {0}, use RSA with 2048 to 8192 bits, P-256, P-384 or Ed25519")]
    Key(String),
    /// The signature was not made by this key over these bytes.
    #[error("the request is not signed by its own key, make a new one")]
    Signature,
}

impl<'a> PublicKey<'a> {
    /// Reads the content of a `SubjectPublicKeyInfo`.
    pub(super) fn parse(mut info: Reader<'a>) -> Result<Self, ParseError> {
        let mut algorithm = info.expect(tag::SEQUENCE, "a key algorithm")?.content;
        let key = info.bytes_of_bit_string()?;
        info.finish()?;
        let kind = algorithm.oid()?;
        let key = match kind {
            oid::RSA => {
                null(&mut algorithm)?;
                Self::rsa(key)?
            }
            // Explicit curve parameters in place of a curve name.
            oid::EC_KEY if algorithm.peek() == Some(tag::SEQUENCE) => {
                algorithm.element()?;
                Self::Unsupported(Oid(kind), None)
            }
            oid::EC_KEY => match algorithm.oid()? {
                oid::P256 => Self::point(Curve::P256, key, 65)?,
                oid::P384 => Self::point(Curve::P384, key, 97)?,
                curve => Self::Unsupported(Oid(kind), Some(Oid(curve))),
            },
            oid::ED25519 if key.rest().len() == 32 => Self::Ed25519(key.rest()),
            oid::ED25519 => return Err(key.error(Fault::Expected("a key of 32 bytes"))),
            _ => {
                if !algorithm.is_empty() {
                    algorithm.element()?;
                }
                Self::Unsupported(Oid(kind), None)
            }
        };
        algorithm.finish()?;
        Ok(key)
    }

    fn rsa(key: Reader<'a>) -> Result<Self, ParseError> {
        let mut document = key;
        let mut pair = document.expect(tag::SEQUENCE, "an RSA key")?.content;
        document.finish()?;
        let modulus = pair.positive_integer()?;
        let before_exponent = pair;
        let exponent = pair.positive_integer()?;
        pair.finish()?;
        // Go accepts exponents below 2^31 only; 1 and even numbers are not valid exponents.
        let odd = exponent.last().is_some_and(|last| last & 1 == 1);
        let fits = matches!(exponent, [2..=0xff] | [_, _] | [_, _, _] | [0..=0x7f, _, _, _]);
        if !odd || !fits {
            return Err(before_exponent.error(Fault::Expected("an odd exponent, 3 to 2^31 - 1")));
        }
        let leading = modulus.first().map_or(0, |byte| byte.leading_zeros() as usize);
        Ok(Self::Rsa(key.rest(), modulus.len() * 8 - leading))
    }

    fn point(curve: Curve, key: Reader<'a>, length: usize) -> Result<Self, ParseError> {
        if key.rest().len() != length || key.peek() != Some(4) {
            return Err(key.error(Fault::Expected("an uncompressed point of its curve")));
        }
        Ok(Self::Ecdsa(curve, key.rest()))
    }

    /// The name of the key, for the kinds and sizes in use.
    pub(crate) fn usual_name(&self) -> Option<&'static str> {
        match self {
            Self::Ecdsa(Curve::P256, _) => Some("P-256"),
            Self::Ecdsa(Curve::P384, _) => Some("P-384"),
            Self::Ed25519(_) => Some("Ed25519"),
            Self::Rsa(_, 2048) => Some("RSA-2048"),
            Self::Rsa(_, 3072) => Some("RSA-3072"),
            Self::Rsa(_, 4096) => Some("RSA-4096"),
            Self::Rsa(..) | Self::Unsupported(..) => None,
        }
    }

    /// Whether the key is of a kind and a size that we accept.
    pub fn is_strong(&self) -> bool {
        match self {
            Self::Ecdsa(..) | Self::Ed25519(_) => true,
            Self::Rsa(_, bits) => (RSA_LEAST_BITS..=RSA_MOST_BITS).contains(bits),
            Self::Unsupported(..) => false,
        }
    }
}

impl<'a> SignatureAlgorithm<'a> {
    /// Reads an `AlgorithmIdentifier`.
    pub(super) fn parse(request: &mut Reader<'a>) -> Result<Self, ParseError> {
        let mut content = request.expect(tag::SEQUENCE, "a signature algorithm")?.content;
        let kind = content.oid()?;
        let algorithm = match kind {
            oid::ECDSA_SHA256 => Self::EcdsaSha256,
            oid::ECDSA_SHA384 => Self::EcdsaSha384,
            oid::ED25519 => Self::Ed25519,
            oid::RSA_SHA256 => Self::RsaSha256,
            oid::RSA_SHA384 => Self::RsaSha384,
            oid::RSA_SHA512 => Self::RsaSha512,
            _ => Self::Unsupported(Oid(kind)),
        };
        match algorithm {
            Self::RsaSha256 | Self::RsaSha384 | Self::RsaSha512 => null(&mut content)?,
            Self::Unsupported(_) if !content.is_empty() => {
                content.element()?;
            }
            Self::EcdsaSha256 | Self::EcdsaSha384 | Self::Ed25519 | Self::Unsupported(_) => {}
        }
        content.finish()?;
        Ok(algorithm)
    }

    /// The name of an accepted algorithm; `None` for all others.
    pub fn name(&self) -> Option<&'static str> {
        Some(match self {
            Self::EcdsaSha256 => "ECDSA with SHA-256",
            Self::EcdsaSha384 => "ECDSA with SHA-384",
            Self::Ed25519 => "Ed25519",
            Self::RsaSha256 => "RSA with SHA-256",
            Self::RsaSha384 => "RSA with SHA-384",
            Self::RsaSha512 => "RSA with SHA-512",
            Self::Unsupported(_) => return None,
        })
    }

    /// Whether a signature of this kind can come from `key`.
    pub fn fits(&self, key: &PublicKey<'_>) -> bool {
        verifier(*key, *self).is_some()
    }
}

fn null(parameters: &mut Reader<'_>) -> Result<(), ParseError> {
    let null = parameters.expect(tag::NULL, "NULL as parameters of RSA")?.content;
    if null.is_empty() { Ok(()) } else { Err(null.error(Fault::Expected("an empty NULL"))) }
}

/// The verification for a key and an algorithm, if they fit; PKCS#1 of RFC 8017, ECDSA of RFC 5758.
fn verifier(
    key: PublicKey<'_>,
    algorithm: SignatureAlgorithm<'_>,
) -> Option<&'static dyn VerificationAlgorithm> {
    use Curve::{P256, P384};
    use SignatureAlgorithm as Algorithm;
    Some(match (key, algorithm) {
        (PublicKey::Rsa(..), Algorithm::RsaSha256) => &signature::RSA_PKCS1_2048_8192_SHA256,
        (PublicKey::Rsa(..), Algorithm::RsaSha384) => &signature::RSA_PKCS1_2048_8192_SHA384,
        (PublicKey::Rsa(..), Algorithm::RsaSha512) => &signature::RSA_PKCS1_2048_8192_SHA512,
        (PublicKey::Ecdsa(P256, _), Algorithm::EcdsaSha256) => &signature::ECDSA_P256_SHA256_ASN1,
        (PublicKey::Ecdsa(P256, _), Algorithm::EcdsaSha384) => &signature::ECDSA_P256_SHA384_ASN1,
        (PublicKey::Ecdsa(P384, _), Algorithm::EcdsaSha256) => &signature::ECDSA_P384_SHA256_ASN1,
        (PublicKey::Ecdsa(P384, _), Algorithm::EcdsaSha384) => &signature::ECDSA_P384_SHA384_ASN1,
        (PublicKey::Ed25519(_), Algorithm::Ed25519) => &signature::ED25519,
        (
            PublicKey::Rsa(..)
            | PublicKey::Ecdsa(..)
            | PublicKey::Ed25519(_)
            | PublicKey::Unsupported(..),
            _,
        ) => return None,
    })
}

/// Checks `signature` over `message`.
pub(super) fn verify(
    key: PublicKey<'_>,
    algorithm: SignatureAlgorithm<'_>,
    message: &[u8],
    signature: &[u8],
) -> Result<(), SignatureError> {
    if !key.is_strong() {
        return Err(SignatureError::Key(key.to_string()));
    }
    let Some(verifier) = verifier(key, algorithm) else {
        let (key, algorithm) = (key.to_string(), algorithm.to_string());
        return Err(SignatureError::Algorithm { key, algorithm });
    };
    let bytes = match key {
        PublicKey::Ecdsa(_, bytes) | PublicKey::Ed25519(bytes) | PublicKey::Rsa(bytes, _) => bytes,
        PublicKey::Unsupported(..) => return Err(SignatureError::Key(key.to_string())),
    };
    UnparsedPublicKey::new(verifier, bytes)
        .verify(message, signature)
        .map_err(|_| SignatureError::Signature)
}

impl fmt::Display for Oid<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((_, name)) = oid::NAMES.iter().find(|(known, _)| *known == self.0) {
            return f.write_str(name);
        }
        let mut arc = 0_u128;
        let mut first = true;
        for byte in self.0 {
            arc = arc.wrapping_shl(7) | u128::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                if first {
                    let root = (arc / 40).min(2);
                    write!(f, "{root}.{}", arc - root * 40)?;
                } else {
                    write!(f, ".{arc}")?;
                }
                (arc, first) = (0, false);
            }
        }
        Ok(())
    }
}

impl fmt::Display for PublicKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rsa(_, bits) => write!(f, "RSA-{bits}"),
            Self::Unsupported(_, Some(curve)) => write!(f, "{curve}"),
            Self::Unsupported(algorithm, None) => write!(f, "{algorithm}"),
            Self::Ecdsa(..) | Self::Ed25519(_) => {
                f.write_str(self.usual_name().unwrap_or_default())
            }
        }
    }
}

impl fmt::Display for SignatureAlgorithm<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported(algorithm) => write!(f, "{algorithm}"),
            accepted => f.write_str(accepted.name().unwrap_or_default()),
        }
    }
}

/// Contents of object identifiers. Source: RFC 3279, 4055, 5480, 5758 and 8410.
mod oid {
    pub(super) const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
    pub(super) const RSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11];
    pub(super) const RSA_SHA384: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 12];
    pub(super) const RSA_SHA512: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 13];
    pub(super) const EC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
    pub(super) const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
    pub(super) const P384: &[u8] = &[0x2b, 0x81, 4, 0, 34];
    pub(super) const ECDSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
    pub(super) const ECDSA_SHA384: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3];
    pub(super) const ED25519: &[u8] = &[0x2b, 0x65, 0x70];

    /// Names of refused algorithms, to make a refusal readable.
    pub(super) const NAMES: &[(&[u8], &str)] = &[
        (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 4], "RSA with MD5"),
        (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 5], "RSA with SHA-1"),
        (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 10], "RSA with PSS padding"),
        (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 14], "RSA with SHA-224"),
        (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1], "an e-mail address"),
        (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 7], "a challenge password"),
        (&[0x2a, 0x86, 0x48, 0xce, 0x38, 4, 1], "DSA"),
        (EC_KEY, "a curve without a name"),
        (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1], "ECDSA with SHA-1"),
        (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4], "ECDSA with SHA-512"),
        (&[0x2b, 0x65, 0x71], "Ed448"),
        (&[0x2b, 0x81, 4, 0, 10], "secp256k1"),
        (&[0x2b, 0x81, 4, 0, 33], "P-224"),
        (&[0x2b, 0x81, 4, 0, 35], "P-521"),
        (&[0x55, 0x1d, 0x0e], "a subject key identifier"),
        (&[0x55, 0x1d, 0x13], "basic constraints"),
        (&[0x55, 4, 6], "a country"),
        (&[0x55, 4, 11], "an organizational unit"),
    ];
}
