//! One pass of the daemon: reads the cluster, lets `wmco_services` decide and act, annotates the Node.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use wmco_core::names::objects;
use wmco_core::protocol::ServicesData;
use wmco_services::daemon::{self, Asked, ManifestState, Next, NodeFacts};
use wmco_services::manifest::Manifest;
use wmco_services::services::ScriptResults;

use super::{DaemonError, Settings};
use crate::host::shared::Shared;

/// Shortest pause between two passes, so that one which changes nothing does not spin.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// What passes share.
pub(super) struct Passes<'a> {
    host: &'a Shared,
    settings: &'a Settings,
    node: &'a str,
    client: &'a Client,
    /// Remembered while the process lives, as the real daemon does.
    results: Arc<Mutex<ScriptResults>>,
}

impl<'a> Passes<'a> {
    pub(super) fn new(
        host: &'a Shared,
        settings: &'a Settings,
        node: &'a str,
        client: &'a Client,
    ) -> Self {
        Self { host, settings, node, client, results: Arc::default() }
    }

    /// Returns after which time the next pass is due.
    pub(super) async fn run(&self) -> Result<Duration, DaemonError> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let node = nodes.get_opt(self.node).await?.map(|node| json!(node));
        let version = node.as_ref().and_then(|node| NodeFacts::of(node).desired_version);
        let map = match &version {
            Some(version) => self.manifest(version).await?,
            None => None,
        };
        let manifest = map.map(|map| Manifest::parse(&ServicesData(map.data.unwrap_or_default())));
        let pass = self.act(node, manifest).await?;
        for note in &pass.plan.notes {
            tracing::debug!(
                node = self.node,
                note,
                "the daemon of a simulated host noted something"
            );
        }
        if !pass.annotations.is_empty() {
            let patch = Patch::Merge(json!({ "metadata": { "annotations": pass.annotations } }));
            nodes.patch(self.node, &PatchParams::default(), &patch).await?;
        }
        if !pass.failures.is_empty() {
            return Err(DaemonError::Steps { failures: pass.failures.join("; ") });
        }
        let due = match pass.plan.next {
            Next::Now => return Ok(SHORTEST_PAUSE),
            Next::Await { deadline, .. } => deadline,
            Next::Settled { resync } => resync,
        };
        let pause = Duration::try_from(due.duration_since(Timestamp::now()));
        Ok(pause.unwrap_or_default().max(SHORTEST_PAUSE))
    }

    async fn manifest(&self, version: &str) -> Result<Option<ConfigMap>, DaemonError> {
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.settings.namespace);
        let name = format!("{}{version}", objects::SERVICES_CONFIG_MAP_PREFIX);
        Ok(maps.get_opt(&name).await?)
    }

    /// Works on the model, on a thread of its own.
    async fn act<E: std::fmt::Display + Send + 'static>(
        &self,
        node: Option<Value>,
        manifest: Option<Result<Manifest, E>>,
    ) -> Result<daemon::Pass, DaemonError> {
        let (model, gates) = (self.host.model.clone(), Arc::clone(&self.host.gates));
        let bundle = self.settings.ca_bundle.clone();
        let results = Arc::clone(&self.results);
        let work = self.host.threads.spawn_blocking(move || {
            let refusal = match &manifest {
                Some(Err(error)) => error.to_string(),
                Some(Ok(_)) | None => String::new(),
            };
            let manifest = match &manifest {
                None => ManifestState::Missing,
                Some(Err(_)) => ManifestState::Refused(&refusal),
                Some(Ok(manifest)) => ManifestState::Read(manifest),
            };
            let asked = Asked { node: node.as_ref(), manifest };
            let now = Timestamp::now();
            model.set_now(now);
            // One pass at a time, so nobody can have left half of a result.
            let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
            let pass = || daemon::pass(&model, asked, bundle.as_ref(), &mut results, now);
            gates.daemon.enter(&model, pass)
        });
        let done = work.await.map_err(|source| DaemonError::Interrupted { source })?;
        Ok(done.ok_or(DaemonError::Stopped)??)
    }
}

/// What of a Node a pass depends on.
pub(super) fn concern(node: &Node) -> NodeFacts {
    NodeFacts::of(&json!(node))
}
