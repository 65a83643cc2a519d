//! Reads certificate requests (PKCS#10, RFC 2986) without copying.
//!
//! [`CertificationRequest::parse`] accepts DER in one form only and borrows every field from the input. It checks
//! the form, not the strength: a weak key or an unknown extension is reported as such, and
//! [`decide`](crate::decide::decide) refuses it by name.
//!
//! # Guarantees
//! - No allocation, no panic, time linear in the input.
//! - `x509-parser` accepts everything that is accepted here, with equal fields (tested and fuzzed). Elements of
//!   unknown kinds are reported as such and not parsed further.
//! - Repeated extensions and attributes are refused, so readers of "the first" and "the last" agree.

mod extensions;
mod key;
mod subject;

pub use extensions::{Extensions, GeneralName, GeneralNames};
pub use key::{Curve, Oid, PublicKey, SignatureAlgorithm, SignatureError};
pub use subject::{Attribute, Subject};

pub use crate::der::{Fault, ParseError};
use crate::der::{Reader, tag};

/// A certificate request, borrowed from its DER bytes.
#[derive(Clone, Copy, Debug)]
pub struct CertificationRequest<'a> {
    /// The bytes that the signature covers.
    signed: &'a [u8],
    subject: Subject<'a>,
    key_info: &'a [u8],
    key: PublicKey<'a>,
    extensions: Extensions<'a>,
    algorithm: SignatureAlgorithm<'a>,
    signature: &'a [u8],
}

impl<'a> CertificationRequest<'a> {
    /// Reads a request from DER bytes.
    ///
    /// # Errors
    /// [`ParseError`] names the offset and the fault there. A new request has to be made; the same bytes never
    /// become acceptable.
    pub fn parse(der: &'a [u8]) -> Result<Self, ParseError> {
        let mut document = Reader::new(der);
        let mut request = document.expect(tag::SEQUENCE, "a sequence")?.content;
        document.finish()?;

        let info = request.expect(tag::SEQUENCE, "a sequence")?;
        let algorithm = SignatureAlgorithm::parse(&mut request)?;
        let signature = request.bytes_of_bit_string()?.rest();
        request.finish()?;

        let signed = info.raw;
        let mut info = info.content;
        let version = info.expect(tag::INTEGER, "a version")?.content;
        if version.rest() != [0] {
            return Err(version.error(Fault::Expected("version 0")));
        }
        let subject = Subject::parse(info.expect(tag::SEQUENCE, "a subject")?.content)?;
        let key_info = info.expect(tag::SEQUENCE, "a public key")?;
        let key = PublicKey::parse(key_info.content)?;
        let attributes = info.expect(tag::CONTEXT_0, "attributes")?.content;
        let extensions = Extensions::parse(attributes)?;
        info.finish()?;

        let key_info = key_info.raw;
        Ok(Self { signed, subject, key_info, key, extensions, algorithm, signature })
    }

    /// The subject of the certificate.
    pub fn subject(&self) -> &Subject<'a> {
        &self.subject
    }

    /// The public key of the certificate.
    pub fn key(&self) -> PublicKey<'a> {
        self.key
    }

    /// The whole `SubjectPublicKeyInfo` in DER. Two keys are equal if and only if these bytes are equal.
    pub fn key_info(&self) -> &'a [u8] {
        self.key_info
    }

    /// The attributes and requested extensions.
    pub fn extensions(&self) -> &Extensions<'a> {
        &self.extensions
    }

    /// The signature algorithm of the request.
    pub fn algorithm(&self) -> SignatureAlgorithm<'a> {
        self.algorithm
    }

    /// The bytes that the signature covers: the `CertificationRequestInfo` in DER.
    pub fn signed(&self) -> &'a [u8] {
        self.signed
    }

    /// The signature, in the form of its algorithm.
    pub fn signature(&self) -> &'a [u8] {
        self.signature
    }

    /// Checks that the requester holds the private key: the request must be signed with its own key.
    ///
    /// This is the one expensive operation of the crate (tens of microseconds).
    ///
    /// # Errors
    /// [`SignatureError`] if the key or the algorithm is weak or unknown, if they do not fit each other, or if the
    /// signature is wrong. Only a new request helps.
    pub fn verify(&self) -> Result<(), SignatureError> {
        key::verify(self.key, self.algorithm, self.signed, self.signature)
    }
}
