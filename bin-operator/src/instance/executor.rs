//! Carries out single actions. Holds clients and limits, no policy.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod, Secret};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
    Preconditions,
};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::Instant;
use wmco_core::digest::Sha256;
use wmco_core::facts::{NodeFacts, PodFacts};
use wmco_core::fleet::ReplacementPermit;
use wmco_core::host_record::RecordChange;
use wmco_core::names::{host, objects};
use wmco_core::node::{Action, HostSeen, HostWork, NodePatch, NodeSearch, Outcome};
use wmco_core::protocol::{AgentLocation, FreshFolder, Probe, ReportLine};
use wmco_core::winpath::WindowsPath;
use wmco_ssh::{ApplyOutcome, Blob, HostAgent as _, Lease, NoReport, Pool, ProbeOutcome};

use super::error::{Failure, StepError, api};
use super::inputs::WorkerInputs;
use super::link::Link;
use super::records::HostRecords;
use crate::announce::{Announcer, News};
use crate::host_reports::HostReports;
use crate::leader::Leadership;
use crate::metrics::{ActionLabels, Metrics};
use crate::nodes::Nodes;
use crate::owned::named;
use crate::progress::{Progress, ProgressKind};
use crate::snapshot;
use crate::work::WorkStates;

/// The view of one step: its inputs, the connection to the host, and the news to report.
pub struct Turn<'a> {
    /// What the worker works with.
    pub inputs: &'a WorkerInputs,
    /// The connection.
    pub link: &'a mut Link,
    /// What happened, whether the step fails or not.
    pub news: Vec<News>,
}

impl<'a> Turn<'a> {
    /// The address of the instance.
    pub(super) fn address(&self) -> &'a str {
        &self.inputs.instance.address
    }

    /// The Node that stands for it.
    pub(super) fn node(&self) -> Option<&'a NodeFacts> {
        self.inputs.instance.node.as_ref()
    }
}

/// Clients for everything that an action may touch; cheap to clone.
#[derive(Clone)]
pub struct Executor {
    /// Kubernetes.
    pub client: Client,
    /// Kubernetes, for requests that are sent once; see [`sending_once`](crate::run::sending_once).
    pub once: Client,
    /// The operator's namespace.
    pub namespace: String,
    /// Whether we may write.
    pub leadership: Leadership,
    /// Connections to hosts; shared by all workers, so that limits and counters are shared too.
    pub pool: Pool,
    /// Events for people.
    pub announcer: Announcer,
    /// Events for watchers.
    pub progress: Progress,
    /// What is counted.
    pub metrics: Metrics,
    /// What is kept of hosts.
    pub records: HostRecords,
    /// What hosts reported of themselves.
    pub host_reports: HostReports,
    /// Whether workers are at work.
    pub works: WorkStates,
    /// All Nodes.
    pub nodes: Nodes,
}

impl Executor {
    /// Performs `action`. Idempotent: after a crash it is asked for again.
    ///
    /// # Errors
    /// [`Failure`]; nothing is undone, the next pass plans from what it then sees.
    pub async fn execute(&self, action: &Action, turn: &mut Turn<'_>) -> Result<Outcome, Failure> {
        self.leadership.check()?;
        let outcome = self.perform(action, turn).await;
        self.count(action, if outcome.is_ok() { "ok" } else { "error" });
        outcome
    }

    /// Connects to the host, if `action` needs that, so that people hear of a key that is trusted before
    /// anything is sent.
    ///
    /// # Errors
    /// [`Failure`]; nothing else was done.
    pub async fn connect(&self, action: &Action, turn: &mut Turn<'_>) -> Result<(), Failure> {
        if !action.is_on_host() {
            return Ok(());
        }
        self.leadership.check()?;
        let began = Instant::now();
        let connected = self.host(turn).await.map(drop);
        self.note_login(&turn.inputs.instance, connected.as_ref(), began);
        connected.map_err(|error| {
            let is_silent = matches!(&error, StepError::Connect(it) if !it.host_answered());
            self.count(action, if is_silent { "unreachable" } else { "error" });
            error.into()
        })
    }

    fn count(&self, action: &Action, result: &'static str) {
        self.metrics.actions.get_or_create(&ActionLabels { action: action.verb(), result }).inc();
    }

