//! What every host gets in this version, from the caches and the payload.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::runtime::reflector::Store;
use wmco_core::ca_bundle::{self, CaBundleError, Proxy, RegistryBundle};
use wmco_core::cluster::services_name;
use wmco_core::content::{ContentError, HostContent, Inputs, remedies};
use wmco_core::digest::Sha256;
use wmco_core::limits;
use wmco_core::names::objects;
use wmco_core::node;
use wmco_core::render::{KubeconfigError, ServiceNetwork, ServiceNetworkError, TokenSecret};
use wmco_core::secret::Secret as Hidden;
use wmco_core::worker_config::WorkerConfigError;
use wmco_ssh::Blob;

use crate::config::Config;
use crate::manifest;
use crate::openshift;
use crate::payload::Payload;
use crate::snapshot;
use crate::sources::Sources;

/// What is the same for all hosts until the cluster changes.
#[derive(Clone, Debug)]
pub struct Release {
    /// What is wanted on hosts.
    pub wanted: Arc<node::Release>,
    /// What is brought there.
    pub contents: Arc<Contents>,
}

/// Contents of this version.
#[derive(Debug)]
pub struct Contents {
    /// Our agent.
    pub agent: Blob,
    /// Everything else, by digest.
    pub files: BTreeMap<Sha256, Blob>,
}

/// Why hosts cannot be configured now. It names the object and the next step.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotReady {
    /// The CA bundle cannot be made.
    #[error(transparent)]
    CaBundle(#[from] CaBundleError),
    /// Something is missing or malformed.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// A token Secret lacks a key.
    #[error(transparent)]
    Token(#[from] KubeconfigError),
    /// The service network is unusable.
    #[error(transparent)]
    Network(#[from] ServiceNetworkError),
    /// The configuration of the Linux workers cannot be used.
    #[error(transparent)]
    Worker(#[from] Arc<WorkerConfigError>),
    /// The services ConfigMap cannot be made.
    #[error(transparent)]
    Services(#[from] manifest::ManifestError),
}

impl NotReady {
    /// How long this may last before a person is to hear of it: what others of the cluster make, or
    /// we, is there a moment later.
    pub fn patience(&self) -> Duration {
        match self {
            Self::Content(ContentError::Missing { .. }) | Self::Token(_) => {
                limits::MISSING_OBJECT_PATIENCE.unsigned_abs()
            }
            _ => Duration::ZERO,
        }
    }
}

impl Release {
    /// Renders everything; `last` is given back while nothing differs from it.
    ///
    /// # Errors
    /// [`NotReady`] while the cluster lacks something that hosts need.
    pub fn render(
        sources: &Sources,
        config: &Config,
        payload: &Payload,
        last: Option<&Self>,
    ) -> Result<Self, NotReady> {
        let content = content(sources, config, payload)?;
        let ours = manifest::generate(sources, config)?;
        let mut known = snapshot::services(sources);
        known.remove(&services_name(&config.version));
        let known = known.into_values().map(|found| found.data);
        let wanted = node::Release {
            version: config.version.clone(),
            agent: payload.agent.digest(),
            files: content.files,
            daemon_arguments: content.daemon_arguments,
            known_manifests: std::iter::once(ours.data.clone()).chain(known).collect(),
            manifest: ours.data,
            bootstrap_services: ours.bootstrap_services,
            drain_timeout: config.drain_timeout,
        };
        // Contents are told by their digests.
        if let Some(last) = last.filter(|last| *last.wanted == wanted) {
            return Ok(last.clone());
        }
        let mut files = payload.contents.clone();
        for (digest, bytes) in &content.rendered {
            files.insert(*digest, Blob::from_bytes(bytes.expose()));
        }
        let contents = Contents { agent: payload.agent.clone(), files };
        Ok(Self { wanted: Arc::new(wanted), contents: Arc::new(contents) })
    }
}

/// What every configured host has.
fn content(sources: &Sources, config: &Config, payload: &Payload) -> Result<HostContent, NotReady> {
    let missing = |object: String, field, remedy| ContentError::Missing { object, field, remedy };
    let status = snapshot::infrastructure(sources)?;
    let network = snapshot::only(&sources.network).ok_or_else(|| {
        let object = format!("network {}", objects::CLUSTER);
        missing(object, "spec.serviceNetwork", remedies::INSTALLATION)
    })?;
    let controller = snapshot::only(&sources.controller_config).ok_or_else(|| {
        let object = format!("controllerconfig {}", objects::CONTROLLER_CONFIG);
        missing(object, "spec", remedies::MACHINE_CONFIG)
    })?;
    let secret_data = |store: &Store<Secret>, namespace: &str, name: &'static str| {
        let found = snapshot::secret(store, namespace, name).and_then(|secret| secret.data.clone());
        found.ok_or_else(|| missing(format!("secret {name}"), "data", "wait until it was made"))
    };
    let namespace = config.namespace.as_str();
    let bootstrapper = secret_data(
        &sources.bootstrapper,
        objects::BOOTSTRAPPER_NAMESPACE,
        objects::BOOTSTRAPPER_SECRET,
    )?;
    let bootstrapper = TokenSecret::read(objects::BOOTSTRAPPER_SECRET, &bootstrapper)?;
    let wicd = secret_data(&sources.secrets, namespace, objects::WICD)?;
    let wicd = TokenSecret::read(objects::WICD, &wicd)?;
    let tls = secret_data(&sources.secrets, namespace, objects::TLS_SECRET)?;
    let part = |key: &str| tls.get(key).map(|bytes| bytes.0.clone()).unwrap_or_default();
    let trusted = snapshot::data(&sources.config_maps, namespace, objects::TRUSTED_CA_CONFIG_MAP);
    let proxy = if config.proxy.is_enabled() { Proxy::On(trusted.as_ref()) } else { Proxy::Off };
    let worker = snapshot::worker_config(sources)??;
    let spec = &controller.spec;
    let user = bundles(&spec.image_registry_bundle_user_data);
    let ca_bundle = ca_bundle::render(&user, &bundles(&spec.image_registry_bundle_data), proxy)?;
    Ok(HostContent::render(&Inputs {
        namespace,
        platform: &status.platform_status.unwrap_or_default().type_,
        api_server: &status.api_server_internal_uri,
        service_network: ServiceNetwork::choose(&network.spec.service_network)?,
        bootstrapper: &bootstrapper,
        wicd: &wicd,
        kubelet_ca: &controller.spec.kube_api_server_serving_ca_data.0,
        tls_certificate: &part(objects::TLS_CERTIFICATE_KEY),
        tls_key: &Hidden::new(part(objects::TLS_PRIVATE_KEY_KEY)),
        ca_bundle: &ca_bundle,
        worker: &worker,
        payload: &payload.digests,
        log_file_size: config.log_file_size.as_deref(),
    })?)
}

fn bundles(list: &[openshift::RegistryBundle]) -> Vec<RegistryBundle<'_>> {
    list.iter().map(|b| RegistryBundle { file: &b.file, data: &b.data.0 }).collect()
}
