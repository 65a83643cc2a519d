//! What a worker remembers of one instance between two plans, and for how long it counts.

use std::net::Ipv4Addr;

use jiff::Timestamp;

use super::{
    Action, Awaited, Because, Desired, DrainMarks, DrainSeen, HostSeen, InstanceInputs, Next,
    Observed, Outcome, Plan, Refusal, Registration, Rest, Waiting, Wake, claims_slot, reconcile,
};
use crate::facts::{NodeFacts, PodFacts};
use crate::{limits, names};

/// What was seen of one instance in its last *pass*: the plans that follow each other at once.
///
/// The executor calls [`plan`](Self::plan), carries out the steps until one fails, tells each outcome
/// by [`learn`](Self::learn), then ends the plan by [`done`](Self::done) or
/// [`failed`](Self::failed), rests as told, and says by [`woken`](Self::woken) what ended the rest.
/// Losing a memory costs one probe.
///
/// ```
/// use wmco_core::node::{HostSeen, Memory, Outcome, Wake};
///
/// let mut memory = Memory::default();
/// memory.learn(Outcome::Looked(HostSeen::NoAgent));
/// let now = jiff::Timestamp::UNIX_EPOCH;
/// memory.woken(Wake::NodeChanged, now);
/// assert_eq!(*memory.host(), HostSeen::NoAgent);
/// // A wait that was in vain begins with a fresh look.
/// memory.woken(Wake::Deadline, now);
/// assert_eq!(*memory.host(), HostSeen::Unknown);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Memory {
    look: Look,
    /// Where the host was to be reached, by the last plan.
    at: Option<Ipv4Addr>,
    /// The key and the user name that the host was seen with, as they are noted on its Node.
    login: Option<[Option<String>; 2]>,
    pods: Option<Vec<PodFacts>>,
    search: Search,
    waiting: Option<Waiting>,
    /// What was noted about the drain of the Node with this UID when it was met, or after our last
    /// change of that: a host may write it, too, and must not keep a slot by that.
    marks: Option<(String, DrainMarks)>,
    /// Evictions that were refused when pods were asked last.
    refused: Option<Vec<Refusal>>,
    registration: Registration,
    /// When the pass ended in which the host was seen.
    seen_at: Option<Timestamp>,
    /// Whether the Node asks for a restart, by the last plan.
    restart_asked: bool,
    effect: Effect,
}

/// What may rest on the last look at the host.
#[derive(Clone, Debug, Default)]
enum Look {
    /// Nothing: it is to be looked at first.
    #[default]
    Due,
    /// Every step: it was seen in this pass.
    Current {
        host: HostSeen,
        /// Whether a restart was asked for before, so that the boot that was seen may be noted as the
        /// one which that has to end.
        after_request: bool,
    },
    /// Only steps that neither change the host nor give its node back: it was seen in an earlier pass.
    Earlier(HostSeen),
}

/// What the API server itself said in this pass about a Node of the host.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Search {
    /// Nobody asked, or something was done since that may bring one.
    #[default]
    Open,
    /// There is none.
    InVain,
}

/// What the steps of the last plan did so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Effect {
    /// Nothing that a wait could be over by.
    #[default]
    None,
    /// Something is another than before.
    Change,
}

impl Memory {
    /// The host as it was seen last.
    pub fn host(&self) -> &HostSeen {
        match &self.look {
            Look::Due => &HostSeen::Unknown,
            Look::Current { host, .. } | Look::Earlier(host) => host,
        }
    }

    /// What to do now.
    pub fn plan(&mut self, inputs: &InstanceInputs, now: Timestamp) -> Plan {
        let (desired, node) = (&inputs.desired, inputs.node.as_ref());
        if let Ok(reach) = &inputs.reach
            && self.at.replace(reach.address).is_some_and(|before| before != reach.address)
        {
            // Another host may be there, also in the middle of a pass.
            self.forget();
        }
        self.effect = Effect::None;
        self.restart_asked = node.is_some_and(NodeFacts::wants_restart);
        self.expect_login(desired);
        self.read_marks(desired, node, now);
        self.registration.meet(node);
        let mut plan = reconcile(desired, &self.observed(inputs), now);
        if !plan.steps.iter().all(|step| self.may_rest_on_last_look(&step.action, &step.because))
            || self.may_be_over(&plan, node)
        {
            self.forget();
            plan = reconcile(desired, &self.observed(inputs), now);
        }
        if plan.steps.iter().any(|step| changes_marks(&step.action)) {
            self.marks = None;
        }
        plan
    }

    /// Whether what a plan waits for may have come, though the last look at the host does not show it:
    /// its kubelet starts before its node gets ready.
    fn may_be_over(&self, plan: &Plan, node: Option<&NodeFacts>) -> bool {
        let waits = matches!(plan.next, Next::Await { what: Awaited::NodeReady, .. });
        matches!(self.look, Look::Earlier(_)) && waits && node.is_some_and(|node| node.ready)
    }

    /// Forgets a host that was seen with another login than is noted on its Node from now on: only a
    /// login proves that the host lets us in.
    fn expect_login(&mut self, desired: &Desired) {
        let noted = |name: &str| desired.annotations.get(name).cloned();
        let login = [names::PUBLIC_KEY_HASH_ANNOTATION, names::USERNAME_ANNOTATION].map(noted);
        if self.login.replace(login.clone()).is_some_and(|before| before != login) {
            self.forget();
        }
    }

