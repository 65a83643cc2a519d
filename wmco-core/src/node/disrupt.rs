//! Takes a node out of service, and puts it back.

use jiff::Timestamp;

use super::drain::{Drain, DrainMarks, grace_most, is_news};
use super::drift::runs;
use super::work::{Grounds, HostWork};
use super::{
    Action, Awaited, Because, Desired, Next, NodePatch, Observed, Plan, Purpose, Step,
    agent_for_work,
};
use crate::facts::{DrainNotice, NodeFacts, PodFacts};
use crate::fleet::DisruptionPermit;
use crate::protocol::{HostStep, Probe};
use crate::{limits, names};

/// Plans the drain of a node; `None` if it is marked, cordoned and empty.
///
/// If pods do not leave in time and the host is still unchanged, the node is uncordoned, so that another node gets
/// the slot.
pub(super) fn empty(
    desired: &Desired,
    node: &NodeFacts,
    observed: &Observed,
    probe: &Probe,
    (permit, purpose): (&DisruptionPermit, Purpose),
    now: Timestamp,
) -> Option<Plan> {
    let because = || Because::DisruptionDue { purpose };
    let marks = observed.drain.marks;
    let timeout = desired.release.drain_timeout;
    let untouched = is_untouched(node, probe);
    let mut patch = mark(node, &marks);
    if !patch.is_empty() {
        let Some(since) = marks.since else {
            patch.annotations.extend(begin(now).annotations);
            return Some(Plan::step(Action::PatchNode(patch), because()));
        };
        // Somebody takes off what keeps pods away: that holds the slot no longer than pods may.
        if now >= since + timeout && untouched {
            let Some(pods) = &observed.pods else {
                return Some(Plan::step(Action::ListPods, because()));
            };
            let drain = Drain::new((since, purpose), timeout, &observed.drain, pods, now);
            if now >= drain.deadline {
                return Some(give_back(desired, node, observed, &drain, now));
            }
        }
        return Some(Plan::step(Action::PatchNode(patch), Because::MetadataDiffers));
    }
    let (Some(since), Some(cordoned)) = (marks.since, marks.cordoned) else {
        // The cordon is there, so no pod comes any more but those that tolerate it.
        let mut patch = marks.since.map_or_else(|| begin(now), |_| NodePatch::default());
        let seen = Some(format!("{now:.0}"));
        patch.annotations.insert(names::CORDONED_SINCE_ANNOTATION.into(), seen);
        let noted = Plan::step(Action::PatchNode(patch), because());
        return Some(noted.and(Action::ListPods, because()));
    };
    let Some(pods) = &observed.pods else {
        return Some(Plan::step(Action::ListPods, because()));
    };
    let (late, pods): (Vec<PodFacts>, Vec<PodFacts>) =
        pods.iter().cloned().partition(|pod| pod.tolerates_cordon_of(cordoned));
    let not_leaving = |pods: &[PodFacts]| -> Vec<PodFacts> {
        pods.iter().filter(|pod| !pod.is_leaving()).cloned().collect()
    };
    let staying = not_leaving(&pods);
    let has_grace = now < grace_most(since, timeout);
    let leaving = pods.iter().any(|pod| may_still_end(pod, probe, now, has_grace));
    if staying.is_empty() && !leaving {
        let late = not_leaving(&late);
        if !late.is_empty() && !observed.drain.late_pods_asked {
            let evict = Action::Evict { pods: late, permit: permit.clone() };
            return Some(Plan::step(evict, Because::PodsCameBack));
        }
        return node.drain_notice.is_some().then(unblocked);
    }
    let drain = Drain::new((since, purpose), timeout, &observed.drain, &pods, now);
    if now >= drain.deadline && untouched {
        return Some(give_back(desired, node, observed, &drain, now));
    }
    let mut plan = Plan::wait(Awaited::PodsGone, drain.next_attempt());
    if !staying.is_empty() && drain.asks_now() {
        let evict = Action::Evict { pods: staying, permit: permit.clone() };
        plan = plan.and(evict, because());
    }
    let told = node.drain_notice.as_ref();
    match drain.notice(told, untouched) {
        Ok(notice) if notice.as_ref() == told => {}
        Ok(Some(notice)) => plan.steps.push(tell(told, notice)),
        Ok(None) => plan.steps.extend(unblocked().steps),
        Err(super::drain::Unknown) => {}
    }
    Some(plan)
}

/// Whether a pod may still be ended as its owner wants. Only a kubelet can do that; the daemon may start one while the
/// pod has its grace period, if that still counts.
fn may_still_end(pod: &PodFacts, probe: &Probe, now: Timestamp, has_grace: bool) -> bool {
    let starts = has_grace && probe.services.contains_key(names::objects::WICD);
    runs(probe, names::host::KUBELET_SERVICE)
        || starts && pod.leaves_by.is_some_and(|ends| now < ends)
}

/// Whether nothing on the host has changed that its services would notice, so that the node may be put back as it
/// is.
///
/// The first change is the removal of the daemon or of the version mark, or a restart.
fn is_untouched(node: &NodeFacts, probe: &Probe) -> bool {
    let restarted =
        node.annotation(names::RESTART_FROM_ANNOTATION).is_some_and(|from| from != probe.boot_id);
    node.version().is_some() && probe.services.contains_key(names::objects::WICD) && !restarted
}

