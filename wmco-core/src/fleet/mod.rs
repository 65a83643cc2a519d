//! Decides which instance is to be configured, removed or left, and who may be disrupted.
//!
//! [`reconcile`] matches what people listed with the Nodes that exist and hands out the disruption
//! budget. It is the only maker of [`DisruptionPermit`]s.
//!
//! # Guarantees
//! - Never more permits than the budget, counted from the Nodes that hold a slot and from the
//!   permits given before whose mark has not been seen yet.
//! - A Node that is not ours is left: no Windows label, a Machine behind it, no listing and no mark.
//! - A Node is removed only if no entry can mean it, whatever Nodes show, so an entry that does not
//!   resolve or parse keeps every Node that may be its own; while the list is absent nothing is removed.
//! - What is on record of a host outlives its Node, so that the host is cleaned all the same.
//!
//! # Not here
//! What a configured node needs ([`node`](crate::node)).

mod grants;
mod guard;
mod host_names;
mod hosts;
mod intent;
mod leaving;
mod matching;
mod notice;
mod permit;
mod slots;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::net::Ipv4Addr;

use schemars::JsonSchema;
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

pub use grants::Grants;
pub use guard::RemovalGuard;
pub use host_names::host_names;
use hosts::Hosts;
pub use intent::Intent;
use leaving::Leaving;
use matching::{Index, Matching, Stand, Subject};
pub use notice::Notice;
pub use permit::DisruptionPermit;

use crate::facts::NodeFacts;
use crate::host_record::{HostRecord, KnownHosts, RecordChange};
use crate::instances::{Entries, Instance};

/// What people ask for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Desired<'a> {
    /// All entries, broken ones included; `None` while the ConfigMap is absent, so that nobody knows
    /// what people want.
    pub entries: Option<&'a Entries>,
    /// Most nodes that may be disrupted at the same time.
    pub budget: usize,
    /// Which removals need a confirmation.
    pub guard: RemovalGuard,
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
    /// Pinned keys and records of hosts.
    pub hosts: &'a KnownHosts,
    /// Names of hosts by address as listed: those that they reported over SSH, and those of the DNS.
    pub host_names: &'a BTreeMap<String, BTreeSet<String>>,
    /// Addresses of entries whose hosts nobody has tried to look at yet. One that is known as little
    /// may be another address of a host that was listed before.
    pub untried: &'a BTreeSet<String>,
}

/// What to do with one instance.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq)]
pub struct Assignment<'a> {
    /// Address as listed, or of the Node when nobody listed it and nothing is on record.
    pub address: String,
    /// Addresses under which the same host was listed before, while they are still on record.
    #[schemars(default)]
    pub formerly: Vec<String>,
    /// Its entry, if it is listed and the entry is right.
    #[schemars(skip)]
    pub instance: Option<&'a Instance>,
    /// The Node that stands for it; in its serialized form its name.
    #[schemars(with = "Option<String>")]
    pub node: Option<&'a NodeFacts>,
    /// Whether that is beyond doubt, since the host calls itself by that name, so that it may be put on
    /// record.
    pub confirmed: bool,
    /// What is wanted.
    pub intent: Intent,
    /// Why.
    pub because: Because,
}

/// One entry.
#[derive(Clone, Copy, Debug)]
struct Listed<'a> {
    /// The address as written; also the key of its host key.
    address: &'a str,
    /// `None` when the entry is broken, which protects its Node.
    instance: Option<&'a Instance>,
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
}

/// Why an instance is treated as it is.
#[derive(Clone, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Because {
    /// It is listed.
    Listed,
    /// Its entry is broken.
    EntryBroken,
    /// The Node that stands for it is no Windows node.
    OtherSystem,
    /// A Machine is behind the Node that stands for it.
    MachineBehind,
    /// A record that may be its own cannot be read.
    RecordDamaged {
        /// The record's address.
        address: String,
    },
    /// Another entry stands for the same host or Node.
    SameNode {
        /// That entry's address.
        address: String,
    },
    /// Several Nodes claim to stand for it.
    Contested {
        /// Their names.
        nodes: Vec<String>,
    },
    /// It is no longer listed.
    Unlisted,
    /// It is not listed, but may be the Node of this entry.
    MayBeListed {
        /// The entry's address.
        address: String,
    },
    /// It is not listed, but may be the host of this entry, which is about to be looked at for the first
    /// time.
    LookDue {
        /// The entry's address.
        address: String,
    },
    /// The ConfigMap of instances is absent.
    ListAbsent,
    /// It is not listed, nothing is on record of its host, and its Node is deleted already.
    NodeDeleted,
    /// It is no longer listed, and what is needed to remove it is not on record yet.
    RecordDue,
    /// It is no longer listed, nothing is on record of it, and another Node shows its address, so
    /// nobody knows which host to clean.
    AddressShared {
        /// That Node's name.
        node: String,
    },
    /// It is no longer listed, but so many are not that people have to confirm it.
    Unconfirmed,
}

