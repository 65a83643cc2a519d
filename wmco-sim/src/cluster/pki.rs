//! Keys and certificates of the cluster.

use std::fmt;
use std::net::Ipv4Addr;

use jiff::SignedDuration;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::tokens::TokenIssuer;

/// Names of the server besides its addresses.
const NAMES: &[&str] = &[
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// One CA signs the server's certificate and those of all clients.
pub(crate) struct Pki {
    ca: Issuer<'static, KeyPair>,
    ca_pem: String,
    ca_der: CertificateDer<'static>,
    /// The server's certificate.
    pub(super) server: CertificateDer<'static>,
    server_key: Vec<u8>,
    tokens: TokenIssuer,
    longest_lifetime: SignedDuration,
}

/// A client's certificate and key in PEM.
#[derive(Clone)]
pub struct ClientCertificate {
    /// One CERTIFICATE block.
    pub certificate: String,
    /// One PRIVATE KEY block (PKCS#8).
    pub key: String,
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCertificate")
            .field("certificate", &self.certificate)
            .field("key", &"[redacted]")
            .finish()
    }
}

impl fmt::Debug for Pki {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pki").finish_non_exhaustive()
    }
}

impl Pki {
    /// Makes a CA and the server's certificate for loopback.
    ///
    /// # Errors
    /// The key generator failed.
    pub(crate) fn new(longest_lifetime: SignedDuration) -> Result<Self, rcgen::Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "simulated-cluster-ca");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
        ];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        let ca = Issuer::new(params, key);

        let names = NAMES.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let mut params = CertificateParams::new(names)?;
        params.subject_alt_names.push(SanType::IpAddress(Ipv4Addr::LOCALHOST.into()));
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let server = params.signed_by(&key, &ca)?;
        Ok(Self {
            ca,
            ca_pem: certificate.pem(),
            ca_der: certificate.der().clone(),
            server: server.der().clone(),
            server_key: key.serialize_der(),
            tokens: TokenIssuer::generate().map_err(|_| rcgen::Error::RingUnspecified)?,
            longest_lifetime,
        })
    }

    /// The CA's certificate in PEM.
    pub(crate) fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// The CA's certificate in DER.
    pub(crate) fn ca_der(&self) -> &CertificateDer<'static> {
        &self.ca_der
    }

    /// No certificate that is asked for lives longer.
    pub(crate) fn longest_lifetime(&self) -> SignedDuration {
        self.longest_lifetime
    }

    /// What signs certificates of this cluster.
    pub(crate) fn issuer(&self) -> &Issuer<'static, KeyPair> {
        &self.ca
    }

    /// Who signs tokens of service accounts.
    pub(crate) fn tokens(&self) -> &TokenIssuer {
        &self.tokens
    }

    /// The server's private key.
    pub(super) fn server_key(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.server_key.clone()).into()
    }

    /// A certificate that authenticates as `user` (its CN) in `groups` (its Os).
    ///
    /// # Errors
    /// The key generator failed, or a name cannot stand in a certificate.
    pub(crate) fn client(
        &self,
        user: &str,
        groups: &[&str],
    ) -> Result<ClientCertificate, rcgen::Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        let key = KeyPair::generate()?;
        params.distinguished_name.push(DnType::CommonName, user);
        for group in groups {
            params.distinguished_name.push(DnType::OrganizationName, *group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &self.ca)?;
        Ok(ClientCertificate { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}
