//! Notices for administrators: blocked work, and conflicting claims of Nodes.

mod found;
mod holders;
mod next_step;

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::Serialize;

pub(super) use found::{of_claims, of_left, of_replaced, of_rotation, of_slots};
pub use holders::Hold;
pub(super) use holders::Holders;
use next_step::next_step;

use super::{Because, Held};
use crate::instances::{Called, Field};
use crate::limits;
use crate::machines::{self, Unfit};
use crate::names;
use crate::names::events;
use crate::names::objects::{
    HOST_KEYS_CONFIG_MAP, INSTANCES_CONFIG_MAP, NEXT_PRIVATE_KEY_KEY, PRIVATE_KEY_KEY,
    PRIVATE_KEY_SECRET, USER_DATA_SECRET,
};

/// A situation in which work waits for an administrator. Its text names the next step.
#[derive(Clone, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
pub enum Notice {
    /// A Node has an address of an entry that belongs to another Node, or says that it was made from that entry.
    #[error(
        "node {node} claims entry {address} by its addresses or its annotation {}, but node {owner} stands for that entry; \
         correct node {node}, or delete the one of both whose host is gone",
        names::INSTANCE_ANNOTATION
    )]
    ForeignClaim {
        /// The claiming Node.
        node: String,
        /// The entry.
        address: String,
        /// The entry's Node.
        owner: String,
    },
    /// The copy of a pinned host key on a Node is another key. The operator restores the pinned key.
    #[error(
        "annotation {} of node {node} is not the key pinned as `{address}` in ConfigMap {HOST_KEYS_CONFIG_MAP} and is set \
         back; unless you have just pinned another key, find out who may write annotations of that node",
        names::HOST_KEY_ANNOTATION
    )]
    KeyCopyDiffers {
        /// The Node.
        node: String,
        /// The entry, whose key is pinned.
        address: String,
    },
    /// An instance is left alone for a reason that an administrator can fix.
    #[error(
        "{}{} is left alone, because {because}{}{}",
        one_of(.others.as_ref()),
        Called(.address),
        keeps_slot(.node.as_deref().filter(|_| *.holds_slot)),
        then(next_step(.because, .node.as_deref()))
    )]
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
    #[error(
        "ConfigMap {INSTANCES_CONFIG_MAP} is absent, so all hosts are left as they are; create it again, without entries if \
         all hosts are to be removed"
    )]
    ListAbsent,
    /// A Machine was deleted to be replaced, and its MachineSet has not been healthy since. It holds a disruption
    /// slot until then.
    #[error(
        "machine {machine} was deleted for replacement, and machineset {set} has had fewer machines in service since than \
         before, so its disruption slot is still held; see what they wait for, or scale it down"
    )]
    NotReplaced {
        /// The deleted Machine.
        machine: String,
        /// Its MachineSet.
        set: String,
    },
    /// The deletion of a Machine that is to be replaced does not end. Its MachineSet holds a disruption slot until it is whole
    /// again.
    #[error(
        "machine {machine}, which is to be replaced, is being deleted, and machineset {set} has had fewer machines in service \
         than before, so its disruption slot is still held; see in the conditions and finalizers of the machine what its deletion \
         waits for, such as the drain of its node, and what the others wait for"
    )]
    BeingDeleted {
        /// The Machine.
        machine: String,
        /// Its MachineSet.
        set: String,
    },
    /// A host is not known to accept the next key, so the current key stays on all hosts.
    #[error(
        "{} is not known to let the key of `{NEXT_PRIVATE_KEY_KEY}` in, so the current one stays on all hosts; see what else \
         is told of it, or {}",
        Called(.address),
        if_it_is_gone(.address)
    )]
    KeyNotProven {
        /// Address or Machine of the instance.
        address: String,
    },
    /// Every host accepts the next key, but the user data of new Machines lacks it.
    #[error(
        "new machines do not let the key of `{NEXT_PRIVATE_KEY_KEY}` in yet, so the current one stays on all hosts; see why \
         secret {USER_DATA_SECRET} is not changed"
    )]
    KeyNotInUserData,
    /// Every host accepts the next key, and this host still accepts the current key, which is to be removed.
    #[error(
        "{} lets the key of `{NEXT_PRIVATE_KEY_KEY}` in, and still the one before, too; see what else is told of it, or \
         remove the line of that key there by hand and use the next one",
        Called(.address)
    )]
    KeyNotRemoved {
        /// Address or Machine of the instance.
        address: String,
    },
    /// All hosts accept the next key and refuse the current one.
    #[error(
        "all hosts let the key of `{NEXT_PRIVATE_KEY_KEY}` in, and not the one before{}; write it to `{PRIVATE_KEY_KEY}` of \
         secret {PRIVATE_KEY_SECRET}, and take `{NEXT_PRIVATE_KEY_KEY}` out",
        may_stay_on(.but)
    )]
    KeyExchanged {
        /// Exceptions: instances whose hosts do not answer.
        but: BTreeSet<String>,
    },
    /// More hosts would be removed at once than is allowed without a confirmation.
    #[error(
        "{count} hosts are no longer listed, and more than {most} at once need a confirmation{}; list them again, or have \
         them removed by `kubectl annotate configmap {INSTANCES_CONFIG_MAP} --overwrite {}={count}`",
        not_of_their_number(*.confirmed),
        names::CONFIRM_REMOVAL_ANNOTATION
    )]
    Unconfirmed {
        /// Number of removals.
        count: usize,
        /// The limit without a confirmation.
        most: usize,
        /// The confirmed number.
        confirmed: Option<usize>,
    },
    /// A pinned key is removed that is of no listed host and that no login of ours pinned.
    #[error(
        "the pinned key `{name}` in ConfigMap {HOST_KEYS_CONFIG_MAP} is of no listed host, so it is removed; if you wrote it \
         for a host that you are about to list, write it as `{}=` into that entry",
        Field::HostKey
    )]
    PinUnused {
        /// Its key in the ConfigMap of host keys.
        name: String,
    },
    /// Nodes wait for slots of the disruption budget.
    #[error(
        "{} for a slot of the disruption budget for more than {} minutes; {}",
        waits(.node, *.others),
        limits::SLOT_PATIENCE.as_mins(),
        Holders(.holders)
    )]
    SlotAwaited {
        /// The first of them.
        node: String,
        /// Number of others.
        others: usize,
        /// The Nodes that hold the slots.
        holders: BTreeMap<String, Hold>,
    },
    /// A record cannot be read.
    #[error(
        "`{key}` in ConfigMap {HOST_KEYS_CONFIG_MAP} is no record of a host, so every host that it may be about is left as it \
         is; correct it or remove it"
    )]
    UnreadableRecord {
        /// Its key in the ConfigMap of host keys.
        key: String,
    },
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
            Self::NotReplaced { .. } | Self::BeingDeleted { .. } => limits::SUCCESSOR_PATIENCE,
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
            | Self::BeingDeleted { machine: subject, .. }
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

