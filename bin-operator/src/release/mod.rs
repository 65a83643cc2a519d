//! What every host gets in this version, from the caches and the payload.

mod current;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::runtime::reflector::Store;
use wmco_core::ca_bundle::{self, CaBundleError, ProxyTrust, RegistryBundle};
use wmco_core::content::{ContentError, ContentInputs, HostContent, remedies};
use wmco_core::digest::Sha256;
use wmco_core::ignition::CREDENTIAL_PROVIDER;
use wmco_core::ip_network::{IpNetwork, NetworkError};
use wmco_core::limits;
use wmco_core::names::objects::{self, services_name};
use wmco_core::node;
use wmco_core::proxy::ProxyError;
use wmco_core::render::{KubeconfigError, ServiceAccountToken};
use wmco_core::secret::Secret as Hidden;
use wmco_core::tls_profile::TlsProfile;
use wmco_core::worker_config::WorkerConfigError;
use wmco_services::certs::Bundle;
use wmco_ssh::Blob;

use crate::config::Config;
use crate::manifest;
use crate::openshift::{self, ControllerConfigSpec};
use crate::payload::Payload;
use crate::registries::RegistryKinds;
use crate::snapshot;
use crate::sources::Sources;

pub use current::Releases;

/// The part of a release that is the same for all hosts until the cluster changes.
#[derive(Clone, Debug)]
pub struct PreparedRelease {
    /// What is wanted on hosts.
    pub wanted: Arc<node::Release>,
    /// What is brought there.
    pub contents: Arc<Contents>,
    /// What people should know of settings that were passed over.
    pub findings: Arc<[String]>,
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
    /// Nobody knows which proxy nodes use.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// The service network is unusable.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The configuration of the Linux workers cannot be used.
    #[error(transparent)]
    Worker(#[from] Arc<WorkerConfigError>),
    /// Nobody knows yet what containerd is to be told of registries.
    #[error(
        "objects of {} have not been listed, so nobody knows what containerd needs; if this lasts, apply the \
         rights in the operator's deployment again",
        .kinds.join(", ")
    )]
    Registries {
        /// The kinds.
        kinds: Vec<&'static str>,
    },
    /// The services ConfigMap cannot be made.
    #[error(transparent)]
    Services(#[from] manifest::ManifestSourceError),
}

impl NotReady {
    /// How long this may last before a person is to hear of it: what others of the cluster make, or
    /// we, is there a moment later.
    pub fn patience(&self) -> Duration {
        match self {
            Self::Content(ContentError::Missing { .. })
            | Self::CaBundle(_)
            | Self::Registries { .. }
            | Self::Token(_) => limits::MISSING_OBJECT_PATIENCE.unsigned_abs(),
            _ => Duration::ZERO,
        }
    }
}

impl PreparedRelease {
    /// Renders everything, with the certificates that come with a `proxy`; `last` is given back while nothing
    /// differs from it.
    ///
    /// # Errors
    /// [`NotReady`] while the cluster lacks something that hosts need.
    pub fn render(
        sources: &Sources,
        config: &Config,
        payload: &Payload,
        proxy: ProxyTrust<'_>,
        last: Option<&Self>,
    ) -> Result<Self, NotReady> {
        let ca_bundle = ca_bundle(sources, proxy)?;
        let read = TlsProfile::of_cluster(sources.api_server.get().as_ref());
        let content = content(sources, config, payload, &ca_bundle, read.profile.as_ref())?;
        let ours = manifest::generate(sources, config)?;
        let worker = snapshot::worker_config(sources)??;
        let lacks = worker.lacks_credential_provider(&ours.platform);
        let lacks = lacks.then(|| no_credential_provider(&worker.missing_provider_members));
        let findings = read.findings.iter().map(ToString::to_string).chain(lacks).collect();
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
            roots: Bundle::parse(&ca_bundle).digest(),
            bootstrap_services: ours.bootstrap_services,
            vxlan_port: snapshot::vxlan_port(sources)?,
            cluster: snapshot::cluster(sources, &config.namespace)?,
            drain_timeout: config.drain_timeout,
        };
        // Contents are compared by their digests.
        if let Some(last) = last.filter(|last| *last.wanted == wanted) {
            return Ok(Self { findings, ..last.clone() });
        }
        let mut files = payload.contents.clone();
        for (digest, bytes) in &content.rendered {
            files.insert(*digest, Blob::from_bytes(bytes.expose()));
        }
        let contents = Contents { agent: payload.agent.clone(), files };
        Ok(Self { wanted: Arc::new(wanted), contents: Arc::new(contents), findings })
    }

    /// What is needed to clean a host: our agent, and the services that it may have. No setting of the cluster can be in
    /// the way of that. `last` is given back while nothing differs from it.
    ///
    /// # Errors
    /// Nobody knows which cluster this is.
    pub fn to_leave(
        sources: &Sources,
        config: &Config,
        payload: &Payload,
        last: Option<&Self>,
    ) -> Result<Self, NotReady> {
        let cluster = snapshot::cluster(sources, &config.namespace)?;
        let known = snapshot::services(sources).into_values().map(|found| found.data);
        let wanted = node::Release {
            known_manifests: known.collect(),
            drain_timeout: config.drain_timeout,
            ..node::Release::new(&config.version, payload.agent.digest(), cluster)
        };
        if let Some(last) = last.filter(|last| *last.wanted == wanted) {
            return Ok(last.clone());
        }
        let contents = Contents { agent: payload.agent.clone(), files: BTreeMap::new() };
        let findings = Arc::default();
        Ok(Self { wanted: Arc::new(wanted), contents: Arc::new(contents), findings })
    }
}

