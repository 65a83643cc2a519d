//! What wakes a pass, in the cluster and on the host.

use std::sync::Arc;

use futures::{Stream, StreamExt as _, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::core::PartialObjectMeta;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use wmco_core::names::objects;
use wmco_services::daemon::{self, Glance};
use wmco_services::limits;
use wmco_services::windows::Windows;

/// An item for every change of what a pass reads from the Node, and of services ConfigMaps.
///
/// Source: `spec/wicd.md`, section 8.2.
pub(super) fn in_cluster(
    client: &Client,
    namespace: &str,
    node: &str,
) -> impl Stream<Item = ()> + use<> {
    let nodes: Api<Node> = Api::all(client.clone());
    let own = watcher::Config::default().fields(&format!("metadata.name={node}"));
    let nodes = watcher(nodes, own)
        .default_backoff()
        .touched_objects()
        .filter_map(async |node| node.ok().map(|node| daemon::concern(&json!(node))))
        .scan(None, |last, now| {
            let changed = last.as_ref() != Some(&now);
            *last = Some(now);
            std::future::ready(Some(changed))
        })
        .filter(|changed| std::future::ready(*changed))
        .map(drop);
    // Others in the namespace may be big, so only their names come over.
    let maps: Api<PartialObjectMeta<ConfigMap>> = Api::namespaced(client.clone(), namespace);
    let maps = watcher(maps, watcher::Config::default())
        .default_backoff()
        .touched_objects()
        .filter_map(async |map| is_manifest(&map.ok()?.name_any()).then_some(()));
    stream::select(nodes, maps)
}

fn is_manifest(name: &str) -> bool {
    name.starts_with(objects::SERVICES_CONFIG_MAP_PREFIX)
}

/// Ends when the services are not as they were `seen` any more; never without anything to compare.
pub(super) async fn in_services(host: &Arc<dyn Windows>, seen: Option<Glance>) {
    let Some(seen) = seen else { return std::future::pending().await };
    loop {
        tokio::time::sleep(limits::DAEMON_GLANCE.unsigned_abs()).await;
        let services = Arc::clone(host);
        match tokio::task::spawn_blocking(move || services.services().glance()).await {
            Ok(Ok(now)) if seen.again(&now) != seen => return,
            Ok(Ok(_)) => {}
            // The next pass tells people, if it cannot list them either.
            Ok(Err(error)) => tracing::debug!(%error, "cannot glance at the services"),
            Err(error) => tracing::debug!(%error, "a glance at the services broke down"),
        }
    }
}
