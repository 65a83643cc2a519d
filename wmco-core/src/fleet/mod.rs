//! Decides which instances are configured, removed or left, and which nodes may be disrupted.
//!
//! # Which host gets the permit
//! [`Memory::pass`] decides; [`reconcile`] does the same with nothing remembered, for those that only look:
//! 1. It is given what people and the Machine API want ([`Desired`]) and what the world shows ([`Observed`]), and recalls
//!    what earlier passes left ([`Memory`]): permits whose nodes are still in service, and how long hosts have failed.
//! 2. `Hosts` says which entries and records are one host, `Matching` which Node is whose.
//! 3. Each instance gets an [`Intent`], and the reason for it.
//! 4. `Replacements` are the Machines that are gone, each until its MachineSet is whole again.
//! 5. `Ledger` has a line for each Node that is out of service because of us and for each replacement. It admits another
//!    one while there are fewer lines than the budget.
//! 6. It is asked for one candidate after the other, by `Rank`: the nodes that ask, those first that are out of service
//!    already, then those on which work was begun, then those with a mark, then those whose drains were given up less
//!    often; then Machines whose hosts do not let us in, those first that do not work, and of these those that take no
//!    pods; of equals the one whose address sorts first. A node that is admitted gets a [`DisruptionPermit`], a Machine
//!    a [`ReplacementPermit`], while the rest of its MachineSet is well; the others are [`Held`].
//!
//! # Guarantees
//! - Never more permits than the budget, which includes the Nodes that hold a slot and earlier permits whose Nodes are
//!   not seen out of service yet.
//! - While the cluster is not ready for new work, only removals begin: see [`Desired::blocked`].
//! - A Node that is not ours is left: no Windows label, not listed and no mark, and no Machine that refers to it.
//! - A Machine is deleted only with a permit of the same budget, while all others of its MachineSet are ready with
//!   the operator's version and none has a permit, and one at a time until its successor works. A Machine that already
//!   holds a slot, or because of which a slot is held, does not wait for those that would wait for it.
//! - If an entry and a Machine, or two Machines, refer to one host or Node, all of them are left. Of two entries for one
//!   host one keeps it: the one with its Node, or else the one whose address sorts first.
//! - A Node is removed only if no entry can refer to it, whatever Nodes report, so an entry that does not resolve
//!   or parse protects every Node that may belong to it; while the list is absent nothing is removed.
//! - A host's record outlives its Node, so that the host is cleaned even without the Node.
//!
//! # Not here
//! The steps to configure a node ([`node`](crate::node)).
#![expect(clippy::ref_option_ref, reason = "serde hands a field to its serializer by reference")]

mod ascending;
mod because;
mod blocked;
mod budget;
mod forgotten;
mod guard;
mod identity;
mod inputs;
mod intent;
mod leaving;
mod listed;
mod memory;
mod notice;
mod permit;
mod provisioned;
mod replacement;
mod rotation;
mod slot_waits;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use ascending::Ascending;
pub use because::{Because, Held};
use budget::{Health, Replacements};
pub use budget::{MaxUnavailable, NoMaxUnavailable};
pub use identity::host_names;
use identity::{Hosts, Identities, MachineIndex};
pub use inputs::{Desired, Observed, RemovalGuard};
pub use intent::Intent;
pub use memory::{LoginResult, LoginTry, Memory, Patience};
pub use notice::{Hold, Notice, Others, Topic};
pub use permit::{DisruptionPermit, ReplacementPermit};
pub use replacement::Replacement;
pub use rotation::Rotation;
pub use slot_waits::{SlotWait, SlotWaits};

use crate::facts::NodeFacts;
use crate::host_record::{HostRecord, KnownHosts, RecordChange};
use crate::instances::{Called, Entries, Instance};

/// The decision about an instance.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Assignment<'a> {
    /// Listed address, or the [`key`](crate::machines::key) of its Machine; the Node's address if the instance is
    /// neither listed nor recorded.
    pub address: String,
    /// Former listed addresses of the same host, while they are recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub formerly: Vec<String>,
    /// Its entry, if that is valid, or its Machine.
    #[serde(skip)]
    #[schemars(skip)]
    pub instance: Option<&'a Instance>,
    /// Its Node; serialized as the Node's name.
    #[serde(serialize_with = "name_of")]
    #[schemars(with = "Option<String>")]
    pub node: Option<&'a NodeFacts>,
    /// Whether the Node is certain, because the host reports that name, so that it may be recorded. The Node of a
    /// Machine is never recorded, because the Machine itself refers to it.
    pub confirmed: bool,
    /// The intent.
    pub intent: Intent,
    /// The reason for the intent.
    pub because: Because,
}

