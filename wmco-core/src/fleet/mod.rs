//! Decides which instance is to be configured, removed or left, and who may be disrupted.
//!
//! [`reconcile`] matches what people listed with the Nodes that exist and hands out the disruption
//! budget. It is the only maker of [`DisruptionPermit`]s.
//!
//! # Guarantees
//! - Never more permits than the budget, counted from the Nodes that hold a slot and from the
//!   permits given before whose mark has not been seen yet.
//! - A Node that is not ours is left: no Windows label, a Machine behind it, no listing and no mark.
//! - A Node is removed only if no entry can mean it, so an entry that does not resolve or parse
//!   keeps every Node that may be its own.
//!
//! # Not here
//! What a configured node needs ([`node`](crate::node)).

mod permit;
mod preview;
mod reach;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::Ipv4Addr;

use schemars::JsonSchema;
use serde::Serialize;

pub use permit::DisruptionPermit;
pub use preview::{Preview, preview};
pub use reach::{
    Pin, Pinned, Reach, Unreachable, Via, jump_keys_in_use, reach, remembered_port, remembered_via,
};

use crate::host_record::HostRecord;
use crate::instances::Instance;
use crate::names;
use crate::node::{GivenUp, Intent, NodeFacts};

/// One instance as listed: its key in the ConfigMap and what that resolves to.
#[derive(Clone, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Listed {
    /// The address as written; also the key of its host key.
    pub address: String,
    /// What it resolves to; `None` when the entry is broken, which protects its Node.
    pub ipv4: Option<Ipv4Addr>,
}

impl From<&Instance> for Listed {
    fn from(instance: &Instance) -> Self {
        Self { address: instance.address.clone(), ipv4: Some(instance.ipv4) }
    }
}

/// What people ask for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Desired<'a> {
    /// All entries, broken ones included.
    pub listed: &'a [Listed],
    /// Most nodes that may be disrupted at the same time.
    pub budget: usize,
}

/// What there is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Observed<'a> {
    /// All Nodes of the cluster.
    pub nodes: &'a [NodeFacts],
    /// Names of Nodes that cannot get on without a permit, by the last answer of
    /// [`node::claims_slot`](crate::node::claims_slot).
    pub claims: &'a BTreeSet<String>,
    /// Names of Nodes that were given a permit and whose mark may not be visible yet. A name leaves
    /// when the pass that had the permit is over and `nodes` show what it did.
    pub granted: &'a BTreeSet<String>,
    /// Addresses that have an entry in the ConfigMap of host keys.
    pub kept_keys: &'a BTreeSet<String>,
}

/// What to do with one instance.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Assignment {
    /// Address as listed, or of the Node when it is not listed.
    pub address: String,
    /// Name of the Node that stands for it.
    pub node: Option<String>,
    /// What is wanted.
    pub intent: Intent,
    /// Why.
    pub because: Because,
}

/// All decisions of one pass.
#[derive(Clone, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
#[must_use = "assignments do nothing until an executor carries them out"]
pub struct Assignments {
    /// One per instance, sorted by address.
    pub instances: Vec<Assignment>,
    /// Host keys in the ConfigMap that belong to nobody any more.
    pub forgotten_keys: BTreeSet<String>,
}

/// Why an instance is treated as it is.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Because {
    /// It is listed.
    Listed,
    /// Its entry is broken.
    EntryBroken,
    /// The Node with its address is no Windows node.
    OtherSystem,
    /// A Machine is behind the Node with its address.
    MachineBehind,
    /// Another entry stands for the same host or Node.
    SameNode {
        /// That entry's address.
        address: String,
    },
    /// It is no longer listed.
    Unlisted,
    /// It is not listed, but a broken entry may mean it.
    MayBeListed {
        /// The broken entry's address.
        address: String,
    },
}

