//! Carries out single actions. Holds clients and limits, no policy.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client};
use serde_json::{Value, json};
use wmco_core::digest::Sha256;
use wmco_core::facts::PodFacts;
use wmco_core::host_record::RecordChange;
use wmco_core::names::host;
use wmco_core::node::{Action, HostSeen, HostWork, Learnt, NodePatch, NodeSearch, agent_for_work};
use wmco_core::protocol::{AgentLocation, FreshFolder, Probe, ReportLine, RootAccess};
use wmco_core::winpath::WindowsPath;
use wmco_ssh::{ApplyOutcome, Blob, HostAgent as _, Lease, NoReport, Pool, ProbeOutcome};

use super::error::{StepError, api};
use super::inputs::{InstanceInputs, NodeSeen};
use super::link::Link;
use super::records::HostRecords;
use crate::announce::Announcer;
use crate::leader::Leadership;
use crate::learned::{HostReport, Learned};
use crate::metrics::{ActionLabels, Metrics};
use crate::nodes::Nodes;
use crate::progress::{Progress, What};

/// What an action brought to light.
#[derive(Debug)]
pub enum Seen {
    /// What the next plan needs to know.
    Learnt(Learnt),
    /// Our write to the Node has this version.
    Node {
        /// Resource version of the Node after it.
        resource_version: u64,
    },
    /// A Node that is meant by a search.
    FoundNode {
        /// Its name.
        name: String,
    },
    /// Neither key nor record of this instance is kept any more.
    Forgotten,
    /// Its record says so of its root now.
    Recorded(RootAccess),
    /// The Node is deleted.
    Gone,
    /// The agent came to its end, but not through the plan.
    Failed {
        /// The host as it is now.
        host: HostSeen,
        /// What went wrong.
        error: StepError,
    },
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
    /// Happenings for whoever watches.
    pub progress: Progress,
    /// What is counted.
    pub metrics: Metrics,
    /// What is kept of hosts.
    pub records: HostRecords,
    /// What hosts reported of themselves.
    pub learned: Learned,
    /// All Nodes.
    pub nodes: Nodes,
}

impl Executor {
    /// Performs `action`. Idempotent: after a crash it is asked for again.
    ///
    /// # Errors
    /// [`StepError`]; nothing is undone, the next pass plans from what it then sees.
    pub async fn execute(
        &self,
        action: &Action,
        inputs: &InstanceInputs,
        host: &HostSeen,
        link: &mut Link,
    ) -> Result<Seen, StepError> {
        self.leadership.check()?;
        let result = self.perform(action, inputs, host, link).await;
        if let Ok(Seen::Learnt(
            Learnt::Host(HostSeen::Probed(probe)) | Learnt::Worked(HostSeen::Probed(probe)),
        )) = &result
        {
            let report = HostReport {
                at: inputs.desired.known_as.ipv4,
                // It may report anything; what is no name helps nobody.
                host_name: probe.valid_host_name().unwrap_or_default().to_owned(),
                addresses: probe.addresses.clone(),
            };
            self.learned.set(&inputs.assignment.address, report);
        }
        let outcome = match &result {
            Ok(Seen::Failed { .. }) | Err(_) => "error",
            Ok(_) => "ok",
        };
        self.metrics
            .actions
            .get_or_create(&ActionLabels { action: action.verb(), result: outcome })
            .inc();
        result
    }

    async fn perform(
        &self,
        action: &Action,
        inputs: &InstanceInputs,
        host: &HostSeen,
        link: &mut Link,
    ) -> Result<Seen, StepError> {
        match action {
            Action::Probe => self.probe(AgentLocation::Installed, inputs, link).await,
            Action::ProbeWithOurs(_) => self.probe_with_ours(inputs, link).await,
            Action::ProbeStaged(agent) => {
                self.probe(AgentLocation::Staged(*agent), inputs, link).await
            }
            Action::RecordRoot(root) => self.record_root(*root, inputs, link).await,
            Action::Upload(contents) => self.upload(contents, inputs, link).await,
            Action::Apply(work) => self.apply(work, inputs, host, link).await,
            Action::RemoveLeftovers(_) => self.remove_leftovers(inputs, link).await,
            Action::PatchNode(patch) => self.patch_node(patch, inputs).await,
            Action::SeekNode(search) => self.seek_node(search).await,
            Action::ListPods => self.list_pods(inputs).await,
            Action::Evict { pods, .. } => self.evict(pods).await,
            Action::TellDrain { notice, event } => {
                self.tell_drain(inputs, notice.as_ref(), *event).await
            }
            Action::DeleteNode(permit) => self.delete_node(permit.node(), inputs).await,
            Action::ForgetHost => self.forget_host(inputs).await,
        }
    }

