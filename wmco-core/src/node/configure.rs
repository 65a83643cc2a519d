//! Configures a host for a version and keeps it configured.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::drain::DrainMarks;
use super::drift::{Drift, runs};
use super::steps::{apply, remove_services, restart, started};
use super::vacant::on_vacant_host;
use super::work::Grounds;
use super::{
    Action, Awaited, Because, Desired, NodePatch, Observed, Plan, Purpose, answering, disrupt,
};
use crate::facts::NodeFacts;
use crate::fleet::DisruptionPermit;
use crate::protocol::{HostStep, Probe, RootAccess};
use crate::{limits, names};

pub(super) fn plan(
    desired: &Desired,
    observed: &Observed,
    permit: Option<&DisruptionPermit>,
    now: Timestamp,
) -> Plan {
    let probe = match answering(desired, observed, now) {
        Ok(probe) => probe,
        Err(plan) => return plan,
    };
    if !observed.known_closed && probe.agent.installed == Some(desired.release.agent) {
        // From now on the installed agent may be run without an upload of ours.
        return Plan::step(Action::RecordRoot(RootAccess::Closed), Because::RootClosed);
    }
    let Some(node) = &observed.node else {
        return on_vacant_host(desired, observed, probe, now);
    };
    let due = disturbance(desired, node, probe);
    let patch = ownership(desired, node);
    if due.is_some() && !patch.is_empty() {
        // A Node gets our marks before it can hold a slot, or the slot would never be freed.
        return Plan::step(Action::PatchNode(patch), Because::MetadataDiffers);
    }
    match (due, disrupt::usable(permit, node, observed, now)) {
        (None, _) => keep(desired, observed, node, probe, now),
        (Some(_), None) => meanwhile(desired, node, probe, now)
            .unwrap_or_else(|| disrupt::await_slot(node, observed, now)),
        (Some(due), Some(permit)) => {
            // Upload content while the node still works.
            if node.holds_slot() {
                disrupt::empty(desired, node, observed, probe, (permit, due), now)
                    .unwrap_or_else(|| disturb(desired, node, probe, permit, due, now))
            } else {
                let contents = Drift::between(desired, probe, Some(node)).contents;
                let mark = disrupt::empty(desired, node, observed, probe, (permit, due), now);
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

/// Steps for a node that waits for a slot: files whose readers notice a change by themselves, such as mirrors,
/// certificates and authorities. A node may wait for days when pods block the drain of another one.
///
/// A node of another version does not get them yet, because its services may not understand them.
fn meanwhile(desired: &Desired, node: &NodeFacts, probe: &Probe, now: Timestamp) -> Option<Plan> {
    let current = node.version() == Some(&desired.release.version);
    let installed = probe.agent.installed == Some(desired.release.agent);
    let drift = Drift::between(desired, probe, Some(node));
    if !current || !installed || drift.live.is_empty() {
        return None;
    }
    let placed = drift.live.iter().filter_map(|step| match step {
        HostStep::PlaceFile { sha256, .. } => Some(*sha256),
        _ => None,
    });
    let contents = placed.filter(|sha256| drift.contents.contains(sha256)).collect();
    let (grounds, because) = (Grounds::Harmless, Because::HostDiffers);
    Some(apply((desired, probe), contents, drift.live, grounds, because, now))
}

/// Decides which work is due on an existing node that workloads would notice.
pub(super) fn disturbance(desired: &Desired, node: &NodeFacts, probe: &Probe) -> Option<Purpose> {
    let current = node.version() == Some(&desired.release.version);
    let other_version = node.version().is_some() && !current;
    // A daemon that follows another version is removed before our version is written to the Node.
    let not_torn_down = node.desired_version().is_some_and(|seen| seen != desired.release.version)
        && probe.services.contains_key(names::objects::WICD);
    if other_version || not_torn_down || Drift::between(desired, probe, Some(node)).disturbs() {
        Some(Purpose::Upgrade)
    } else if is_held(desired, node) {
        Some(Purpose::Release)
    } else if node.wants_restart() || !probe.reboot.is_empty() {
        Some(Purpose::Restart)
    } else {
        None
    }
}

/// Whether the Node's daemon waits for the release of the present services and roots.
///
/// A daemon without marks follows the ConfigMap and the bundle by itself; another version brings its own marks.
fn is_held(desired: &Desired, node: &NodeFacts) -> bool {
    let is_marked = |name: &String| node.annotation(name).is_some();
    node.desired_version() == Some(&desired.release.version)
        && release(desired, node).annotations.keys().any(is_marked)
}

/// The digests for which a node is released, by annotation name.
fn release_marks(desired: &Desired) -> [(&'static str, String); 2] {
    [
        (names::SERVICES_ANNOTATION, desired.release.manifest.digest().to_string()),
        (names::ROOTS_ANNOTATION, desired.release.roots.to_string()),
    ]
}

/// Plans the work on a cordoned and empty node, with our permit.
fn disturb(
    desired: &Desired,
    node: &NodeFacts,
    probe: &Probe,
    permit: &DisruptionPermit,
    due: Purpose,
    now: Timestamp,
) -> Plan {
    let grounds = Grounds::Permitted(permit.clone());
    if due == Purpose::Upgrade {
        let seen = node.version().map(str::to_owned);
        let current = seen.as_ref() == Some(&desired.release.version);
        let because = if current { Because::HostDiffers } else { Because::VersionDiffers { seen } };
        if let Some(plan) = disrupt::unmark(desired, node, probe, permit, &because) {
            return plan;
        }
    }
    match due {
        Purpose::Release => {
            let drift = Drift::between(desired, probe, Some(node));
            if !drift.is_empty() {
                // The daemon reads the bundle as soon as the node is released for its roots.
                let steps = drift.live.into_iter().chain(drift.start).collect();
                let because = Because::HostDiffers;
                return apply((desired, probe), drift.contents, steps, grounds, because, now);
            }
            // All in one patch: the next version mark is for the content that is released now, and variables and
            // roots share one restart.
            let mut patch = release(desired, node);
            let services = patch.annotations.contains_key(names::SERVICES_ANNOTATION);
            patch.annotations.insert(names::VERSION_ANNOTATION.into(), None);
            let because = if services { Because::ServicesDiffer } else { Because::RootsDiffer };
            Plan::step(Action::PatchNode(patch), because)
        }
        Purpose::Restart | Purpose::Removal => restart_node(desired, node, probe, grounds, now),
        Purpose::Upgrade => {
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
/// A restart that the host needs is proven by the host, which no longer needs it. A restart that the Node requests
/// is proven by another boot identity than the one recorded at the request; without the record an earlier restart
/// could count as the proof.
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

/// Plans the work on an existing node that needs no disruption.
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
    // A label alone may be left over; with our annotation the node was out of service.
    let held = node.holds_slot() && node.annotation(names::CORDONED_ANNOTATION).is_some();
    let cordon = !current && (held || joins);
    let cordon = cordon.then_some(&observed.drain.marks);
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
            // The mark outlives a restart; the API may call a node ready while its kubelet is down.
            Plan::wait(Awaited::NodeReady, now + limits::RETRY_MOST)
        };
    }
    let deadline = started(observed, Awaited::VersionMark, now) + limits::VERSION_MARK;
    if now < deadline {
        return Plan::wait(Awaited::VersionMark, deadline);
    }
    // The daemon continues by itself; a probe may show why it does not finish.
    Plan::step(Action::Probe, Because::VersionOverdue)
        .until(Awaited::VersionMark, now + limits::VERSION_MARK)
}

/// The labels and annotations that the operator owns and that differ.
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

/// Whether the Node has no mark of ours, so that it has just registered. The Node of a Machine gets annotations but
/// no label.
fn is_unknown(desired: &Desired, node: &NodeFacts) -> bool {
    if desired.labels.is_empty() {
        return desired.annotations.keys().all(|key| !node.annotations.contains_key(key));
    }
    desired.labels.iter().all(|(key, value)| node.labels.get(key) != Some(value))
}

/// Whether the host runs services that pods need and that only the daemon starts.
///
/// Without them a kubelet is not ready, so a node that is configured for the first time has no pods: it is cordoned
/// without a slot. A node that lost its marks, or registered again, may have pods.
fn may_run_workloads(desired: &Desired, probe: &Probe) -> bool {
    let bootstrap = |name: &String| {
        desired.release.bootstrap_services.contains(name) || name == names::objects::WICD
    };
    !probe.services.keys().all(bootstrap)
}

/// All metadata that differs, with our cordon if the marks of a drain are given.
///
/// The daemon acts on the desired version at once, so it is written only when the host, including the daemon, is
/// ready for that version.
fn metadata(
    desired: &Desired,
    node: &NodeFacts,
    cordon: Option<&DrainMarks>,
    host_is_right: bool,
) -> NodePatch {
    let mut patch = cordon.map(|marks| disrupt::cordon(node, marks)).unwrap_or_default();
    let owned = ownership(desired, node);
    patch.labels.extend(owned.labels);
    patch.annotations.extend(owned.annotations);
    let told = node.desired_version() == Some(&desired.release.version);
    if host_is_right && !told {
        let version = Some(desired.release.version.clone());
        patch.annotations.insert(names::DESIRED_VERSION_ANNOTATION.into(), version);
    }
    if host_is_right {
        let marks = release(desired, node).annotations.into_iter();
        let due = marks.filter(|(name, _)| !told || node.annotation(name).is_none());
        patch.annotations.extend(due);
    }
    // No restart is due, so a recorded boot identity could only prove a later restart that did not happen.
    if node.annotation(names::RESTART_FROM_ANNOTATION).is_some() {
        patch.annotations.insert(names::RESTART_FROM_ANNOTATION.into(), None);
    }
    patch
}

/// Releases the node for the present services and roots, if it is not yet released for them.
fn release(desired: &Desired, node: &NodeFacts) -> NodePatch {
    let other = release_marks(desired)
        .into_iter()
        .filter(|(name, digest)| node.annotation(name) != Some(digest.as_str()));
    let annotations = other.map(|(name, digest)| (name.to_owned(), Some(digest))).collect();
    NodePatch { annotations, ..NodePatch::default() }
}