fn one_of(others: Option<&Others>) -> String {
    let text = |Others { machine_set, count }: &Others| {
        let all = count + 1;
        format!(
            "{all} of the machines of machineset {machine_set} wait for their replacement; for example: "
        )
    };
    others.map(text).unwrap_or_default()
}

fn keeps_slot(node: Option<&str>) -> String {
    let text = |node| format!(", and node {node} keeps its disruption slot until that is over");
    node.map(text).unwrap_or_default()
}

fn then(next_step: Option<String>) -> String {
    next_step.map(|step| format!("; {step}")).unwrap_or_default()
}

fn if_it_is_gone(instance: &str) -> &'static str {
    match machines::name_in(instance) {
        Some(_) => "delete the machine if its host is gone",
        None => "remove its entry if its host is gone, and give it up if nobody lists it",
    }
}

fn may_stay_on(hosts: &BTreeSet<String>) -> String {
    let names: Vec<_> = hosts.iter().map(|it| Called(it).to_string()).collect();
    if names.is_empty() {
        return String::new();
    }
    format!(", which may stay on {}, since they do not answer", names.join(", "))
}

fn not_of_their_number(confirmed: Option<usize>) -> String {
    let text = |confirmed| format!(" of their number, which is not {confirmed}");
    confirmed.map(text).unwrap_or_default()
}

fn waits(node: &str, others: usize) -> String {
    match others {
        0 => format!("node {node} waits"),
        more => format!("node {node} and {more} more wait"),
    }
}