/// Returns what to do with every instance. The order of entries and Nodes does not matter.
pub fn reconcile<'a>(desired: &Desired<'a>, observed: &Observed<'a>) -> Assignments<'a> {
    let index = Index::of(observed.nodes);
    let Some(entries) = desired.entries else {
        return unknown_list(observed);
    };
    let listed = |(address, entry): (&'a str, &'a Result<Instance, _>)| Listed {
        address,
        instance: entry.as_ref().ok(),
    };
    let entries: Vec<Listed<'a>> = entries.iter().map(listed).collect();
    let hosts = Hosts::of(&entries, observed.hosts);
    let subjects = hosts.subjects(&entries);
    let matching = Matching::of(&subjects, &index, observed);
    let mut out = Assignments::default();
    listed_hosts(&entries, &subjects, &hosts, &matching, &index, observed, &mut out);
    Leaving::of(&entries, &hosts, &index, &matching, observed, &out).decide(&mut out);
    desired.guard.apply(observed.hosts, &mut out);
    out.instances.sort_by(Assignment::by_address);
    slots::hand_out(&mut out.instances, desired.budget, observed);
    out.forgotten_keys = hosts.forgotten(&entries, &out, &index);
    let told = notice::of(&subjects, &matching, &index, observed.hosts, &out);
    out.notices.extend(told);
    let damaged = observed.hosts.damaged().map(HostRecord::key_name);
    out.notices.extend(damaged.map(|key| Notice::UnreadableRecord { key }));
    out
}

/// Names of the Nodes that stand for listed hosts, by address as listed, as far as people and Nodes tell:
/// nothing is on record and no host was asked.
pub fn nodes_of(entries: &Entries, nodes: &[NodeFacts]) -> BTreeMap<String, String> {
    let (none, hosts, names) = (BTreeSet::new(), KnownHosts::default(), BTreeMap::new());
    let desired = Desired { entries: Some(entries), budget: 0, guard: RemovalGuard::default() };
    let observed = Observed {
        nodes,
        claims: &none,
        granted: &none,
        hosts: &hosts,
        host_names: &names,
        untried: &none,
    };
    let found = reconcile(&desired, &observed).instances.into_iter();
    let listed = found.filter(|found| entries.get(&found.address).is_some());
    listed.filter_map(|found| Some((found.address, found.node?.name.clone()))).collect()
}

/// Nobody knows what people want, so everything stays as it is.
fn unknown_list<'a>(observed: &Observed<'a>) -> Assignments<'a> {
    let ours = observed.nodes.iter().filter(|node| node.is_windows() && node.is_byoh());
    let left = |node: &'a NodeFacts| Assignment {
        address: shown_address(node),
        formerly: Vec::new(),
        instance: None,
        node: Some(node),
        confirmed: false,
        intent: Intent::Leave,
        because: Because::ListAbsent,
    };
    let mut instances: Vec<_> = ours.map(left).collect();
    instances.sort_by(Assignment::by_address);
    let known = !instances.is_empty() || observed.hosts.records().next().is_some();
    let notices = known.then_some(Notice::ListAbsent).into_iter().collect();
    Assignments { instances, notices, ..Assignments::default() }
}

