//! Observations of a worker that are kept between two plans, and how long they count.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{
    Action, Awaited, Because, Desired, DrainMarks, DrainSeen, HostSeen, InstanceInputs, Next,
    NodePatch, Observed, Outcome, Plan, Refusal, Registration, Rest, Step, Waiting, Wake,
    claims_slot, reconcile,
};
use crate::corrections::Corrections;
use crate::digest::Sha256;
use crate::facts::{NodeFacts, PodFacts};
use crate::{limits, names};

/// Observations of one instance from its last *pass*: the plans that follow each other without a pause.
///
/// A plan ends with [`done`](Self::done) or [`failed`](Self::failed), a rest with [`woken`](Self::woken). Losing a
/// memory costs one probe.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    look: Look,
    /// Address of the host in the last plan.
    at: Option<Ipv4Addr>,
    /// The key hash and the user name of the last login, as the Node's annotations record them.
    login: Option<[Option<String>; 2]>,
    pods: Option<Vec<PodFacts>>,
    search: Search,
    waiting: Option<Waiting>,
    /// The record of the drain on the Node with this UID, from when the Node was first seen, with our changes. A later
    /// change by others does not count, so that nobody keeps a slot that way.
    marks: Option<(String, DrainMarks)>,
    /// The record with the changes of the last plan.
    marks_then: DrainMarks,
    /// Evictions that were refused at the last attempt.
    refused: Option<Vec<Refusal>>,
    /// Whether pods that came after the cordon were asked to leave while the node held its slot.
    late_pods_asked: bool,
    /// When the others were asked last.
    asked: Option<Timestamp>,
    registration: Registration,
    /// End of the pass in which the host was last probed.
    seen_at: Option<Timestamp>,
    /// Whether the Node requested a restart in the last plan.
    restart_asked: bool,
    effect: Effect,
    /// Corrections of the Node's metadata.
    corrections: Corrections,
    /// Another writer who undoes corrections again and again.
    other_writer: OtherWriter,
    /// Whether our last change of the Node was made, and not another writer's instead.
    is_patched: bool,
}

/// How far the last observation of the host can be used.
#[derive(Clone, Debug, Default)]
enum Look {
    /// Not at all: the host has to be probed first.
    #[default]
    Due,
    /// For every step: it is from this pass.
    Current {
        host: HostSeen,
        /// Whether a restart was requested before it, so that the observed boot identity may be recorded as the one
        /// that has to end.
        after_request: bool,
    },
    /// Only for steps that neither change the host nor put its node back: it is from an earlier pass.
    Earlier(HostSeen),
}

/// The API server's answer in this pass about a Node of the host.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Search {
    /// Not asked yet, or a later step may have brought a Node.
    #[default]
    Open,
    /// No Node exists.
    InVain,
}

/// Whether another writer undoes corrections again and again.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum OtherWriter {
    /// No.
    #[default]
    None,
    /// Yes, and nobody has asked since.
    Met,
    /// Yes, as somebody has asked for.
    Told,
}

/// Effect of the steps of the last plan.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Effect {
    /// Nothing that could end a wait.
    #[default]
    None,
    /// A change.
    Change,
}

impl Memory {
    /// The last observation of the host.
    pub(super) fn host(&self) -> &HostSeen {
        match &self.look {
            Look::Due => &HostSeen::Unknown,
            Look::Current { host, .. } | Look::Earlier(host) => host,
        }
    }

    /// Returns the plan for now.
    pub(super) fn plan(&mut self, inputs: &InstanceInputs, now: Timestamp) -> Plan {
        let (desired, node) = (&inputs.desired, inputs.node.as_ref());
        if let Ok(reach) = &inputs.reach
            && self.at.replace(reach.address).is_some_and(|before| before != reach.address)
        {
            // Another host may have this address, even in the middle of a pass.
            self.forget();
        }
        self.effect = Effect::None;
        self.restart_asked = node.is_some_and(NodeFacts::wants_restart);
        self.expect_login(desired);
        self.read_marks(desired, node, now);
        self.registration.meet(node);
        let mut plan = self.decide(inputs, now);
        if let Some((patch, until)) = self.rests_from_correcting(&plan, now) {
            if self.other_writer == OtherWriter::None {
                self.other_writer = OtherWriter::Met;
            }
            plan = self.meanwhile(inputs, &patch, until, now);
        }
        self.marks_then = self.drain_marks();
        for step in &plan.steps {
            if let Action::PatchNode(patch) = &step.action {
                self.marks_then.change(patch, desired.release.drain_timeout, now);
                if patch.annotations.get(names::REBOOT_ANNOTATION) == Some(&None) {
                    self.request_ends();
                }
            }
        }
        plan
    }

