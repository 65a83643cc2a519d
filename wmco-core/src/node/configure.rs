//! Bringing a host to a version and keeping it there.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::drift::{Drift, runs};
use super::work::{Grounds, HostWork, Vacancy, may_register};
use super::{
    Action, Awaited, Because, Desired, NodePatch, NodeSearch, Observed, Plan, agent_for_work,
    answering, disrupt,
};
use crate::facts::NodeFacts;
use crate::fleet::DisruptionPermit;
use crate::protocol::{HostStep, Probe, RebootReason, RootAccess};
use crate::{limits, names};

pub(super) fn plan(
    desired: &Desired,
    observed: &Observed,
    permit: Option<&DisruptionPermit>,
    now: Timestamp,
) -> Plan {
    let probe = match answering(desired, observed) {
        Ok(probe) => probe,
        Err(plan) => return plan,
    };
    if !observed.known_closed && probe.agent.installed == Some(desired.release.agent) {
        // From now on the installed agent may be run without bringing ours first.
        return Plan::step(Action::RecordRoot(RootAccess::Closed), Because::RootClosed);
    }
    let Some(node) = &observed.node else {
        return on_vacant_host(desired, observed, probe, now);
    };
    let due = disturbance(desired, node, probe);
    let patch = ownership(desired, node);
    if due.is_some() && !patch.is_empty() {
        // Before it can hold a slot a Node is known as ours, or nobody would ever free the slot.
        return Plan::step(Action::PatchNode(patch), Because::MetadataDiffers);
    }
    match (due, disrupt::usable(permit, node, observed, now)) {
        (None, _) => keep(desired, observed, node, probe, now),
        (Some(_), None) => disrupt::await_slot(node, observed, now),
        (Some(due), Some(permit)) => {
            // Content goes up while the node still works.
            if node.holds_slot() {
                disrupt::empty(desired, node, observed, probe, permit, now)
                    .unwrap_or_else(|| disturb(desired, node, probe, permit, due, now))
            } else {
                let contents = Drift::between(desired, probe, Some(node)).contents;
                let mark = disrupt::empty(desired, node, observed, probe, permit, now);
                let mut plan = mark.unwrap_or_else(Plan::settled);
                if !contents.is_empty() {
                    let files = contents.len();
                    let upload = Action::Upload(contents.into_iter().collect());
                    let because = Because::ContentDiffers { files };
                    plan.steps.insert(0, super::Step { action: upload, because });
                }
                plan
            }
        }
    }
}

/// What can only be done to an empty node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Disturbance {
    /// Services stop, content changes, services start.
    Reinstall,
    /// The daemon brings its services to other content of the same version.
    Release,
    /// The host restarts.
    Restart,
}

/// What has to be done to an existing node that workloads would notice.
pub(super) fn disturbance(
    desired: &Desired,
    node: &NodeFacts,
    probe: &Probe,
) -> Option<Disturbance> {
    let current = node.version() == Some(&desired.release.version);
    let other_version = node.version().is_some() && !current;
    // A daemon that follows another version goes before the Node is told ours.
    let not_torn_down = node.desired_version().is_some_and(|seen| seen != desired.release.version)
        && probe.services.contains_key(names::objects::WICD);
    if other_version || not_torn_down || Drift::between(desired, probe, Some(node)).disturbs() {
        Some(Disturbance::Reinstall)
    } else if is_held(desired, node) {
        Some(Disturbance::Release)
    } else if node.wants_restart() || !probe.reboot.is_empty() {
        Some(Disturbance::Restart)
    } else {
        None
    }
}

/// Whether the Node's daemon waits until the node is released for the content that services have now.
///
/// One without a mark follows the ConfigMap by itself; another version brings its own mark.
fn is_held(desired: &Desired, node: &NodeFacts) -> bool {
    node.desired_version() == Some(&desired.release.version)
        && node
            .annotation(names::SERVICES_ANNOTATION)
            .is_some_and(|released| released != desired.release.manifest.digest().to_string())
}