    async fn perform(&self, action: &Action, turn: &mut Turn<'_>) -> Result<Outcome, Failure> {
        Ok(match action {
            Action::Probe => self.probe(AgentLocation::Installed, turn).await?,
            Action::ProbeWithOurs(_) => self.probe_with_ours(turn).await?,
            Action::ProbeStaged(agent) => self.probe(AgentLocation::Staged(*agent), turn).await?,
            Action::RecordRoot(root) => self.record_root(*root, turn).await?,
            Action::ProveKey(key) => self.prove_key(*key, turn).await?,
            Action::ProveKeyRemoved(key) => self.prove_key_removed(*key, turn).await?,
            Action::Upload(contents) => self.upload(contents, turn).await?,
            Action::Apply { agent, work } => self.apply(*agent, work, turn).await?,
            Action::RemoveLeftovers(_) => self.remove_leftovers(turn).await?,
            Action::PatchNode(patch) => self.patch_node(patch, turn).await?,
            Action::SeekNode(search) => self.seek_node(search).await?,
            Action::ListPods => self.list_pods(turn).await?,
            Action::Evict { pods, .. } => self.evict(pods).await?,
            Action::TellDrain { notice, event } => {
                self.tell_drain(turn, notice.as_ref(), *event).await?
            }
            Action::DeleteNode(permit) => self.delete_node(permit.node(), turn).await?,
            Action::ProveUserData => self.prove_user_data(turn).await?,
            Action::DeleteMachine(permit) => self.delete_machine(permit, turn).await?,
            Action::ForgetHost => self.forget_host(turn).await?,
        })
    }

    /// The connection to the host; a key seen for the first time is kept before anything is sent.
    pub(super) async fn host(&self, turn: &mut Turn<'_>) -> Result<Arc<Lease>, StepError> {
        let (route, reach) = turn.inputs.route()?;
        if let Some(host) = turn.link.current(reach, turn.inputs) {
            return Ok(host);
        }
        // One lease at a time, or this would wait for itself.
        turn.link.release();
        // Boxed: the future of a handshake is large, and it is rare.
        let host = Box::pin(self.pool.lease(&route))
            .await
            .map_err(|error| StepError::connect(error, &route, reach, &turn.inputs.keys))?;
        self.pin_keys(reach, &host, turn).await?;
        self.note_accepted(&host, turn).await?;
        Ok(turn.link.keep(host, reach, turn.inputs))
    }

    async fn probe(&self, agent: AgentLocation, turn: &mut Turn<'_>) -> Result<Outcome, StepError> {
        let host = self.host(turn).await?;
        Ok(Outcome::Looked(match host.probe(agent).await? {
            ProbeOutcome::Reported(probe) => HostSeen::Probed(probe),
            // Whatever answers there is not ours to understand; ours goes up beside it.
            ProbeOutcome::NoReport(why) => {
                tracing::debug!(instance = %turn.address(), ?why, "no agent of ours");
                HostSeen::NoAgent
            }
        }))
    }

