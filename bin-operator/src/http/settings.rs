//! Which certificate and which TLS profile are in force.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use rustls::ServerConfig;
use tokio::sync::watch;
use wmco_core::names::monitoring::OPERATOR_METRICS_TLS_SECRET;
use wmco_core::tls_profile::TlsProfile;

use super::{Certificate, CertificateError};
use crate::snapshot;
use crate::sources::Sources;

/// The certificate and the TLS profile of served connections.
pub struct Settings {
    certificate: Certificate,
    profile: Option<TlsProfile>,
    /// The Secret that the certificate is from, as it was read last.
    secret: Option<Arc<Secret>>,
    served: watch::Sender<Arc<ServerConfig>>,
}

impl Settings {
    /// A certificate of our own, and no profile.
    ///
    /// # Errors
    /// [`CertificateError`].
    pub fn new(namespace: &str) -> Result<Self, CertificateError> {
        let certificate = Certificate::self_signed(namespace)?;
        let served = watch::channel(certificate.served(None)?).0;
        Ok(Self { certificate, profile: None, secret: None, served })
    }

    /// How connections are served from now on.
    pub fn served(&self) -> watch::Receiver<Arc<ServerConfig>> {
        self.served.subscribe()
    }

    /// Takes in what the cluster says. A Secret that is gone or cannot be used leaves the last certificate in
    /// force.
    pub fn update(&mut self, secret: Option<Arc<Secret>>, profile: Option<TlsProfile>) {
        let data = |secret: &Option<Arc<Secret>>| secret.as_ref().and_then(|it| it.data.clone());
        let is_new = secret.is_some() && data(&secret) != data(&self.secret);
        if is_new {
            let found = secret.as_deref().map(Certificate::in_secret);
            self.secret = secret;
            match found.transpose().and_then(|found| self.take(found, self.profile.clone())) {
                Ok(()) => tracing::info!("metrics are served with another certificate"),
                Err(error) => warn(&error, "metrics are served with the former certificate"),
            }
        }
        if profile != self.profile {
            match self.take(None, profile) {
                Ok(()) => tracing::info!(profile = ?self.profile, "metrics follow the tls profile"),
                Err(error) => warn(&error, "metrics are served by the former tls profile"),
            }
        }
    }

    /// Serves from now on with these, if that is possible.
    fn take(
        &mut self,
        found: Option<Certificate>,
        profile: Option<TlsProfile>,
    ) -> Result<(), CertificateError> {
        let config = found.as_ref().unwrap_or(&self.certificate).served(profile.as_ref())?;
        if let Some(found) = found {
            self.certificate = found;
        }
        self.profile = profile;
        self.served.send_replace(config);
        Ok(())
    }
}

fn warn(error: &CertificateError, consequence: &str) {
    let error = crate::chain(error);
    tracing::warn!(secret = OPERATOR_METRICS_TLS_SECRET, error, "{consequence}");
}

/// Keeps to what the cluster says for ever.
pub async fn follow(mut settings: Settings, sources: Sources, namespace: String) {
    let mut changes = sources.changes.clone();
    loop {
        changes.mark_unchanged();
        let secret = snapshot::secret(&sources.secrets, &namespace, OPERATOR_METRICS_TLS_SECRET);
        // The settings of nodes report a profile that makes no sense.
        let profile = TlsProfile::of_cluster(sources.api_server.get().as_ref()).profile;
        settings.update(secret, profile);
        if changes.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}
