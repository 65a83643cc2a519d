//! What a worker remembers of one instance between two plans, and for how long it counts.

use jiff::Timestamp;

use super::{
    Awaited, Desired, HostSeen, Next, NodeFacts, Observed, Plan, PodFacts, Waiting, claims_slot,
    reconcile,
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
/// memory.woken(Wake::NodeChanged);
/// assert_eq!(*memory.host(), HostSeen::NoAgent);
/// // A wait that was in vain begins with a fresh look.
/// memory.woken(Wake::Deadline);
/// assert_eq!(*memory.host(), HostSeen::Unknown);
/// ```
#[derive(Clone, Debug)]
pub struct Memory {
    host: HostSeen,
    pods: Option<Vec<PodFacts>>,
    node_sought: bool,
    waiting: Option<Waiting>,
    /// Whether the host was seen before the last sleep, which nothing was left to do before.
    rested: bool,
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
            rested: false,
            changed: false,
        }
    }
}

impl Memory {
    /// The host as it was seen last.
    pub fn host(&self) -> &HostSeen {
        &self.host
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
        let plan = reconcile(desired, &self.observed(node, key_in_config_map), now);
        if !self.rested || plan.next == Next::Settled {
            return plan;
        }
        // What was seen before the sleep may tell that all is well, but not what to do.
        self.forget();
        reconcile(desired, &self.observed(node, key_in_config_map), now)
    }

    /// Whether the instance claims a disruption slot, as [`claims_slot`] tells.
    pub fn claims_slot(&self, desired: &Desired, node: Option<&NodeFacts>) -> Option<bool> {
        claims_slot(desired, &self.observed(node, false))
    }

    /// Notes the outcome of one step.
    pub fn learn(&mut self, learnt: Learnt) {
        self.changed |= matches!(learnt, Learnt::Worked(_) | Learnt::Changed | Learnt::FoundNode);
        match learnt {
            Learnt::Host(host) | Learnt::Worked(host) => self.host = host,
            Learnt::Pods(pods) => self.pods = Some(pods),
            Learnt::NoNode => self.node_sought = true,
            Learnt::FoundNode | Learnt::Changed => {}
        }
    }

    /// All steps of the plan are carried out. Returns when to look again by oneself; `None` is now.
    pub fn done(&mut self, plan: &Plan, now: Timestamp) -> Option<Timestamp> {
        self.rested = plan.next == Next::Settled;
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
            self.host = HostSeen::Unreachable { retry_at };
        }
        if self.changed {
            self.waiting = None;
        }
        self.rested = false;
    }

    /// A new pass begins.
    ///
    /// Of what was seen only the host counts on, and only while nothing but its Node changed: a host
    /// whose Node appears, turns ready or is marked is not looked at each time.
    pub fn woken(&mut self, wake: Wake) {
        self.pods = None;
        self.node_sought = false;
        if wake != Wake::NodeChanged {
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.host = HostSeen::Unknown;
        self.pods = None;
        self.node_sought = false;
        self.rested = false;
    }

    fn observed(&self, node: Option<&NodeFacts>, key_in_config_map: bool) -> Observed {
        Observed {
            node: node.cloned(),
            node_sought: self.node_sought,
            pods: self.pods.clone(),
            host: self.host.clone(),
            key_in_config_map,
            waiting: self.waiting,
        }
    }
}
