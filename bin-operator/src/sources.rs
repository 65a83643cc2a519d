//! Caches of everything that decisions depend on, kept current by watches.
//!
//! Each cache is as narrow as its use: one namespace, one name, or one label.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Secret};
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleBinding};
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, CustomResourceExt, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wmco_core::cluster::monitoring::ServiceMonitor;
use wmco_core::cluster::rbac::BindingKind;
use wmco_core::limits;
use wmco_core::names::monitoring::EXPORTER;
use wmco_core::names::objects::{self, CLUSTER};
use wmco_core::registries::ImageReference;

use crate::kinds::{self, Optional};
use crate::machines::{self, MachineWatch};
use crate::nodes::{Heartbeats, Nodes, strip};
use crate::openshift::{
    ApiServer, ClusterVersion, ControllerConfig, ControllerConfigSpec, Infrastructure,
    MachineConfigPool, Network, OperatorNetwork, Proxy, ProxyStatus,
};
use crate::registries::{self, RegistryWatch};
use crate::server_version;
use crate::service_monitor;
use crate::worker_machine_config::{self, Current};

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
    /// What the cluster says of registries.
    pub registries: RegistryWatch,
    /// Where new machines get what they start with.
    pub user_data: [UserDataSource; 2],
    /// The operator's own namespace.
    pub own_namespace: Store<Namespace>,
    /// The namespace `kube-system`, which is as old as the cluster.
    pub kube_system: Store<Namespace>,
    /// Where Prometheus finds the exporters on nodes, where the cluster has the kind.
    pub service_monitor: Optional<ServiceMonitor>,
    /// The one Infrastructure, where the cluster has the kind, as of all those below.
    pub infrastructure: Optional<Value>,
    /// The one Network.
    pub network: Optional<Value>,
    /// How the networks are made.
    pub operator_network: Optional<Value>,
    /// The cluster's identity, and what people have to know of its installation.
    pub cluster_version: Optional<Value>,
    /// The one ControllerConfig.
    pub controller_config: Optional<Option<ControllerConfigSpec>>,
    /// The one Proxy: what is in force.
    pub proxy: Optional<Option<ProxyStatus>>,
    /// `spec` of the one APIServer.
    pub api_server: Optional<Value>,
    /// WICD's binding in our namespace.
    pub role_binding: Store<RoleBinding>,
    /// WICD's binding for the whole cluster.
    pub cluster_role_binding: Store<ClusterRoleBinding>,
    /// The cloud node manager's binding.
    pub cloud_node_manager: Store<ClusterRoleBinding>,
    /// The configuration of the Linux workers, once it was read.
    pub worker_config: watch::Receiver<Option<Current>>,
    /// Version of the API server, once it told.
    pub server_version: watch::Receiver<Option<String>>,
    /// The worker pool: name of its MachineConfig.
    pub pool: Optional<Option<String>>,
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
    /// Starts all watches, where each pod needs `pause_image`; they end with `stop`.
    pub fn watch(
        client: &Client,
        namespace: &str,
        pause_image: Option<ImageReference>,
        stop: &CancellationToken,
        tasks: &TaskTracker,
    ) -> Self {
        let (tell, changes) = watch::channel(0);
        let watches = Watches { changed: Arc::new(tell), stop, tasks };
        let by_name =
            |name: &str| watcher::Config::default().fields(&format!("metadata.name={name}"));
        let all = watcher::Config::default;
        let (pool, worker_config) = watches.worker_pool(client);
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
            registries: watches.registries(client, pause_image),
            user_data,
            own_namespace: watches.start(Api::all(client.clone()), by_name(namespace)),
            kube_system: watches
                .start(Api::all(client.clone()), by_name(objects::KUBE_SYSTEM_NAMESPACE)),
            service_monitor: watches.service_monitor(client, namespace),
            infrastructure: watches.optional::<Infrastructure, _>(client, CLUSTER, kinds::body),
            network: watches.optional::<Network, _>(client, CLUSTER, kinds::body),
            operator_network: watches.optional::<OperatorNetwork, _>(client, CLUSTER, kinds::body),
            cluster_version: watches.of_consequence::<ClusterVersion, _>(
                client,
                objects::CLUSTER_VERSION,
                ClusterVersion::watched,
            ),
            worker_config,
            server_version: watches.server_version(client),
            pool,
            controller_config: watches.optional::<ControllerConfig, _>(
                client,
                objects::CONTROLLER_CONFIG,
                ControllerConfigSpec::of,
            ),
            proxy: watches.optional::<Proxy, _>(client, CLUSTER, ProxyStatus::in_force),
            api_server: watches.optional::<ApiServer, _>(client, CLUSTER, |object| {
                object.get("spec").cloned().unwrap_or_default()
            }),
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

    /// Waits until every cache is known that a decision could go wrong without; for the machine config operator's
    /// objects it waits a while only.
    ///
    /// # Errors
    /// When a watch has ended for good.
    pub async fn ready(&self) -> Result<(), reflector::store::WriterDropped> {
        for (_, cache) in self.needed() {
            cache.await?;
        }
        let of_machine_config = async {
            self.pool.known().await;
            self.controller_config.known().await;
        };
        // Without them hosts get nothing, but certificates are approved.
        let _ =
            tokio::time::timeout(limits::UNKNOWN_PATIENCE.unsigned_abs(), of_machine_config).await;
        Ok(())
    }

    /// What [`ready`](Self::ready) still waits for.
    pub fn unknown(&self) -> Vec<&'static str> {
        let needed = self.needed().into_iter();
        needed.filter_map(|(name, cache)| cache.now_or_never().is_none().then_some(name)).collect()
    }

    /// Every cache to wait for, with its name.
    fn needed(&self) -> Vec<(&'static str, Filled<'_>)> {
        let [of_machine_api, of_cluster_api] = &self.user_data;
        vec![
            ("configmaps", self.config_maps.wait_until_ready().boxed()),
            ("secrets", self.secrets.wait_until_ready().boxed()),
            (
                "the secret of the kubelet's bootstrapper",
                self.bootstrapper.wait_until_ready().boxed(),
            ),
            ("nodes", self.nodes.store().wait_until_ready().boxed()),
            ("machines and machinesets", known(self.machines.known())),
            ("the namespace of the Machine API", of_machine_api.exists.wait_until_ready().boxed()),
            ("its user data", of_machine_api.secret.wait_until_ready().boxed()),
            ("the namespace of the Cluster API", of_cluster_api.exists.wait_until_ready().boxed()),
            ("its user data", of_cluster_api.secret.wait_until_ready().boxed()),
            ("the operator's own namespace", self.own_namespace.wait_until_ready().boxed()),
            ("namespace kube-system", self.kube_system.wait_until_ready().boxed()),
            ("infrastructures.config.openshift.io", known(self.infrastructure.known())),
            ("networks.config.openshift.io", known(self.network.known())),
            ("networks.operator.openshift.io", known(self.operator_network.known())),
            ("proxies.config.openshift.io", known(self.proxy.known())),
            ("apiservers.config.openshift.io", known(self.api_server.known())),
            ("the daemon's rolebinding", self.role_binding.wait_until_ready().boxed()),
            ("its clusterrolebinding", self.cluster_role_binding.wait_until_ready().boxed()),
            ("the cloud node manager's", self.cloud_node_manager.wait_until_ready().boxed()),
        ]
    }
}

