//! A pass of the daemon: reads the cluster, lets `wmco_services` decide and act, annotates the Node.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use wmco_core::names::objects::services_name;
use wmco_core::protocol::ServicesData;
use wmco_services::daemon::{self, Desired, NodeIntent, PassContext, Released};
use wmco_services::services::ScriptResults;
use wmco_services::windows::Windows as _;

use super::{DaemonError, Settings};
use crate::host::shared::Shared;

/// Shortest pause between two passes, so that passes without a change do not spin.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// The shared state of passes.
pub(super) struct Passes<'a> {
    host: &'a Shared,
    settings: &'a Settings,
    node: &'a str,
    client: &'a Client,
    /// Kept for the lifetime of the process, like in the real daemon.
    results: Arc<Mutex<ScriptResults>>,
    released: Arc<Mutex<Released>>,
}

impl<'a> Passes<'a> {
    pub(super) fn new(
        host: &'a Shared,
        settings: &'a Settings,
        node: &'a str,
        client: &'a Client,
    ) -> Self {
        Self { host, settings, node, client, results: Arc::default(), released: Arc::default() }
    }

    /// Runs a pass; returns the time until the next one.
    pub(super) async fn run(&mut self) -> Result<Duration, DaemonError> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let node = nodes.get_opt(self.node).await?.map(|node| json!(node));
        let facts = node.as_ref().map(NodeIntent::of).unwrap_or_default();
        let data = match &facts.desired_version {
            Some(version) => self.manifest(version).await?,
            None => None,
        };
        let pass = self.act(node.clone(), facts.released, data).await?;
        for note in &pass.plan.notes {
            tracing::debug!(
                node = self.node,
                note = note.text,
                "the daemon of a simulated host noted something"
            );
        }
        if let Some(patch) = node.and_then(|node| pass.patch(&node)) {
            let patch = Patch::Merge(patch);
            match nodes.patch(self.node, &PatchParams::default(), &patch).await {
                Err(kube::Error::Api(status)) if status.code == 409 => return Ok(SHORTEST_PAUSE),
                done => done?,
            };
        }
        if !pass.failures.is_empty() {
            return Err(DaemonError::Steps { failures: pass.failures.join("; ") });
        }
        let now = Timestamp::now();
        let pause = Duration::try_from(pass.plan.next.due(now).duration_since(now));
        Ok(pause.unwrap_or_default().max(SHORTEST_PAUSE))
    }

    async fn manifest(&self, version: &str) -> Result<Option<ServicesData>, DaemonError> {
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.settings.namespace);
        let map = maps.get_opt(&services_name(version)).await?;
        Ok(map.map(|map| ServicesData(map.data.unwrap_or_default())))
    }

    /// Runs the pass on the model, on its own thread.
    async fn act(
        &self,
        node: Option<Value>,
        digest: Option<String>,
        data: Option<ServicesData>,
    ) -> Result<daemon::Pass, DaemonError> {
        let (model, gates) = (self.host.model.clone(), Arc::clone(&self.host.gates));
        let bundle = self.settings.ca_bundle.clone();
        let (results, released) = (Arc::clone(&self.results), Arc::clone(&self.released));
        let work = self.host.threads.spawn_blocking(move || {
            let now = Timestamp::now();
            model.set_now(now);
            // Only one pass runs at a time, so no partial result can be left.
            let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
            let mut released = released.lock().unwrap_or_else(PoisonError::into_inner);
            let windows = &model.running_as_service();
            let context =
                PassContext { windows, bundle: bundle.as_ref(), should_continue: &|| true };
            let pass = || {
                let found = released.choose_kept(windows.files(), digest.as_deref(), data)?;
                let desired = Desired { node: node.as_ref(), manifest: found.state() };
                daemon::pass(context, desired, &mut results, now)
            };
            gates.daemon.enter(&model, pass)
        });
        let done = work.await.map_err(|source| DaemonError::Interrupted { source })?;
        Ok(done.ok_or(DaemonError::Stopped)??)
    }
}
