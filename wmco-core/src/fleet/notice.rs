//! Notices for administrators: blocked work, and conflicting claims of Nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::Serialize;

use super::budget::{Health, Replacements};
use super::identity::{Identities, NodeOfHost};
use super::{Assignment, Assignments, Because, Held, Memory, Rotation};
use crate::facts::NodeFacts;
use crate::host_record::HostRecord;
use crate::instances::{Called, Field};
use crate::limits;
use crate::machines::{self, Machines, Unfit};
use crate::names;
use crate::names::events;
use crate::names::objects::{
    HOST_KEYS_CONFIG_MAP, INSTANCES_CONFIG_MAP, NEXT_PRIVATE_KEY_KEY, PRIVATE_KEY_KEY,
    PRIVATE_KEY_SECRET, USER_DATA_SECRET,
};

/// A situation in which work waits for an administrator. Its text names the next step.
#[derive(Clone, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Notice {
    /// A Node has an address of an entry that belongs to another Node, or says that it was made from that entry.
    ForeignClaim {
        /// The claiming Node.
        node: String,
        /// The entry.
        address: String,
        /// The entry's Node.
        owner: String,
    },
    /// The copy of a pinned host key on a Node is another key. The operator restores the pinned key.
    KeyCopyDiffers {
        /// The Node.
        node: String,
        /// The entry, whose key is pinned.
        address: String,
    },
    /// An instance is left alone for a reason that an administrator can fix.
    Left {
        /// Its address.
        address: String,
        /// Its Node, if it has one.
        node: Option<String>,
        /// The reason.
        because: Because,
        /// Whether its Node holds a disruption slot meanwhile.
        holds_slot: bool,
        /// Other Machines of its MachineSet that are to be replaced and wait, too. They have no notices of their own.
        #[serde(skip_serializing_if = "Option::is_none")]
        others: Option<Others>,
    },
    /// The ConfigMap of instances is absent.
    ListAbsent,
    /// A Machine was deleted to be replaced, and its MachineSet has not been healthy since. It holds a disruption
    /// slot until then.
    NotReplaced {
        /// The deleted Machine.
        machine: String,
        /// Its MachineSet.
        set: String,
    },
    /// A host is not known to accept the next key, so the current key stays on all hosts.
    KeyNotProven {
        /// Address or Machine of the instance.
        address: String,
    },
    /// Every host accepts the next key, but the user data of new Machines lacks it.
    KeyNotInUserData,
    /// Every host accepts the next key, and this host still accepts the current key, which is to be removed.
    KeyNotRemoved {
        /// Address or Machine of the instance.
        address: String,
    },
    /// All hosts accept the next key and refuse the current one.
    KeyExchanged {
        /// Exceptions: instances whose hosts do not answer.
        but: BTreeSet<String>,
    },
    /// More hosts would be removed at once than is allowed without a confirmation.
    Unconfirmed {
        /// Number of removals.
        count: usize,
        /// The limit without a confirmation.
        most: usize,
        /// The confirmed number.
        confirmed: Option<usize>,
    },
    /// A pinned key is removed that is of no listed host and that no login of ours pinned.
    PinUnused {
        /// Its key in the ConfigMap of host keys.
        name: String,
    },
    /// Nodes wait for slots of the disruption budget.
    SlotAwaited {
        /// The first of them.
        node: String,
        /// Number of others.
        others: usize,
        /// The Nodes that hold the slots.
        holders: BTreeMap<String, Hold>,
    },
    /// A record cannot be read.
    UnreadableRecord {
        /// Its key in the ConfigMap of host keys.
        key: String,
    },
}

/// How a Node holds a slot of the disruption budget.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Hold {
    /// It may be taken out of service, and has no label yet.
    Granted,
    /// It has the label, and the operator works on it.
    Worked,
    /// It has the label, and is left alone.
    Left,
}

/// What stays the same while the words of a notice change.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Topic {
    /// All words are told.
    Always(String),
    /// Other words are told after a while.
    Retold(String),
    /// The first words are enough for as long as the situation lasts.
    Once(String),
}

/// Other Machines of a MachineSet.
#[derive(Clone, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Others {
    /// The MachineSet.
    pub machine_set: String,
    /// Their number, at least 1.
    pub count: usize,
}