    /// A restart that is requested from now on is another one, even if nobody sees the Node without a request.
    fn request_ends(&mut self) {
        if let Look::Current { after_request, .. } = &mut self.look {
            *after_request = false;
        }
    }

    /// Decides on the last look at the host, or that a new one is due.
    fn decide(&mut self, inputs: &InstanceInputs, now: Timestamp) -> Plan {
        let (desired, node) = (&inputs.desired, inputs.node.as_ref());
        let plan = reconcile(desired, &self.observed(inputs), now);
        let rests = |step: &Step| self.may_rest_on_last_look(&step.action, &step.because);
        if plan.steps.iter().all(rests) && !self.may_be_over(&plan, node) {
            return plan;
        }
        self.forget();
        reconcile(desired, &self.observed(inputs), now)
    }

    /// The patch that another writer undoes again and again, and until when it is not made.
    fn rests_from_correcting(
        &mut self,
        plan: &Plan,
        now: Timestamp,
    ) -> Option<(NodePatch, Timestamp)> {
        self.corrections.forget_calm(since_epoch(now));
        if self.corrections.is_calm() {
            self.other_writer = OtherWriter::None;
        }
        corrections_in(plan).find_map(|patch| {
            let rests_until = self.corrections.rests_until(&patch.to_string())?;
            let until = Timestamp::UNIX_EPOCH + SignedDuration::try_from(rests_until).ok()?;
            (now < until).then(|| (patch.clone(), until))
        })
    }

    /// The rest of the work, as if the Node had what is not corrected now. Without a slot's label and cordon nothing goes
    /// on, but a drain ends in time.
    fn meanwhile(
        &mut self,
        inputs: &InstanceInputs,
        patch: &NodePatch,
        until: Timestamp,
        now: Timestamp,
    ) -> Plan {
        if patch.unschedulable.is_some() || patch.labels.contains_key(names::UPGRADING_LABEL) {
            let ends = self.drain_marks().since.map(|it| it + inputs.desired.release.drain_timeout);
            let ends = ends.filter(|ends| *ends > now);
            return Plan::wait(Awaited::OtherWriter, ends.map_or(until, |ends| ends.min(until)));
        }
        let mut inputs = inputs.clone();
        if let Some(node) = &mut inputs.node {
            let set = |values: &mut BTreeMap<String, String>,
                       changes: &BTreeMap<String, Option<String>>| {
                for (key, value) in changes {
                    match value {
                        Some(value) => values.insert(key.clone(), value.clone()),
                        None => values.remove(key),
                    };
                }
            };
            set(&mut node.labels, &patch.labels);
            set(&mut node.annotations, &patch.annotations);
        }
        let plan = self.decide(&inputs, now);
        match plan.next {
            Next::Settled => plan.until(Awaited::OtherWriter, until),
            Next::Await { what, deadline } => plan.until(what, deadline.min(until)),
            Next::Now => plan,
        }
    }

    /// Whether people are to hear now that another writer undoes corrections again and again: once, until there was
    /// nothing to correct for a while.
    pub(super) fn meets_other_writer(&mut self) -> bool {
        let is_new = self.other_writer == OtherWriter::Met;
        if is_new {
            self.other_writer = OtherWriter::Told;
        }
        is_new
    }

    /// Whether the awaited state may have been reached without being visible in the last observation of the host:
    /// its kubelet starts before its node gets ready.
    fn may_be_over(&self, plan: &Plan, node: Option<&NodeFacts>) -> bool {
        let waits = matches!(plan.next, Next::Await { what: Awaited::NodeReady, .. });
        matches!(self.look, Look::Earlier(_)) && waits && node.is_some_and(|node| node.ready)
    }

