//! Decides what one Windows node and its host need next.
//!
//! [`reconcile`] compares what the cluster asks for ([`Desired`]) with what was last seen
//! ([`Observed`]) and returns the steps that can be taken now, each with its reason.
//!
//! # Guarantees
//! - Pure: no clock, no randomness, no I/O. Equal inputs give equal plans.
//! - Level-triggered: only what *is* counts, so the process may die between any two steps.
//! - Safe at every step: under a Node that may run workloads nothing is changed that they would
//!   notice before it is cordoned and empty, and not without a
//!   [`DisruptionPermit`](crate::fleet::DisruptionPermit).
//! - A Node that may run pods is cordoned with a permit only, or while it has a slot.
//! - A Node is uncordoned when its version mark is the desired version, no restart is due, it is
//!   ready and its kubelet runs; or when its pods did not leave in time and nothing was changed on its
//!   host. A cordon that was there before ours stays.
//! - The version mark is taken off a Node before its host is torn down, and the daemon, which writes
//!   it, is removed before that. The desired version is written when the host is right, so no daemon
//!   of another version follows it.
//! - Other content of the services ConfigMap under the same version is released for one empty node
//!   after another; until then its daemon leaves the services as they are.
//! - A restart that was asked for is forgotten only after one that began later.
//! - Nothing that lay on a host before us is run before an agent of ours, brought in the same
//!   connection, has closed the root. What it tells is kept beside the pinned key, and taken back before
//!   the root goes.
//!
//! # Assumptions
//! The executor carries out the steps in order and stops at the first that fails, which ends the
//! *pass*. A pass begins when a wait is over or anything in [`Observed`] or [`Desired`] changed,
//! without pods, and with [`HostSeen::Unknown`] unless only the Node changed during a wait, and goes on
//! while plans say [`Next::Now`]; what its
//! steps see is kept until it ends; [`Memory`] keeps to that. After [`HostWork::restarts`] the host is
//! unknown again. The Node is read back after each patch of ours.
//!
//! # Not here
//! Which node may go next ([`fleet`](crate::fleet)), what a step does on the wire (`wmco-ssh`).

mod condition;
mod configure;
mod desired;
mod disrupt;
mod drain;
mod drift;
mod exchange;
mod host_key;
mod inputs;
mod memory;
mod outcome;
mod plan;
mod registration;
mod remove;
mod rest;
mod search;
#[cfg(test)]
mod tests;
mod work;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

pub use desired::{Desired, DesiredFile, Marks, Release};
pub use drain::{DrainMarks, DrainSeen, Refusal, drain_condition};
pub use host_key::host_key_condition;
pub use inputs::{InstanceInputs, Login, due_record, sealed_username};
pub use memory::Memory;
pub use outcome::Outcome;
pub use plan::{Action, Awaited, Because, Next, NodePatch, Plan, Step};
pub use registration::{Registration, Starts};
pub use rest::{Rest, Wake};
pub use search::{KnownAs, NodeSearch};
pub use work::{Grounds, HostWork, Vacancy};

use crate::facts::{NodeFacts, PodFacts};
use crate::fleet::Intent;
use crate::protocol::{AgentLocation, Probe, RootAccess};

/// What was last seen of one instance.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Observed {
    /// The Node that stands for it.
    pub node: Option<NodeFacts>,
    /// Whether the API server itself, and no cache, said in this pass that there is no Node.
    pub node_sought: bool,
    /// Pods that would have to leave; `None` when nobody looked in this pass.
    pub pods: Option<Vec<PodFacts>>,
    /// The host.
    pub host: HostSeen,
    /// Whether the ConfigMap of host keys has its key or its record.
    pub on_record: bool,
    /// Whether an agent of ours has told before that the root of this very host is closed: by its
    /// [`HostRecord`](crate::host_record::HostRecord) and the key that it has to show.
    pub known_closed: bool,
    /// What the last pass waited for, and since when: the first pass in a row that ended so, or the
    /// last that changed anything. A hint: losing it only delays.
    pub waiting: Option<Waiting>,
    /// What is known of a drain besides its pods.
    pub drain: DrainSeen,
    /// What is remembered of its kubelet's registration.
    pub registration: Registration,
}

/// What a host answered last.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum HostSeen {
    /// Nobody looked in this pass.
    Unknown,
    /// It does not answer; the executor tries again at that time.
    Unreachable {
        /// Time of the next attempt.
        retry_at: Timestamp,
    },
    /// It answers, but no agent of ours does.
    NoAgent,
    /// The agent answered.
    Probed(Box<Probe>),
}

/// A wait in progress.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Waiting {
    /// What for.
    pub what: Awaited,
    /// Since when.
    pub since: Timestamp,
}