    /// The connection to the host; a key seen for the first time is kept before anything is sent.
    pub(super) async fn host(
        &self,
        inputs: &InstanceInputs,
        link: &mut Link,
    ) -> Result<Arc<Lease>, StepError> {
        let route = inputs.route.as_ref().map_err(|why| StepError::Route(why.clone()))?;
        if let Some(host) = link.current(route) {
            return Ok(host);
        }
        // One lease at a time, or this would wait for itself.
        link.release();
        // Boxed: the future of a handshake is large, and it is rare.
        let host = Box::pin(self.pool.lease(route))
            .await
            .map_err(|error| StepError::connect(error, route, inputs))?;
        self.pin_keys(inputs, route, &host).await?;
        Ok(link.keep(host, route.clone()))
    }

    async fn probe(
        &self,
        agent: AgentLocation,
        inputs: &InstanceInputs,
        link: &mut Link,
    ) -> Result<Seen, StepError> {
        let host = self.host(inputs, link).await?;
        Ok(Seen::Learnt(Learnt::Host(match host.probe(agent).await? {
            ProbeOutcome::Reported(probe) => HostSeen::Probed(probe),
            // Whatever answers there is not ours to understand; ours goes up beside it.
            ProbeOutcome::NoReport(why) => {
                tracing::debug!(instance = %inputs.assignment.address, ?why, "no agent of ours");
                HostSeen::NoAgent
            }
        })))
    }

    async fn probe_with_ours(
        &self,
        inputs: &InstanceInputs,
        link: &mut Link,
    ) -> Result<Seen, StepError> {
        let host = self.host(inputs, link).await?;
        let tell = |progress| self.progress.tell(&inputs.assignment, What::Upload(progress));
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|_| StepError::Random)?;
        let folder = FreshFolder::from_random(random);
        match host.probe_with(&inputs.release.agent, folder, &tell).await? {
            ProbeOutcome::Reported(probe) => {
                let state = probe.state.iter();
                for found in state.flat_map(|state| &state.quarantined) {
                    let node = inputs.node.as_ref().map(|node| &node.facts);
                    self.announcer.quarantined(&inputs.assignment, node, found).await;
                }
                Ok(Seen::Learnt(Learnt::Worked(HostSeen::Probed(probe))))
            }
            ProbeOutcome::NoReport(why) => Err(StepError::AgentFails { what: in_words(&why) }),
        }
    }

    async fn upload(
        &self,
        contents: &[Sha256],
        inputs: &InstanceInputs,
        link: &mut Link,
    ) -> Result<Seen, StepError> {
        let blob = |digest: &Sha256| {
            let blob = inputs.release.contents.get(digest);
            blob.cloned().ok_or(StepError::Content { digest: *digest })
        };
        let blobs: Vec<Blob> = contents.iter().map(blob).collect::<Result<_, _>>()?;
        let host = self.host(inputs, link).await?;
        let tell = |progress| self.progress.tell(&inputs.assignment, What::Upload(progress));
        host.upload(&blobs, &tell).await?;
        Ok(Seen::Learnt(Learnt::Changed))
    }

    async fn apply(
        &self,
        work: &HostWork,
        inputs: &InstanceInputs,
        seen: &HostSeen,
        link: &mut Link,
    ) -> Result<Seen, StepError> {
        let agent = match seen {
            HostSeen::Probed(probe) => agent_for_work(&inputs.desired, probe),
            HostSeen::Unknown | HostSeen::Unreachable { .. } | HostSeen::NoAgent => {
                AgentLocation::Installed
            }
        };
        let host = self.host(inputs, link).await?;
        let steps = &work.plan().steps;
        let mut tell = |line: &ReportLine| {
            if let ReportLine::Started { step } = line
                && let Some(step) = steps.get(*step)
            {
                self.progress.tell(&inputs.assignment, What::HostStep(step.to_string()));
            }
        };
        match host.apply(agent, work.plan(), &mut tell).await? {
            ApplyOutcome::Finished { lines, probe } => Ok(finished(work, &lines, probe)),
            ApplyOutcome::Restarting { .. } => {
                link.close().await;
                Ok(Seen::Learnt(Learnt::Worked(HostSeen::Unknown)))
            }
            ApplyOutcome::NoReport(why) => Err(StepError::AgentFails { what: in_words(&why) }),
        }
    }

    async fn remove_leftovers(
        &self,
        inputs: &InstanceInputs,
        link: &mut Link,
    ) -> Result<Seen, StepError> {
        let paths = |texts: &[&str]| -> Vec<WindowsPath> {
            texts.iter().filter_map(|text| text.parse().ok()).collect()
        };
        let host = self.host(inputs, link).await?;
        let folders = paths(&[host::STAGING, host::ROOT]);
        let kept = host.remove_leftovers(&paths(&[host::AGENT]), &folders).await?;
        if !kept.is_empty() {
            self.announcer.left_behind(&inputs.assignment, &kept).await;
        }
        Ok(Seen::Learnt(Learnt::Worked(HostSeen::NoAgent)))
    }

    async fn patch_node(
        &self,
        patch: &NodePatch,
        inputs: &InstanceInputs,
    ) -> Result<Seen, StepError> {
        let Some(node) = &inputs.node else { return Ok(Seen::Learnt(Learnt::Changed)) };
        let body = merge_patch(patch, node);
        let nodes: Api<Node> = Api::all(self.client.clone());
        let (params, body) = (PatchParams::default(), Patch::Merge(&body));
        let patched = match nodes.patch(&node.facts.name, &params, &body).await {
            Ok(patched) => patched,
            // Somebody wrote between our look and this; the plan is made anew from what they wrote.
            Err(kube::Error::Api(status)) if status.code == 409 => {
                return Ok(Seen::Node { resource_version: node.resource_version + 1 });
            }
            Err(error) => return Err(api("change the node")(error)),
        };
        let version = patched.metadata.resource_version.as_deref().unwrap_or_default();
        Ok(Seen::Node { resource_version: version.parse().unwrap_or_default() })
    }

    async fn seek_node(&self, search: &NodeSearch) -> Result<Seen, StepError> {
        let found =
            self.nodes.find(&self.client, search).await.map_err(api("look for the node"))?;
        Ok(match found {
            Some(name) => Seen::FoundNode { name },
            None => Seen::Learnt(Learnt::NoNode),
        })
    }

    async fn forget_host(&self, inputs: &InstanceInputs) -> Result<Seen, StepError> {
        let address = &inputs.assignment.address;
        self.change_record(address, RecordChange::Forgotten).await?;
        if inputs.node.is_none() {
            self.announcer.removed(&inputs.assignment).await;
        }
        Ok(Seen::Forgotten)
    }

    async fn list_pods(&self, inputs: &InstanceInputs) -> Result<Seen, StepError> {
        let on_node = format!("spec.nodeName={}", inputs.node_name());
        let pods: Api<Pod> = Api::all(self.client.clone());
        let list = pods
            .list(&ListParams::default().fields(&on_node))
            .await
            .map_err(api("list the node's pods"))?;
        Ok(Seen::Learnt(Learnt::Pods(list.iter().filter_map(PodFacts::that_must_leave).collect())))
    }

    async fn delete_node(&self, name: &str, inputs: &InstanceInputs) -> Result<Seen, StepError> {
        let uid = inputs.node.as_ref().map(|node| node.facts.uid.clone());
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
        self.announcer.removed(&inputs.assignment).await;
        Ok(Seen::Gone)
    }

    /// Tells people that an instance is configured.
    pub(super) async fn announce_settled(&self, inputs: &InstanceInputs) {
        if inputs.assignment.intent.verb() == "configure" {
            self.announcer.configured(&inputs.assignment).await;
        }
    }

    /// Tells people that a step failed.
    pub(super) async fn announce_failure(
        &self,
        inputs: &InstanceInputs,
        error: &StepError,
        pause: Duration,
    ) {
        let node = inputs.node.as_ref().map(|node| &node.facts);
        self.announcer.failed(&inputs.assignment, node, error, pause).await;
        if matches!(error, StepError::OtherHostKey { .. }) {
            self.tell_host_key(inputs, Some(&error.to_string())).await;
        }
    }
}