/// Notice about Nodes that wait for a slot, and who holds the slots; `granted` are those with a permit of this pass.
pub(super) fn of_slots(
    out: &Assignments<'_>,
    granted: &BTreeSet<&str>,
    memory: &Memory,
) -> Option<Notice> {
    let (node, others) = (out.waiting.first()?, out.waiting.len() - 1);
    let granted = memory.grants().nodes().chain(granted.iter().copied());
    let wanted = out.instances.iter().filter(|it| it.is_wanted());
    let wanted: BTreeSet<&str> = wanted.filter_map(Assignment::node_name).collect();
    let marked = out.disrupted.iter().map(|node| {
        let hold = if wanted.contains(node) { Hold::Worked } else { Hold::Left };
        ((*node).to_owned(), hold)
    });
    // A label tells more than a permit.
    let holders = granted.map(|node| (node.to_owned(), Hold::Granted)).chain(marked).collect();
    Some(Notice::SlotAwaited { node: (*node).to_owned(), others, holders })
}

/// Notices about Nodes with conflicting claims.
pub(super) fn of_claims(known: &Identities<'_, '_>, out: &Assignments<'_>) -> BTreeSet<Notice> {
    let Identities { hosts, evidence, matching, .. } = known;
    let mut notices = BTreeSet::new();
    for host in hosts.listed() {
        let Some(owner) = matching.stand(host).node() else { continue };
        let copy = owner.facts.annotation(names::HOST_KEY_ANNOTATION);
        if copy.zip(host.kept.pin).is_some_and(|(copy, pin)| copy != pin) {
            notices.insert(Notice::KeyCopyDiffers {
                node: owner.facts.name.clone(),
                address: host.address.to_owned(),
            });
        }
        let others = evidence.at(host).chain(evidence.made_from(host));
        for node in others.filter(|node| node.number != owner.number) {
            notices.insert(Notice::ForeignClaim {
                node: node.facts.name.clone(),
                address: host.address.to_owned(),
                owner: owner.facts.name.clone(),
            });
        }
    }
    let is_claim = |address: &str, node: &NodeFacts| {
        notices.iter().any(|notice| {
            matches!(notice, Notice::ForeignClaim { node: claims, address: of, .. }
                if *claims == node.name && of == address)
        })
    };
    let is_told = |instance: &&Assignment<'_>| match (&instance.because, instance.node) {
        (Because::MayBeListed { address }, node) => {
            let host = hosts.named(address).filter(|host| host.is_listed() && host.ipv4.is_some());
            host.is_some_and(|host| match (node, matching.stand(host)) {
                (None, _) | (_, NodeOfHost::Nobody) => true,
                // The notice about the contested host covers it.
                (_, NodeOfHost::Contested(_)) => false,
                (Some(node), NodeOfHost::Node(_)) => !is_claim(address, node),
            })
        }
        _ => false,
    };
    let told: Vec<_> = out.instances.iter().filter(is_told).map(left).collect();
    notices.extend(told);
    notices
}

/// Notices about instances that are left alone. Machines of a MachineSet that wait for their replacement share one.
pub(super) fn of_left(health: &Health<'_>, out: &Assignments<'_>) -> BTreeSet<Notice> {
    let is_told = |instance: &&Assignment<'_>| match &instance.because {
        Because::MayBeListed { .. } => false,
        because => next_step(because, instance.node_name()).is_some(),
    };
    let mut notices = BTreeSet::new();
    let mut sets: BTreeMap<&str, Vec<Notice>> = BTreeMap::new();
    for instance in out.instances.iter().filter(is_told) {
        let is_held = matches!(instance.because, Because::ReplacementHeld(_));
        match health.set_of(instance).filter(|_| is_held) {
            Some(set) => sets.entry(set).or_default().push(left(instance)),
            None => drop(notices.insert(left(instance))),
        }
    }
    for (set, held) in sets {
        let count = held.len() - 1;
        // What does not pass by itself is the better example.
        let mut example = held.into_iter().min_by_key(Notice::patience);
        if let Some(Notice::Left { others, .. }) = &mut example
            && count > 0
        {
            *others = Some(Others { machine_set: set.to_owned(), count });
        }
        notices.extend(example);
    }
    notices
}