/// What to do with each entry.
fn listed_hosts<'a>(
    listed: &[Listed<'a>],
    subjects: &[Subject<'a>],
    known: &Hosts<'a>,
    matching: &Matching<'a>,
    index: &Index<'a>,
    observed: &Observed<'a>,
    out: &mut Assignments<'a>,
) {
    let mut hosts: HashMap<Ipv4Addr, &str> = HashMap::new();
    let entries = listed.iter().zip(subjects.iter().filter(|subject| subject.listed));
    // Of two entries for one host the one that has a Node goes on with it.
    let (with_node, without): (Vec<_>, Vec<_>) =
        entries.partition(|(entry, _)| matching.stand(entry.address).node().is_some());
    for (entry, subject) in with_node.into_iter().chain(without) {
        let address = entry.address;
        let stand = matching.stand(address);
        let node = stand.node();
        let because = match (entry.ipv4(), stand) {
            (None, _) => Because::EntryBroken,
            (Some(_), Stand::Contested(nodes)) => Because::contested(nodes),
            (Some(_), Stand::Node(node)) if !node.is_windows() => Because::OtherSystem,
            (Some(_), Stand::Node(node)) if node.belongs_to_machine() => Because::MachineBehind,
            (Some(ipv4), stand) => {
                let first = *hosts.entry(ipv4).or_insert(address);
                let shown = || match stand {
                    Stand::Nobody => matching.maybe_same_host(subject, index, observed),
                    Stand::Node(_) | Stand::Contested(_) => None,
                };
                let shown = || matching.host_of(&shown()?.name);
                let other = Some(first).filter(|first| *first != address);
                let other = other.or_else(|| known.listed_first(address)).or_else(shown);
                match (other, known.damaged_record_of(entry)) {
                    (Some(other), _) => Because::SameNode { address: other.to_owned() },
                    (None, Some(damaged)) => Because::RecordDamaged { address: damaged.to_owned() },
                    (None, None) => Because::Listed,
                }
            }
        };
        let intent = match because {
            Because::Listed => Intent::Configure(None),
            _ => Intent::Leave,
        };
        // It is listed again, so another removal is confirmed anew.
        if observed.hosts.record(address).is_some_and(|record| record.removal_confirmed) {
            out.changes.insert(address.to_owned(), RecordChange::RemovalConfirmed(false));
        }
        out.instances.push(Assignment {
            address: address.to_owned(),
            formerly: known.former_addresses(address).iter().map(|a| (*a).to_owned()).collect(),
            instance: entry.instance,
            node,
            confirmed: matching.is_confirmed(address),
            intent,
            because,
        });
    }
}

/// The address by which people know a Node that nobody lists.
fn shown_address(node: &NodeFacts) -> String {
    node.addresses.first().unwrap_or(&node.name).clone()
}

impl Because {
    fn contested(nodes: &[&NodeFacts]) -> Self {
        Self::Contested { nodes: nodes.iter().map(|node| node.name.clone()).collect() }
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listed => f.write_str("it is listed"),
            Self::EntryBroken => f.write_str("its entry is broken"),
            Self::OtherSystem => f.write_str("its node is no windows node"),
            Self::MachineBehind => f.write_str("a machine is behind its node"),
            Self::RecordDamaged { address } => {
                write!(f, "the record of {address} may be its own and cannot be read")
            }
            Self::SameNode { address } => write!(f, "entry {address} stands for the same host"),
            Self::Contested { nodes } => {
                write!(f, "nodes {} claim to stand for it", nodes.join(" and "))
            }
            Self::Unlisted => f.write_str("it is no longer listed"),
            Self::MayBeListed { address } => {
                write!(f, "it is not listed, but may be the node of entry {address}")
            }
            Self::LookDue { address } => {
                write!(
                    f,
                    "it is not listed, but entry {address} may be its host and is looked at first"
                )
            }
            Self::ListAbsent => f.write_str("the list of instances is absent"),
            Self::NodeDeleted => f.write_str("its node is deleted, and waits for its finalizers"),
            Self::RecordDue => f.write_str("its removal is put on record first"),
            Self::AddressShared { node } => {
                write!(f, "it is not listed, but node {node} shows its address, too")
            }
            Self::Unconfirmed => f.write_str("its removal is not confirmed"),
        }
    }
}

impl<'a> Assignment<'a> {
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

impl Listed<'_> {
    fn ipv4(&self) -> Option<Ipv4Addr> {
        self.instance.map(|instance| instance.ipv4)
    }
}

impl Serialize for Assignment<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Assignment", 6)?;
        fields.serialize_field("address", &self.address)?;
        if self.formerly.is_empty() {
            fields.skip_field("formerly")?;
        } else {
            fields.serialize_field("formerly", &self.formerly)?;
        }
        fields.serialize_field("node", &self.node_name())?;
        fields.serialize_field("confirmed", &self.confirmed)?;
        fields.serialize_field("intent", &self.intent)?;
        fields.serialize_field("because", &self.because)?;
        fields.end()
    }
}

impl fmt::Display for Assignment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.address, self.intent.verb())?;
        if self.intent.permit().is_some() {
            f.write_str(" with a disruption permit")?;
        }
        if let Some(node) = self.node_name() {
            write!(f, " (node {node})")?;
        }
        write!(f, ", because {}", self.because)
    }
}