    async fn probe_with_ours(&self, turn: &mut Turn<'_>) -> Result<Outcome, StepError> {
        let host = self.host(turn).await?;
        let instance = &turn.inputs.instance;
        let tell = |progress| self.progress.tell(instance, ProgressKind::Upload(progress));
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|_| StepError::Random)?;
        let folder = FreshFolder::from_random(random);
        match host.probe_with(&turn.inputs.contents.agent, folder, &tell).await? {
            ProbeOutcome::Reported(probe) => {
                let found = probe.state.iter().flat_map(|state| &state.quarantined);
                turn.news.extend(found.cloned().map(News::Quarantined));
                Ok(Outcome::Worked(HostSeen::Probed(probe)))
            }
            ProbeOutcome::NoReport(why) => Err(StepError::AgentFails { what: in_words(&why) }),
        }
    }

    async fn upload(&self, contents: &[Sha256], turn: &mut Turn<'_>) -> Result<Outcome, StepError> {
        let blob = |digest: &Sha256| {
            let blob = turn.inputs.contents.files.get(digest);
            blob.cloned().ok_or(StepError::Content { digest: *digest })
        };
        let blobs: Vec<Blob> = contents.iter().map(blob).collect::<Result<_, _>>()?;
        let host = self.host(turn).await?;
        let instance = &turn.inputs.instance;
        let tell = |progress| self.progress.tell(instance, ProgressKind::Upload(progress));
        host.upload(&blobs, &tell).await?;
        Ok(Outcome::Uploaded)
    }

    async fn apply(
        &self,
        agent: AgentLocation,
        work: &HostWork,
        turn: &mut Turn<'_>,
    ) -> Result<Outcome, Failure> {
        let host = self.host(turn).await?;
        let steps = &work.plan().steps;
        let mut tell = |line: &ReportLine| {
            if let ReportLine::Started { step } = line
                && let Some(step) = steps.get(*step)
            {
                self.progress.tell(&turn.inputs.instance, ProgressKind::HostStep(step.to_string()));
            }
        };
        match host.apply(agent, work.plan(), &mut tell).await? {
            ApplyOutcome::Finished { lines, probe } => finished(work, &lines, probe),
            ApplyOutcome::Restarting { .. } => {
                turn.link.close().await;
                Ok(Outcome::Worked(HostSeen::Unknown))
            }
            ApplyOutcome::NoReport(why) => {
                Err(StepError::AgentFails { what: in_words(&why) }.into())
            }
        }
    }

    async fn remove_leftovers(&self, turn: &mut Turn<'_>) -> Result<Outcome, StepError> {
        let paths = |texts: &[&str]| -> Vec<WindowsPath> {
            texts.iter().filter_map(|text| text.parse().ok()).collect()
        };
        let host = self.host(turn).await?;
        let folders = paths(&[host::STAGING, host::ROOT]);
        let kept = host.remove_leftovers(&paths(&[host::AGENT]), &folders).await?;
        if !kept.is_empty() {
            turn.news.push(News::LeftBehind(kept));
        }
        Ok(Outcome::Worked(HostSeen::NoAgent))
    }

    async fn patch_node(&self, patch: &NodePatch, turn: &Turn<'_>) -> Result<Outcome, StepError> {
        let Some(node) = turn.node() else {
            return Ok(Outcome::NodeChanged { resource_version: 0, is_ours: true });
        };
        let body = merge_patch(patch, node);
        let nodes: Api<Node> = Api::all(self.client.clone());
        let (params, body) = (PatchParams::default(), Patch::Merge(&body));
        let patched = match nodes.patch(&node.name, &params, &body).await {
            Ok(patched) => patched,
            // Somebody wrote between our look and this; the plan is made anew from what they wrote.
            Err(kube::Error::Api(status)) if status.code == 409 => {
                let resource_version = node.resource_version + 1;
                return Ok(Outcome::NodeChanged { resource_version, is_ours: false });
            }
            Err(error) => return Err(api("change the node")(error)),
        };
        let version = patched.metadata.resource_version.as_deref().unwrap_or_default();
        let resource_version = version.parse().unwrap_or_default();
        Ok(Outcome::NodeChanged { resource_version, is_ours: true })
    }

    async fn seek_node(&self, search: &NodeSearch) -> Result<Outcome, StepError> {
        let found =
            self.nodes.find(&self.client, search).await.map_err(api("look for the node"))?;
        Ok(match found {
            Some(name) => Outcome::FoundNode { name },
            None => Outcome::NoNode,
        })
    }

    async fn forget_host(&self, turn: &mut Turn<'_>) -> Result<Outcome, StepError> {
        self.change_record(turn.address(), RecordChange::Forgotten).await?;
        if turn.node().is_none() {
            turn.news.push(News::Removed);
        }
        Ok(Outcome::HostForgotten)
    }

    async fn list_pods(&self, turn: &Turn<'_>) -> Result<Outcome, StepError> {
        let on_node = format!("spec.nodeName={}", turn.inputs.instance.node_name());
        let pods: Api<Pod> = Api::all(self.client.clone());
        let list = pods
            .list(&ListParams::default().fields(&on_node))
            .await
            .map_err(api("list the node's pods"))?;
        Ok(Outcome::Pods(list.iter().filter_map(PodFacts::that_must_leave).collect()))
    }

    async fn delete_node(&self, name: &str, turn: &mut Turn<'_>) -> Result<Outcome, StepError> {
        let uid = turn.node().map(|node| node.uid.clone());
        let params = DeleteParams {
            preconditions: Some(Preconditions { uid, ..Preconditions::default() }),
            ..DeleteParams::default()
        };
        let nodes: Api<Node> = Api::all(self.client.clone());
        match nodes.delete(name, &params).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(api("delete the node")(error)),
        }
        turn.news.push(News::Removed);
        Ok(Outcome::NodeDeleted)
    }

    async fn delete_machine(
        &self,
        permit: &ReplacementPermit,
        turn: &mut Turn<'_>,
    ) -> Result<Outcome, StepError> {
        let uid = Some(permit.uid().to_owned());
        let params = DeleteParams {
            preconditions: Some(Preconditions { uid, ..Preconditions::default() }),
            ..DeleteParams::default()
        };
        let (group, version, kind) = objects::MACHINE;
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let namespace = objects::MACHINE_API_NAMESPACE;
        let machines: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), namespace, &resource);
        match machines.delete(permit.machine(), &params).await {
            Ok(_) => turn.news.push(News::MachineDeleted),
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            // Another one has its name, which the watch shows soon.
            Err(kube::Error::Api(status)) if status.code == 409 => {
                return Ok(Outcome::MachineKept { uid: permit.uid().to_owned() });
            }
            Err(source) => return Err(StepError::NotDeleted { source }),
        }
        Ok(Outcome::MachineDeleted)
    }

    async fn prove_user_data(&self, turn: &Turn<'_>) -> Result<Outcome, StepError> {
        let secrets: Api<Secret> =
            Api::namespaced(self.client.clone(), objects::MACHINE_API_NAMESPACE);
        let secret = named(&secrets, objects::USER_DATA_SECRET).await;
        let secret = secret.map_err(|source| StepError::UserDataUnread { source })?;
        let keys = turn.inputs.keys.iter().map(AsRef::as_ref);
        if secret.is_some_and(|secret| snapshot::user_data_lets_in(&secret, keys)) {
            Ok(Outcome::UserDataProven)
        } else {
            Err(StepError::UserDataRefuses)
        }
    }
}