/// Returns what to do with every instance. The order of entries and Nodes does not matter.
pub fn reconcile(desired: &Desired<'_>, observed: &Observed<'_>) -> Assignments {
    let mut slots = Slots::count(desired.budget, observed);
    let mut entries: Vec<&Listed> = desired.listed.iter().collect();
    entries.sort();
    let mut taken = Taken::default();
    let mut instances: Vec<Assignment> = Vec::new();
    for entry in entries {
        let node = node_of(observed.nodes, entry);
        let because = because_listed(entry, node, &taken);
        if because == Because::Listed {
            taken.by(entry, node);
        }
        let intent = match because {
            Because::Listed => Intent::Configure(None),
            _ => Intent::Leave,
        };
        let node = node.map(|node| node.name.clone());
        instances.push(Assignment { address: entry.address.clone(), node, intent, because });
    }
    for node in observed.nodes.iter().filter(|n| n.is_windows() && n.is_byoh()) {
        if taken.nodes.contains_key(&node.name) {
            continue;
        }
        // A host that was renamed leaves a second Node; cleaning its host would hit the first.
        let same_host = taken.hosts.iter().find(|(ip, _)| node.addresses.contains(&ip.to_string()));
        let because = match (same_host, may_mean(desired.listed, observed.nodes, node)) {
            (Some((_, address)), _) => Because::SameNode { address: address.clone() },
            (None, Some(entry)) => Because::MayBeListed { address: entry.address.clone() },
            (None, None) => Because::Unlisted,
        };
        let intent =
            if because == Because::Unlisted { Intent::Remove(None) } else { Intent::Leave };
        let address = node.addresses.first().unwrap_or(&node.name).clone();
        instances.push(Assignment { address, node: Some(node.name.clone()), intent, because });
    }
    instances.sort_by(|a, b| (&a.address, &a.node).cmp(&(&b.address, &b.node)));
    // What was begun is finished before anything else is begun; whose drain was given up less often
    // comes first.
    let mut queue: Vec<&mut Assignment> = instances.iter_mut().collect();
    let given_up = times_given_up(observed.nodes);
    queue.sort_by_key(|instance| given_up.get(instance.node.as_deref()?).copied());
    for turn in [Turn::Disrupted, Turn::Marked, Turn::New] {
        for instance in &mut queue {
            slots.serve(instance, turn, observed);
        }
    }
    let forgotten_keys = forgotten_keys(desired, observed);
    Assignments { instances, forgotten_keys }
}

/// Which entry stands for a host and for a Node, so that no two work on the same.
#[derive(Default)]
struct Taken {
    hosts: BTreeMap<Ipv4Addr, String>,
    nodes: BTreeMap<String, String>,
}

impl Taken {
    fn by(&mut self, entry: &Listed, node: Option<&NodeFacts>) {
        self.hosts.extend(entry.ipv4.map(|ip| (ip, entry.address.clone())));
        self.nodes.extend(node.map(|node| (node.name.clone(), entry.address.clone())));
    }

    fn entry(&self, entry: &Listed, node: Option<&NodeFacts>) -> Option<&String> {
        let by_node = node.and_then(|node| self.nodes.get(&node.name));
        by_node.or_else(|| self.hosts.get(&entry.ipv4?))
    }
}

fn because_listed(entry: &Listed, node: Option<&NodeFacts>, taken: &Taken) -> Because {
    match node {
        _ if entry.ipv4.is_none() => Because::EntryBroken,
        Some(node) if !node.is_windows() => Because::OtherSystem,
        Some(node) if node.belongs_to_machine() => Because::MachineBehind,
        _ => match taken.entry(entry, node) {
            Some(address) => Because::SameNode { address: address.clone() },
            None => Because::Listed,
        },
    }
}

/// The Node with the entry's address, else the one that was made from the entry and has lost its
/// addresses. Of several a Windows node that is ready comes first.
///
/// Source: `spec/ssh.md`, section 1.2; the rest is ours, since a Node without addresses must not
/// look like one that nobody lists.
pub fn node_of<'a>(nodes: &'a [NodeFacts], entry: &Listed) -> Option<&'a NodeFacts> {
    let text = entry.ipv4?.to_string();
    let made_from = |node: &&NodeFacts| {
        node.addresses.is_empty()
            && node.annotation(names::INSTANCE_ANNOTATION) == Some(&entry.address)
    };
    let rank = |node: &&NodeFacts| (node.is_windows(), node.ready, Reverse(node.name.clone()));
    let with_address = nodes.iter().filter(|node| node.addresses.contains(&text)).max_by_key(rank);
    with_address.or_else(|| nodes.iter().find(made_from))
}

/// The broken entry that may mean this Node: the one that it was made from, one that is its address,
/// or any that is a name and that no Node was made from.
fn may_mean<'a>(listed: &'a [Listed], nodes: &[NodeFacts], node: &NodeFacts) -> Option<&'a Listed> {
    let made_from = |node: &NodeFacts, entry: &Listed| {
        node.annotation(names::INSTANCE_ANNOTATION) == Some(entry.address.as_str())
    };
    let is_name = |entry: &Listed| entry.address.parse::<Ipv4Addr>().is_err();
    listed.iter().filter(|entry| entry.ipv4.is_none()).find(|entry| {
        node.addresses.contains(&entry.address)
            || made_from(node, entry)
            || (is_name(entry) && !nodes.iter().any(|other| made_from(other, entry)))
    })
}