/// What the agent's last words say about a plan.
fn finished(work: &HostWork, lines: &[ReportLine], probe: Box<Probe>) -> Seen {
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
        Some(error) => Seen::Failed { host, error },
        None => Seen::Learnt(Learnt::Worked(host)),
    }
}

/// A merge patch that hits this very Node and no successor of the same name.
///
/// A cordon notes whose it is, so it must not miss one that a person sets at the same time. Labels
/// and annotations of ours are written by nobody else, so heartbeats need not hold them up.
fn merge_patch(patch: &NodePatch, node: &NodeSeen) -> Value {
    let NodeSeen { resource_version, facts } = node;
    let metadata = |version: Option<String>| {
        let NodePatch { labels, annotations, .. } = patch;
        let mut metadata =
            json!({ "uid": facts.uid, "labels": labels, "annotations": annotations });
        if let (Some(version), Some(fields)) = (version, metadata.as_object_mut()) {
            fields.insert("resourceVersion".to_owned(), version.into());
        }
        metadata
    };
    match patch.unschedulable {
        None => json!({ "metadata": metadata(None) }),
        // Schedulable again means that the field is gone, as kubectl leaves it.
        Some(on) => json!({
            "metadata": metadata(Some(resource_version.to_string())),
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
    use wmco_core::facts::NodeFacts;

    use super::*;

    #[test]
    fn a_patch_names_the_node_it_was_planned_for() {
        let facts = NodeFacts { uid: "u-1".to_owned(), ..NodeFacts::default() };
        let node = NodeSeen { resource_version: 7, facts };
        let patch = NodePatch { unschedulable: Some(false), ..NodePatch::default() };
        let body = merge_patch(&patch, &node);
        assert_eq!(body["metadata"]["uid"], "u-1");
        assert_eq!(body["spec"], json!({ "unschedulable": null }));
        assert_eq!(body["metadata"]["resourceVersion"], "7");
        let labels = merge_patch(&NodePatch::default(), &node);
        assert_eq!(labels["metadata"].get("resourceVersion"), None);
    }
}