    /// Reads what is noted on a Node that is met for the first time, or after a change of ours.
    fn read_marks(&mut self, desired: &Desired, node: Option<&NodeFacts>, now: Timestamp) {
        let Some(node) = node else {
            (self.marks, self.refused) = (None, None);
            return;
        };
        let met = self.marks.as_ref().map(|(uid, _)| *uid == node.uid);
        if met == Some(false) {
            // Another one registered meanwhile: what was seen before says nothing of it.
            self.forget();
        }
        if met != Some(true) {
            let marks = DrainMarks::of(node, desired.release.drain_timeout, now);
            self.marks = Some((node.uid.clone(), marks));
        }
        if !node.holds_slot() {
            self.refused = None;
        }
    }

    /// Whether a step may rest on the last look at the host.
    fn may_rest_on_last_look(&self, action: &Action, because: &Because) -> bool {
        match (action, because) {
            // It notes the boot that a restart has to end, or that a noted one has ended: a boot from
            // before the restart was asked for would prove one that never came.
            (Action::PatchNode(_), Because::RestartAsked | Because::Restarted) => {
                matches!(self.look, Look::Current { after_request: true, .. })
            }
            (Action::PatchNode(_), Because::MetadataDiffers)
            | (
                Action::ListPods | Action::Evict { .. } | Action::TellDrain { .. } | Action::Probe,
                _,
            ) => true,
            // What changes the host or gives its node back.
            (_, _) => !matches!(self.look, Look::Earlier(_)),
        }
    }

    /// Whether the instance claims a disruption slot, as [`claims_slot`] tells.
    pub fn claims_slot(&self, inputs: &InstanceInputs, now: Timestamp) -> Option<bool> {
        claims_slot(&inputs.desired, &self.observed(inputs), now)
    }

    /// Notes the outcome of one step.
    pub fn learn(&mut self, outcome: Outcome) {
        if outcome.is_change() {
            self.effect = Effect::Change;
        }
        if matches!(outcome, Outcome::Worked(_)) {
            // What the API server said before the work does not tell what came of it.
            self.search = Search::Open;
        }
        match outcome {
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
            | Outcome::NodeChanged { .. }
            | Outcome::FoundNode { .. }
            | Outcome::NodeDeleted
            | Outcome::MachineDeleted
            | Outcome::MachineKept { .. }
            | Outcome::HostForgotten => {}
        }
    }

    /// All steps of the plan are carried out. Returns how long to rest; `None`: not at all.
    pub fn done(&mut self, plan: &Plan, now: Timestamp) -> Option<Rest> {
        if !matches!(self.look, Look::Earlier(_)) {
            self.seen_at = Some(now);
        }
        if self.effect == Effect::Change {
            self.waiting = None;
            self.registration = self.registration.after(&plan.steps, now);
        }
        match &plan.next {
            Next::Now => None,
            Next::Settled => {
                self.waiting = None;
                Some(Rest::settled(now + limits::RESYNC))
            }
            Next::Await { what, deadline } => {
                if self.waiting.is_none_or(|waiting| waiting.what != *what) {
                    self.waiting = Some(Waiting { what: *what, since: now });
                }
                // Nothing but another look tells that a host is back.
                let poll = *what == Awaited::HostBack;
                let until = if poll { now + limits::DRAIN_RETRY } else { *deadline };
                Some(Rest::awaiting(*what, until))
            }
        }
    }

    /// A step failed, or could not be taken. `unreachable_until` is given when nobody knows the host's
    /// state any more.
    pub fn failed(&mut self, unreachable_until: Option<Timestamp>) {
        if let Some(retry_at) = unreachable_until {
            self.learn(Outcome::Looked(HostSeen::Unreachable { retry_at }));
        }
        if self.effect == Effect::Change {
            self.waiting = None;
        }
    }

    /// A new pass begins.
    ///
    /// Of what was seen only the host counts on, and only for steps that need no fresh look: a host
    /// whose Node changes, or whose pods take their time, is not looked at each time.
    pub fn woken(&mut self, wake: Wake, now: Timestamp) {
        self.pods = None;
        self.search = Search::Open;
        let young = self.seen_at.is_some_and(|seen_at| now < seen_at + limits::RETRY_MOST);
        let drains = self.waiting.is_some_and(|waiting| waiting.what == Awaited::PodsGone);
        let kept = match wake {
            Wake::NodeChanged => true,
            // A kubelet may end meanwhile, and its pods with it.
            Wake::Deadline => drains && young,
            Wake::AskedOtherwise => false,
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
                marks: self.marks.as_ref().map(|(_, marks)| *marks).unwrap_or_default(),
                refused: self.refused.clone(),
            },
            registration: self.registration,
        }
    }
}

/// Whether an action changes what is noted about a drain.
fn changes_marks(action: &Action) -> bool {
    let notes = [names::DRAIN_SINCE_ANNOTATION, names::DRAIN_GIVEN_UP_ANNOTATION];
    match action {
        Action::PatchNode(patch) => notes.iter().any(|note| patch.annotations.contains_key(*note)),
        Action::Probe
        | Action::ProbeWithOurs(_)
        | Action::Upload(_)
        | Action::ProbeStaged(_)
        | Action::RecordRoot(_)
        | Action::ProveKey(_)
        | Action::ProveKeyRemoved(_)
        | Action::SeekNode(_)
        | Action::ListPods
        | Action::Evict { .. }
        | Action::TellDrain { .. }
        | Action::Apply { .. }
        | Action::RemoveLeftovers(_)
        | Action::ForgetHost
        | Action::DeleteNode(_)
        | Action::DeleteMachine(_) => false,
    }
}