/// Told where the Linux workers have no image credential providers and need some.
const NO_CREDENTIAL_PROVIDER: &str = "the rendered MachineConfig of machineconfigpool worker has no image \
     credential providers, so kubelets on Windows pull no private images of the cloud's registry; look \
     whether the machine config operator is well";

/// Why kubelets have no image credential providers, where the file there may lack the members `missing`.
fn no_credential_provider(missing: &[String]) -> String {
    match missing.first() {
        None => NO_CREDENTIAL_PROVIDER.to_owned(),
        Some(path) => format!(
            "{CREDENTIAL_PROVIDER} in the rendered MachineConfig of machineconfigpool worker lacks `{path}`, so kubelets \
             refuse it; those on Windows start without it and pull no private images of the cloud's registry; correct it, \
             and see what else it lacks with `wmco-operator render credential-provider`"
        ),
    }
}

/// What every configured host has.
fn content(
    sources: &Sources,
    config: &Config,
    payload: &Payload,
    ca_bundle: &[u8],
    tls_profile: Option<&TlsProfile>,
) -> Result<HostContent, NotReady> {
    let missing = |object: String, field, remedy| ContentError::Missing { object, field, remedy };
    let status = snapshot::infrastructure(sources)?;
    let network = snapshot::network(sources)?;
    let controller = controller_config(sources)?;
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
    let bootstrapper = ServiceAccountToken::read(objects::BOOTSTRAPPER_SECRET, &bootstrapper)?;
    let wicd = secret_data(&sources.secrets, namespace, objects::WICD)?;
    let wicd = ServiceAccountToken::read(objects::WICD, &wicd)?;
    let tls = secret_data(&sources.secrets, namespace, objects::TLS_SECRET)?;
    let part = |key: &str| tls.get(key).map(|bytes| bytes.0.clone()).unwrap_or_default();
    let worker = snapshot::worker_config(sources)??;
    let registries = sources.registries.inventory().ok_or_else(|| {
        let kinds = sources.registries.look(RegistryKinds::unlisted);
        NotReady::Registries { kinds }
    })?;
    Ok(HostContent::render(&ContentInputs {
        namespace,
        platform: &status.platform_status.unwrap_or_default().type_,
        api_server: &status.api_server_internal_uri,
        service_network: IpNetwork::choose(&network.service_network)?,
        bootstrapper: &bootstrapper,
        wicd: &wicd,
        kubelet_ca: &controller.kube_api_server_serving_ca_data.0,
        tls_certificate: &part(objects::TLS_CERTIFICATE_KEY),
        tls_key: &Hidden::new(part(objects::TLS_PRIVATE_KEY_KEY)),
        tls_profile,
        ca_bundle,
        registries: &registries.files,
        worker: &worker,
        payload: &payload.digests,
        containerd: &config.containerd,
        log_file_size: config.log_file_size.as_deref(),
        log_file_age: config.log_file_age.as_deref(),
    })?)
}

fn controller_config(sources: &Sources) -> Result<ControllerConfigSpec, ContentError> {
    sources.controller_config.get().flatten().ok_or_else(|| ContentError::Missing {
        object: format!("controllerconfig {}", objects::CONTROLLER_CONFIG),
        field: "spec",
        remedy: remedies::MACHINE_CONFIG,
    })
}

/// The certificates that nodes trust beyond those of Windows.
fn ca_bundle(sources: &Sources, proxy: ProxyTrust<'_>) -> Result<Vec<u8>, NotReady> {
    let spec = controller_config(sources)?;
    let user = bundles(&spec.image_registry_bundle_user_data);
    Ok(ca_bundle::render(&user, &bundles(&spec.image_registry_bundle_data), proxy)?)
}

fn bundles(list: &[openshift::RegistryBundle]) -> Vec<RegistryBundle<'_>> {
    list.iter().map(|b| RegistryBundle { file: &b.file, data: &b.data.0 }).collect()
}
