//! Taking a node out of service, and giving it back.

use jiff::Timestamp;

use super::drift::runs;
use super::work::{Grounds, HostWork};
use super::{Action, Awaited, Because, Next, NodeFacts, NodePatch, Observed, Plan, PodFacts, Step};
use crate::fleet::DisruptionPermit;
use crate::protocol::{HostStep, Probe};
use crate::{limits, names};

/// The plan that empties the node, or `None` when it is marked, cordoned and empty.
pub(super) fn empty(
    node: &NodeFacts,
    observed: &Observed,
    probe: &Probe,
    permit: &DisruptionPermit,
    now: Timestamp,
) -> Option<Plan> {
    let patch = mark(node);
    if !patch.is_empty() {
        // A list from before the cordon is worth nothing: pods may have come since.
        let cordon = Plan::step(Action::PatchNode(patch), Because::DisruptionDue);
        return Some(cordon.and(Action::ListPods, Because::DisruptionDue));
    }
    let Some(pods) = &observed.pods else {
        return Some(Plan::step(Action::ListPods, Because::DisruptionDue));
    };
    let staying: Vec<PodFacts> = pods.iter().filter(|pod| !pod.leaving).cloned().collect();
    let wait = Plan::wait(Awaited::PodsGone, now + limits::DRAIN_RETRY);
    if !staying.is_empty() {
        let evict = Action::Evict { pods: staying, permit: permit.clone() };
        return Some(wait.and(evict, Because::DisruptionDue));
    }
    // Only a kubelet can end pods, so without one there is nothing more to wait for.
    let leaving = !pods.is_empty() && runs(probe, names::host::KUBELET_SERVICE);
    leaving.then_some(wait)
}

/// The plan that takes the version mark off an empty node, or `None` when it has none.
///
/// The daemon writes the mark, so it goes first. Whoever reads the mark must not take a node whose
/// host is half torn down for a configured one.
pub(super) fn unmark(
    node: &NodeFacts,
    probe: &Probe,
    permit: &DisruptionPermit,
    because: &Because,
) -> Option<Plan> {
    node.version()?;
    let mut patch = NodePatch::default();
    patch.annotations.insert(names::VERSION_ANNOTATION.into(), None);
    let daemon = probe.services.contains_key(names::objects::WICD);
    let steps = if daemon { vec![HostStep::RemoveDaemon] } else { Vec::new() };
    let grounds = Grounds::Permitted(permit.clone());
    let work = HostWork::new(steps, grounds).filter(|_| daemon);
    let stop = work.map(|work| Step { action: Action::Apply(work), because: because.clone() });
    let plan = Plan { steps: stop.into_iter().collect(), next: Next::Now };
    Some(plan.and(Action::PatchNode(patch), because.clone()))
}

/// Marks the node as holding a slot and cordons it, remembering who cordoned it first.
fn mark(node: &NodeFacts) -> NodePatch {
    let mut patch = cordon(node);
    if !node.holds_slot() {
        patch.labels.insert(names::UPGRADING_LABEL.into(), Some(names::TRUE.into()));
    }
    patch
}

/// Cordons the node, remembering whose cordon it is; empty when that is done.
///
/// A cordon that is there before ours is a person's. When that person lifts it meanwhile, the next
/// one is ours. One that a person adds to ours cannot be told from ours.
pub(super) fn cordon(node: &NodeFacts) -> NodePatch {
    let mut patch = NodePatch::default();
    let seen = node.annotation(names::CORDONED_ANNOTATION);
    let by = match seen {
        _ if !node.unschedulable => names::CORDONED_BY_US,
        Some(by) => by,
        None => names::CORDONED_BY_OTHERS,
    };
    if seen != Some(by) {
        patch.annotations.insert(names::CORDONED_ANNOTATION.into(), Some(by.into()));
    }
    if !node.unschedulable {
        patch.unschedulable = Some(true);
    }
    patch
}

/// Gives the node back as it was before us; empty when there is nothing to give back.
pub(super) fn release(node: &NodeFacts) -> NodePatch {
    let mut patch = NodePatch::default();
    if node.labels.contains_key(names::UPGRADING_LABEL) {
        patch.labels.insert(names::UPGRADING_LABEL.into(), None);
    }
    for name in [names::CORDONED_ANNOTATION, names::RESTART_FROM_ANNOTATION] {
        if node.annotations.contains_key(name) {
            patch.annotations.insert(name.into(), None);
        }
    }
    let ours = node.annotation(names::CORDONED_ANNOTATION) == Some(names::CORDONED_BY_US);
    if ours && node.unschedulable {
        patch.unschedulable = Some(false);
    }
    patch
}
