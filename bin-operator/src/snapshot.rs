//! One pass's view of the cluster, taken from the caches.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use kube::api::ObjectMeta;
use kube::runtime::reflector::{ObjectRef, Store};
use wmco_core::ca_bundle::{self, CaBundleError, Proxy, RegistryBundle};
use wmco_core::cluster::{Revision, ServicesConfigMap};
use wmco_core::content::{ContentError, HostContent, Inputs};
use wmco_core::host_record::KnownHosts;
use wmco_core::limits;
use wmco_core::names::{self, objects};
use wmco_core::protocol::ServicesData;
use wmco_core::render::{KubeconfigError, ServiceNetwork, ServiceNetworkError, TokenSecret};
use wmco_core::secret::Secret as Hidden;
use wmco_core::worker_config::WorkerConfigError;
use wmco_csr::ClusterFacts;

use crate::config::Config;
use crate::instance::NodeSeen;
use crate::openshift;
use crate::payload::Payload;
use crate::sources::Sources;
use crate::worker_pool::Current;

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
    Services(#[from] crate::manifest::ManifestError),
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

/// The list of instances as people wrote it.
#[derive(Clone, Debug, Default)]
pub struct InstanceList {
    /// Address to value.
    pub data: BTreeMap<String, String>,
    /// How many removals were confirmed; a text that is no number confirms none.
    pub confirmed: Option<usize>,
}

/// The list of instances; `None` while its ConfigMap is absent.
pub fn instance_list(sources: &Sources, namespace: &str) -> Option<InstanceList> {
    let object = ObjectRef::new(objects::INSTANCES_CONFIG_MAP).within(namespace);
    Some(InstanceList::from(sources.config_maps.get(&object)?.as_ref()))
}

impl From<&ConfigMap> for InstanceList {
    fn from(map: &ConfigMap) -> Self {
        let confirmed = map.annotations().get(names::CONFIRM_REMOVAL_ANNOTATION);
        Self {
            data: map.data.clone().unwrap_or_default(),
            confirmed: confirmed.and_then(|text| text.trim().parse().ok()),
        }
    }
}

/// Pinned keys and records of hosts.
pub fn known_hosts(sources: &Sources, namespace: &str) -> KnownHosts {
    let data = data(&sources.config_maps, namespace, objects::HOST_KEYS_CONFIG_MAP);
    KnownHosts::read(data.unwrap_or_default())
}

/// The SSH private key in PEM, if there is one.
pub fn private_key(sources: &Sources, namespace: &str) -> Option<Hidden> {
    let secret = secret(&sources.secrets, namespace, objects::PRIVATE_KEY_SECRET)?;
    let bytes = secret.data.as_ref()?.get(objects::PRIVATE_KEY_KEY)?;
    Some(Hidden::new(bytes.0.clone()))
}

/// The Secret with WICD's token, whatever is in it.
pub fn token_secret(sources: &Sources, namespace: &str) -> Option<Arc<Secret>> {
    secret(&sources.secrets, namespace, objects::WICD)
}

/// All Nodes.
pub fn nodes(sources: &Sources) -> Vec<NodeSeen> {
    let seen = |node: Arc<k8s_openapi::api::core::v1::Node>| NodeSeen {
        resource_version: node.resource_version().and_then(|v| v.parse().ok()).unwrap_or_default(),
        facts: node.as_ref().into(),
    };
    sources.nodes.state().into_iter().map(seen).collect()
}

/// Every services ConfigMap, by name.
pub fn services(sources: &Sources) -> BTreeMap<String, ServicesConfigMap> {
    services_among(&sources.config_maps.state())
}

/// Every services ConfigMap in `maps`, by name.
pub fn services_among(maps: &[Arc<ConfigMap>]) -> BTreeMap<String, ServicesConfigMap> {
    let ours =
        |map: &&Arc<ConfigMap>| map.name_any().starts_with(objects::SERVICES_CONFIG_MAP_PREFIX);
    let entry = |map: &Arc<ConfigMap>| {
        let found = ServicesConfigMap {
            data: ServicesData(map.data.clone().unwrap_or_default()),
            immutable: map.immutable.unwrap_or_default(),
            revision: revision(&map.metadata),
        };
        (map.name_any(), found)
    };
    maps.iter().filter(ours).map(entry).collect()
}

/// Which state of an object this is.
pub fn revision(metadata: &ObjectMeta) -> Revision {
    let (uid, resource_version) = (metadata.uid.clone(), metadata.resource_version.clone());
    Revision { uid, resource_version }
}

/// What the cluster's installer wrote down about it.
///
/// # Errors
/// [`ContentError::Missing`] before it did.
pub fn infrastructure(sources: &Sources) -> Result<openshift::InfrastructureStatus, ContentError> {
    let found = only(&sources.infrastructure).and_then(|found| found.status.clone());
    found.ok_or_else(|| ContentError::Missing {
        object: format!("infrastructure {}", objects::CLUSTER),
        field: "status",
        remedy: "wait until the cluster is installed",
    })
}

/// What the cluster says of itself that decisions about certificates need.
pub fn cluster_facts(sources: &Sources) -> ClusterFacts {
    let status = only(&sources.infrastructure).and_then(|found| found.status.clone());
    let network = only(&sources.network);
    openshift::cluster_facts(status.as_ref(), network.as_ref().map(|network| &network.spec))
}

/// The configuration of the Linux workers; the inner error tells what is wrong in it.
///
/// # Errors
/// [`ContentError::Missing`] before one was rendered.
pub fn worker_config(sources: &Sources) -> Result<Current, ContentError> {
    sources.worker_config.borrow().clone().ok_or_else(|| ContentError::Missing {
        object: format!("machineconfigpool {}", objects::WORKER_POOL),
        field: "status.configuration.name",
        remedy: "wait for the machine config operator",
    })
}

/// The port of the hybrid overlay, if it is not the usual one.
pub fn vxlan_port(sources: &Sources) -> Option<u16> {
    let network = only(&sources.operator_network)?;
    network.spec.default_network.ovn_kubernetes_config.hybrid_overlay_config.vxlan_port
}

/// What every configured host has.
///
/// # Errors
/// [`NotReady`] while the cluster lacks something that hosts need.
pub fn content(
    sources: &Sources,
    config: &Config,
    payload: &Payload,
) -> Result<HostContent, NotReady> {
    let missing = |object: String, field, remedy| ContentError::Missing { object, field, remedy };
    let status = infrastructure(sources)?;
    let network = only(&sources.network).ok_or_else(|| {
        let object = format!("network {}", objects::CLUSTER);
        missing(object, "spec.serviceNetwork", "wait until the cluster is installed")
    })?;
    let controller = only(&sources.controller_config).ok_or_else(|| {
        let object = format!("controllerconfig {}", objects::CONTROLLER_CONFIG);
        missing(object, "spec", "wait for the machine config operator")
    })?;
    let secret_data = |store: &Store<Secret>, namespace: &str, name: &'static str| {
        let found = secret(store, namespace, name).and_then(|secret| secret.data.clone());
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
    let trusted = data(&sources.config_maps, namespace, objects::TRUSTED_CA_CONFIG_MAP);
    let proxy = if config.proxy.is_enabled() { Proxy::On(trusted.as_ref()) } else { Proxy::Off };
    let worker = worker_config(sources)??;
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

fn data(store: &Store<ConfigMap>, namespace: &str, name: &str) -> Option<BTreeMap<String, String>> {
    store.get(&ObjectRef::new(name).within(namespace)).and_then(|map| map.data.clone())
}

fn secret(store: &Store<Secret>, namespace: &str, name: &str) -> Option<Arc<Secret>> {
    store.get(&ObjectRef::new(name).within(namespace))
}

/// The one object of a cache that watches one name.
pub fn only<K>(store: &Store<K>) -> Option<Arc<K>>
where
    K: kube::Resource<DynamicType = ()> + Clone + 'static,
{
    store.state().into_iter().next()
}

fn bundles(list: &[openshift::RegistryBundle]) -> Vec<RegistryBundle<'_>> {
    list.iter().map(|b| RegistryBundle { file: &b.file, data: &b.data.0 }).collect()
}