/// Notices about deleted Machines without a successor.
pub(super) fn of_replaced(machines: &Machines, replaced: &Replacements) -> BTreeSet<Notice> {
    let gone = replaced.iter().filter(|(machine, _)| machines.get(machine).is_none());
    let notice = |(machine, set): (&str, &str)| Notice::NotReplaced {
        machine: machine.to_owned(),
        set: set.to_owned(),
    };
    gone.map(notice).collect()
}

/// Notices about a key rotation: the hosts that block it, or its end.
pub(super) fn of_rotation(rotation: &Rotation, memory: &Memory) -> BTreeSet<Notice> {
    if let Some(but) = rotation.may_end(memory) {
        return [Notice::KeyExchanged { but: but.clone() }].into();
    }
    let mut notices: BTreeSet<_> = (rotation.waits_for.iter().cloned())
        .map(|address| Notice::KeyNotProven { address })
        .collect();
    if notices.is_empty() && rotation.user_data_due {
        notices.insert(Notice::KeyNotInUserData);
    } else if notices.is_empty() {
        let proven = rotation.proven.iter().cloned();
        notices.extend(proven.map(|address| Notice::KeyNotRemoved { address }));
    }
    notices
}

fn left(instance: &Assignment<'_>) -> Notice {
    Notice::Left {
        address: instance.address.clone(),
        node: instance.node_name().map(str::to_owned),
        because: instance.because.clone(),
        holds_slot: instance.node.is_some_and(|node| node.is_windows() && node.holds_slot()),
        others: None,
    }
}

impl Notice {
    /// How long the situation may last before it is reported, because most situations pass by themselves.
    pub const fn patience(&self) -> SignedDuration {
        match self {
            Self::Left {
                because:
                    Because::LookDue { .. }
                    | Because::MayBeListed { .. }
                    | Because::NodeDeleted
                    | Because::AddressOnRecord { .. }
                    | Because::OtherNode { .. }
                    | Because::NodeShared { .. }
                    | Because::NodeNotTold
                    | Because::ReplacementHeld(
                        Held::UserDataDue
                        | Held::UserDataFresh
                        | Held::ReplacedFirst { .. }
                        | Held::MayRecover
                        | Held::Budget
                        | Held::Unhealthy { .. }
                        | Held::TooMany
                        | Held::TooFew,
                    )
                    | Because::Unfit(Unfit::NoAddress | Unfit::NoPhase),
                ..
            } => limits::LOOK_PATIENCE,
            Self::NotReplaced { .. } => limits::SUCCESSOR_PATIENCE,
            Self::SlotAwaited { .. } => limits::SLOT_PATIENCE,
            Self::KeyNotProven { .. } | Self::KeyNotInUserData | Self::KeyNotRemoved { .. } => {
                limits::ROTATION_PATIENCE
            }
            _ => SignedDuration::ZERO,
        }
    }

    /// The affected Machine, if there is one.
    pub fn machine(&self) -> Option<&str> {
        match self {
            Self::Left { address, .. }
            | Self::KeyNotProven { address }
            | Self::KeyNotRemoved { address } => machines::name_in(address),
            _ => None,
        }
    }

    /// The MachineSet, if several of its Machines are affected.
    pub fn machine_set(&self) -> Option<&str> {
        match self {
            Self::Left { others, .. } => others.as_ref().map(|others| others.machine_set.as_str()),
            _ => None,
        }
    }

    /// The instance, Node or key in question, and whether other words are told; `None` for the fleet as a whole.
    pub fn topic(&self) -> Option<Topic> {
        match self {
            Self::Left { address, because: Because::ReplacementHeld(_), .. } => {
                Some(Topic::Retold(self.machine_set().unwrap_or(address).to_owned()))
            }
            // On a patch day one holder follows the other. A node that is left alone is another situation.
            Self::SlotAwaited { holders, .. } => {
                let left = holders.iter().filter(|(_, hold)| **hold == Hold::Left);
                let left: Vec<_> = left.map(|(node, _)| node.as_str()).collect();
                Some(Topic::Once(format!("slots {}", left.join(" "))))
            }
            Self::ForeignClaim { address: subject, .. }
            | Self::KeyCopyDiffers { address: subject, .. }
            | Self::KeyNotProven { address: subject }
            | Self::KeyNotRemoved { address: subject }
            | Self::Left { address: subject, .. }
            | Self::NotReplaced { machine: subject, .. }
            | Self::PinUnused { name: subject }
            | Self::UnreadableRecord { key: subject } => Some(Topic::Always(subject.clone())),
            Self::KeyExchanged { .. }
            | Self::KeyNotInUserData
            | Self::ListAbsent
            | Self::Unconfirmed { .. } => None,
        }
    }

