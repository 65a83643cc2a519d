//! What a worker remembers of one instance between two plans, and for how long it counts.

use jiff::Timestamp;

use super::{
    Action, Awaited, Because, Desired, DrainMarks, DrainSeen, HostSeen, Next, Observed, Plan,
    Refusal, Registration, Waiting, claims_slot, reconcile,
};
use crate::facts::{NodeFacts, PodFacts};
use crate::{limits, names};

/// What was seen of one instance in its last *pass*: the plans that follow each other at once.
///
/// The executor calls [`plan`](Self::plan), carries out the steps until one fails, tells each outcome
/// by [`learn`](Self::learn), then ends the plan by [`done`](Self::done) or
/// [`failed`](Self::failed), sleeps as told, and says by [`woken`](Self::woken) what ended the sleep.
/// Losing a memory costs one probe.
///
/// ```
/// use wmco_core::node::{HostSeen, Learnt, Memory, Wake};
///
/// let mut memory = Memory::default();
/// memory.learn(Learnt::Host(HostSeen::NoAgent));
/// let now = jiff::Timestamp::UNIX_EPOCH;
/// memory.woken(Wake::NodeChanged, now);
/// assert_eq!(*memory.host(), HostSeen::NoAgent);
/// // A wait that was in vain begins with a fresh look.
/// memory.woken(Wake::Deadline, now);
/// assert_eq!(*memory.host(), HostSeen::Unknown);
/// ```
#[expect(clippy::struct_excessive_bools, reason = "facts that are independent of each other")]
#[derive(Clone, Debug)]
pub struct Memory {
    host: HostSeen,
    /// The key and the user name that it was seen with, as they are noted on its Node.
    login: Option<[Option<String>; 2]>,
    pods: Option<Vec<PodFacts>>,
    node_sought: bool,
    waiting: Option<Waiting>,
    /// What was noted about the drain of the Node with this UID when it was met, or after our last
    /// change of that: a host may write it, too, and must not keep a slot by that.
    marks: Option<(String, DrainMarks)>,
    /// Evictions that were refused when pods were asked last.
    refused: Option<Vec<Refusal>>,
    registration: Registration,
    known_closed: bool,
    /// When the pass ended in which the host was seen.
    seen_at: Option<Timestamp>,
    /// Whether the host was seen in an earlier pass.
    old: bool,
    /// Whether a restart was asked for before the host was seen.
    asked_before_look: bool,
    /// Whether one is asked for at the last plan.
    asked: bool,
    /// Whether the plan that is being carried out has changed anything.
    changed: bool,
}

/// The outcome of one step.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Learnt {
    /// The host was looked at and nothing else was done.
    Host(HostSeen),
    /// The host was worked on and is so now.
    Worked(HostSeen),
    /// The node's pods that would have to leave.
    Pods(Vec<PodFacts>),
    /// Pods were asked to leave; these evictions were refused.
    Evicted(Vec<Refusal>),
    /// The API server knows no Node.
    NoNode,
    /// The API server knows a Node.
    FoundNode,
    /// Something changed outside of the host.
    Changed,
}

/// What ended a sleep.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Wake {
    /// The time was over.
    Deadline,
    /// The Node, or what is known of its host key, changed.
    NodeChanged,
    /// People or the cluster ask for something else, or grant what was waited for.
    AskedOtherwise,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            host: HostSeen::Unknown,
            login: None,
            pods: None,
            node_sought: false,
            waiting: None,
            marks: None,
            refused: None,
            registration: Registration::default(),
            known_closed: false,
            seen_at: None,
            old: false,
            asked_before_look: false,
            asked: false,
            changed: false,
        }
    }
}

impl Memory {
    /// The host as it was seen last.
    pub fn host(&self) -> &HostSeen {
        &self.host
    }

    /// Takes over what is on record of the host's root, as in [`Observed::known_closed`]; to be told
    /// before each plan.
    pub fn set_known_closed(&mut self, known_closed: bool) {
        self.known_closed = known_closed;
    }

