//! The daemon's own certificate: asked for, kept, renewed.
//!
//! Source: `docs/contract/wicd.md`, WICD40 to WICD44.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestStatus,
};
use kube::api::PostParams;
use kube::runtime::wait::{self, await_condition};
use kube::{Api, Client};
use wmco_core::secret::Secret;
use wmco_core::text::chain;
use wmco_services::identity::{
    self, Certificate, CertificateError, Reason, RequestContent, RequestError, Store, Usability,
    judge,
};
use wmco_services::limits;
use wmco_services::windows::{Windows, WindowsError};

use super::{Settings, pauses, rest, until};
use crate::cluster::{self, ClusterError};

/// Why there is no certificate yet; it is asked for again.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoginError {
    #[error("the cluster did not take the request for a certificate")]
    Api(#[from] kube::Error),
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error("request {name} got no certificate, look whether it was denied")]
    NotIssued { name: String },
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("what the cluster issued cannot be used")]
    Unreadable(#[from] CertificateError),
    #[error("a new certificate cannot be used: {reason}")]
    Useless { reason: Reason },
    #[error("request {name} cannot be watched")]
    Watch { name: String, source: Box<wait::Error> },
    #[error("the certificate cannot be read or stored")]
    Windows(#[from] WindowsError),
}

/// Work with one certificate.
#[derive(Clone)]
pub(super) struct Session {
    /// A client that shows the certificate.
    pub(super) client: Client,
    /// Chain and key.
    pub(super) certificate: Secret,
    /// When the next certificate is to be asked for.
    pub(super) renew_at: Timestamp,
}

/// What is needed to get a certificate.
#[derive(Clone)]
pub(super) struct Login {
    pub(super) host: Arc<dyn Windows>,
    pub(super) settings: Settings,
    pub(super) node: String,
}

impl Login {
    /// A session with the stored certificate if it can be used and is not `distrusted`, otherwise with
    /// a new one that the kubeconfig's identity asks for.
    pub(super) async fn enter(&self, distrusted: Option<&Secret>) -> Session {
        let mut pauses = pauses(limits::CERTIFICATE_RETRY);
        loop {
            match self.try_enter(distrusted).await {
                Ok(session) => return session,
                Err(error) => rest(&mut pauses, "get its certificate", &error).await,
            }
        }
    }

    async fn try_enter(&self, distrusted: Option<&Secret>) -> Result<Session, LoginError> {
        let stored = self.store().load(self.host.files())?;
        let stored = stored.filter(|stored| Some(stored) != distrusted);
        match (self.standing(stored.as_ref()), stored) {
            (Usability::Usable { renew_at }, Some(certificate)) => {
                self.session(certificate, renew_at)
            }
            (Usability::Usable { .. }, None) => self.ask(None).await,
            (Usability::Unusable(reason), _) => {
                tracing::info!("asking for a certificate, because {reason}");
                self.ask(None).await
            }
        }
    }

    /// Waits until a new certificate is due and returns a session with it. While the old one is valid,
    /// its owner asks; later the kubeconfig's.
    pub(super) async fn renew(self, session: Session) -> Session {
        // In pieces, since a clock may be set and a machine may be put to sleep.
        loop {
            let left = until(session.renew_at);
            if left.is_zero() {
                break;
            }
            tokio::time::sleep(left.min(limits::DAEMON_RESYNC.unsigned_abs())).await;
        }
        let mut pauses = pauses(limits::CERTIFICATE_RETRY);
        loop {
            let still_good =
                matches!(self.standing(Some(&session.certificate)), Usability::Usable { .. });
            match self.ask(still_good.then_some(&session.client)).await {
                Ok(session) => return session,
                Err(error) => rest(&mut pauses, "renew its certificate", &error).await,
            }
        }
    }

    /// Asks for a certificate, as `client` or else as the kubeconfig says, and stores it.
    async fn ask(&self, client: Option<&Client>) -> Result<Session, LoginError> {
        let client = match client {
            Some(client) => client.clone(),
            None => cluster::client(self.host.files(), &self.settings.cluster.kubeconfig)?,
        };
        let certificate = obtain(client, &self.node, &self.settings).await?;
        let issued = Certificate::parse(certificate.expose())?;
        let now = Timestamp::now();
        let renew_at = match judge(Some(&issued), &self.node, share(), now) {
            Usability::Usable { renew_at } => issued.earliest_renewal(renew_at, now),
            Usability::Unusable(reason) => return Err(LoginError::Useless { reason }),
        };
        self.store().keep(self.host.files(), &certificate, now)?;
        tracing::info!(%renew_at, "a new certificate is in use");
        self.session(certificate, renew_at)
    }

    fn session(&self, certificate: Secret, renew_at: Timestamp) -> Result<Session, LoginError> {
        let kubeconfig = &self.settings.cluster.kubeconfig;
        let client = cluster::client_with(self.host.files(), kubeconfig, &certificate)?;
        Ok(Session { client, certificate, renew_at })
    }

    fn store(&self) -> Store<'_> {
        Store { folder: &self.settings.certificates }
    }

    fn standing(&self, certificate: Option<&Secret>) -> Usability {
        let certificate = certificate.and_then(|text| {
            Certificate::parse(text.expose())
                .inspect_err(|error| {
                    tracing::warn!(error = chain(error), "the stored certificate cannot be read");
                })
                .ok()
        });
        judge(certificate.as_ref(), &self.node, share(), Timestamp::now())
    }
}

/// A share of a certificate's life, drawn anew each time.
fn share() -> f64 {
    let (first, last) = limits::CERTIFICATE_SHARE;
    // Without randomness all daemons ask at the same share, which costs the cluster a peak.
    let drawn = getrandom::u32().map_or(0.5, |drawn| f64::from(drawn) / f64::from(u32::MAX));
    first + (last - first) * drawn
}

/// Asks for a certificate with a new key and waits until it is issued. Returns chain and key.
async fn obtain(client: Client, node: &str, settings: &Settings) -> Result<Secret, LoginError> {
    let made = identity::request(&RequestContent::daemon(node, settings.lifetime))?;
    let request: CertificateSigningRequest =
        serde_json::from_value(made.object.clone()).map_err(kube::Error::SerdeError)?;
    let api: Api<CertificateSigningRequest> = Api::all(client);
    let created = api.create(&PostParams::default(), &request).await?;
    let name = created.metadata.name.unwrap_or_default();
    let settled = await_condition(api, &name, |request: Option<&CertificateSigningRequest>| {
        request.is_none_or(|request| request.status.as_ref().is_some_and(is_settled))
    });
    let settled = tokio::time::timeout(limits::CERTIFICATE_ISSUE.unsigned_abs(), settled)
        .await
        .map_err(|_| LoginError::NotIssued { name: name.clone() })?
        .map_err(|source| LoginError::Watch { name: name.clone(), source: Box::new(source) })?;
    let chain = settled.and_then(|request| request.status?.certificate);
    let Some(ByteString(chain)) = chain else { return Err(LoginError::NotIssued { name }) };
    Ok(made.with_chain(&chain))
}

fn is_settled(status: &CertificateSigningRequestStatus) -> bool {
    let refused = |kind: &str| matches!(kind, "Denied" | "Failed");
    status.certificate.is_some()
        || status.conditions.iter().flatten().any(|condition| refused(&condition.type_))
}
