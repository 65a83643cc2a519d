//! Decides which instance is to be configured, removed or left, and who may be disrupted.
//!
//! [`reconcile`] matches what people listed with the Nodes that exist and hands out the disruption
//! budget. It is the only maker of [`DisruptionPermit`]s.
//!
//! # Guarantees
//! - Never more permits than the budget, counted from the Nodes that hold a slot and from the
//!   permits given before whose mark has not been seen yet.
//! - A Node that is not ours is left: no Windows label, no listing and no mark, no Machine that says so.
//! - A Machine is deleted only with a permit of the same budget, while all others of its MachineSet are
//!   ready with the operator's version, and one at a time until its successor works. One that holds a slot
//!   already, or keeps one from being given back, waits for no other: that would wait for it.
//! - Where an entry and a Machine, or two of either, mean one host or Node, all of them are left.
//! - A Node is removed only if no entry can mean it, whatever Nodes show, so an entry that does not
//!   resolve or parse keeps every Node that may be its own; while the list is absent nothing is removed.
//! - What is on record of a host outlives its Node, so that the host is cleaned all the same.
//!
//! # Not here
//! What a configured node needs ([`node`](crate::node)).
#![expect(clippy::ref_option_ref, reason = "serde hands a field to its serializer by reference")]

mod because;
mod by_address;
mod claimed;
mod evidence;
mod forgotten;
mod grants;
mod guard;
mod host;
mod host_names;
mod hosts;
mod intent;
mod leaving;
mod listed;
mod logins;
mod made;
mod matching;
mod node;
mod notice;
mod permit;
mod provisioned;
mod replaced;
mod replacing;
mod rotation;
mod same_host;
mod side_by_side;
mod slots;
#[cfg(test)]
mod tests;
mod unlisted;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

pub use because::{Because, Held};
use evidence::Evidence;
pub use grants::Grants;
pub use guard::RemovalGuard;
pub use host_names::host_names;
use hosts::Hosts;
pub use intent::Intent;
pub use logins::{LoginResult, LoginTry, Logins};
use made::Made;
use matching::Matching;
pub use notice::Notice;
pub use permit::{DisruptionPermit, ReplacementPermit};
use replaced::{Health, Replaced};
pub use rotation::Rotation;
use side_by_side::Beside;

use crate::facts::NodeFacts;
use crate::host_record::{HostRecord, KnownHosts, RecordChange};
use crate::instances::{Called, Entries, Instance};
use crate::login_keys::LoginKeys;
use crate::machines::Machines;

/// What people ask for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Desired<'a> {
    /// All entries, broken ones included; `None` while the ConfigMap is absent, so that nobody knows
    /// what people want.
    pub entries: Option<&'a Entries>,
    /// The Machines of the Machine API.
    pub machines: &'a Machines,
    /// The version that nodes are to run.
    pub version: &'a str,
    /// Most nodes that may be disrupted at the same time.
    pub budget: usize,
    /// Which removals need a confirmation.
    pub guard: RemovalGuard,
    /// The keys that are to let us in; none while nobody tells.
    pub keys: Option<&'a LoginKeys>,
}

/// What there is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Observed<'a> {
    /// All Nodes of the cluster.
    pub nodes: &'a [NodeFacts],
    /// Names of Nodes that cannot get on without a permit, by the last answer of
    /// [`node::claims_slot`](crate::node::claims_slot).
    pub claims: &'a BTreeSet<String>,
    /// Names of Nodes that were given a permit and whose mark may not be visible yet. A name leaves
    /// when the pass that had the permit is over and `nodes` show what it did.
    pub granted: &'a BTreeSet<String>,
    /// Names of Machines that were given a permit to be replaced and whose deletion may not be visible
    /// yet.
    pub replaced: &'a BTreeSet<String>,
    /// What instances are known by whose hosts have refused our key for
    /// [`limits::LOGIN_REFUSED`](crate::limits::LOGIN_REFUSED), by [`Logins::refused`].
    pub refused: &'a BTreeSet<String>,
    /// Those whose hosts have not answered for
    /// [`limits::ROTATION_PATIENCE`](crate::limits::ROTATION_PATIENCE), by [`Logins::unanswered`].
    pub unanswered: &'a BTreeSet<String>,
    /// Whether the user data of new Machines lets every key of ours in.
    pub user_data_ready: bool,
    /// Pinned keys and records of hosts.
    pub hosts: &'a KnownHosts,
    /// Names of hosts by address as listed: those that they reported over SSH, and those of the DNS.
    pub host_names: &'a BTreeMap<String, BTreeSet<String>>,
    /// Addresses of entries whose hosts nobody has tried to look at yet. One that is known as little
    /// may be another address of a host that was listed before.
    pub untried: &'a BTreeSet<String>,
}

