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
mod reach;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::Ipv4Addr;

use schemars::JsonSchema;
use serde::Serialize;

pub use permit::DisruptionPermit;
pub use reach::{Reach, Unreachable, reach, remembered_port};

use crate::names;
use crate::node::{Intent, NodeFacts};

/// One instance as listed: its key in the ConfigMap and what that resolves to.
#[derive(Clone, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Listed {
    /// The address as written; also the key of its host key.
    pub address: String,
    /// What it resolves to; `None` when the entry is broken, which protects its Node.
    pub ipv4: Option<Ipv4Addr>,
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
    /// Names of Nodes that cannot get on without a permit, see
    /// [`node::claims_slot`](crate::node::claims_slot).
    pub claims: &'a BTreeSet<String>,
    /// Names of Nodes that were given a permit and whose mark may not be visible yet.
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
    /// A Machine is behind the Node with its address.
    MachineBehind,
    /// Another entry stands for the same Node.
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

/// Returns what to do with every instance.
pub fn reconcile(desired: &Desired<'_>, observed: &Observed<'_>) -> Assignments {
    let mut slots = Slots::count(desired.budget, observed);
    let mut taken = BTreeMap::new();
    let mut instances: Vec<Assignment> = Vec::new();
    for entry in desired.listed {
        let node = entry.ipv4.and_then(|ip| node_of(observed.nodes, ip));
        let because = because_listed(entry, node, &taken);
        if let (Some(node), Because::Listed) = (node, &because) {
            taken.insert(node.name.clone(), entry.address.clone());
        }
        let intent = match because {
            Because::Listed => Intent::Configure(None),
            _ => Intent::Leave,
        };
        let node = node.map(|node| node.name.clone());
        instances.push(Assignment { address: entry.address.clone(), node, intent, because });
    }
    for node in observed.nodes.iter().filter(|n| n.is_windows() && n.is_byoh()) {
        if taken.contains_key(&node.name) {
            continue;
        }
        let because = match may_mean(desired.listed, node) {
            Some(entry) => Because::MayBeListed { address: entry.address.clone() },
            None => Because::Unlisted,
        };
        let intent =
            if because == Because::Unlisted { Intent::Remove(None) } else { Intent::Leave };
        let address = node.addresses.first().unwrap_or(&node.name).clone();
        instances.push(Assignment { address, node: Some(node.name.clone()), intent, because });
    }
    instances.sort_by(|a, b| (&a.address, &a.node).cmp(&(&b.address, &b.node)));
    // Holders first: what was begun is finished before anything else is begun.
    for holders in [true, false] {
        for instance in &mut instances {
            slots.serve(instance, holders, observed);
        }
    }
    let forgotten_keys = forgotten_keys(desired, observed);
    Assignments { instances, forgotten_keys }
}

fn because_listed(
    entry: &Listed,
    node: Option<&NodeFacts>,
    taken: &BTreeMap<String, String>,
) -> Because {
    match node {
        _ if entry.ipv4.is_none() => Because::EntryBroken,
        Some(node) if node.belongs_to_machine() => Because::MachineBehind,
        Some(node) => match taken.get(&node.name) {
            Some(address) => Because::SameNode { address: address.clone() },
            None => Because::Listed,
        },
        None => Because::Listed,
    }
}

/// The Windows node with this address. Source: `spec/ssh.md`, section 1.2.
fn node_of(nodes: &[NodeFacts], ip: Ipv4Addr) -> Option<&NodeFacts> {
    let text = ip.to_string();
    nodes.iter().find(|node| node.is_windows() && node.addresses.contains(&text))
}

/// The broken entry that may mean this Node: the one that it was made from, one that is its address,
/// or, for a Node that does not say, any that is a name.
fn may_mean<'a>(listed: &'a [Listed], node: &NodeFacts) -> Option<&'a Listed> {
    let origin = node.annotation(names::INSTANCE_ANNOTATION);
    listed.iter().filter(|entry| entry.ipv4.is_none()).find(|entry| {
        node.addresses.contains(&entry.address)
            || match origin {
                Some(origin) => origin == entry.address,
                None => entry.address.parse::<Ipv4Addr>().is_err(),
            }
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
    observed.kept_keys.iter().filter(|key| !listed(key) && !on_node(key)).cloned().collect()
}

/// The free part of the budget.
struct Slots {
    free: usize,
    holders: BTreeSet<String>,
}

impl Slots {
    fn count(budget: usize, observed: &Observed<'_>) -> Self {
        let exists = |name: &&String| observed.nodes.iter().any(|node| &&node.name == name);
        let marked = observed.nodes.iter().filter(|n| n.is_windows() && n.holds_slot());
        let holders: BTreeSet<String> = marked
            .map(|node| node.name.clone())
            .chain(observed.granted.iter().filter(exists).cloned())
            .collect();
        Self { free: budget.saturating_sub(holders.len()), holders }
    }

    /// Gives the instance a permit if it claims one and holds a slot, or there is a free one.
    fn serve(&mut self, instance: &mut Assignment, holders: bool, observed: &Observed<'_>) {
        let Some(node) = &instance.node else { return };
        let (Intent::Configure(permit) | Intent::Remove(permit)) = &mut instance.intent else {
            return;
        };
        let holds = self.holders.contains(node);
        if holds != holders || permit.is_some() || !observed.claims.contains(node) {
            return;
        }
        if !holds {
            if self.free == 0 {
                return;
            }
            self.free -= 1;
        }
        *permit = Some(DisruptionPermit::for_node(node));
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
            Self::MachineBehind => f.write_str("a machine is behind its node"),
            Self::SameNode { address } => write!(f, "entry {address} stands for the same node"),
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
