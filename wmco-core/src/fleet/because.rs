//! Why an instance is treated as it is.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::digest::Sha256;
use crate::instances::Called;
use crate::machines::Unfit;

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
    /// Its Machine is provisioned.
    Provisioned,
    /// Its Machine is none to work on now.
    Unfit(Unfit),
    /// A Machine has its address.
    AddressOfMachine {
        /// The Machine's name.
        machine: String,
    },
    /// An entry leads to its Machine's address.
    AddressListed {
        /// The entry's address.
        address: String,
    },
    /// A host that is to leave, or may be listed, is on record at its Machine's address.
    AddressOnRecord {
        /// The address under which that host was listed.
        address: String,
    },
    /// Its Machine refers to a Node that is gone, and another Node has that one's name.
    OtherNode {
        /// The name.
        node: String,
    },
    /// Its Machine runs, and refers to no Node.
    NodeNotTold,
    /// Its Machine refers to a Node that another instance has.
    NodeShared {
        /// What the other instance is known by.
        with: String,
    },
    /// Its host refuses every key of ours, or does not answer while one is exchanged.
    LoginRefused,
    /// The same, and its Machine waits to be replaced.
    ReplacementHeld(Held),
}

/// Why a Machine is not replaced now.
#[derive(Clone, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Held {
    /// Nobody would make another one: it has no MachineSet, or that is gone or makes none.
    NobodyMakesAnother,
    /// Its host lets in a key that is not in the Secret any more, while the one there was taken off it.
    KeyLost {
        /// Hash of that key.
        key: Sha256,
    },
    /// The user data of new Machines does not let our key in yet, so another one would refuse it, too.
    UserDataDue,
    /// So many Machines of its MachineSet were made anew, and the MachineSet is not whole since: another one
    /// would refuse our key, too.
    InVain {
        /// How many.
        replaced: usize,
    },
    /// Its MachineSet has more Machines than it is to have.
    TooMany,
    /// Its MachineSet lacks Machines.
    TooFew,
    /// Others are not ready, or do not run the operator's version, or are being replaced.
    Unhealthy {
        /// What the first of them is known by.
        first: String,
    },
    /// The disruption budget is used up.
    Budget,
    /// That it begins is put on record first.
    RecordDue,
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
            Self::Provisioned => f.write_str("its machine is provisioned"),
            Self::Unfit(why) => why.fmt(f),
            Self::AddressOfMachine { machine } => write!(f, "machine {machine} has its address"),
            Self::AddressListed { address } => write!(f, "entry {address} leads to its address"),
            Self::AddressOnRecord { address } => {
                write!(f, "host {address}, which is on record and not listed, has its address")
            }
            Self::OtherNode { node } => {
                write!(
                    f,
                    "its machine refers to a node {node} that is gone, and there is another one"
                )
            }
            Self::NodeNotTold => f.write_str("its machine runs and refers to no node"),
            Self::NodeShared { with } => {
                write!(f, "its machine refers to the node of {}, too", Called(with))
            }
            Self::LoginRefused => f.write_str("its host does not let us in"),
            Self::ReplacementHeld(held) => {
                write!(
                    f,
                    "its host does not let us in, and its machine is not replaced now: {held}"
                )
            }
        }
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NobodyMakesAnother => f.write_str("no machineset would make another one"),
            Self::KeyLost { key } => write!(
                f,
                "it lets in the key with hash {key}, which was taken out of the secret, and not the one there"
            ),
            Self::UserDataDue => {
                f.write_str("the user data of new machines does not have our key yet")
            }
            Self::InVain { replaced } => {
                write!(f, "{replaced} of its machineset were made anew and none of them works")
            }
            Self::TooMany => f.write_str("its machineset has more machines than it is to have"),
            Self::TooFew => f.write_str("its machineset lacks machines"),
            Self::Unhealthy { first } => {
                write!(f, "{} is not ready with the operator's version", Called(first))
            }
            Self::Budget => f.write_str("the disruption budget is used up"),
            Self::RecordDue => f.write_str("it is put on record first"),
        }
    }
}