/// No Node stands for the host, so nothing on it can be disturbed.
fn on_vacant_host(desired: &Desired, observed: &Observed, probe: &Probe, now: Timestamp) -> Plan {
    let drift = Drift::between(desired, probe, None);
    let tear_down = || vec![HostStep::RemoveDaemon, remove_services(desired)];
    let needs_restart = drift
        .disruptive
        .iter()
        .any(|step| matches!(step, HostStep::EnableContainers | HostStep::RenameComputer { .. }));
    if drift.live.is_empty() && drift.disruptive.is_empty() && !probe.reboot.is_empty() {
        return vacated(desired, observed, probe, |grounds| restart(desired, probe, grounds, now));
    }
    if !drift.is_empty() {
        let mut steps = Vec::new();
        if !drift.disruptive.is_empty() && !probe.services.is_empty() {
            steps = tear_down();
        }
        let torn_down = !steps.is_empty();
        let disturbs = drift.disturbs() || !probe.reboot.is_empty();
        steps.extend(drift.live);
        steps.extend(drift.disruptive);
        if needs_restart || !probe.reboot.is_empty() {
            steps.push(HostStep::Restart);
        } else {
            steps.extend(if torn_down { start_all(desired) } else { drift.start });
        }
        let because = Because::HostDiffers;
        return if disturbs {
            vacated(desired, observed, probe, |grounds| {
                apply((desired, probe), drift.contents, steps, grounds, because, now)
            })
        } else if observed.node_sought {
            apply((desired, probe), drift.contents, steps, Grounds::Harmless, because, now)
        } else {
            // A daemon of this version would serve a Node of another one that is not known as this host's.
            Plan::step(seek(desired, probe), Because::NodeMayCome)
        };
    }
    let overdue = started(observed, Awaited::NodeAppears, now) + limits::NODE_APPEARS;
    let again_at = observed.registration.again_at(probe, now);
    let deadline = again_at.map_or(overdue, |again_at| again_at.min(overdue));
    if now < deadline {
        return Plan::wait(Awaited::NodeAppears, deadline);
    }
    // A kubelet registers its Node when it starts, so one whose Node was deleted starts again; not one
    // whose Node is there, but not known as this host's.
    let because = if now < overdue { Because::NodeGone } else { Because::NodeOverdue };
    if !observed.node_sought {
        return Plan::step(seek(desired, probe), because);
    }
    let stop = vec![HostStep::StopKubelet];
    apply((desired, probe), BTreeSet::new(), stop, Grounds::Harmless, because, now)
}

/// What `work` plans for a host to which no Node can come any more, or the steps to that.
///
/// A kubelet could register its Node, and pods could come, between our look and the work. So it
/// stops first, which ends no pod, and then the API server is asked. It is asked before, too: a kubelet
/// whose Node is there but not known as this host's does not stop for that.
pub(super) fn vacated(
    desired: &Desired,
    observed: &Observed,
    probe: &Probe,
    work: impl FnOnce(Grounds) -> Plan,
) -> Plan {
    if let Some(vacancy) = Vacancy::of(observed) {
        return work(Grounds::Vacant(vacancy));
    }
    let seek = seek(desired, probe);
    let stop = HostWork::new(vec![HostStep::StopKubelet], Grounds::Harmless);
    match stop.filter(|_| may_register(probe) && observed.node_sought) {
        Some(stop) => {
            let stop = Action::Apply { agent: agent_for_work(desired, probe), work: stop };
            Plan::step(stop, Because::NodeMayCome).and(seek, Because::NodeMayCome)
        }
        None => Plan::step(seek, Because::NodeMayCome),
    }
}

fn seek(desired: &Desired, probe: &Probe) -> Action {
    Action::SeekNode(NodeSearch::of(&desired.known_as, probe))
}

/// The node is cordoned and empty, and the permit is ours.
fn disturb(
    desired: &Desired,
    node: &NodeFacts,
    probe: &Probe,
    permit: &DisruptionPermit,
    due: Disturbance,
    now: Timestamp,
) -> Plan {
    let grounds = Grounds::Permitted(permit.clone());
    if due == Disturbance::Reinstall {
        let seen = node.version().map(str::to_owned);
        let current = seen.as_ref() == Some(&desired.release.version);
        let because = if current { Because::HostDiffers } else { Because::VersionDiffers { seen } };
        if let Some(plan) = disrupt::unmark(desired, node, probe, permit, &because) {
            return plan;
        }
    }
    match due {
        Disturbance::Release => {
            // Both at once: the mark that comes next is for the content that is released now.
            let mut patch = release_services(desired);
            patch.annotations.insert(names::VERSION_ANNOTATION.into(), None);
            Plan::step(Action::PatchNode(patch), Because::ServicesDiffer)
        }
        Disturbance::Restart => restart_node(desired, node, probe, grounds, now),
        Disturbance::Reinstall => {
            let drift = Drift::between(desired, probe, Some(node));
            let waits_for_restart = drift.disruptive.iter().any(|step| {
                matches!(step, HostStep::EnableContainers | HostStep::RenameComputer { .. })
            });
            let mut steps = vec![HostStep::RemoveDaemon, remove_services(desired)];
            steps.extend(drift.live);
            steps.extend(drift.disruptive);
            if !waits_for_restart && probe.reboot.is_empty() {
                steps.push(HostStep::Bootstrap { manifest: desired.release.manifest.clone() });
            } else {
                steps.push(HostStep::Restart);
            }
            apply((desired, probe), drift.contents, steps, grounds, Because::HostDiffers, now)
        }
    }
}

