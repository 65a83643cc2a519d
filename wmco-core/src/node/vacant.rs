//! Plans for a host without a Node.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::drift::Drift;
use super::steps::{apply, remove_services, restart, started};
use super::work::{Grounds, HostWork, Vacancy, may_register};
use super::{
    Action, Awaited, Because, Desired, NodeSearch, Observed, Plan, Release, agent_for_work,
};
use crate::facts::NodeFacts;
use crate::fleet::Intent;
use crate::limits;
use crate::preflight::{self, AskedBy, Finding, HostSeen, Requirement};
use crate::protocol::{HostStep, Probe};

/// Findings that an administrator has to fix before work on the host begins, which has this Node. Work in progress
/// continues, except with a foreign containerd or kubelet: ours would take its name, and break other workloads there;
/// and except on a host of another cluster, or on another one than runs the Node.
pub fn unfit(desired: &Desired, node: Option<&NodeFacts>, probe: &Probe) -> Vec<Finding> {
    let is_others = |it: &Finding| {
        matches!(
            it.requirement,
            Requirement::OtherCluster
                | Requirement::OtherMachine
                | Requirement::ForeignContainerd
                | Requirement::ForeignKubelet
        )
    };
    let has_begun = probe.state.is_some();
    let findings = findings(desired, node, probe);
    let mut found: Vec<_> =
        findings.filter(|it| it.blocks() && (!has_begun || is_others(it))).collect();
    if let Some(cordoned) = node.filter(|node| node.unschedulable) {
        for finding in &mut found {
            let slot = if cordoned.holds_slot() { " and keeps its disruption slot" } else { "" };
            let (next_step, name) = (&finding.next_step, &cordoned.name);
            finding.next_step = format!("{next_step}; until then node {name} stays cordoned{slot}");
        }
    }
    found
}

/// Findings that keep nothing from a host, which has this Node, but that an administrator wants to know.
pub fn doubts(desired: &Desired, node: Option<&NodeFacts>, probe: &Probe) -> Vec<Finding> {
    findings(desired, node, probe).filter(|finding| !finding.blocks()).collect()
}

fn findings(
    desired: &Desired,
    node: Option<&NodeFacts>,
    probe: &Probe,
) -> impl Iterator<Item = Finding> + use<> {
    let Release { vxlan_port, cluster, .. } = &*desired.release;
    let seen = HostSeen {
        probe,
        reverse_names: None,
        vxlan_port: *vxlan_port,
        cluster: (!desired.is_made_for_us).then_some(cluster),
        other_machine: desired.other_machine(node, probe),
        asked_by: match desired.intent {
            Intent::Remove(_) => AskedBy::Nobody,
            _ if desired.is_made_for_us => AskedBy::Machine,
            _ => AskedBy::Entry,
        },
    };
    preflight::host(&seen).into_iter()
}

/// Plans the work on a host without a Node, on which nothing can be disturbed.
pub(super) fn on_vacant_host(
    desired: &Desired,
    observed: &Observed,
    probe: &Probe,
    now: Timestamp,
) -> Plan {
    if !unfit(desired, None, probe).is_empty() {
        return Plan::wait(Awaited::HostFit, now + limits::FOREIGN_CHECK);
    }
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
            // A daemon of this version would serve a Node of another version that is not known as this host's.
            Plan::step(seek(desired, probe), Because::NodeMayCome)
        };
    }
    let overdue = started(observed, Awaited::NodeAppears, now) + limits::NODE_APPEARS;
    let again_at = observed.registration.again_at(probe, now);
    let deadline = again_at.map_or(overdue, |again_at| again_at.min(overdue));
    if now < deadline {
        return Plan::wait(Awaited::NodeAppears, deadline);
    }
    // A kubelet registers its Node only at its start, so a kubelet whose Node was deleted is started again, but not
    // a kubelet with a Node that is not known as this host's.
    let because = if now < overdue { Because::NodeGone } else { Because::NodeOverdue };
    if !observed.node_sought {
        return Plan::step(seek(desired, probe), because);
    }
    let stop = vec![HostStep::StopKubelet];
    apply((desired, probe), BTreeSet::new(), stop, Grounds::Harmless, because, now)
}

/// Returns the plan of `work` for a host that can no longer get a Node, or the steps towards that state.
///
/// A kubelet could register its Node, and pods could come, between the probe and the work. So it is stopped first,
/// which ends no pod, and then the API server is asked. The API server is asked before, too: a kubelet whose Node
/// exists but is not known as this host's is not stopped.
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

fn start_all(desired: &Desired) -> Vec<HostStep> {
    vec![
        HostStep::Bootstrap { manifest: desired.release.manifest.clone() },
        HostStep::EnsureDaemon { arguments: desired.release.daemon_arguments.clone() },
    ]
}