    /// Reason of the Event.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Left { because: Because::ReplacementHeld(_), .. } => {
                events::MACHINE_DELETION_RESTRICTED
            }
            Self::KeyExchanged { .. } => events::KEY_EXCHANGED,
            _ if self.machine().is_some() => events::MACHINE_SETUP_FAILURE,
            _ => events::INSTANCE_SETUP_FAILURE,
        }
    }
}

/// Advice about an instance that is left alone; `None` if there is nothing to do, or if another notice covers it.
fn next_step(because: &Because, node: Option<&str>) -> Option<String> {
    let has_node = node.is_some();
    let node = node.unwrap_or("that stands for it");
    Some(match because {
        Because::Contested { .. } => {
            "delete those whose host is gone or that show a wrong address".to_owned()
        }
        Because::AddressShared { node: other } => {
            format!("delete node {node} or {other}, whichever has no host any more")
        }
        Because::SameNode { .. } => "remove one of both entries".to_owned(),
        Because::OtherSystem | Because::MachineBehind => {
            format!("remove the entry that leads there, if there is one, or delete node {node} if its host is gone")
        }
        Because::LookDue { address } => {
            format!("see why entry {address} cannot be looked at, or remove it")
        }
        Because::MayBeListed { address } if !has_node => format!(
            "if that is another host, see why entry {address} has its address or name; if its host is gone, take its \
             record out of ConfigMap {HOST_KEYS_CONFIG_MAP}"
        ),
        Because::NodeDeleted => {
            format!("see what the finalizers of node {node} wait for, and take them off if that is over")
        }
        Because::MayBeListed { address } => format!(
            "correct node {node}, which claims entry {address} by its name, its addresses or its annotation \
             {}, or delete it if its host is gone",
            names::INSTANCE_ANNOTATION
        ),
        Because::AddressOfMachine { machine } => format!(
            "if machine {machine} is the same host, label it {}=true or remove the entry, if there is \
             one; otherwise delete whichever is gone",
            names::IGNORE_LABEL
        ),
        Because::AddressListed { address } => format!(
            "remove entry {address}, or label the machine {}=true if people are to list its host",
            names::IGNORE_LABEL
        ),
        Because::AddressOnRecord { address } => format!(
            "if host {address} is gone, remove `{}` and `{address}` from ConfigMap {HOST_KEYS_CONFIG_MAP}",
            HostRecord::key_name(address)
        ),
        Because::OtherNode { .. } | Because::NodeNotTold => {
            "see why the machine api does not refer to the node of its host".to_owned()
        }
        Because::NodeShared { with } => {
            format!("delete the machine that has no host any more, or see to {}", Called(with))
        }
        Because::Unfit(Unfit::Phase(phase)) if !is_passing(phase) => {
            "see what the machine says in its status".to_owned()
        }
        Because::Unfit(Unfit::NoAddress | Unfit::NoPhase) => {
            "see why the machine api does not tell it".to_owned()
        }
        Because::Unfit(Unfit::LongName) => format!(
            "give its machineset a name of at most {} characters",
            limits::COMPUTER_NAME_BYTES - limits::MACHINE_SUFFIX_BYTES
        ),
        Because::ReplacementHeld(held) => match held {
            Held::NobodyMakesAnother => {
                "put our public key on its host, or delete the machine yourself".to_owned()
            }
            Held::KeyLost { .. } => format!(
                "write that key to `{PRIVATE_KEY_KEY}` of secret {PRIVATE_KEY_SECRET}, or delete the machine \
                 yourself"
            ),
            Held::WrongTemplate { .. } => {
                "correct the machineset, then it is replaced by itself".to_owned()
            }
            Held::UserDataDue => format!("see why secret {USER_DATA_SECRET} is not changed"),
            Held::UserDataFresh => format!("see who else writes secret {USER_DATA_SECRET}"),
            Held::SuccessorsFailed { .. } => {
                "see whether the image of its machineset runs the user data that it is given, then delete those \
                 of the machineset that are not ready"
                    .to_owned()
            }
            Held::TooMany | Held::TooFew => "it goes on when that is over".to_owned(),
            Held::Unhealthy { first } => format!("see why {} is not", Called(first)),
            Held::ReplacedFirst { first } => format!("see why {} is not yet", Called(first)),
            Held::MayRecover => "see why its node is not ready".to_owned(),
            Held::Budget => {
                "see which nodes are cordoned by the operator, which machines it has replaced, and what they wait for".to_owned()
            }
            // The findings about the cluster are reported on their own.
            Held::ClusterUnfit | Held::RecordDue => return None,
        },
        Because::Unfit(Unfit::Phase(_) | Unfit::Ignored | Unfit::Deleted)
        | Because::ClusterUnfit
        | Because::LoginRefused
        | Because::Provisioned
        | Because::Listed
        | Because::EntryBroken
        | Because::NamePending
        | Because::Unlisted
        | Because::ListAbsent
        | Because::RecordDamaged { .. }
        | Because::RecordDue
        | Because::Unconfirmed => return None,
    })
}

