//! One pass's view of the cluster, taken from the caches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use kube::api::ObjectMeta;
use kube::runtime::reflector::{ObjectRef, Store};
use serde::de::DeserializeOwned;
use serde_json::Value;
use wmco_core::authorized_key::AuthorizedKey;
use wmco_core::cluster::{Revision, ServicesConfigMap};
use wmco_core::cluster_identity::ClusterIdentity;
use wmco_core::content::{ContentError, remedies};
use wmco_core::host_record::KnownHosts;
use wmco_core::names::{self, objects};
use wmco_core::preflight::Seen;
use wmco_core::protocol::ServicesData;
use wmco_core::proxy::{ProxyError, ProxySettings};
use wmco_core::render;
use wmco_core::secret::Secret as Hidden;
use wmco_csr::ClusterFacts;
use wmco_ssh::PrivateKey;

use crate::config::Config;
use crate::keys::KeySecret;
use crate::kinds::Optional;
use crate::openshift;
use crate::sources::Sources;
use crate::worker_machine_config::Current;

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

/// Which cluster this is, and whose hosts people let it take.
///
/// # Errors
/// [`ContentError::Missing`] while nothing tells: then nobody knows which hosts are this cluster's.
pub fn cluster(sources: &Sources, namespace: &str) -> Result<ClusterIdentity, ContentError> {
    let id = match sources.cluster_version.seen() {
        Seen::Object(version) => {
            version.pointer("/spec/clusterID").and_then(Value::as_str).map(str::to_owned)
        }
        Seen::KindMissing => only(&sources.kube_system).and_then(|it| it.metadata.uid.clone()),
        Seen::Unknown | Seen::ObjectMissing => None,
    };
    let id = id.filter(|id| !id.is_empty()).ok_or_else(|| ContentError::Missing {
        object: format!("clusterversion {}", objects::CLUSTER_VERSION),
        field: "spec.clusterID",
        remedy: remedies::INSTALLATION,
    })?;
    let list = ObjectRef::new(objects::INSTANCES_CONFIG_MAP).within(namespace);
    let list = sources.config_maps.get(&list);
    let allowed = list.as_ref().and_then(|it| it.annotations().get(names::TAKE_OVER_ANNOTATION));
    let takes_hosts_of = allowed.map(|text| ClusterIdentity::listed(text)).unwrap_or_default();
    Ok(ClusterIdentity { id, takes_hosts_of })
}

/// Pinned keys and records of hosts.
pub fn known_hosts(sources: &Sources, namespace: &str) -> KnownHosts {
    let object = ObjectRef::new(objects::HOST_KEYS_CONFIG_MAP).within(namespace);
    let map = sources.config_maps.get(&object);
    KnownHosts::read(map.iter().flat_map(|map| map.data.iter().flatten()))
}

/// The Secret of private keys, if it is there.
pub fn key_secret(sources: &Sources, namespace: &str) -> Option<KeySecret> {
    secret(&sources.secrets, namespace, objects::PRIVATE_KEY_SECRET)?;
    let (current, next) = (private_key(sources, namespace), next_private_key(sources, namespace));
    Some(KeySecret { current, next })
}

/// The SSH private key in PEM, if there is one.
pub fn private_key(sources: &Sources, namespace: &str) -> Option<Hidden> {
    private_key_at(sources, namespace, objects::PRIVATE_KEY_KEY)
}

/// While keys are exchanged, the SSH private key that comes next.
pub fn next_private_key(sources: &Sources, namespace: &str) -> Option<Hidden> {
    private_key_at(sources, namespace, objects::NEXT_PRIVATE_KEY_KEY)
}

fn private_key_at(sources: &Sources, namespace: &str, key: &str) -> Option<Hidden> {
    let secret = secret(&sources.secrets, namespace, objects::PRIVATE_KEY_SECRET)?;
    Some(Hidden::new(secret.data.as_ref()?.get(key)?.0.clone()))
}

/// The version of the user data of new Machines, if these keys let in with them.
pub fn right_user_data<'a>(
    sources: &Sources,
    keys: impl IntoIterator<Item = &'a PrivateKey>,
) -> Option<String> {
    let [of_machine_api, _] = &sources.user_data;
    let secret = only(&of_machine_api.secret)?;
    user_data_lets_in(&secret, keys).then(|| secret.resource_version())?
}

/// Whether a Machine with the user data of `secret` lets each of these keys in.
pub fn user_data_lets_in<'a>(
    secret: &Secret,
    keys: impl IntoIterator<Item = &'a PrivateKey>,
) -> bool {
    let data = secret.data.as_ref().and_then(|data| data.get(objects::USER_DATA_KEY));
    let text = data.and_then(|bytes| std::str::from_utf8(&bytes.0).ok());
    let there = text.map(render::user_data_keys).unwrap_or_default();
    keys.into_iter().all(|key| {
        let public = AuthorizedKey::try_from(key.public());
        public.is_ok_and(|public| there.contains(&public))
    })
}