/// Ends when a cache was filled once.
type Filled<'a> = BoxFuture<'a, Result<(), reflector::store::WriterDropped>>;

fn known<'a>(wait: impl Future<Output = ()> + Send + 'a) -> Filled<'a> {
    wait.map(Ok).boxed()
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

    /// The object `name` of a kind that the cluster may lack.
    fn optional<K, F>(&self, client: &Client, name: &str, read: fn(&Value) -> F) -> Optional<F>
    where
        K: CustomResourceExt + Resource<DynamicType = ()>,
        F: Clone + PartialEq + Send + Sync + 'static,
    {
        let watch = Optional::unknown();
        kinds::watch_one::<K, F>(watch, client, name, read, self.tell(), (self.stop, self.tasks))
    }

    /// The same where one answer that the kind is missing is not enough.
    fn of_consequence<K, F>(
        &self,
        client: &Client,
        name: &str,
        read: fn(&Value) -> F,
    ) -> Optional<F>
    where
        K: CustomResourceExt + Resource<DynamicType = ()>,
        F: Clone + PartialEq + Send + Sync + 'static,
    {
        let watch = Optional::of_consequence();
        kinds::watch_one::<K, F>(watch, client, name, read, self.tell(), (self.stop, self.tasks))
    }

    /// Counts a change.
    fn tell(&self) -> impl Fn() + Clone + Send + Sync + use<> {
        let changed = Arc::clone(&self.changed);
        move || changed.send_modify(|count| *count += 1)
    }

    fn server_version(&self, client: &Client) -> watch::Receiver<Option<String>> {
        let (version, receiver) = watch::channel(None);
        let following = server_version::follow(client.clone(), version, self.tell());
        let stop = self.stop.clone();
        self.tasks.spawn(async move { stop.run_until_cancelled(following).await });
        receiver
    }

    fn service_monitor(&self, client: &Client, namespace: &str) -> Optional<ServiceMonitor> {
        let (api, read) = (service_monitor::api(client, namespace), service_monitor::read);
        kinds::watch_named(
            Optional::unknown(),
            api,
            EXPORTER,
            read,
            self.tell(),
            (self.stop, self.tasks),
        )
    }

    fn machines(&self, client: &Client) -> MachineWatch {
        machines::watch(client, self.tell(), self.stop, self.tasks)
    }

    fn registries(&self, client: &Client, pause_image: Option<ImageReference>) -> RegistryWatch {
        registries::watch(client, pause_image, self.tell(), self.stop, self.tasks)
    }

    /// The worker pool, and what the MachineConfig says that it names.
    fn worker_pool(
        &self,
        client: &Client,
    ) -> (Optional<Option<String>>, watch::Receiver<Option<Current>>) {
        let (current, receiver) = watch::channel(None);
        let (tell_name, renames) = watch::channel(());
        let tell = self.tell();
        let pool = kinds::watch_one::<MachineConfigPool, _>(
            Optional::unknown(),
            client,
            objects::WORKER_POOL,
            MachineConfigPool::configuration,
            move || {
                tell_name.send_replace(());
                tell();
            },
            (self.stop, self.tasks),
        );
        let followed = pool.clone();
        let name = move || followed.get().flatten();
        self.tasks.spawn(worker_machine_config::follow(
            client.clone(),
            name,
            renames,
            current,
            self.tell(),
        ));
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
