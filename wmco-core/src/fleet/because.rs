//! Reasons for the intent of an instance.

use schemars::JsonSchema;
use serde::Serialize;

use crate::digest::Sha256;
use crate::instances::Called;
use crate::machines::Unfit;

/// The reason for the intent of an instance.
#[derive(Clone, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
pub enum Because {
    /// It is in the list of instances.
    #[error("it is listed")]
    Listed,
    /// Its entry is invalid.
    #[error("its entry is broken")]
    EntryBroken,
    /// Its name is being looked up.
    #[error("its name was not looked up yet")]
    NamePending,
    /// Its Node is not a Windows node.
    #[error("its node is no windows node")]
    OtherSystem,
    /// A Machine owns its Node.
    #[error("a machine is behind its node")]
    MachineBehind,
    /// A record that may belong to it cannot be read.
    #[error("the record of {address} may be its own and cannot be read")]
    RecordDamaged {
        /// The record's address.
        address: String,
    },
    /// Another entry has the same host or Node.
    #[error("entry {address} stands for the same host")]
    SameNode {
        /// That entry's address.
        address: String,
    },
    /// Several Nodes claim to be its Node.
    #[error("nodes {} claim to stand for it", .nodes.join(" and "))]
    Contested {
        /// Their names.
        nodes: Vec<String>,
    },
    /// It is no longer listed.
    #[error("it is no longer listed")]
    Unlisted,
    /// It is not listed, but may be the Node of this entry.
    #[error("it is not listed, but may be the node of entry {address}")]
    MayBeListed {
        /// The entry's address.
        address: String,
    },
    /// It is not listed, but may be the host of this entry, as long as no look at that is on record.
    #[error(
        "it is not listed, but entry {address} may be its host until a look at that is on record"
    )]
    LookDue {
        /// The entry's address.
        address: String,
    },
    /// The ConfigMap of instances is absent.
    #[error("the list of instances is absent")]
    ListAbsent,
    /// It is not listed, its host has no record, and its Node is already deleted.
    #[error("its node is deleted, and waits for its finalizers")]
    NodeDeleted,
    /// It is no longer listed, and the facts that its removal needs are not recorded yet.
    #[error("its removal is put on record first")]
    RecordDue,
    /// It is no longer listed and has no record, and another Node has its address, so it is unknown which host to
    /// clean.
    #[error("it is not listed, but its address is that of node {node}, too")]
    AddressShared {
        /// That Node's name.
        node: String,
    },
    /// It is no longer listed, but so many instances are not that an administrator has to confirm their removal.
    #[error("its removal is not confirmed")]
    Unconfirmed,
    /// Its Machine is provisioned.
    #[error("its machine is provisioned")]
    Provisioned,
    /// Its Machine is not usable now.
    #[error(transparent)]
    Unfit(Unfit),
    /// A Machine has its address.
    #[error("machine {machine} has its address")]
    AddressOfMachine {
        /// The Machine's name.
        machine: String,
    },
    /// An entry has its Machine's address.
    #[error("entry {address} leads to its address")]
    AddressListed {
        /// The entry's address.
        address: String,
    },
    /// It may be the host of this record, which is not listed: by its address, or because its Node says that it was made from
    /// that one.
    #[error("host {address}, which is on record and not listed, may be its own")]
    AddressOnRecord {
        /// The address under which that host was listed.
        address: String,
    },
    /// Its Machine refers to a deleted Node, and another Node has the same name.
    #[error("its machine refers to a node {node} that is gone, and there is another one")]
    OtherNode {
        /// The Node's name.
        node: String,
    },
    /// Its Machine is running and has no `nodeRef`.
    #[error("its machine runs and refers to no node")]
    NodeNotTold,
    /// Its Machine refers to a Node that another instance has.
    #[error("its machine refers to the node of {}, too", Called(.with))]
    NodeShared {
        /// Address or Machine of the other instance.
        with: String,
    },
    /// Its host refuses every key of ours, or does not answer during a key exchange.
    #[error("its host does not let us in")]
    LoginRefused,
    /// It is not a node yet, and the cluster is not ready for another node.
    #[error("the cluster is not fit for another node")]
    ClusterUnfit,
    /// Its host refuses every key of ours, or does not answer during a key exchange, and the replacement of its
    /// Machine has to wait.
    #[error("its host does not let us in, and its machine is not replaced now: {0}")]
    ReplacementHeld(Held),
}

/// Why a Machine is not replaced now.
#[derive(Clone, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
pub enum Held {
    /// No MachineSet would create a replacement: the Machine has none, or the set is deleted or creates none.
    #[error("no machineset would make another one")]
    NobodyMakesAnother,
    /// Its host accepts a key that is no longer in the Secret, and the key in the Secret was removed from the host.
    #[error(
        "it lets in the key with hash {key}, which was taken out of the secret, and not the one there"
    )]
    KeyLost {
        /// Hash of that key.
        key: Sha256,
    },
    /// Its MachineSet makes Machines that never become nodes of ours: they refuse our key, too, or are none that the
    /// operator looks at.
    #[error("a new one would be no node, since {mistake}")]
    WrongTemplate {
        /// What is wrong, with its path in the MachineSet.
        mistake: String,
    },
    /// The user data of new Machines does not have our key yet, so a new Machine would refuse it, too.
    #[error("the user data of new machines does not have our key yet")]
    UserDataDue,
    /// The user data of new Machines were written a moment ago, and whoever changed them may do so again.
    #[error("the user data of new machines were written a moment ago, and may be changed again")]
    UserDataFresh,
    /// Several Machines of its MachineSet were replaced, and have no successor that works: another one would refuse our
    /// key, too.
    #[error("{replaced} of its machineset were replaced, and have no successor that works")]
    SuccessorsFailed {
        /// Number of these.
        replaced: usize,
    },
    /// Its MachineSet has too many Machines.
    #[error("its machineset has more machines than it is to have")]
    TooMany,
    /// Its MachineSet has too few Machines.
    #[error("its machineset lacks machines")]
    TooFew,
    /// Other Machines are not ready, do not run the operator's version, or have a permit.
    #[error(
        "{} is not in service with the operator's version, or about to go out of service",
        Called(.first)
    )]
    Unhealthy {
        /// Address or Machine of the first of them.
        first: String,
    },
    /// Another Machine of its MachineSet is replaced first.
    #[error("{} of its machineset is replaced first", Called(.first))]
    ReplacedFirst {
        /// That Machine.
        first: String,
    },
    /// Its node has not been without a ready kubelet for long, and another Machine of its MachineSet is being replaced.
    #[error("another of its machineset is made anew, and its own node may get ready again")]
    MayRecover,
    /// The disruption budget is used up.
    #[error("the disruption budget is used up")]
    Budget,
    /// The cluster is not ready for new work.
    #[error("the cluster is not fit for new work")]
    ClusterUnfit,
    /// The start of the replacement has to be recorded first.
    #[error("it is put on record first")]
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