/// What to do with one instance.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Assignment<'a> {
    /// Address as listed, or the [`key`](crate::machines::key) of its Machine; of the Node when nobody
    /// listed it and nothing is on record.
    pub address: String,
    /// Addresses under which the same host was listed before, while they are still on record.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub formerly: Vec<String>,
    /// What its entry says, if that is right, or its Machine.
    #[serde(skip)]
    #[schemars(skip)]
    pub instance: Option<&'a Instance>,
    /// The Node that stands for it; in its serialized form its name.
    #[serde(serialize_with = "name_of")]
    #[schemars(with = "Option<String>")]
    pub node: Option<&'a NodeFacts>,
    /// Whether that is beyond doubt, since the host calls itself by that name, so that it may be put on
    /// record. The Node of a Machine stands in the Machine, and on no record.
    pub confirmed: bool,
    /// What is wanted.
    pub intent: Intent,
    /// Why.
    pub because: Because,
}

/// All decisions of one pass.
#[derive(Clone, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
#[must_use = "assignments do nothing until an executor carries them out"]
pub struct Assignments<'a> {
    /// One per instance, sorted by address.
    pub instances: Vec<Assignment<'a>>,
    /// Changes of records to make before anything is done with their hosts, by address.
    pub changes: BTreeMap<String, RecordChange>,
    /// Keys in the ConfigMap of host keys that belong to nobody any more.
    pub forgotten_keys: BTreeSet<String>,
    /// Whether the confirmation of removals has served its purpose and is to be taken off.
    pub confirmation_used: bool,
    /// What people have to know.
    pub notices: BTreeSet<Notice>,
    /// How far the exchange of the operator's key is, while there is a next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotation: Option<Rotation>,
}

/// Returns what to do with every instance. The order of entries, Machines and Nodes does not matter.
pub fn reconcile<'a>(desired: &Desired<'a>, observed: &Observed<'a>) -> Assignments<'a> {
    let hosts = Hosts::of(desired.entries, observed);
    let made = Made::of(desired.machines);
    let mut out = Assignments::default();
    provisioned::decide(&made, &hosts, desired.entries.is_some(), observed, &mut out);
    if desired.entries.is_some() {
        by_entries(observed, &hosts, &made, &mut out);
    } else {
        unknown_list(observed, &made, &mut out);
    }
    out.instances.sort_by(Assignment::by_address);
    desired.guard.apply(observed.hosts, &mut out);
    out.rotation = desired
        .keys
        .and_then(LoginKeys::rotation)
        .map(|rotation| Rotation::of(rotation, desired, observed, &out.instances));
    let health = Health::of(desired, &out.instances);
    let replaced = Replaced::of(&health, observed, &out.instances);
    let budget = desired.budget;
    let instances = &mut out.instances;
    let left = slots::hand_out(instances, budget, &replaced, &health, &made, observed);
    let keys = provisioned::forgotten_keys(desired.machines, observed, &replaced);
    out.forgotten_keys.extend(keys);
    out.notices.extend(notice::of_replaced(desired.machines, &replaced));
    replacing::hand_out(&health, replaced, left, desired, observed, &mut out);
    out.notices.extend(notice::of_left(&out));
    let rotation = out.rotation.iter();
    out.notices.extend(rotation.flat_map(|it| notice::of_rotation(it, observed)));
    let damaged = observed.hosts.damaged().map(HostRecord::key_name);
    out.notices.extend(damaged.map(|key| Notice::UnreadableRecord { key }));
    out
}