/// Returns the steps to take now, and when to look again.
///
/// ```
/// use wmco_core::node::{self, Action, HostSeen};
/// # use wmco_core::{digest::Sha256, fleet::Intent, node::*, protocol::ServicesData};
/// # let release = Release { version: "2.0.0".into(), agent: Sha256::of(b"agent"),
/// #   files: Default::default(), daemon_arguments: vec![], manifest: ServicesData(Default::default()),
/// #   bootstrap_services: vec![], known_manifests: vec![],
/// #   drain_timeout: wmco_core::limits::DRAIN_TIMEOUT };
/// # let desired =
/// #   Desired::new(release.into(), Intent::Configure(None), KnownAs::default(), None);
/// # let observed = Observed { node: None, node_sought: false, pods: None, host: HostSeen::Unknown,
/// #   on_record: false, known_closed: false, waiting: None, drain: DrainSeen::default(),
/// #   registration: Registration::default() };
/// // Nothing that may lie on the host is run.
/// let plan = node::reconcile(&desired, &observed, jiff::Timestamp::UNIX_EPOCH);
/// assert_eq!(plan.steps[0].action, Action::ProbeWithOurs(desired.release.agent));
/// ```
pub fn reconcile(desired: &Desired, observed: &Observed, now: Timestamp) -> Plan {
    match &desired.intent {
        Intent::Leave => Plan::settled(),
        Intent::Configure(permit) => {
            let plan = configure::plan(desired, observed, permit.as_ref(), now);
            exchange::unless_busy(plan, desired, observed)
        }
        Intent::Remove(permit) => remove::plan(desired, observed, permit.as_ref(), now),
        // Nothing is left to do: the Machine API drains its Node and deletes both.
        Intent::Replace(permit) => {
            let delete = Action::DeleteMachine(permit.clone());
            Plan { next: Next::Settled, ..Plan::step(delete, Because::LoginRefused) }
        }
    }
}

/// Whether the instance cannot get on without a disruption permit.
///
/// The fleet grants permits only to those that ask, so that a host which does not answer never
/// holds up the others. `None` until our agent has looked at the host; an earlier answer stands until
/// then, since a permit must not be lost to the look that the next pass begins with.
///
/// A node whose drain was given up claims none until it is to be tried again.
pub fn claims_slot(desired: &Desired, observed: &Observed, now: Timestamp) -> Option<bool> {
    let Some(node) = &observed.node else { return Some(false) };
    if observed.drain.marks.paused_until(node, now).is_some() {
        return Some(false);
    }
    match (&desired.intent, answering(desired, observed)) {
        (Intent::Leave | Intent::Replace(_), _) => Some(false),
        (_, Err(plan)) => matches!(plan.next, Next::Await { .. }).then_some(false),
        (Intent::Configure(_), Ok(probe)) => {
            Some(configure::disturbance(desired, node, probe).is_some())
        }
        (Intent::Remove(_), Ok(_)) => Some(true),
    }
}

/// The copy of the agent that carries out work on the host.
fn agent_for_work(desired: &Desired, probe: &Probe) -> AgentLocation {
    if probe.agent.installed == Some(desired.release.agent) {
        AgentLocation::Installed
    } else {
        AgentLocation::Staged(desired.release.agent)
    }
}

/// The probe of our own agent on a closed host, or the plan that gets us one.
///
/// On a host that is not known to be closed nothing is run that lay there before: only an agent that is
/// brought in the same connection.
fn answering<'a>(desired: &Desired, observed: &'a Observed) -> Result<&'a Probe, Plan> {
    let bring = |because| Plan::step(Action::ProbeWithOurs(desired.release.agent), because);
    // What is on record is taken back first, so that nobody relies on it whatever comes in between.
    let first_contact = |because: Because| {
        if observed.known_closed {
            Plan::step(Action::RecordRoot(RootAccess::Open), because.clone())
                .and(Action::ProbeWithOurs(desired.release.agent), because)
        } else {
            bring(because)
        }
    };
    match &observed.host {
        HostSeen::Unknown if observed.known_closed => {
            Err(Plan::step(Action::Probe, Because::NeverProbed))
        }
        HostSeen::Unknown => Err(bring(Because::NotKnownClosed)),
        HostSeen::Unreachable { retry_at } => Err(Plan::wait(Awaited::HostReachable, *retry_at)),
        // Its folder may be gone, and then anybody may make it again.
        HostSeen::NoAgent => Err(first_contact(Because::NoAgent)),
        HostSeen::Probed(probe) if probe.root == RootAccess::Open => {
            Err(first_contact(Because::RootOpen))
        }
        HostSeen::Probed(probe) if probe.agent.sha256 != desired.release.agent => {
            let because = Because::OtherAgent { version: probe.agent.version.clone() };
            let staged = observed.known_closed && probe.staged.contains(&desired.release.agent);
            Err(if staged {
                Plan::step(Action::ProbeStaged(desired.release.agent), because)
            } else {
                bring(because)
            })
        }
        HostSeen::Probed(probe) => Ok(probe),
    }
}
