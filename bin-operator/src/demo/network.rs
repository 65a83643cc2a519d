//! The one thing that Windows nodes need of the cluster network operator: their pod subnet.

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use wmco_core::names;

/// Gives each new Windows node a subnet, for as long as it is polled.
pub async fn assign_subnets(client: Client) {
    let nodes: Api<Node> = Api::all(client);
    let windows =
        watcher::Config::default().labels(&format!("{}={}", names::OS_LABEL, names::OS_WINDOWS));
    let mut seen =
        std::pin::pin!(watcher(nodes.clone(), windows).default_backoff().applied_objects());
    let mut next = 0_u8;
    while let Some(node) = seen.next().await {
        let Ok(node) = node else { continue };
        if node.annotations().contains_key(names::SUBNET_ANNOTATION) {
            continue;
        }
        let subnet = format!("10.132.{next}.0/24");
        next = next.wrapping_add(1);
        // What was seen may be older than the subnet that it has by now, and a node keeps the one it got.
        let patch = json!({ "metadata": {
            "annotations": { names::SUBNET_ANNOTATION: subnet },
            "resourceVersion": node.resource_version(),
        } });
        let patched =
            nodes.patch(&node.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await;
        match patched {
            Ok(_) => {}
            // The next event has what it is now.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => tracing::warn!(%error, "no subnet assigned"),
        }
    }
}
