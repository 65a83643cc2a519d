//! Decides the next steps for one Windows node and its host.
//!
//! [`reconcile`] compares the desired state ([`Desired`]) with the last observed one ([`Observed`]) and returns the
//! steps that can be taken now, each with its reason.
//!
//! # Guarantees
//! - Pure: no clock, no randomness, no I/O. Equal inputs give equal plans.
//! - Level-triggered: only the present state counts, so the process may stop between any two steps.
//! - Safe at every step: as long as a Node may run workloads, nothing that they would notice is changed before the
//!   Node is cordoned and empty, and never without a [`DisruptionPermit`](crate::fleet::DisruptionPermit).
//! - A Node that may run pods is cordoned only with a permit, or while it has a slot.
//! - A Node is uncordoned when its version mark is the desired version, no restart is due, it is ready and its
//!   kubelet runs; or when its pods did not leave in time and its host is unchanged. A cordon from before ours
//!   stays.
//! - The version mark is removed from a Node before its host is torn down, and the daemon, which writes it, is
//!   removed before that. The desired version is written when the host is ready for it, so no daemon of another
//!   version follows it.
//! - Changes of the services ConfigMap and of the roots under the same version are released for one empty node
//!   after another, both at once; until then the node's daemon leaves services and roots as they are.
//! - A requested restart is cleared only after a restart that began after the request.
//! - A host that belongs to another cluster, or whose Node another machine runs, is looked at and left, unless a
//!   person said that it is meant.
//! - No file that was on a host before us is run until our agent, uploaded in the same connection, has closed the
//!   root folder. Its report is stored beside the pinned key, and cleared before the root folder is removed.
//!
//! # Assumptions
//! The executor carries out the steps in order and stops at the first failure, which ends the *pass*. A pass begins
//! when a wait ends or [`Observed`] or [`Desired`] changes, without pods, and with [`HostSeen::Unknown`] unless
//! only the Node changed during a wait, and continues while plans say [`Next::Now`]. Observations of its steps are
//! kept until it ends; [`WorkerState`] implements this. After [`HostWork::restarts`] the host is unknown again. The Node
//! is read again after each patch of ours.
//!
//! # Not here
//! The choice of the next node ([`fleet`](crate::fleet)), and the SSH side of a step (`wmco-ssh`).

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
mod setbacks;
mod steps;
#[cfg(test)]
mod tests;
mod vacant;
mod work;
mod worker_state;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

pub use desired::{Desired, DesiredFile, NodeMarks, Release};
pub use drain::{DrainMarks, DrainSeen, Refusal, drain_condition, pods_came_back};
pub use host_key::host_key_condition;
pub use inputs::{InstanceInputs, Login, Order};
use memory::Memory;
pub use outcome::Outcome;
pub use plan::{Action, Awaited, Because, Next, NodePatch, Plan, Purpose, Step};
pub use registration::{Registration, Starts};
pub use rest::{Rest, Wake};
pub use search::{KnownAs, NodeSearch};
use setbacks::Setbacks;
pub use setbacks::{AttemptedStep, FailureKind};
pub use vacant::{doubts, unfit};
pub use work::{Grounds, HostWork, Vacancy};
pub use worker_state::WorkerState;

use crate::facts::{NodeFacts, PodFacts};
use crate::fleet::Intent;
use crate::limits;
use crate::protocol::{AgentLocation, Probe, RootAccess};

/// The last observed state of an instance; by default nothing was observed.
#[derive(Clone, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Observed {
    /// The instance's Node.
    pub node: Option<NodeFacts>,
    /// Whether the API server itself, not a cache, said in this pass that there is no Node.
    pub node_sought: bool,
    /// Pods that a drain would have to evict; `None` if they were not listed in this pass.
    pub pods: Option<Vec<PodFacts>>,
    /// The host.
    pub host: HostSeen,
    /// Whether the ConfigMap of host keys has its key or its record.
    pub on_record: bool,
    /// Whether our agent reported earlier that the root folder of this host is closed: according to its
    /// [`HostRecord`](crate::host_record::HostRecord) and its pinned key.
    pub known_closed: bool,
    /// The wait of the last pass, and its start: the first pass in a row with this wait, or the last one that
    /// changed anything. A hint: losing it only delays.
    pub waiting: Option<Waiting>,
    /// Observed facts about a drain, besides its pods.
    pub drain: DrainSeen,
    /// Remembered facts about its kubelet's registration.
    pub registration: Registration,
}