    /// Forgets the observation of a host whose recorded login has changed: only a login proves that the host
    /// accepts our key.
    fn expect_login(&mut self, desired: &Desired) {
        let noted = |name: &str| desired.annotations.get(name).cloned();
        let login = [names::PUBLIC_KEY_HASH_ANNOTATION, names::USERNAME_ANNOTATION].map(noted);
        if self.login.replace(login.clone()).is_some_and(|before| before != login) {
            self.forget();
        }
    }

    /// Reads the record on a Node that is new, or after a change of ours.
    fn read_marks(&mut self, desired: &Desired, node: Option<&NodeFacts>, now: Timestamp) {
        let Some(node) = node else {
            (self.marks, self.refused) = (None, None);
            (self.late_pods_asked, self.asked) = (false, None);
            return;
        };
        let is_other = self.marks.take_if(|(uid, _)| *uid != node.uid).is_some();
        if is_other {
            // Another Node has registered meanwhile, for which earlier observations do not count.
            self.forget();
        }
        if self.marks.is_none() {
            let marks = DrainMarks::of(node, desired.release.drain_timeout, now);
            self.marks = Some((node.uid.clone(), marks));
        }
        if !node.holds_slot() {
            (self.refused, self.late_pods_asked, self.asked) = (None, false, None);
            if desired.intent.permit().is_none() {
                self.end_drain();
            }
        }
    }

    /// Whether a step may use the last observation of the host.
    fn may_rest_on_last_look(&self, action: &Action, because: &Because) -> bool {
        match (action, because) {
            // It records the boot that a restart has to end, or that a recorded one has ended: a boot from before
            // the request would prove a restart that never happened.
            (Action::PatchNode(_), Because::RestartAsked | Because::Restarted) => {
                matches!(self.look, Look::Current { after_request: true, .. })
            }
            (Action::PatchNode(_), Because::MetadataDiffers)
            | (
                Action::ListPods | Action::Evict { .. } | Action::TellDrain { .. } | Action::Probe,
                _,
            ) => true,
            // Steps that change the host or put its node back.
            (_, _) => !matches!(self.look, Look::Earlier(_)),
        }
    }

    /// Whether the instance claims a disruption slot; see [`claims_slot`].
    pub(super) fn claims_slot(&self, inputs: &InstanceInputs, now: Timestamp) -> Option<bool> {
        claims_slot(&inputs.desired, &self.observed(inputs), now)
    }

    /// Records the outcome of one step.
    pub(super) fn learn(&mut self, outcome: Outcome) {
        if outcome.is_change() {
            self.effect = Effect::Change;
        }
        if matches!(outcome, Outcome::Worked(_)) {
            // The API server's answer from before the work says nothing about the result of the work.
            self.search = Search::Open;
        }
        match outcome {
            Outcome::NodeChanged { is_ours, .. } => {
                self.is_patched = is_ours;
                if let Some((_, marks)) = self.marks.as_mut().filter(|_| is_ours) {
                    *marks = self.marks_then;
                }
            }
            Outcome::Looked(host) | Outcome::Worked(host) => {
                self.look = Look::Current { host, after_request: self.restart_asked };
            }
            Outcome::Pods(pods) => self.pods = Some(pods),
            Outcome::Evicted(refused) => self.refused = Some(refused),
            Outcome::NoNode => self.search = Search::InVain,
            Outcome::Uploaded
            | Outcome::RootRecorded(_)
            | Outcome::KeyProven(_)
            | Outcome::KeyRemovalProven(_)
            | Outcome::FoundNode { .. }
            | Outcome::NodeDeleted
            | Outcome::UserDataProven
            | Outcome::MachineDeleted
            | Outcome::MachineKept { .. }
            | Outcome::HostForgotten => {}
        }
    }