/// Gives up a drain: uncordons the node, and frees its slot.
fn give_back(
    desired: &Desired,
    node: &NodeFacts,
    observed: &Observed,
    drain: &Drain<'_>,
    now: Timestamp,
) -> Plan {
    let given_up = observed.drain.marks.give_up(desired.release.drain_timeout, now);
    let mut patch = release(node);
    let noted = Some(given_up.to_string());
    patch.annotations.insert(names::DRAIN_GIVEN_UP_ANNOTATION.into(), noted);
    let mut plan = Plan::step(Action::PatchNode(patch), Because::DrainOverdue);
    plan.steps.push(tell(node.drain_notice.as_ref(), drain.farewell(&given_up)));
    plan
}

fn tell(told: Option<&DrainNotice>, notice: DrainNotice) -> Step {
    let event = is_news(told, &notice);
    let action = Action::TellDrain { notice: Some(notice), event };
    Step { action, because: Because::DrainBlocked }
}

/// Clears the report of a blocked drain.
pub(super) fn unblocked() -> Plan {
    Plan::step(Action::TellDrain { notice: None, event: false }, Because::DrainUnblocked)
}

/// Waits for a slot, at most until a drain that was given up may be tried again.
pub(super) fn await_slot(node: &NodeFacts, observed: &Observed, now: Timestamp) -> Plan {
    let paused_until = observed.drain.marks.paused_until(node, now);
    let resync = now + limits::RESYNC;
    Plan::wait(Awaited::DisruptionSlot, paused_until.map_or(resync, |until| until.min(resync)))
}

/// The permit; `None` while a drain that was given up must not be tried again.
pub(super) fn usable<'a>(
    permit: Option<&'a DisruptionPermit>,
    node: &NodeFacts,
    observed: &Observed,
    now: Timestamp,
) -> Option<&'a DisruptionPermit> {
    permit.filter(|_| observed.drain.marks.paused_until(node, now).is_none())
}

/// Records the start of the drain.
fn begin(now: Timestamp) -> NodePatch {
    let mut patch = NodePatch::default();
    let since = Some(format!("{now:.0}"));
    patch.annotations.insert(names::DRAIN_SINCE_ANNOTATION.into(), since);
    patch
}

/// Plans the removal of the version mark from an empty node; `None` if it has none.
///
/// The daemon writes the mark, so the daemon is removed first. A reader of the mark must not mistake a half-removed
/// node for a configured one.
pub(super) fn unmark(
    desired: &Desired,
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
    let agent = agent_for_work(desired, probe);
    let stop =
        work.map(|work| Step { action: Action::Apply { agent, work }, because: because.clone() });
    let plan = Plan { steps: stop.into_iter().collect(), next: Next::Now };
    Some(plan.and(Action::PatchNode(patch), because.clone()))
}

/// Marks the node as holding a slot and cordons it, and records who cordoned it first.
fn mark(node: &NodeFacts, marks: &DrainMarks) -> NodePatch {
    let mut patch = cordon(node, marks);
    if !node.holds_slot() {
        note_anew(node, marks, &mut patch);
    }
    // With a label that was left over it took no slot yet.
    if !node.holds_slot() || !patch.is_empty() {
        patch.labels.insert(names::UPGRADING_LABEL.into(), Some(names::TRUE.into()));
    }
    patch
}

/// Forgets since when the node is cordoned. Pods that came while nothing kept them away may not be taken for pods that
/// tolerate the cordon, also where the Node has lost the mark that is remembered.
fn note_anew(node: &NodeFacts, marks: &DrainMarks, patch: &mut NodePatch) {
    if marks.cordoned.is_some() || node.annotations.contains_key(names::CORDONED_SINCE_ANNOTATION) {
        patch.annotations.insert(names::CORDONED_SINCE_ANNOTATION.into(), None);
    }
}

/// Cordons the node and records whose cordon it is; empty if nothing is to be done.
///
/// An existing cordon belongs to an administrator. If the administrator removes it meanwhile, the next cordon is
/// ours. A cordon that an administrator adds to ours cannot be distinguished from ours.
pub(super) fn cordon(node: &NodeFacts, marks: &DrainMarks) -> NodePatch {
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
    if !patch.is_empty() {
        note_anew(node, marks, &mut patch);
    }
    patch
}

/// Restores the node's state from before our cordon; empty if there is nothing to restore.
pub(super) fn release(node: &NodeFacts) -> NodePatch {
    let mut patch = NodePatch::default();
    if node.labels.contains_key(names::UPGRADING_LABEL) {
        patch.labels.insert(names::UPGRADING_LABEL.into(), None);
    }
    for name in [
        names::CORDONED_ANNOTATION,
        names::RESTART_FROM_ANNOTATION,
        names::DRAIN_SINCE_ANNOTATION,
        names::CORDONED_SINCE_ANNOTATION,
        names::DRAIN_GIVEN_UP_ANNOTATION,
    ] {
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