/// The Secret with WICD's token, whatever is in it.
pub fn token_secret(sources: &Sources, namespace: &str) -> Option<Arc<Secret>> {
    secret(&sources.secrets, namespace, objects::WICD)
}

/// Versions that Nodes run, or are to.
pub fn node_versions(sources: &Sources) -> BTreeSet<String> {
    let marks = [names::VERSION_ANNOTATION, names::DESIRED_VERSION_ANNOTATION];
    let nodes = sources.nodes.state();
    let versions = nodes.iter().flat_map(|node| marks.map(|mark| node.annotations().get(mark)));
    versions.flatten().cloned().collect()
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
    part(&sources.infrastructure, "status").ok_or_else(|| ContentError::Missing {
        object: format!("infrastructure {}", objects::CLUSTER),
        field: "status",
        remedy: remedies::INSTALLATION,
    })
}

/// Facts about the cluster that decisions about certificates need.
pub fn cluster_facts(sources: &Sources) -> ClusterFacts {
    let status = part(&sources.infrastructure, "status");
    let network = part(&sources.network, "spec");
    openshift::cluster_facts(status.as_ref(), network.as_ref())
}

/// The configuration of the Linux workers; the inner error names a problem in it.
///
/// # Errors
/// [`ContentError::Missing`] before one was rendered.
pub fn worker_config(sources: &Sources) -> Result<Current, ContentError> {
    sources.worker_config.borrow().clone().ok_or_else(|| ContentError::Missing {
        object: format!("machineconfigpool {}", objects::WORKER_POOL),
        field: "status.configuration.name",
        remedy: remedies::MACHINE_CONFIG,
    })
}

/// The cluster's networks.
///
/// # Errors
/// [`ContentError::Missing`] before they are known.
pub fn network(sources: &Sources) -> Result<openshift::NetworkSpec, ContentError> {
    part(&sources.network, "spec").ok_or_else(|| ContentError::Missing {
        object: format!("network {}", objects::CLUSTER),
        field: "spec.serviceNetwork",
        remedy: remedies::INSTALLATION,
    })
}

/// The port of the hybrid overlay, if it is not the usual one.
///
/// # Errors
/// [`ContentError::Missing`] while nothing says how the overlay is configured: nodes that run keep the port they have.
pub fn vxlan_port(sources: &Sources) -> Result<Option<u16>, ContentError> {
    const OVERLAY: &str = "/defaultNetwork/ovnKubernetesConfig/hybridOverlayConfig";
    let missing = || ContentError::Missing {
        object: format!("network.operator {}", objects::CLUSTER),
        field: "spec.defaultNetwork.ovnKubernetesConfig.hybridOverlayConfig that can be read",
        remedy: "see the findings of `wmco-operator check cluster`",
    };
    let spec = sources.operator_network.get().and_then(|object| object.get("spec").cloned());
    let spec = spec.filter(|spec| spec.pointer(OVERLAY).is_some_and(Value::is_object));
    let spec: openshift::OperatorNetworkSpec =
        serde_json::from_value(spec.ok_or_else(missing)?).map_err(|_| missing())?;
    Ok(spec.default_network.ovn_kubernetes_config.hybrid_overlay_config.vxlan_port)
}

/// A part of the one object of a kind; `None` if it is not there or makes no sense.
fn part<T: DeserializeOwned>(object: &Optional<Value>, part: &str) -> Option<T> {
    serde_json::from_value(object.get()?.get(part)?.clone()).ok()
}

/// The proxy that nodes use.
///
/// # Errors
/// [`ProxyError`] while the cluster's makes no sense.
pub fn proxy(sources: &Sources, config: &Config) -> Result<ProxySettings, ProxyError> {
    let found = sources.proxy.get();
    openshift::proxy_settings(&config.proxy, found.as_ref().map(Option::as_ref))
}

/// Data of one ConfigMap.
pub fn data(
    store: &Store<ConfigMap>,
    namespace: &str,
    name: &str,
) -> Option<BTreeMap<String, String>> {
    store.get(&ObjectRef::new(name).within(namespace)).and_then(|map| map.data.clone())
}

/// One Secret.
pub fn secret(store: &Store<Secret>, namespace: &str, name: &str) -> Option<Arc<Secret>> {
    store.get(&ObjectRef::new(name).within(namespace))
}

/// The one object of a cache that watches one name.
pub fn only<K>(store: &Store<K>) -> Option<Arc<K>>
where
    K: kube::Resource<DynamicType = ()> + Clone + 'static,
{
    store.state().into_iter().next()
}
