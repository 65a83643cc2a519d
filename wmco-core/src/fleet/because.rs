//! Reasons for the intent of an instance.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::digest::Sha256;
use crate::instances::Called;
use crate::machines::Unfit;

/// The reason for the intent of an instance.
#[derive(Clone, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Because {
    /// It is in the list of instances.
    Listed,
    /// Its entry is invalid.
    EntryBroken,
    /// Its name is being looked up.
    NamePending,
    /// Its Node is not a Windows node.
    OtherSystem,
    /// A Machine owns its Node.
    MachineBehind,
    /// A record that may belong to it cannot be read.
    RecordDamaged {
        /// The record's address.
        address: String,
    },
    /// Another entry has the same host or Node.
    SameNode {
        /// That entry's address.
        address: String,
    },
    /// Several Nodes claim to be its Node.
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
    /// It is not listed, but may be the host of this entry, which is about to be contacted for the first time.
    LookDue {
        /// The entry's address.
        address: String,
    },
    /// The ConfigMap of instances is absent.
    ListAbsent,
    /// It is not listed, its host has no record, and its Node is already deleted.
    NodeDeleted,
    /// It is no longer listed, and the facts that its removal needs are not recorded yet.
    RecordDue,
    /// It is no longer listed and has no record, and another Node has its address, so it is unknown which host to
    /// clean.
    AddressShared {
        /// That Node's name.
        node: String,
    },
    /// It is no longer listed, but so many instances are not that an administrator has to confirm their removal.
    Unconfirmed,
    /// Its Machine is provisioned.
    Provisioned,
    /// Its Machine is not usable now.
    Unfit(Unfit),
    /// A Machine has its address.
    AddressOfMachine {
        /// The Machine's name.
        machine: String,
    },
    /// An entry has its Machine's address.
    AddressListed {
        /// The entry's address.
        address: String,
    },
    /// A host that is to be removed, or may be listed, has a record with its Machine's address.
    AddressOnRecord {
        /// The address under which that host was listed.
        address: String,
    },
    /// Its Machine refers to a deleted Node, and another Node has the same name.
    OtherNode {
        /// The Node's name.
        node: String,
    },
    /// Its Machine is running and has no `nodeRef`.
    NodeNotTold,
    /// Its Machine refers to a Node that another instance has.
    NodeShared {
        /// Address or Machine of the other instance.
        with: String,
    },
    /// Its host refuses every key of ours, or does not answer during a key exchange.
    LoginRefused,
    /// It is not a node yet, and the cluster is not ready for another node.
    ClusterUnfit,
    /// Its host refuses every key of ours, or does not answer during a key exchange, and the replacement of its
    /// Machine has to wait.
    ReplacementHeld(Held),
}

/// Why a Machine is not replaced now.
#[derive(Clone, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Held {
    /// No MachineSet would create a replacement: the Machine has none, or the set is deleted or creates none.
    NobodyMakesAnother,
    /// Its host accepts a key that is no longer in the Secret, and the key in the Secret was removed from the host.
    KeyLost {
        /// Hash of that key.
        key: Sha256,
    },
    /// Its MachineSet makes Machines that never become nodes of ours: they refuse our key, too, or are none that the
    /// operator looks at.
    WrongTemplate {
        /// What is wrong, with its path in the MachineSet.
        mistake: String,
    },
    /// The user data of new Machines does not have our key yet, so a new Machine would refuse it, too.
    UserDataDue,
    /// The user data of new Machines were written a moment ago, and whoever changed them may do so again.
    UserDataFresh,
    /// Several Machines of its MachineSet were replaced, and the set has not been healthy since: another one would
    /// refuse our key, too.
    SuccessorsFailed {
        /// Number of replaced Machines.
        replaced: usize,
    },
    /// Its MachineSet has too many Machines.
    TooMany,
    /// Its MachineSet has too few Machines.
    TooFew,
    /// Other Machines are not ready, or do not run the operator's version.
    Unhealthy {
        /// Address or Machine of the first of them.
        first: String,
    },
    /// Another Machine of its MachineSet is replaced first.
    ReplacedFirst {
        /// That Machine.
        first: String,
    },
    /// Its node has not been without a ready kubelet for long, and another Machine of its MachineSet is being replaced.
    MayRecover,
    /// The disruption budget is used up.
    Budget,
    /// The cluster is not ready for new work.
    ClusterUnfit,
    /// The start of the replacement has to be recorded first.
    RecordDue,
}

/// The first of these reasons that holds: a table of rules by rank.
pub(super) fn first(rules: &[&dyn Fn() -> Option<Because>]) -> Option<Because> {
    rules.iter().find_map(|rule| rule())
}

impl Because {
    /// Because it may be the host or Node of this entry.
    pub(super) fn may_be_listed(entry: &str) -> Self {
        Self::MayBeListed { address: entry.to_owned() }
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listed => f.write_str("it is listed"),
            Self::EntryBroken => f.write_str("its entry is broken"),
            Self::NamePending => f.write_str("its name was not looked up yet"),
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
            Self::ClusterUnfit => f.write_str("the cluster is not fit for another node"),
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
            Self::WrongTemplate { mistake } => {
                write!(f, "a new one would be no node, since {mistake}")
            }
            Self::UserDataDue => {
                f.write_str("the user data of new machines does not have our key yet")
            }
            Self::UserDataFresh => f.write_str(
                "the user data of new machines were written a moment ago, and may be changed again",
            ),
            Self::SuccessorsFailed { replaced } => {
                write!(f, "{replaced} of its machineset were replaced and none of them works")
            }
            Self::TooMany => f.write_str("its machineset has more machines than it is to have"),
            Self::TooFew => f.write_str("its machineset lacks machines"),
            Self::Unhealthy { first } => {
                write!(f, "{} is not in service with the operator's version", Called(first))
            }
            Self::ReplacedFirst { first } => {
                write!(f, "{} of its machineset is replaced first", Called(first))
            }
            Self::MayRecover => f.write_str(
                "another of its machineset is made anew, and its own node may get ready again",
            ),
            Self::Budget => f.write_str("the disruption budget is used up"),
            Self::ClusterUnfit => f.write_str("the cluster is not fit for new work"),
            Self::RecordDue => f.write_str("it is put on record first"),
        }
    }
}