/// What follows from the list of entries.
fn by_entries<'a>(
    observed: &Observed<'a>,
    hosts: &Hosts<'a>,
    made: &Made<'a>,
    out: &mut Assignments<'a>,
) {
    let evidence = Evidence::of(observed.nodes, hosts, made);
    let matching = Matching::of(hosts, &evidence);
    let look_due = listed::decide(hosts, made, &evidence, &matching, out);
    leaving::decide(hosts, made, &evidence, &matching, observed, look_due, out);
    out.notices.extend(notice::of_claims(hosts, &evidence, &matching, out));
    out.forgotten_keys = forgotten::keys(&hosts.unlisted, observed, out);
}

/// Names of the Nodes that stand for listed hosts, by address as listed, as far as people and Nodes tell:
/// nothing is on record and no host was asked.
pub fn nodes_of(entries: &Entries, nodes: &[NodeFacts]) -> BTreeMap<String, String> {
    let (none, hosts, names) = (BTreeSet::new(), KnownHosts::default(), BTreeMap::new());
    let machines = Machines::default();
    let desired = Desired {
        entries: Some(entries),
        machines: &machines,
        version: "",
        budget: 0,
        guard: RemovalGuard::default(),
        keys: None,
    };
    let observed = Observed {
        nodes,
        claims: &none,
        granted: &none,
        replaced: &none,
        refused: &none,
        unanswered: &none,
        user_data_ready: false,
        hosts: &hosts,
        host_names: &names,
        untried: &none,
    };
    let mut listed = Beside::new(entries.iter());
    let found = reconcile(&desired, &observed).instances.into_iter();
    let of_listed = found.filter(|found| listed.at(&found.address).is_some());
    of_listed.filter_map(|found| Some((found.address, found.node?.name.clone()))).collect()
}

/// Nobody knows what people want, so everything of theirs stays as it is.
fn unknown_list<'a>(observed: &Observed<'a>, made: &Made<'a>, out: &mut Assignments<'a>) {
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

/// The address by which people know a Node that nobody lists.
fn shown_address(node: &NodeFacts) -> String {
    node.addresses.first().unwrap_or(&node.name).clone()
}

impl<'a> Assignment<'a> {
    /// What is on record of its host, under its address or a former one.
    pub fn record<'h>(&self, hosts: &'h KnownHosts) -> Option<&'h HostRecord> {
        let former = || self.formerly.iter().find_map(|name| hosts.record(name));
        hosts.record(&self.address).or_else(former)
    }

    /// Name of the Node that stands for it.
    pub fn node_name(&self) -> Option<&'a str> {
        self.node.map(|node| node.name.as_str())
    }

    /// The same, if it may be put on record.
    pub fn confirmed_node(&self) -> Option<&'a str> {
        self.node_name().filter(|_| self.confirmed)
    }

    /// Whether there is something to do now.
    pub fn has_work(&self) -> bool {
        self.intent != Intent::Leave
    }

    /// Whether its worker is to go on: there is something to do, or will be once it is on record.
    pub fn is_wanted(&self) -> bool {
        self.has_work() || self.because == Because::RecordDue
    }

    /// Whether a new worker has to wait until those of the hosts at the `ending` addresses have ended:
    /// one of them may be at work on the same host. By an address at which nobody was yet, and by a
    /// record, it may be any host.
    pub fn has_to_wait_for(&self, ending: &BTreeSet<&str>, record: Option<&HostRecord>) -> bool {
        let may_be_any = record.is_none_or(|record| record.pinned.is_none())
            || matches!(self.intent, Intent::Remove(_));
        let mut own = std::iter::once(&self.address).chain(&self.formerly);
        may_be_any && !ending.is_empty() || own.any(|address| ending.contains(address.as_str()))
    }

    fn by_address(&self, other: &Self) -> Ordering {
        (&self.address, self.node_name()).cmp(&(&other.address, other.node_name()))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as above")]
fn name_of<S: Serializer>(node: &Option<&NodeFacts>, serializer: S) -> Result<S::Ok, S::Error> {
    node.map(|node| &node.name).serialize(serializer)
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
