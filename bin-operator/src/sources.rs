//! Caches of everything that decisions depend on, kept current by watches.
//!
//! Each cache is as narrow as its use: one namespace, one name, or one label.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wmco_core::names::{self, objects};

use crate::openshift::{ControllerConfig, Infrastructure, Network};

/// All caches.
#[derive(Clone)]
pub struct Sources {
    /// ConfigMaps of our namespace.
    pub config_maps: Store<ConfigMap>,
    /// Secrets of our namespace.
    pub secrets: Store<Secret>,
    /// The kubelet's bootstrap credentials.
    pub bootstrapper: Store<Secret>,
    /// Windows nodes.
    pub nodes: Store<Node>,
    /// The one Infrastructure.
    pub infrastructure: Store<Infrastructure>,
    /// The one Network.
    pub network: Store<Network>,
    /// The one ControllerConfig.
    pub controller_config: Store<ControllerConfig>,
    /// Counts changes of any cache.
    pub changes: watch::Receiver<u64>,
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
        let windows = watcher::Config::default().labels(&format!(
            "{}={}",
            names::OS_LABEL,
            names::OS_WINDOWS
        ));
        let all = watcher::Config::default;
        let bootstrapper = Api::namespaced(client.clone(), objects::BOOTSTRAPPER_NAMESPACE);
        Self {
            config_maps: watches.start(Api::namespaced(client.clone(), namespace), all()),
            secrets: watches.start(Api::namespaced(client.clone(), namespace), all()),
            bootstrapper: watches.start(bootstrapper, by_name(objects::BOOTSTRAPPER_SECRET)),
            nodes: watches.start(Api::all(client.clone()), windows),
            infrastructure: watches.start(Api::all(client.clone()), by_name(objects::CLUSTER)),
            network: watches.start(Api::all(client.clone()), by_name(objects::CLUSTER)),
            controller_config: watches
                .start(Api::all(client.clone()), by_name(objects::CONTROLLER_CONFIG)),
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
        self.nodes.wait_until_ready().await?;
        self.infrastructure.wait_until_ready().await?;
        self.network.wait_until_ready().await?;
        self.controller_config.wait_until_ready().await
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
        let (store, writer) = reflector::store();
        let changed = Arc::clone(&self.changed);
        let kind = std::any::type_name::<K>().rsplit("::").next().unwrap_or("object");
        let stream = watcher(api, config).default_backoff().reflect(writer);
        let stream = stream.take_until(self.stop.clone().cancelled_owned());
        self.tasks.spawn(async move {
            let mut stream = std::pin::pin!(stream);
            while let Some(event) = stream.next().await {
                match event {
                    Ok(watcher::Event::Init | watcher::Event::InitApply(_)) => {}
                    Ok(_) => changed.send_modify(|count| *count += 1),
                    Err(error) => tracing::warn!(kind, %error, "watch failed, trying again"),
                }
            }
        });
        store
    }
}