    /// Ends a plan with all steps carried out. Returns how long to rest; `None` for no rest.
    pub(super) fn done(&mut self, plan: &Plan, now: Timestamp) -> Option<Rest> {
        if !matches!(self.look, Look::Earlier(_)) {
            self.seen_at = Some(now);
        }
        if self.effect == Effect::Change {
            self.waiting = None;
            self.registration = self.registration.after(&plan.steps, now);
        }
        for patch in corrections_in(plan).filter(|_| self.is_patched) {
            let wanted = Sha256::of(&serde_json::to_vec(patch).unwrap_or_default());
            self.corrections.note(&patch.to_string(), wanted, since_epoch(now));
        }
        self.late_pods_asked |= plan.steps.iter().any(|step| step.because == Because::PodsCameBack);
        let asks = |step: &Step| {
            matches!(step.action, Action::Evict { .. }) && step.because != Because::PodsCameBack
        };
        if plan.steps.iter().any(asks) {
            self.asked = Some(now);
        }
        match &plan.next {
            Next::Now => None,
            Next::Settled => {
                self.waiting = None;
                self.end_drain();
                Some(Rest::settled(now + limits::RESYNC))
            }
            Next::Await { what, deadline } => {
                if self.waiting.is_none_or(|waiting| waiting.what != *what) {
                    self.waiting = Some(Waiting { what: *what, since: now });
                }
                // Only another probe shows that a host is back.
                let poll = *what == Awaited::HostBack;
                let until = if poll { now + limits::DRAIN_RETRY } else { *deadline };
                Some(Rest::awaiting(*what, until))
            }
        }
    }

    /// Ends a plan with a failed step. `unreachable_until` is set if the state of the host is no longer known.
    pub(super) fn failed(&mut self, unreachable_until: Option<Timestamp>) {
        if let Some(retry_at) = unreachable_until {
            self.learn(Outcome::Looked(HostSeen::Unreachable { retry_at }));
        }
        if self.effect == Effect::Change {
            self.waiting = None;
        }
        if self.marks_then != self.drain_marks() {
            // The change may have been made though its answer was lost: only the Node tells.
            self.marks = None;
        }
    }

    /// Starts a new pass.
    ///
    /// Only the observation of the host is kept, and only for steps that need no fresh probe, so that not every
    /// change of the Node and every wait for pods needs a probe.
    pub(super) fn woken(&mut self, wake: Wake, now: Timestamp) {
        self.pods = None;
        self.search = Search::Open;
        let young = self.seen_at.is_some_and(|seen_at| now < seen_at + limits::RETRY_MOST);
        let drains = self.waiting.is_some_and(|waiting| waiting.what == Awaited::PodsGone);
        let kept = match wake {
            Wake::NodeChanged => true,
            // A kubelet may have ended meanwhile, and its pods with it.
            Wake::Deadline => drains && young,
            Wake::AskedOtherwise | Wake::PermitChanged => false,
        };
        if kept {
            self.look = Look::Earlier(self.host().clone());
        } else {
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.look = Look::Due;
        self.pods = None;
        self.search = Search::Open;
    }

    fn end_drain(&mut self) {
        if let Some((_, marks)) = &mut self.marks {
            marks.end();
        }
    }

    fn drain_marks(&self) -> DrainMarks {
        self.marks.as_ref().map(|(_, marks)| *marks).unwrap_or_default()
    }

    fn observed(&self, inputs: &InstanceInputs) -> Observed {
        Observed {
            node: inputs.node.clone(),
            node_sought: self.search == Search::InVain,
            pods: self.pods.clone(),
            host: self.host().clone(),
            on_record: inputs.on_record,
            known_closed: inputs.is_known_closed(),
            waiting: self.waiting,
            drain: DrainSeen {
                marks: self.drain_marks(),
                refused: self.refused.clone(),
                late_pods_asked: self.late_pods_asked,
                asked: self.asked,
            },
            registration: self.registration,
        }
    }
}

/// Patches that put right what we have written on the Node, and somebody changed.
fn corrections_in(plan: &Plan) -> impl Iterator<Item = &NodePatch> {
    plan.steps.iter().filter_map(|step| match (&step.action, &step.because) {
        (Action::PatchNode(patch), Because::MetadataDiffers) => Some(patch),
        _ => None,
    })
}

fn since_epoch(now: Timestamp) -> Duration {
    now.duration_since(Timestamp::UNIX_EPOCH).unsigned_abs()
}
