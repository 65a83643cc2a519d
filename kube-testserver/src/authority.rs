//! A certificate authority with the duties of a cluster's authority: it signs the API server's certificate, client
//! certificates, and approved certificate requests.

use std::fmt;
use std::net::Ipv4Addr;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use serde_json::Value;

use super::csr::signer::{self, Step};
use super::kubeconfig;

/// Names of an API server besides its address.
const NAMES: &[&str] = &[
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// A certificate authority for a cluster on loopback: for this server, or for a kube-apiserver without the
/// controller manager that would sign requests.
///
/// ```
/// use kube_testserver::Authority;
///
/// let authority = Authority::new()?;
/// let server = authority.server()?;
/// assert!(server.certificate.starts_with("-----BEGIN CERTIFICATE-----"));
/// assert!(server.key.starts_with("-----BEGIN PRIVATE KEY-----"));
/// let admin = authority.kubeconfig("https://127.0.0.1:6443", "admin", &["system:masters"])?;
/// assert!(admin.contains("https://127.0.0.1:6443"));
/// Ok::<(), kube_testserver::CertificateError>(())
/// ```
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    #[cfg(feature = "tls")]
    der: Vec<u8>,
}

/// A key or a certificate could not be made: a name is not valid in a certificate, or the system has no randomness.
#[derive(Debug, thiserror::Error)]
#[error("make a key and its certificate")]
pub struct CertificateError(#[source] rcgen::Error);

impl CertificateError {
    /// The key for tokens could not be made.
    pub(crate) fn no_randomness() -> Self {
        Self(rcgen::Error::RingUnspecified)
    }
}

/// A certificate and its key in PEM.
#[derive(Clone)]
#[non_exhaustive]
pub struct CertifiedKey {
    /// A CERTIFICATE block.
    pub certificate: String,
    /// A PRIVATE KEY block (PKCS#8).
    pub key: String,
}

impl fmt::Debug for CertifiedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertifiedKey")
            .field("certificate", &self.certificate)
            .field("key", &"[redacted]")
            .finish()
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Authority {
    /// Makes a key and its certificate.
    ///
    /// # Errors
    /// The key generator failed.
    pub fn new() -> Result<Self, CertificateError> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "simulated-cluster-ca");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
        ];
        let key = KeyPair::generate().map_err(CertificateError)?;
        let certificate = params.self_signed(&key).map_err(CertificateError)?;
        Ok(Self {
            issuer: Issuer::new(params, key),
            pem: certificate.pem(),
            #[cfg(feature = "tls")]
            der: certificate.der().to_vec(),
        })
    }

    /// The authority's own certificate in PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// The authority's own certificate in DER.
    #[cfg(feature = "tls")]
    pub(crate) fn der(&self) -> &[u8] {
        &self.der
    }

    /// A certificate for an API server on 127.0.0.1.
    ///
    /// # Errors
    /// The key generator failed.
    pub fn server(&self) -> Result<CertifiedKey, CertificateError> {
        let names = NAMES.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let mut params = CertificateParams::new(names).map_err(CertificateError)?;
        params.subject_alt_names.push(SanType::IpAddress(Ipv4Addr::LOCALHOST.into()));
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.certify(&params)
    }

    /// A certificate that authenticates as `user` (its CN) in `groups` (its O values).
    ///
    /// # Errors
    /// The key generator failed, or a name is not valid in a certificate.
    pub fn client(&self, user: &str, groups: &[&str]) -> Result<CertifiedKey, CertificateError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, user);
        for group in groups {
            params.distinguished_name.push(DnType::OrganizationName, *group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.certify(&params)
    }

    /// A kubeconfig (JSON, which is YAML) for the API server at `url`, with a certificate for `user`
    /// in `groups`. It holds a private key.
    ///
    /// # Errors
    /// Like [`client`](Self::client).
    pub fn kubeconfig(
        &self,
        url: &str,
        user: &str,
        groups: &[&str],
    ) -> Result<String, CertificateError> {
        let CertifiedKey { certificate, key } = self.client(user, groups)?;
        Ok(kubeconfig::with_certificate(url, &self.pem, user, (&certificate, &key)))
    }

    /// Returns the CertificateSigningRequest `request` with its certificate, or with a condition that says why it
    /// gets none. `None` if there is nothing to do: the request is not approved or already answered, or its signer
    /// is not one of the three of `kubernetes.io` for kubelets and clients.
    pub fn sign(&self, request: &Value, now: Timestamp) -> Option<Value> {
        match signer::reconcile(&self.issuer, request, now) {
            Step::Leave => None,
            Step::Update(signed) => Some(signed),
        }
    }

    fn certify(&self, params: &CertificateParams) -> Result<CertifiedKey, CertificateError> {
        let key = KeyPair::generate().map_err(CertificateError)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(CertificateError)?;
        Ok(CertifiedKey { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}
