//! Caches of everything that decisions depend on, kept current by watches.
//!
//! Each cache is as narrow as its use: one namespace, one name, or one label.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Secret};
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleBinding};
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wmco_core::cluster::rbac::BindingKind;
use wmco_core::names::objects;

use crate::machines::MachineWatch;
use crate::nodes::{Heartbeats, Nodes, strip};
use crate::openshift::{
    ControllerConfig, Infrastructure, MachineConfigPool, Network, OperatorNetwork,
};
use crate::worker_pool::{self, Current};

/// All caches.
#[derive(Clone)]
pub struct Sources {
    /// ConfigMaps of our namespace.
    pub config_maps: Store<ConfigMap>,
    /// Secrets of our namespace.
    pub secrets: Store<Secret>,
    /// The kubelet's bootstrap credentials.
    pub bootstrapper: Store<Secret>,
    /// All Nodes: anybody may take a label off, and addresses are compared across all.
    pub nodes: Nodes,
    /// Machines and MachineSets, where the cluster has them.
    pub machines: MachineWatch,
    /// Where new machines get what they start with.
    pub user_data: [UserDataSource; 2],
    /// The one Infrastructure.
    pub infrastructure: Store<Infrastructure>,
    /// The one Network.
    pub network: Store<Network>,
    /// How the networks are made.
    pub operator_network: Store<OperatorNetwork>,
    /// The one ControllerConfig.
    pub controller_config: Store<ControllerConfig>,
    /// WICD's binding in our namespace.
    pub role_binding: Store<RoleBinding>,
    /// WICD's binding for the whole cluster.
    pub cluster_role_binding: Store<ClusterRoleBinding>,
    /// The cloud node manager's binding.
    pub cloud_node_manager: Store<ClusterRoleBinding>,
    /// The configuration of the Linux workers, once it was read.
    pub worker_config: watch::Receiver<Option<Current>>,
    pool: Store<MachineConfigPool>,
    /// Counts changes of any cache.
    pub changes: watch::Receiver<u64>,
}

/// A namespace whose machines start with user data.
#[derive(Clone)]
pub struct UserDataSource {
    /// Its name.
    pub namespace: &'static str,
    /// The namespace itself, if it exists.
    pub exists: Store<Namespace>,
    /// The Secret with user data in it.
    pub secret: Store<Secret>,
}

impl Sources {
    /// Starts all watches; they end with `stop`.
    pub fn watch(
        client: &Client,
        namespace: &str,
        stop: &CancellationToken,
        tasks: &TaskTracker,
    ) -> Self {
        let (tell, changes) = watch::channel(0);
        let watches = Watches { changed: Arc::new(tell), stop, tasks };
        let by_name =
            |name: &str| watcher::Config::default().fields(&format!("metadata.name={name}"));
        let all = watcher::Config::default;
        let (pool, worker_config) = watches.worker_pool(client, by_name(objects::WORKER_POOL));
        let user_data = [objects::MACHINE_API_NAMESPACE, objects::CLUSTER_API_NAMESPACE];
        let user_data = user_data.map(|namespace| UserDataSource {
            namespace,
            exists: watches.start(Api::all(client.clone()), by_name(namespace)),
            secret: watches.start(
                Api::namespaced(client.clone(), namespace),
                by_name(objects::USER_DATA_SECRET),
            ),
        });
        let bootstrapper = Api::namespaced(client.clone(), objects::BOOTSTRAPPER_NAMESPACE);
        Self {
            config_maps: watches.start(Api::namespaced(client.clone(), namespace), all()),
            secrets: watches.start(Api::namespaced(client.clone(), namespace), all()),
            bootstrapper: watches.start(bootstrapper, by_name(objects::BOOTSTRAPPER_SECRET)),
            nodes: watches.nodes(Api::all(client.clone())),
            machines: watches.machines(client),
            user_data,
            infrastructure: watches.start(Api::all(client.clone()), by_name(objects::CLUSTER)),
            network: watches.start(Api::all(client.clone()), by_name(objects::CLUSTER)),
            operator_network: watches.start(Api::all(client.clone()), by_name(objects::CLUSTER)),
            worker_config,
            pool,
            controller_config: watches
                .start(Api::all(client.clone()), by_name(objects::CONTROLLER_CONFIG)),
            role_binding: watches.start(
                Api::namespaced(client.clone(), namespace),
                by_name(BindingKind::RoleBinding.name()),
            ),
            cluster_role_binding: watches
                .start(Api::all(client.clone()), by_name(BindingKind::ClusterRoleBinding.name())),
            cloud_node_manager: watches
                .start(Api::all(client.clone()), by_name(BindingKind::CloudNodeManager.name())),
            changes,
        }
    }