/// Restarts the host of a Node.
///
/// A restart that the host wants is proven by the host, which no longer wants it. One that the Node
/// asks for is proven by another boot identity than the one noted while it was asked for; without
/// the note a restart from before could be taken for it.
fn restart_node(
    desired: &Desired,
    node: &NodeFacts,
    probe: &Probe,
    grounds: Grounds,
    now: Timestamp,
) -> Plan {
    if !node.wants_restart() {
        return restart(desired, probe, grounds, now);
    }
    let mut patch = NodePatch::default();
    match node.annotation(names::RESTART_FROM_ANNOTATION) {
        Some(noted) if noted == probe.boot_id => restart(desired, probe, grounds, now),
        None => {
            let boot = Some(probe.boot_id.clone());
            patch.annotations.insert(names::RESTART_FROM_ANNOTATION.into(), boot);
            Plan::step(Action::PatchNode(patch), Because::RestartAsked)
        }
        Some(_) => {
            patch.annotations.insert(names::RESTART_FROM_ANNOTATION.into(), None);
            patch.annotations.insert(names::REBOOT_ANNOTATION.into(), None);
            Plan::step(Action::PatchNode(patch), Because::Restarted)
        }
    }
}

/// The node exists and nothing has to be disturbed.
fn keep(
    desired: &Desired,
    observed: &Observed,
    node: &NodeFacts,
    probe: &Probe,
    now: Timestamp,
) -> Plan {
    let current = node.version() == Some(&desired.release.version);
    let drift = Drift::between(desired, probe, Some(node));
    let joins = is_unknown(desired, node) && !may_run_workloads(desired, probe);
    // A label alone may be left over; with our note the node was out of service.
    let held = node.holds_slot() && node.annotation(names::CORDONED_ANNOTATION).is_some();
    let cordon = !current && (held || joins);
    let patch = metadata(desired, node, cordon, drift.is_empty());
    if !patch.is_empty() {
        return Plan::step(Action::PatchNode(patch), Because::MetadataDiffers);
    }
    if !drift.is_empty() {
        let steps = drift.live.into_iter().chain(drift.start).collect();
        return apply(
            (desired, probe),
            drift.contents,
            steps,
            Grounds::Harmless,
            Because::HostDiffers,
            now,
        );
    }
    if current {
        let patch = disrupt::release(node);
        return if patch.is_empty() && node.drain_notice.is_some() {
            disrupt::unblocked()
        } else if patch.is_empty() {
            Plan::settled()
        } else if node.ready && runs(probe, names::host::KUBELET_SERVICE) {
            Plan::step(Action::PatchNode(patch), Because::Configured)
        } else {
            // The mark outlives a restart; the API may call a node ready whose kubelet is down.
            Plan::wait(Awaited::NodeReady, now + limits::RETRY_MOST)
        };
    }
    let deadline = started(observed, Awaited::VersionMark, now) + limits::VERSION_MARK;
    if now < deadline {
        return Plan::wait(Awaited::VersionMark, deadline);
    }
    // The daemon goes on by itself; a look may tell people why it does not get there.
    Plan::step(Action::Probe, Because::VersionOverdue)
        .until(Awaited::VersionMark, now + limits::VERSION_MARK)
}

/// Since when `what` is awaited.
fn started(observed: &Observed, what: Awaited, now: Timestamp) -> Timestamp {
    observed.waiting.filter(|waiting| waiting.what == what).map_or(now, |waiting| waiting.since)
}

/// The labels and annotations of ours that differ.
fn ownership(desired: &Desired, node: &NodeFacts) -> NodePatch {
    let differing = |wanted: &BTreeMap<String, String>, there: &BTreeMap<String, String>| {
        let differs = |(key, value): &(&String, &String)| there.get(*key) != Some(*value);
        wanted.iter().filter(differs).map(|(k, v)| (k.clone(), Some(v.clone()))).collect()
    };
    NodePatch {
        labels: differing(&desired.labels, &node.labels),
        annotations: differing(&desired.annotations, &node.annotations),
        unschedulable: None,
    }
}

