//! The certificate that metrics are served with.

use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use wmco_core::names::monitoring::OPERATOR_METRICS;
use wmco_core::names::objects::{TLS_CERTIFICATE_KEY, TLS_PRIVATE_KEY_KEY};
use wmco_core::tls_profile::TlsProfile;

use super::profile;

/// A certificate with its chain and its key.
pub struct Certificate {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// The certificate does not belong to the key, or either is of a kind that is not known.
    #[error("the certificate and its key cannot be served with")]
    Unusable(#[source] rustls::Error),
    /// One of the two is not there, or is no PEM.
    #[error("no {what} in PEM")]
    NotPem {
        /// Which one.
        what: &'static str,
    },
    /// None could be made.
    #[error("no certificate of our own can be made")]
    NotMade(#[source] rcgen::Error),
}

impl Certificate {
    /// A self-signed certificate, used until there is another.
    ///
    /// # Errors
    /// [`CertificateError::NotMade`].
    pub fn self_signed(namespace: &str) -> Result<Self, CertificateError> {
        let names = [format!("{OPERATOR_METRICS}.{namespace}.svc"), "localhost".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).map_err(CertificateError::NotMade)?;
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der());
        let key = key.map_err(|_| CertificateError::NotPem { what: TLS_PRIVATE_KEY_KEY })?;
        Ok(Self { chain: vec![made.cert.der().clone()], key })
    }

    /// The one in a TLS Secret.
    ///
    /// # Errors
    /// [`CertificateError::NotPem`].
    pub fn in_secret(secret: &Secret) -> Result<Self, CertificateError> {
        let data = |key: &str| {
            let found = secret.data.as_ref().and_then(|data| data.get(key));
            found.map(|bytes| bytes.0.as_slice()).unwrap_or_default()
        };
        let chain: Result<Vec<_>, _> =
            CertificateDer::pem_slice_iter(data(TLS_CERTIFICATE_KEY)).collect();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        let chain = chain.ok_or(CertificateError::NotPem { what: TLS_CERTIFICATE_KEY })?;
        let key = PrivateKeyDer::from_pem_slice(data(TLS_PRIVATE_KEY_KEY));
        let key = key.map_err(|_| CertificateError::NotPem { what: TLS_PRIVATE_KEY_KEY })?;
        Ok(Self { chain, key })
    }

    /// How connections are served with it under a profile.
    ///
    /// # Errors
    /// [`CertificateError::Unusable`].
    pub fn served(
        &self,
        profile: Option<&TlsProfile>,
    ) -> Result<Arc<ServerConfig>, CertificateError> {
        let (provider, versions) = profile::chosen(profile, &ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .map_err(CertificateError::Unusable)?
            .with_no_client_auth()
            .with_single_cert(self.chain.clone(), self.key.clone_key())
            .map_err(CertificateError::Unusable)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

// Not derived: nothing of a key is printed.
impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").field("chain", &self.chain.len()).finish_non_exhaustive()
    }
}
