//! One pass: reads the cluster, lets `wmco_services` decide and act, annotates the Node.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use wmco_core::names::objects::services_name;
use wmco_core::protocol::ServicesData;
use wmco_core::winpath::WindowsPath;
use wmco_services::daemon::{
    self, Desired, NodeIntent, Note, Pass, PassContext, Released, WatchedServices,
};
use wmco_services::services::ScriptResults;
use wmco_services::windows::{Windows, WindowsError};

use super::{Settings, events};

/// Why a pass did not do all that it should; a later one may.
#[derive(Debug, thiserror::Error)]
pub(super) enum PassError {
    #[error("the cluster did not do what the daemon asked")]
    Api(#[from] kube::Error),
    #[error("a pass broke down")]
    Broken { source: tokio::task::JoinError },
    #[error("the node is gone")]
    NodeGone,
    #[error("{}", .failures.join("; "))]
    Steps { failures: Vec<String> },
    #[error("the daemon is stopping")]
    Stopped,
    #[error("the daemon cannot see its host")]
    Windows(#[from] WindowsError),
}

impl PassError {
    /// Whether the cluster does not know who asks.
    pub(super) fn is_unauthorized(&self) -> bool {
        matches!(self, Self::Api(kube::Error::Api(status)) if status.code == 401)
    }
}

/// What passes share.
pub(super) struct Passes {
    host: Arc<dyn Windows>,
    namespace: String,
    ca_bundle: Option<WindowsPath>,
    node: String,
    stop: CancellationToken,
    /// Losing them costs another run of the scripts, nothing else.
    results: Arc<Mutex<ScriptResults>>,
    released: Arc<Mutex<Released>>,
    /// What was noted last, so that the log tells it once.
    notes: Vec<Note>,
}

impl Passes {
    pub(super) fn new(
        host: Arc<dyn Windows>,
        settings: &Settings,
        node: &str,
        stop: &CancellationToken,
    ) -> Self {
        Self {
            host,
            namespace: settings.cluster.namespace.clone(),
            ca_bundle: settings.ca_bundle.clone(),
            node: node.to_owned(),
            stop: stop.clone(),
            results: Arc::default(),
            released: Arc::default(),
            notes: Vec::new(),
        }
    }

    /// Returns when the next pass is due, by the clock and by the services.
    pub(super) async fn run(
        &mut self,
        client: &Client,
    ) -> Result<(Timestamp, WatchedServices), PassError> {
        let nodes: Api<Node> = Api::all(client.clone());
        let node = self.ask(nodes.get_opt(&self.node)).await?.ok_or(PassError::NodeGone)?;
        let node = json!(node);
        let facts = NodeIntent::of(&node);
        let data = match &facts.desired_version {
            Some(version) => self.manifest(client, version).await?,
            None => None,
        };
        let pass = self.act(node.clone(), facts.released, data).await?;
        self.tell(client, &pass).await;
        if let Some(patch) = pass.patch(&node) {
            // A merge makes the map of annotations where there is none.
            let patch = Patch::Merge(patch);
            match self.ask(nodes.patch(&self.node, &PatchParams::default(), &patch)).await {
                Err(PassError::Api(kube::Error::Api(status))) if status.code == 409 => {
                    return Ok((Timestamp::now(), pass.services));
                }
                done => done?,
            };
        }
        if !pass.failures.is_empty() {
            return Err(PassError::Steps { failures: pass.failures });
        }
        Ok((pass.plan.next.due(Timestamp::now()), pass.services))
    }

    /// The answer of the cluster, unless the order to stop comes first.
    async fn ask<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<T, PassError> {
        Ok(self.stop.run_until_cancelled(call).await.ok_or(PassError::Stopped)??)
    }

    async fn manifest(
        &self,
        client: &Client,
        version: &str,
    ) -> Result<Option<ServicesData>, PassError> {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &self.namespace);
        let map = self.ask(maps.get_opt(&services_name(version))).await?;
        Ok(map.map(|map| ServicesData(map.data.unwrap_or_default())))
    }

    /// Works on the host, on a thread of its own. Dropping this does not end that work.
    async fn act(
        &self,
        node: Value,
        digest: Option<String>,
        data: Option<ServicesData>,
    ) -> Result<Pass, PassError> {
        let released = Arc::clone(&self.released);
        let (host, results) = (Arc::clone(&self.host), Arc::clone(&self.results));
        let (bundle, stop) = (self.ca_bundle.clone(), self.stop.clone());
        let work = tokio::task::spawn_blocking(move || {
            // One pass at a time, so nobody can have left half of a result.
            let mut released = released.lock().unwrap_or_else(PoisonError::into_inner);
            let found = released.choose_kept(host.files(), digest.as_deref(), data)?;
            let desired = Desired { node: Some(&node), manifest: found.state() };
            let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
            let context = PassContext {
                windows: &*host,
                bundle: bundle.as_ref(),
                should_continue: &|| !stop.is_cancelled(),
            };
            daemon::pass(context, desired, &mut results, Timestamp::now())
        });
        Ok(work.await.map_err(|source| PassError::Broken { source })??)
    }

    /// Logs what is done, and what people should know when that changed.
    async fn tell(&mut self, client: &Client, pass: &Pass) {
        for step in &pass.plan.steps {
            for line in step.to_string().lines() {
                tracing::info!("{line}");
            }
        }
        if pass.plan.notes != self.notes {
            for note in pass.plan.notes.iter().filter(|note| !self.notes.contains(note)) {
                tracing::warn!("{}", note.text);
                if let Some(reason) = note.about.event() {
                    self.ask(events::publish(client, &self.node, reason, &note.text)).await.ok();
                }
            }
            self.notes.clone_from(&pass.plan.notes);
        }
    }
}