/// What the agent's last words say about a plan.
fn finished(work: &HostWork, lines: &[ReportLine], probe: Box<Probe>) -> Result<Outcome, Failure> {
    let error = lines.iter().find_map(|line| match line {
        ReportLine::Failed { step, error } => {
            Some(StepError::step(&work.plan().steps, *step, error))
        }
        ReportLine::Refused { error } => Some(StepError::Refused { error: error.clone() }),
        ReportLine::Started { .. }
        | ReportLine::Progress { .. }
        | ReportLine::Done { .. }
        | ReportLine::Probed(_) => None,
    });
    let host = HostSeen::Probed(probe);
    match error {
        Some(error) => Err(Failure { error, host: Some(host) }),
        None => Ok(Outcome::Worked(host)),
    }
}

/// A merge patch that hits this very Node and no successor of the same name.
///
/// A cordon notes whose it is, so it must not miss one that a person sets at the same time. Labels
/// and annotations of ours are written by nobody else, so heartbeats need not hold them up.
fn merge_patch(patch: &NodePatch, node: &NodeFacts) -> Value {
    let metadata = |version: Option<String>| {
        let NodePatch { labels, annotations, .. } = patch;
        let mut metadata = json!({ "uid": node.uid, "labels": labels, "annotations": annotations });
        if let (Some(version), Some(fields)) = (version, metadata.as_object_mut()) {
            fields.insert("resourceVersion".to_owned(), version.into());
        }
        metadata
    };
    match patch.unschedulable {
        None => json!({ "metadata": metadata(None) }),
        // Schedulable again means that the field is gone, as kubectl leaves it.
        Some(on) => json!({
            "metadata": metadata(Some(node.resource_version.to_string())),
            "spec": { "unschedulable": on.then_some(true) },
        }),
    }
}

fn in_words(why: &NoReport) -> String {
    match why {
        NoReport::NoAgent { status, errors } => match errors.trim().lines().last() {
            Some(last) => format!("exit status {status}, it says: {last}"),
            None => format!("exit status {status}, no report"),
        },
        NoReport::Unusable { error, .. } => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_names_the_node_it_was_planned_for() {
        let node = NodeFacts { uid: "u-1".to_owned(), resource_version: 7, ..NodeFacts::default() };
        let patch = NodePatch { unschedulable: Some(false), ..NodePatch::default() };
        let body = merge_patch(&patch, &node);
        assert_eq!(body["metadata"]["uid"], "u-1");
        assert_eq!(body["spec"], json!({ "unschedulable": null }));
        assert_eq!(body["metadata"]["resourceVersion"], "7");
        let labels = merge_patch(&NodePatch::default(), &node);
        assert_eq!(labels["metadata"].get("resourceVersion"), None);
    }
}
