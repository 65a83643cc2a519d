//! One pass's view of the cluster, taken from the caches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use kube::api::ObjectMeta;
use kube::runtime::reflector::{ObjectRef, Store};
use wmco_core::authorized_key::AuthorizedKey;
use wmco_core::cluster::{Revision, ServicesConfigMap};
use wmco_core::content::{ContentError, remedies};
use wmco_core::host_record::KnownHosts;
use wmco_core::names::{self, objects};
use wmco_core::protocol::ServicesData;
use wmco_core::render;
use wmco_core::secret::Secret as Hidden;
use wmco_csr::ClusterFacts;

use crate::openshift;
use crate::sources::Sources;
use crate::worker_pool::Current;

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
    let object = ObjectRef::new(objects::HOST_KEYS_CONFIG_MAP).within(namespace);
    let map = sources.config_maps.get(&object);
    KnownHosts::read(map.iter().flat_map(|map| map.data.iter().flatten()))
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

/// The keys that let people in to Machines that are made from now on.
pub fn user_data_keys(sources: &Sources) -> BTreeSet<AuthorizedKey> {
    let [of_machine_api, _] = &sources.user_data;
    let secret = only(&of_machine_api.secret);
    let bytes = secret.and_then(|it| it.data.as_ref()?.get(objects::USER_DATA_KEY).cloned());
    let text = bytes.and_then(|bytes| String::from_utf8(bytes.0).ok());
    text.map(|text| render::user_data_keys(&text)).unwrap_or_default()
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
    let found = only(&sources.infrastructure).and_then(|found| found.status.clone());
    found.ok_or_else(|| ContentError::Missing {
        object: format!("infrastructure {}", objects::CLUSTER),
        field: "status",
        remedy: remedies::INSTALLATION,
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
        remedy: remedies::MACHINE_CONFIG,
    })
}

/// The port of the hybrid overlay, if it is not the usual one.
pub fn vxlan_port(sources: &Sources) -> Option<u16> {
    let network = only(&sources.operator_network)?;
    network.spec.default_network.ovn_kubernetes_config.hybrid_overlay_config.vxlan_port
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