/// The first few names.
fn listed(names: &BTreeSet<String>) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<&str> = names.iter().take(SHOWN).map(String::as_str).collect();
    match names.len().checked_sub(SHOWN) {
        None | Some(0) => shown.join(", "),
        Some(more) => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Whether a Machine in this phase is being provisioned or deleted.
fn is_passing(phase: &str) -> bool {
    ["Provisioning", "Deleting"].contains(&phase)
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ForeignClaim { node, address, owner } => write!(
                f,
                "node {node} claims entry {address} by its addresses or its annotation {}, but node \
                 {owner} stands for that entry; correct node {node}, or delete the one of both whose \
                 host is gone",
                names::INSTANCE_ANNOTATION
            ),
            Self::KeyCopyDiffers { node, address } => write!(
                f,
                "annotation {} of node {node} is not the key pinned as `{address}` in ConfigMap \
                 {HOST_KEYS_CONFIG_MAP} and is set back; unless you have just pinned another key, find \
                 out who may write annotations of that node",
                names::HOST_KEY_ANNOTATION
            ),
            Self::Left { address, node, because, holds_slot, others } => {
                if let Some(Others { machine_set, count }) = others {
                    write!(
                        f,
                        "{} of the machines of machineset {machine_set} wait for their replacement; for example: ",
                        count + 1
                    )?;
                }
                write!(f, "{} is left alone, because {because}", Called(address))?;
                if let Some(node) = node.as_ref().filter(|_| *holds_slot) {
                    write!(f, ", and node {node} keeps its disruption slot until that is over")?;
                }
                let next = next_step(because, node.as_deref());
                next.map_or(Ok(()), |step| write!(f, "; {step}"))
            }
            Self::NotReplaced { machine, set } => write!(
                f,
                "machine {machine} was deleted for replacement, and machineset {set} has had fewer machines in \
                 service since than before, so its disruption slot is still held; see what they wait for, or \
                 scale it down"
            ),
            Self::KeyNotProven { address } => write!(
                f,
                "{} is not known to let the key of `{NEXT_PRIVATE_KEY_KEY}` in, so the current one stays on all \
                 hosts; see what else is told of it, remove its entry if its host is gone, or give it up if \
                 nobody lists it",
                Called(address)
            ),
            Self::KeyNotInUserData => write!(
                f,
                "new machines do not let the key of `{NEXT_PRIVATE_KEY_KEY}` in yet, so the current one stays \
                 on all hosts; see why secret {USER_DATA_SECRET} is not changed"
            ),
            Self::KeyNotRemoved { address } => write!(
                f,
                "{} lets the key of `{NEXT_PRIVATE_KEY_KEY}` in, and still the one before, too; see what else is \
                 told of it, or remove the line of that key there by hand and use the next one",
                Called(address)
            ),
            Self::KeyExchanged { but } => key_exchanged(f, but),
            Self::ListAbsent => write!(
                f,
                "ConfigMap {INSTANCES_CONFIG_MAP} is absent, so all hosts are left as they are; \
                 create it again, without entries if all hosts are to be removed"
            ),
            Self::Unconfirmed { count, most, confirmed } => {
                write!(
                    f,
                    "{count} hosts are no longer listed, and more than {most} at once need a \
                     confirmation"
                )?;
                if let Some(confirmed) = confirmed {
                    write!(f, " of their number, which is not {confirmed}")?;
                }
                write!(
                    f,
                    "; list them again, or have them removed by `kubectl annotate configmap \
                     {INSTANCES_CONFIG_MAP} --overwrite {}={count}`",
                    names::CONFIRM_REMOVAL_ANNOTATION
                )
            }
            Self::PinUnused { name } => write!(
                f,
                "the pinned key `{name}` in ConfigMap {HOST_KEYS_CONFIG_MAP} is of no listed host, so it is removed; \
                 if you wrote it for a host that you are about to list, write it as `{}=` into that entry",
                Field::HostKey
            ),
            Self::SlotAwaited { node, others, holders } => slot_awaited(f, node, *others, holders),
            Self::UnreadableRecord { key } => write!(
                f,
                "`{key}` in ConfigMap {HOST_KEYS_CONFIG_MAP} is no record of a host, so every host that \
                 it may be about is left as it is; correct it or remove it"
            ),
        }
    }
}