/// All decisions of one pass.
#[derive(Clone, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
#[must_use = "assignments do nothing until an executor carries them out"]
pub struct Assignments<'a> {
    /// One per instance, sorted by address.
    pub instances: Vec<Assignment<'a>>,
    /// Changes of records to make before any work on their hosts, by address.
    pub changes: BTreeMap<String, RecordChange>,
    /// Unused keys in the ConfigMap of host keys.
    pub forgotten_keys: BTreeSet<String>,
    /// Whether the confirmation of removals is used up and is to be deleted.
    pub confirmation_used: bool,
    /// Notices for administrators.
    pub notices: BTreeSet<Notice>,
    /// Progress of the exchange of the operator's key, while there is a next key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotation: Option<Rotation>,
    /// Replacements that are not complete, by name of the Machine, including deleted Machines and those with a permit
    /// of this pass; serialized as the names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", serialize_with = "names_of")]
    #[schemars(with = "BTreeSet<String>")]
    pub replacing: BTreeMap<String, Replacement>,
    /// Names of the Nodes whose marks take slots of the disruption budget.
    #[serde(skip)]
    pub disrupted: BTreeSet<&'a str>,
    /// Names of the Nodes that wait for a slot of the disruption budget.
    #[serde(skip)]
    pub waiting: BTreeSet<&'a str>,
}

/// Decides about every instance, with nothing remembered of earlier passes: for a program that only reads. One that acts
/// uses [`Memory::pass`]. The order of entries, Machines and Nodes does not matter.
pub fn reconcile<'a>(desired: &Desired<'a>, observed: &Observed<'a>) -> Assignments<'a> {
    decide(desired, observed, &Memory::of_nothing())
}

/// Why Machines would not be replaced now, by address, if the hosts of all instances at `refusing` refused our keys for as
/// long as is waited; none while the keys are unknown.
pub fn held_if_refusing(
    desired: &Desired<'_>,
    observed: &Observed<'_>,
    refusing: &BTreeSet<String>,
) -> BTreeMap<String, Held> {
    let memory = Memory::of_refusing(refusing);
    let decided = decide(desired, observed, &memory).instances.into_iter();
    let held = decided.filter_map(|it| match it.because {
        Because::ReplacementHeld(held) => Some((it.address, held)),
        _ => None,
    });
    held.collect()
}

fn decide<'a>(desired: &Desired<'a>, observed: &Observed<'a>, memory: &Memory) -> Assignments<'a> {
    let hosts = Hosts::of(desired.entries, observed);
    let made = MachineIndex::of(desired.machines);
    let mut out = Assignments::default();
    provisioned::decide(&made, &hosts, desired.entries.is_some(), observed, &mut out);
    if desired.entries.is_some() {
        by_entries(observed, &hosts, &made, &mut out);
    } else {
        unknown_list(observed, &made, &mut out);
    }
    out.instances.sort_unstable_by(Assignment::by_address);
    guard::hold_back(desired.guard, &hosts, &mut out);
    if desired.blocked {
        blocked::leave_new(&mut out.instances);
    }
    let rotating = desired.keys.filter(|keys| keys.rotation().is_some());
    out.rotation = rotating.map(|keys| {
        Rotation::of(keys, desired, observed.hosts, memory.user_data(), &out.instances)
    });
    let health = Health::of(desired, observed, memory, &out.instances);
    let replaced = Replacements::of(&health, &out.instances);
    let marked = budget::marked(&out.instances, &made, observed);
    out.disrupted = marked.iter().map(|node| node.name.as_str()).collect();
    let keys = provisioned::forgotten_keys(desired.machines, observed, &replaced);
    out.forgotten_keys.extend(keys);
    out.notices.extend(notice::of_replaced(desired.machines, &replaced));
    out.replacing = replaced.remembered();
    out.changes.extend(replaced.off_record(&health));
    let granted = budget::hand_out(&health, replaced, &marked, &mut out);
    // What keeps a whole cluster waiting is told by itself.
    let waits = notice::of_slots(&out, &granted, memory).filter(|_| !desired.blocked);
    out.notices.extend(waits);
    out.notices.extend(notice::of_left(&health, &out));
    let rotation = out.rotation.iter();
    out.notices.extend(rotation.flat_map(|it| notice::of_rotation(it, memory)));
    let damaged = observed.hosts.damaged().map(HostRecord::key_name);
    out.notices.extend(damaged.map(|key| Notice::UnreadableRecord { key }));
    out
}