/// The last observation of a host.
#[derive(Clone, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum HostSeen {
    /// Not probed in this pass.
    #[default]
    Unknown,
    /// The host does not answer; the executor tries again at this time.
    Unreachable {
        /// Time of the next attempt.
        retry_at: Timestamp,
    },
    /// The host answers, but our agent does not.
    NoAgent,
    /// The agent answered.
    Probed(Box<Probe>),
}

/// A wait in progress.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Waiting {
    /// The awaited state.
    pub what: Awaited,
    /// Start of the wait.
    pub since: Timestamp,
}

/// Returns the steps to take now, and when to decide again.
///
/// ```
/// use wmco_core::cluster_identity::ClusterIdentity;
/// use wmco_core::digest::Sha256;
/// use wmco_core::fleet::Intent;
/// use wmco_core::node::{self, Action, Desired, KnownAs, Observed, Release};
///
/// let cluster = ClusterIdentity::new("11111111-aaaa");
/// let release = Release::new("2.0.0", Sha256::of(b"agent"), cluster);
/// let desired = Desired::new(release.into(), Intent::Configure(None), KnownAs::default(), None);
/// let plan = node::reconcile(&desired, &Observed::default(), jiff::Timestamp::UNIX_EPOCH);
///
/// // Nothing that may lie on the host is run: our own agent is brought and asked.
/// assert_eq!(plan.steps[0].action, Action::ProbeWithOurs(desired.release.agent));
/// ```
pub fn reconcile(desired: &Desired, observed: &Observed, now: Timestamp) -> Plan {
    match &desired.intent {
        Intent::Leave => Plan::settled(),
        Intent::Look => {
            answering(desired, observed, now).map_or_else(|plan| plan, |_| Plan::settled())
        }
        Intent::Configure(permit) => {
            let plan = configure::plan(desired, observed, permit.as_ref(), now);
            exchange::unless_busy(plan, desired, observed, now)
        }
        Intent::Remove(permit) => remove::plan(desired, observed, permit.as_ref(), now),
        // The operator has nothing left to do: the Machine API drains the Node and deletes both.
        Intent::Replace(permit) => {
            let because = Because::LoginRefused;
            let prove = Plan::step(Action::ProveUserData, because.clone());
            let plan = prove.and(Action::DeleteMachine(permit.clone()), because);
            Plan { next: Next::Settled, ..plan }
        }
    }
}

/// Whether the instance needs a disruption permit to continue.
///
/// The fleet grants permits only to instances that claim one, so that a host without an answer never blocks the
/// others. `None` until our agent has probed the host; an earlier answer stays valid until then, because a permit
/// must not be lost to the probe at the start of the next pass.
///
/// A node whose drain was given up claims no slot until the next drain may begin.
pub fn claims_slot(desired: &Desired, observed: &Observed, now: Timestamp) -> Option<bool> {
    let Some(node) = &observed.node else { return Some(false) };
    if observed.drain.marks.paused_until(node, now).is_some() {
        return Some(false);
    }
    match (&desired.intent, answering(desired, observed, now)) {
        (Intent::Leave | Intent::Look | Intent::Replace(_), _) => Some(false),
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

/// Returns the probe of our own agent on a closed host, or the plan to get it.
///
/// On a host that is not known to be closed, no existing file is run, only an agent that is uploaded in the same
/// connection.
fn answering<'a>(
    desired: &Desired,
    observed: &'a Observed,
    now: Timestamp,
) -> Result<&'a Probe, Plan> {
    let bring = |because| Plan::step(Action::ProbeWithOurs(desired.release.agent), because);
    // Clear the record first, so that it is never trusted whatever happens in between.
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
        // Its root folder may be gone, and then any user may create it again.
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
        HostSeen::Probed(probe) if desired.other_owner(probe).is_some() => {
            Err(Plan::wait(Awaited::HostFit, now + limits::OTHER_CLUSTER_CHECK))
        }
        HostSeen::Probed(probe)
            if desired.other_machine(observed.node.as_ref(), probe).is_some() =>
        {
            Err(Plan::wait(Awaited::HostFit, now + limits::FOREIGN_CHECK))
        }
        HostSeen::Probed(probe) => Ok(probe),
    }
}
