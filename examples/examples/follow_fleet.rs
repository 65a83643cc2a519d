//! A custom controller with `wmco_core::fleet`: it watches the list of hosts and the Nodes, and prints the decision for
//! every instance after each change. It changes nothing.
//!
//! ```text
//! cargo run -p wmco-examples --example follow_fleet
//! ```
//!
//! The cluster is an API server in this process, so that the example runs anywhere. With `Client::try_default()` in
//! place of `server.client()` it follows a real cluster.

#![allow(clippy::print_stdout, reason = "that is what it is for")]

use anyhow::Context as _;
use futures::stream::{BoxStream, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use kube_testserver::TestServer;
use serde_json::json;
use wmco_core::facts::NodeFacts;
use wmco_core::fleet;
use wmco_core::instances::{self, Resolutions};
use wmco_core::names::objects::INSTANCES_CONFIG_MAP;

const NAMESPACE: &str = "windows-nodes";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let server = TestServer::builder().object(&namespace).start().await?;
    let mut cluster = Cluster::watch(server.client()?);
    let mut events = cluster.events.take().context("the events were taken before")?;

    let admin = "username=Administrator";
    for (what, data) in [
        ("two hosts are listed", json!({"10.0.0.5": admin, "10.0.0.6": "user=root"})),
        ("the second entry is corrected", json!({"10.0.0.5": admin, "10.0.0.6": "username=root"})),
        ("the first entry is removed", json!({"10.0.0.6": "username=root"})),
    ] {
        let written: ConfigMap = server.put(&list(&data)?)?;
        while !cluster.has_seen(&written) {
            events.try_next().await?.context("the watches ended")?;
        }
        println!("{what}:");
        for line in cluster.decide("2.0.0") {
            println!("  {line}");
        }
    }
    server.stop().await;
    Ok(())
}

/// Returns the ConfigMap in which people list hosts.
fn list(data: &serde_json::Value) -> serde_json::Result<ConfigMap> {
    let metadata = json!({"name": INSTANCES_CONFIG_MAP, "namespace": NAMESPACE});
    serde_json::from_value(json!({"metadata": metadata, "data": data}))
}

/// The observed cluster, and the events of its changes.
struct Cluster {
    lists: Store<ConfigMap>,
    nodes: Store<Node>,
    events: Option<BoxStream<'static, watcher::Result<()>>>,
}

impl Cluster {
    fn watch(client: Client) -> Self {
        let (lists, list_writer) = reflector::store();
        let (nodes, node_writer) = reflector::store();
        // Only one object of its kind is needed, so only that is watched.
        let only =
            watcher::Config::default().fields(&format!("metadata.name={INSTANCES_CONFIG_MAP}"));
        let list_events = watcher(Api::<ConfigMap>::namespaced(client.clone(), NAMESPACE), only)
            .reflect(list_writer);
        let node_events =
            watcher(Api::<Node>::all(client), watcher::Config::default()).reflect(node_writer);
        let events = futures::stream::select(list_events.map_ok(drop), node_events.map_ok(drop));
        Self { lists, nodes, events: Some(events.boxed()) }
    }

    fn has_seen(&self, written: &ConfigMap) -> bool {
        let known = self.lists.state();
        known.iter().any(|list| list.metadata.resource_version == written.metadata.resource_version)
    }

    /// Returns a line for each instance, and for each invalid entry.
    fn decide(&self, version: &str) -> Vec<String> {
        let list = self.lists.state().into_iter().next();
        let data = list.as_ref().and_then(|list| list.data.as_ref());
        let pairs = data.into_iter().flatten().map(|(key, value)| (key.as_str(), value.as_str()));
        // A real controller would resolve names by DNS and pass the addresses here.
        let entries = instances::parse(pairs, &Resolutions::default());
        let nodes: Vec<NodeFacts> =
            self.nodes.state().iter().map(|node| NodeFacts::from(&**node)).collect();

        // A controller that acts also keeps permits and the hosts' reports; the operator shows how.
        let assignments = fleet::reconcile(
            &fleet::Desired::new(list.is_some().then_some(&entries), version),
            &fleet::Observed::new(&nodes),
        );
        let errors = entries.errors().map(ToString::to_string);
        assignments.instances.iter().map(ToString::to_string).chain(errors).collect()
    }
}