/// Decides by the list of entries.
fn by_entries<'a>(
    observed: &Observed<'a>,
    hosts: &Hosts<'a>,
    made: &MachineIndex<'a>,
    out: &mut Assignments<'a>,
) {
    let known = Identities::of(hosts, made, observed.nodes);
    let look_due = listed::decide(&known, out);
    leaving::decide(&known, observed, look_due, out);
    out.notices.extend(notice::of_claims(&known, out));
    out.forgotten_keys = forgotten::keys(&hosts.unlisted, observed, out);
    out.notices.extend(forgotten::notices(&hosts.unlisted, &out.forgotten_keys));
}

/// Names of the Nodes of listed hosts, by listed address, as far as the list and the Nodes tell: without records or
/// reports of hosts.
pub fn nodes_of(entries: &Entries, nodes: &[NodeFacts]) -> BTreeMap<String, String> {
    let desired = Desired { budget: 0, ..Desired::new(Some(entries), "") };
    let mut listed = Ascending::new(entries.iter());
    let found = reconcile(&desired, &Observed::new(nodes)).instances.into_iter();
    let of_listed = found.filter(|found| listed.at(&found.address).is_some());
    of_listed.filter_map(|found| Some((found.address, found.node?.name.clone()))).collect()
}

/// Leaves every node of ours as it is, because the desired instances are unknown.
fn unknown_list<'a>(observed: &Observed<'a>, made: &MachineIndex<'a>, out: &mut Assignments<'a>) {
    let is_ours = |node: &&NodeFacts| node.is_windows() && node.is_byoh() && !made.is_behind(node);
    let left = |node: &'a NodeFacts| Assignment {
        address: shown_address(node),
        formerly: Vec::new(),
        instance: None,
        node: Some(node),
        confirmed: false,
        intent: Intent::Leave,
        because: Because::ListAbsent,
    };
    let before = out.instances.len();
    out.instances.extend(observed.nodes.iter().filter(is_ours).map(left));
    let is_any_on_record = || observed.hosts.of_others().any(|(_, kept)| kept.record.is_some());
    if out.instances.len() > before || is_any_on_record() {
        out.notices.insert(Notice::ListAbsent);
    }
}

/// The address that identifies an unlisted Node in messages.
fn shown_address(node: &NodeFacts) -> String {
    node.addresses.first().unwrap_or(&node.name).clone()
}

impl<'a> Assignment<'a> {
    /// The record of its host, under its address or a former one.
    pub fn record<'h>(&self, hosts: &'h KnownHosts) -> Option<&'h HostRecord> {
        let former = || self.formerly.iter().find_map(|name| hosts.record(name));
        hosts.record(&self.address).or_else(former)
    }

    /// Name of its Node.
    pub fn node_name(&self) -> Option<&'a str> {
        self.node.map(|node| node.name.as_str())
    }

    /// Name of its Node, if it may be recorded.
    pub fn confirmed_node(&self) -> Option<&'a str> {
        self.node_name().filter(|_| self.confirmed)
    }

    /// Whether there is work to do now.
    pub fn has_work(&self) -> bool {
        self.intent != Intent::Leave
    }

    /// Whether its worker gets orders now: while nothing can be rendered for nodes, only for hosts that leave or are
    /// looked at.
    pub fn is_due(&self, is_rendered: bool) -> bool {
        self.has_work() && (is_rendered || matches!(self.intent, Intent::Remove(_) | Intent::Look))
    }

    /// Whether its worker is to continue: there is work to do, or there will be once it is recorded.
    pub fn is_wanted(&self) -> bool {
        self.has_work() || self.because == Because::RecordDue
    }

    fn by_address(&self, other: &Self) -> Ordering {
        (&self.address, self.node_name()).cmp(&(&other.address, other.node_name()))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as above")]
fn name_of<S: Serializer>(node: &Option<&NodeFacts>, serializer: S) -> Result<S::Ok, S::Error> {
    node.map(|node| &node.name).serialize(serializer)
}

fn names_of<S: Serializer>(
    replacing: &BTreeMap<String, Replacement>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(replacing.keys())
}

impl fmt::Display for Assignment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", Called(&self.address), self.intent.verb())?;
        if self.intent.permit().is_some() {
            f.write_str(" with a disruption permit")?;
        }
        if let Some(node) = self.node_name() {
            write!(f, " (node {node})")?;
        }
        write!(f, ", because {}", self.because)
    }
}
