//! What a worker remembers of one instance between two plans, and for how long it counts.

use jiff::Timestamp;

use super::{
    Action, Awaited, Because, Desired, HostSeen, Next, NodeFacts, Observed, Plan, PodFacts,
    Waiting, claims_slot, reconcile,
};
use crate::limits;

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
    pods: Option<Vec<PodFacts>>,
    node_sought: bool,
    waiting: Option<Waiting>,
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
            pods: None,
            node_sought: false,
            waiting: None,
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

    /// What to do now; `node` and `key_in_config_map` are as in [`Observed`].
    pub fn plan(
        &mut self,
        desired: &Desired,
        node: Option<&NodeFacts>,
        key_in_config_map: bool,
        now: Timestamp,
    ) -> Plan {
        self.changed = false;
        self.asked = node.is_some_and(NodeFacts::wants_restart);
        let plan = reconcile(desired, &self.observed(node, key_in_config_map), now);
        if plan.steps.iter().all(|step| self.may_rest_on_last_look(&step.action, &step.because)) {
            return plan;
        }
        self.forget();
        reconcile(desired, &self.observed(node, key_in_config_map), now)
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
            // That the Node has the key, too, is no matter of the host.
            | (Action::ForgetHostKey, Because::KeyMoved)
            | (Action::ListPods | Action::Evict { .. } | Action::Probe, _) => true,
            // What changes the host or gives its node back.
            (_, _) => !self.old,
        }
    }

    /// Whether the instance claims a disruption slot, as [`claims_slot`] tells.
    pub fn claims_slot(&self, desired: &Desired, node: Option<&NodeFacts>) -> Option<bool> {
        claims_slot(desired, &self.observed(node, false))
    }

    /// Notes the outcome of one step.
    pub fn learn(&mut self, learnt: Learnt) {
        self.changed |= matches!(learnt, Learnt::Worked(_) | Learnt::Changed | Learnt::FoundNode);
        match learnt {
            Learnt::Host(host) | Learnt::Worked(host) => {
                self.host = host;
                self.old = false;
                self.asked_before_look = self.asked;
            }
            Learnt::Pods(pods) => self.pods = Some(pods),
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

    fn observed(&self, node: Option<&NodeFacts>, key_in_config_map: bool) -> Observed {
        Observed {
            node: node.cloned(),
            node_sought: self.node_sought,
            pods: self.pods.clone(),
            host: self.host.clone(),
            key_in_config_map,
            known_closed: self.known_closed,
            waiting: self.waiting,
        }
    }
}