/// Kept keys of addresses that nobody lists and no Node has.
fn forgotten_keys(desired: &Desired<'_>, observed: &Observed<'_>) -> BTreeSet<String> {
    let listed = |key: &String| desired.listed.iter().any(|entry| &entry.address == key);
    let on_node = |key: &String| {
        observed.nodes.iter().any(|node| {
            node.addresses.contains(key)
                || node.annotation(names::INSTANCE_ANNOTATION) == Some(key.as_str())
        })
    };
    let known = |address: &String| listed(address) || on_node(address);
    let of_record = |key: &str| HostRecord::address_in(key).map(str::to_owned);
    let kept = observed.kept_keys.iter();
    kept.filter(|key| !known(&of_record(key).unwrap_or_else(|| (*key).clone()))).cloned().collect()
}

/// The free part of the budget.
struct Slots {
    free: usize,
    /// Nodes that hold a slot: marked by us, or with a permit whose mark is not visible.
    disrupted: BTreeSet<String>,
    /// Nodes with a mark but without our cordon: left over, or set by a predecessor. Each keeps a
    /// slot until the mark is gone, but more marks than slots disrupt no more nodes.
    marked: BTreeSet<String>,
}

/// How often in a row the drains of Nodes were given up, by name.
fn times_given_up(nodes: &[NodeFacts]) -> BTreeMap<&str, u32> {
    nodes
        .iter()
        .filter_map(|node| Some((node.name.as_str(), GivenUp::noted(node)?.times)))
        .collect()
}

/// In which order permits are given.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Turn {
    Disrupted,
    Marked,
    New,
}

impl Slots {
    fn count(budget: usize, observed: &Observed<'_>) -> Self {
        // A mark on a Node that nobody manages would never go.
        let managed = |n: &&NodeFacts| n.is_windows() && (n.is_byoh() || n.belongs_to_machine());
        let holders = observed.nodes.iter().filter(managed).filter(|n| n.holds_slot());
        let begun = |node: &&NodeFacts| node.annotation(names::CORDONED_ANNOTATION).is_some();
        let (begun, marked): (Vec<_>, Vec<_>) = holders.partition(begun);
        let exists = |name: &&String| observed.nodes.iter().any(|node| node.name == **name);
        let granted = observed.granted.iter().filter(exists).cloned();
        let disrupted: BTreeSet<String> =
            begun.iter().map(|node| node.name.clone()).chain(granted).collect();
        let marked = marked.iter().map(|node| node.name.clone());
        let marked = marked.filter(|name| !disrupted.contains(name)).collect();
        Self { free: budget.saturating_sub(disrupted.len()), disrupted, marked }
    }

    /// Gives the instance a permit if it claims one, it is its turn, and there is a slot for it.
    fn serve(&mut self, instance: &mut Assignment, turn: Turn, observed: &Observed<'_>) {
        let Some(node) = &instance.node else { return };
        let (Intent::Configure(permit) | Intent::Remove(permit)) = &mut instance.intent else {
            return;
        };
        if self.turn(node) != turn || permit.is_some() || !observed.claims.contains(node) {
            return;
        }
        let free = match turn {
            Turn::Disrupted => true,
            Turn::Marked => self.free > 0,
            Turn::New => self.free > self.marked.len(),
        };
        if !free {
            return;
        }
        if turn != Turn::Disrupted {
            self.free -= 1;
            self.marked.remove(node);
            self.disrupted.insert(node.clone());
        }
        *permit = Some(DisruptionPermit::for_node(node));
    }

    fn turn(&self, node: &str) -> Turn {
        if self.disrupted.contains(node) {
            Turn::Disrupted
        } else if self.marked.contains(node) {
            Turn::Marked
        } else {
            Turn::New
        }
    }
}

impl Intent {
    /// The permit, if there is one.
    pub fn permit(&self) -> Option<&DisruptionPermit> {
        match self {
            Self::Configure(permit) | Self::Remove(permit) => permit.as_ref(),
            Self::Leave => None,
        }
    }

    /// Short stable name for logs, metric labels and tests.
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::Configure(_) => "configure",
            Self::Remove(_) => "remove",
            Self::Leave => "leave",
        }
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listed => f.write_str("it is listed"),
            Self::EntryBroken => f.write_str("its entry is broken"),
            Self::OtherSystem => f.write_str("its node is no windows node"),
            Self::MachineBehind => f.write_str("a machine is behind its node"),
            Self::SameNode { address } => write!(f, "entry {address} stands for the same host"),
            Self::Unlisted => f.write_str("it is no longer listed"),
            Self::MayBeListed { address } => {
                write!(f, "it is not listed, but the broken entry {address} may mean it")
            }
        }
    }
}

impl fmt::Display for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.address, self.intent.verb())?;
        if self.intent.permit().is_some() {
            f.write_str(" with a disruption permit")?;
        }
        if let Some(node) = &self.node {
            write!(f, " (node {node})")?;
        }
        write!(f, ", because {}", self.because)
    }
}