fn slot_awaited(
    f: &mut fmt::Formatter<'_>,
    node: &str,
    others: usize,
    holders: &BTreeMap<String, Hold>,
) -> fmt::Result {
    match others {
        0 => write!(f, "node {node} waits")?,
        more => write!(f, "node {node} and {more} more wait")?,
    }
    let minutes = limits::SLOT_PATIENCE.as_mins();
    write!(
        f,
        " for a slot of the disruption budget for more than {minutes} minutes; {}",
        Holders(holders)
    )
}

/// Displays who holds the slots, how, and what frees them.
pub(super) struct Holders<'a>(pub(super) &'a BTreeMap<String, Hold>);

impl fmt::Display for Holders<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        slots_held(f, self.0)
    }
}

fn slots_held(f: &mut fmt::Formatter<'_>, holders: &BTreeMap<String, Hold>) -> fmt::Result {
    if holders.is_empty() {
        // Machines that are replaced have notices of their own.
        return f.write_str("see which machines are replaced");
    }
    let mut first = true;
    for hold in [Hold::Left, Hold::Worked, Hold::Granted] {
        let nodes = holders.iter().filter(|(_, it)| **it == hold).map(|(node, _)| node.clone());
        let nodes: BTreeSet<String> = nodes.collect();
        if nodes.is_empty() {
            continue;
        }
        if !first {
            f.write_str("; ")?;
        }
        first = false;
        let many = nodes.len() > 1;
        let (noun, holds, its) =
            if many { ("nodes", "hold slots", "their") } else { ("node", "holds one", "its") };
        write!(f, "{noun} {} {holds}", listed(&nodes))?;
        let label = names::UPGRADING_LABEL;
        match hold {
            Hold::Left => write!(
                f,
                " by {its} label {label}, and nothing is done there now: see what is told of it, and if the host is \
                 gone delete the node, or take the label off"
            )?,
            Hold::Worked => write!(
                f,
                " by {its} label {label} while {its} host is worked on: see what is told of it, and if the host is \
                 gone delete the node, or take the label off"
            )?,
            Hold::Granted => {
                f.write_str(" and is about to go out of service: see what is told of it")?;
            }
        }
    }
    Ok(())
}

fn key_exchanged(f: &mut fmt::Formatter<'_>, but: &BTreeSet<String>) -> fmt::Result {
    write!(f, "all hosts let the key of `{NEXT_PRIVATE_KEY_KEY}` in, and not the one before")?;
    if !but.is_empty() {
        let names: Vec<_> = but.iter().map(|it| Called(it).to_string()).collect();
        let names = names.join(", ");
        write!(f, ", which may stay on {names}, since they do not answer")?;
    }
    write!(
        f,
        "; write it to `{PRIVATE_KEY_KEY}` of secret {PRIVATE_KEY_SECRET}, and take `{NEXT_PRIVATE_KEY_KEY}` out"
    )
}
