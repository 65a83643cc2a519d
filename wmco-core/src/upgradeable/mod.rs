//! Decides whether the operator may be upgraded now: the condition `Upgradeable`, from the unfinished work of the
//! whole fleet.
//!
//! [`Standing::of`] extracts the state of each instance from a pass; [`Spells`] remembers the start and the
//! progress of its work; [`Condition::of`] makes the condition, and [`Damper`] decides when to write it.
//!
//! # Guarantees
//! - The result does not depend on which controller does the work: only the fleet counts.
//! - Work that waits for an administrator does not block an upgrade forever. A host that was never reached, work
//!   without a private key, a host that an administrator has to make ready, and nodes that are left because of a
//!   wrong entry do not block it at all; all other work blocks it only while it progresses within
//!   [`limits::UPGRADE_PATIENCE`](crate::limits::UPGRADE_PATIENCE). The operator may be upgraded in the middle of
//!   work, and the next version continues; it may be the version that fixes the problem.
//!
//! ```
//! use wmco_core::fleet::Assignments;
//! use wmco_core::host_record::KnownHosts;
//! use wmco_core::upgradeable::{Condition, Spells, Standing, WorkState};
//!
//! let now = jiff::Timestamp::UNIX_EPOCH;
//! let standings = Standing::of(&Assignments::default(), "2.0.0", &KnownHosts::default(), true);
//! let pending = Spells::default().update(&standings, |_| WorkState::Looking, now);
//! assert!(Condition::of(&pending).upgradeable);
//! ```
//!
//! # Not here
//! Reading and writing the object (`bin-operator`).
//!
//! Source: `docs/contract/cluster.md`, CLU20 to CLU22.

mod condition;
mod damper;
mod spells;
#[cfg(test)]
mod tests;
mod work;

use std::fmt;

pub use condition::{Condition, merged};
pub use damper::Damper;
pub use spells::{Pending, Spells};
pub use work::WorkState;

use crate::fleet::{Assignment, Assignments, Because, Held, Intent};
use crate::host_record::KnownHosts;
use crate::instances::Called;
use crate::machines::key;
use crate::names;

/// The state of an instance, as the API server shows it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Standing {
    /// Its identifier.
    pub address: String,
    /// Its name in messages: its Node, or else its address or its Machine.
    pub name: String,
    /// The intent for it.
    aim: Aim,
    /// Its Node.
    node: Option<NodeState>,
    /// Whether its host was ever reached.
    reached: bool,
    /// Whether a key exchange is in progress on its host.
    exchange: bool,
    /// Whether a worker can work on it.
    workable: bool,
}

/// The intent for an instance.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Aim {
    Node,
    Removal,
    Replacement,
    Nothing,
}

/// Relevant state of a Node.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct NodeState {
    /// The version that configured it; `None` if it is not configured.
    version: Option<String>,
    /// Whether that is the desired version.
    current: bool,
    /// Whether it is cordoned by us, or holds a disruption slot.
    disrupted: bool,
    wants_restart: bool,
}

/// Unfinished work on an instance.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Work {
    /// It becomes a node.
    Configure,
    /// It is upgraded.
    Upgrade,
    /// Its files, services or certificates change.
    Change,
    /// It is drained.
    Drain,
    /// Its host is restarted.
    Restart,
    /// The operator's key is exchanged on its host.
    ExchangeKeys,
    /// It is removed from the cluster.
    Remove,
    /// Its Machine is replaced.
    Replace,
}

/// Why unfinished work does not block an upgrade.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Hold {
    /// No worker can do it, for example without a private key.
    NobodyCan,
    /// The host was never reached.
    NeverReached,
    /// An administrator has to make the host fit first, for example by removing a foreign containerd.
    UnfitHost,
    /// An administrator has to correct a setting or an entry first.
    BadInput,
    /// It has not progressed for a long time.
    Stuck,
}