    /// What to do now; `node` and `on_record` are as in [`Observed`].
    pub fn plan(
        &mut self,
        desired: &Desired,
        node: Option<&NodeFacts>,
        on_record: bool,
        now: Timestamp,
    ) -> Plan {
        self.changed = false;
        self.asked = node.is_some_and(NodeFacts::wants_restart);
        self.expect_login(desired);
        self.read_marks(desired, node, now);
        self.registration.meet(node);
        let mut plan = reconcile(desired, &self.observed(node, on_record), now);
        if !plan.steps.iter().all(|step| self.may_rest_on_last_look(&step.action, &step.because))
            || self.may_be_over(&plan, node)
        {
            self.forget();
            plan = reconcile(desired, &self.observed(node, on_record), now);
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
        self.old && waits && node.is_some_and(|node| node.ready)
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
                !self.old && self.asked_before_look
            }
            (Action::PatchNode(_), Because::MetadataDiffers)
            | (
                Action::ListPods | Action::Evict { .. } | Action::TellDrain { .. } | Action::Probe,
                _,
            ) => true,
            // What changes the host or gives its node back.
            (_, _) => !self.old,
        }
    }

    /// Whether the instance claims a disruption slot, as [`claims_slot`] tells.
    pub fn claims_slot(
        &self,
        desired: &Desired,
        node: Option<&NodeFacts>,
        now: Timestamp,
    ) -> Option<bool> {
        claims_slot(desired, &self.observed(node, false), now)
    }

    /// Notes the outcome of one step.
    pub fn learn(&mut self, learnt: Learnt) {
        self.changed |= matches!(
            learnt,
            Learnt::Worked(_) | Learnt::Changed | Learnt::Evicted(_) | Learnt::FoundNode
        );
        // What the API server said before the work does not tell what came of it.
        self.node_sought &= !matches!(learnt, Learnt::Worked(_));
        match learnt {
            Learnt::Host(host) | Learnt::Worked(host) => {
                self.host = host;
                self.old = false;
                self.asked_before_look = self.asked;
            }
            Learnt::Pods(pods) => self.pods = Some(pods),
            Learnt::Evicted(refused) => self.refused = Some(refused),
            Learnt::NoNode => self.node_sought = true,
            Learnt::FoundNode | Learnt::Changed => {}
        }
    }

    /// All steps of the plan are carried out. Returns when to look again by oneself; `None` is now.
    pub fn done(&mut self, plan: &Plan, now: Timestamp) -> Option<Timestamp> {
        if !self.old {
            self.seen_at = Some(now);
        }
        if self.changed {
            self.waiting = None;
            self.registration = self.registration.after(&plan.steps, now);
        }
        match &plan.next {
            Next::Now => None,
            Next::Settled => {
                self.waiting = None;
                Some(now + limits::RESYNC)
            }
            Next::Await { what, deadline } => {
                if self.waiting.is_none_or(|waiting| waiting.what != *what) {
                    self.waiting = Some(Waiting { what: *what, since: now });
                }
                // Nothing but another look tells that a host is back.
                let poll = *what == Awaited::HostBack;
                Some(if poll { now + limits::DRAIN_RETRY } else { *deadline })
            }
        }
    }

    /// A step failed, or could not be taken. `unreachable_until` is given when nobody knows the host's
    /// state any more.
    pub fn failed(&mut self, unreachable_until: Option<Timestamp>) {
        if let Some(retry_at) = unreachable_until {
            self.learn(Learnt::Host(HostSeen::Unreachable { retry_at }));
        }
        if self.changed {
            self.waiting = None;
        }
    }

    /// A new pass begins.
    ///
    /// Of what was seen only the host counts on, and only for steps that need no fresh look: a host
    /// whose Node changes, or whose pods take their time, is not looked at each time.
    pub fn woken(&mut self, wake: Wake, now: Timestamp) {
        self.pods = None;
        self.node_sought = false;
        let young = self.seen_at.is_some_and(|seen_at| now < seen_at + limits::RETRY_MOST);
        let drains = self.waiting.is_some_and(|waiting| waiting.what == Awaited::PodsGone);
        let kept = match wake {
            Wake::NodeChanged => true,
            // A kubelet may end meanwhile, and its pods with it.
            Wake::Deadline => drains && young,
            Wake::AskedOtherwise => false,
        };
        if kept {
            self.old = true;
        } else {
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.host = HostSeen::Unknown;
        self.pods = None;
        self.node_sought = false;
        self.old = false;
    }

    fn observed(&self, node: Option<&NodeFacts>, on_record: bool) -> Observed {
        Observed {
            node: node.cloned(),
            node_sought: self.node_sought,
            pods: self.pods.clone(),
            host: self.host.clone(),
            on_record,
            known_closed: self.known_closed,
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
        | Action::SeekNode(_)
        | Action::ListPods
        | Action::Evict { .. }
        | Action::TellDrain { .. }
        | Action::Apply(_)
        | Action::RemoveLeftovers(_)
        | Action::ForgetHost
        | Action::DeleteNode(_) => false,
    }
}