    /// Waits until every cache has been filled once.
    ///
    /// # Errors
    /// When a watch has ended for good.
    pub async fn ready(&self) -> Result<(), reflector::store::WriterDropped> {
        self.config_maps.wait_until_ready().await?;
        self.secrets.wait_until_ready().await?;
        self.bootstrapper.wait_until_ready().await?;
        self.nodes.store().wait_until_ready().await?;
        self.machines.known().await;
        for source in &self.user_data {
            source.exists.wait_until_ready().await?;
            source.secret.wait_until_ready().await?;
        }
        self.infrastructure.wait_until_ready().await?;
        self.network.wait_until_ready().await?;
        self.operator_network.wait_until_ready().await?;
        self.pool.wait_until_ready().await?;
        self.controller_config.wait_until_ready().await?;
        self.role_binding.wait_until_ready().await?;
        self.cluster_role_binding.wait_until_ready().await?;
        self.cloud_node_manager.wait_until_ready().await
    }
}

struct Watches<'a> {
    changed: Arc<watch::Sender<u64>>,
    stop: &'a CancellationToken,
    tasks: &'a TaskTracker,
}

impl Watches<'_> {
    fn start<K>(&self, api: Api<K>, config: watcher::Config) -> Store<K>
    where
        K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: Clone + Default + Debug + Eq + Hash + Send + Sync,
    {
        let changed = Arc::clone(&self.changed);
        self.start_and_tell(api, config, move |_, _| changed.send_modify(|count| *count += 1))
    }

    /// All Nodes, without what nobody looks at.
    fn nodes(&self, api: Api<Node>) -> Nodes {
        let changed = Arc::clone(&self.changed);
        let (newest, seen) = watch::channel(0);
        let mut heartbeats = Heartbeats::default();
        let store = self.start_stripped(api, watcher::Config::default(), strip, move |_, event| {
            if let watcher::Event::Apply(node)
            | watcher::Event::InitApply(node)
            | watcher::Event::Delete(node) = event
            {
                let version = node.resource_version().and_then(|v| v.parse().ok());
                newest.send_if_modified(|newest| {
                    let newer = version.filter(|version| *version > *newest);
                    *newest = newer.unwrap_or(*newest);
                    newer.is_some()
                });
            }
            if heartbeats.changes(event) {
                changed.send_modify(|count| *count += 1);
            }
        });
        Nodes::new(store, seen)
    }

    fn machines(&self, client: &Client) -> MachineWatch {
        let changed = Arc::clone(&self.changed);
        let tell = move || changed.send_modify(|count| *count += 1);
        MachineWatch::start(client, tell, self.stop, self.tasks)
    }

    /// The worker pool, and what the MachineConfig says that it names.
    fn worker_pool(
        &self,
        client: &Client,
        config: watcher::Config,
    ) -> (Store<MachineConfigPool>, watch::Receiver<Option<Current>>) {
        let (name, names) = watch::channel(None);
        let (current, receiver) = watch::channel(None);
        let pool = self.start_and_tell(
            Api::all(client.clone()),
            config,
            move |store: &Store<MachineConfigPool>, _| {
                let found = store.state().into_iter().next();
                let found =
                    found.and_then(|pool| Some(pool.status.as_ref()?.configuration.name.clone()));
                let found = found.filter(|name| !name.is_empty());
                name.send_if_modified(|name| {
                    let differs = found.is_some() && *name != found;
                    if differs {
                        *name = found;
                    }
                    differs
                });
            },
        );
        let changed = Arc::clone(&self.changed);
        let tell = move || changed.send_modify(|count| *count += 1);
        self.tasks.spawn(worker_pool::follow(client.clone(), names, current, tell));
        (pool, receiver)
    }

    /// Tells of every event but those of a list that has only begun.
    fn start_and_tell<K>(
        &self,
        api: Api<K>,
        config: watcher::Config,
        mut tell: impl FnMut(&Store<K>, &watcher::Event<K>) + Send + 'static,
    ) -> Store<K>
    where
        K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: Clone + Default + Debug + Eq + Hash + Send + Sync,
    {
        self.start_stripped(
            api,
            config,
            |_| {},
            move |store, event| match event {
                watcher::Event::Init | watcher::Event::InitApply(_) => {}
                watcher::Event::Apply(_) | watcher::Event::Delete(_) | watcher::Event::InitDone => {
                    tell(store, event);
                }
            },
        )
    }

    fn start_stripped<K>(
        &self,
        api: Api<K>,
        config: watcher::Config,
        strip: impl FnMut(&mut K) + Send + 'static,
        mut tell: impl FnMut(&Store<K>, &watcher::Event<K>) + Send + 'static,
    ) -> Store<K>
    where
        K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: Clone + Default + Debug + Eq + Hash + Send + Sync,
    {
        let (store, writer) = reflector::store();
        let filled = store.clone();
        let kind = std::any::type_name::<K>().rsplit("::").next().unwrap_or("object");
        let stream = watcher(api, config).default_backoff().modify(strip).reflect(writer);
        let stream = stream.take_until(self.stop.clone().cancelled_owned());
        self.tasks.spawn(async move {
            let mut stream = std::pin::pin!(stream);
            while let Some(event) = stream.next().await {
                match event {
                    Ok(event) => tell(&filled, &event),
                    Err(error) => tracing::warn!(kind, %error, "watch failed, trying again"),
                }
            }
        });
        store
    }
}