impl Standing {
    /// The state of all instances in a pass; `workable` says whether workers can work, for example have a private
    /// key.
    pub fn of(
        assignments: &Assignments<'_>,
        version: &str,
        hosts: &KnownHosts,
        workable: bool,
    ) -> Vec<Self> {
        let one = |assignment: &Assignment<'_>| {
            let address = &assignment.address;
            let rotation = assignments.rotation.as_ref();
            let exchange = rotation
                .is_some_and(|it| it.proven.contains(address) || it.waits_for.contains(address));
            // Its key is stored before anything is sent.
            let mut known_as = std::iter::once(address).chain(&assignment.formerly);
            let pinned = known_as.any(|address| hosts.pin(address).is_some());
            let called = || Called(address).to_string();
            Self {
                address: address.clone(),
                name: assignment.node_name().map_or_else(called, str::to_owned),
                aim: Aim::of(assignment),
                node: assignment.node.map(|node| NodeState {
                    version: node.version().map(str::to_owned),
                    current: node.version() == Some(version),
                    disrupted: node.holds_slot()
                        || node.annotation(names::CORDONED_ANNOTATION).is_some(),
                    wants_restart: node.wants_restart(),
                }),
                reached: pinned || assignment.node.is_some(),
                exchange,
                workable,
            }
        };
        let mut all: Vec<Self> = assignments.instances.iter().map(one).collect();
        for machine in assignments.replacing.keys() {
            let address = key(machine);
            all.retain(|standing| standing.address != address);
            all.push(Self {
                name: Called(&address).to_string(),
                address,
                aim: Aim::Replacement,
                node: None,
                reached: true,
                exchange: false,
                workable: true,
            });
        }
        all
    }

    /// The unfinished work on it, and the reason if it does not block an upgrade from the start.
    fn work(&self, state: WorkState) -> Option<(Work, Option<Hold>)> {
        let disrupted = self.node.as_ref().is_some_and(|node| node.disrupted);
        let work = match self.aim {
            Aim::Replacement => Work::Replace,
            Aim::Removal => Work::Remove,
            // No worker works on it, but its pods may have been evicted.
            Aim::Nothing => return disrupted.then_some((Work::Change, Some(Hold::BadInput))),
            Aim::Node => self.work_on_node(state)?,
        };
        let hold = match state {
            _ if !self.workable => Some(Hold::NobodyCan),
            _ if !self.reached => Some(Hold::NeverReached),
            WorkState::Awaits(what) if what.needs_administrator() => Some(Hold::UnfitHost),
            WorkState::Looking
            | WorkState::AtWork
            | WorkState::Failing
            | WorkState::Awaits(_)
            | WorkState::Settled => None,
        };
        Some((work, hold))
    }

    fn work_on_node(&self, state: WorkState) -> Option<Work> {
        let Some(node) = &self.node else { return Some(Work::Configure) };
        match (node.current, node.disrupted) {
            _ if state.drains() => Some(Work::Drain),
            (false, false) if node.version.is_none() => Some(Work::Configure),
            (false, _) => Some(Work::Upgrade),
            (true, _) if node.wants_restart => Some(Work::Restart),
            (true, _) if self.exchange => Some(Work::ExchangeKeys),
            (true, true) => Some(Work::Change),
            (true, false) => state.is_under_way().then_some(Work::Change),
        }
    }
}

impl Aim {
    fn of(assignment: &Assignment<'_>) -> Self {
        match (&assignment.intent, &assignment.because) {
            (Intent::Configure(_), _) => Self::Node,
            (Intent::Remove(_), _) | (Intent::Leave, Because::RecordDue) => Self::Removal,
            (Intent::Replace(_), _)
            | (Intent::Leave, Because::ReplacementHeld(Held::Budget | Held::RecordDue)) => {
                Self::Replacement
            }
            (Intent::Look | Intent::Leave, _) => Self::Nothing,
        }
    }
}

impl Work {
    /// All kinds of work.
    pub const ALL: [Self; 8] = [
        Self::Configure,
        Self::Upgrade,
        Self::Change,
        Self::Drain,
        Self::Restart,
        Self::ExchangeKeys,
        Self::Remove,
        Self::Replace,
    ];

    /// Short stable name for metric labels and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Configure => "configure",
            Self::Upgrade => "upgrade",
            Self::Change => "change",
            Self::Drain => "drain",
            Self::Restart => "restart",
            Self::ExchangeKeys => "exchange-keys",
            Self::Remove => "remove",
            Self::Replace => "replace",
        }
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NobodyCan => "waits for a private key or for settings of the cluster",
            Self::NeverReached => "its host was never reached",
            Self::UnfitHost => "waits until its host is made fit for a node",
            Self::BadInput => "waits until its entry or the settings are corrected",
            Self::Stuck => "has not progressed for an hour",
        })
    }
}