/// Whether the Node carries no label of ours, so that it was just registered; the Node of a Machine gets
/// none, but annotations.
fn is_unknown(desired: &Desired, node: &NodeFacts) -> bool {
    if desired.labels.is_empty() {
        return desired.annotations.keys().all(|key| !node.annotations.contains_key(key));
    }
    desired.labels.iter().all(|(key, value)| node.labels.get(key) != Some(value))
}

/// Whether the host has services that pods need and that only the daemon starts.
///
/// Without them a kubelet is not ready, so no pod has come to a node that is configured for the first
/// time: it is cordoned without a slot. One that lost its marks, or registered again, may have pods.
fn may_run_workloads(desired: &Desired, probe: &Probe) -> bool {
    let bootstrap = |name: &String| {
        desired.release.bootstrap_services.contains(name) || name == names::objects::WICD
    };
    !probe.services.keys().all(bootstrap)
}

/// All metadata that differs, with our cordon if that is wanted.
///
/// The daemon acts on the desired version at once, so that is written only when the host, the
/// daemon included, is as the version wants it.
fn metadata(desired: &Desired, node: &NodeFacts, cordon: bool, host_is_right: bool) -> NodePatch {
    let mut patch = if cordon { disrupt::cordon(node) } else { NodePatch::default() };
    let owned = ownership(desired, node);
    patch.labels.extend(owned.labels);
    patch.annotations.extend(owned.annotations);
    let told = node.desired_version() == Some(&desired.release.version);
    if host_is_right && !told {
        let version = Some(desired.release.version.clone());
        patch.annotations.insert(names::DESIRED_VERSION_ANNOTATION.into(), version);
    }
    if host_is_right && (!told || node.annotation(names::SERVICES_ANNOTATION).is_none()) {
        patch.annotations.extend(release_services(desired).annotations);
    }
    // No restart is due, so a noted boot would only prove a later one that did not happen.
    if node.annotation(names::RESTART_FROM_ANNOTATION).is_some() {
        patch.annotations.insert(names::RESTART_FROM_ANNOTATION.into(), None);
    }
    patch
}

/// Releases the node for the content that services have now.
fn release_services(desired: &Desired) -> NodePatch {
    let mut patch = NodePatch::default();
    let digest = desired.release.manifest.digest().to_string();
    patch.annotations.insert(names::SERVICES_ANNOTATION.into(), Some(digest));
    patch
}

/// Restarts the host now.
pub(super) fn restart(desired: &Desired, probe: &Probe, grounds: Grounds, now: Timestamp) -> Plan {
    let reasons: Vec<RebootReason> = probe.reboot.iter().copied().collect();
    let because = if reasons.is_empty() {
        Because::RestartAsked
    } else {
        Because::RestartPending { reasons }
    };
    apply((desired, probe), BTreeSet::new(), vec![HostStep::Restart], grounds, because, now)
}

/// Uploads what the steps need and has the agent carry them out.
pub(super) fn apply(
    (desired, probe): (&Desired, &Probe),
    contents: BTreeSet<crate::digest::Sha256>,
    steps: Vec<HostStep>,
    grounds: Grounds,
    because: Because,
    now: Timestamp,
) -> Plan {
    let mut plan = Plan { steps: Vec::new(), next: super::Next::Now };
    if !contents.is_empty() {
        let files = contents.len();
        let upload = Action::Upload(contents.into_iter().collect());
        plan = plan.and(upload, Because::ContentDiffers { files });
    }
    // Steps that disturb come only with grounds that allow them; otherwise the slot is awaited.
    match HostWork::new(steps, grounds) {
        Some(work) => {
            let restarts = work.restarts();
            let agent = agent_for_work(desired, probe);
            let plan = plan.and(Action::Apply { agent, work }, because);
            if restarts { plan.until(Awaited::HostBack, now + limits::HOST_BACK) } else { plan }
        }
        None => Plan::wait(Awaited::DisruptionSlot, now + limits::RETRY_MOST),
    }
}

fn remove_services(desired: &Desired) -> HostStep {
    HostStep::RemoveServices { manifests: desired.release.known_manifests.clone() }
}

fn start_all(desired: &Desired) -> Vec<HostStep> {
    vec![
        HostStep::Bootstrap { manifest: desired.release.manifest.clone() },
        HostStep::EnsureDaemon { arguments: desired.release.daemon_arguments.clone() },
    ]
}
