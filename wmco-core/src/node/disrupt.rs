//! Taking a node out of service, and giving it back.

use jiff::Timestamp;

use super::drift::runs;
use super::{Action, Awaited, Because, NodeFacts, NodePatch, Observed, Plan, PodFacts};
use crate::fleet::DisruptionPermit;
use crate::protocol::Probe;
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
        return Some(Plan::step(Action::PatchNode(patch), Because::DisruptionDue));
    }
    // Without a kubelet no pod can leave, and none runs under our eyes either.
    if !runs(probe, names::host::KUBELET_SERVICE) {
        return None;
    }
    let Some(pods) = &observed.pods else {
        return Some(Plan::step(Action::ListPods, Because::DisruptionDue));
    };
    if pods.is_empty() {
        return None;
    }
    let staying: Vec<PodFacts> = pods.iter().filter(|pod| !pod.leaving).cloned().collect();
    let wait = Plan::wait(Awaited::PodsGone, now + limits::DRAIN_RETRY);
    if staying.is_empty() {
        return Some(wait);
    }
    let evict = Action::Evict { pods: staying, permit: permit.clone() };
    Some(wait.and(evict, Because::DisruptionDue))
}

/// Marks the node as holding a slot and cordons it, remembering who cordoned it first.
fn mark(node: &NodeFacts) -> NodePatch {
    let mut patch = cordon(node);
    if !node.holds_slot() {
        patch.labels.insert(names::UPGRADING_LABEL.into(), Some(names::TRUE.into()));
    }
    patch
}

/// Cordons the node, remembering who cordoned it first; empty when that is done.
pub(super) fn cordon(node: &NodeFacts) -> NodePatch {
    let mut patch = NodePatch::default();
    if node.annotation(names::CORDONED_ANNOTATION).is_none() {
        let by = if node.unschedulable { names::CORDONED_BY_OTHERS } else { names::CORDONED_BY_US };
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
