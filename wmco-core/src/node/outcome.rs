//! What a step brought about.

use super::{HostSeen, InstanceInputs, Refusal};
use crate::digest::Sha256;
use crate::facts::PodFacts;
use crate::fleet::Intent;
use crate::protocol::{Probe, RootAccess};

/// The outcome of one step that did not fail.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// The host was looked at and nothing else was done.
    Looked(HostSeen),
    /// The host was worked on and is so now.
    Worked(HostSeen),
    /// Contents were put on the host.
    Uploaded,
    /// It is on record who may write below the root of the host.
    RootRecorded(RootAccess),
    /// It is on record that the host let us in with the key of this hash alone.
    KeyProven(Sha256),
    /// It is on record that the key of this hash was taken off the host.
    KeyRemovalProven(Sha256),
    /// The Node was changed, or somebody else did so before us.
    NodeChanged {
        /// Its resource version at least.
        resource_version: u64,
    },
    /// The API server knows no Node.
    NoNode,
    /// The API server knows a Node.
    FoundNode {
        /// Its name.
        name: String,
    },
    /// The node's pods that would have to leave.
    Pods(Vec<PodFacts>),
    /// Pods were asked to leave; these evictions were refused.
    Evicted(Vec<Refusal>),
    /// The Node is deleted.
    NodeDeleted,
    /// The Machine is deleted.
    MachineDeleted,
    /// The API server keeps the Machine: it is another one than was seen, or was changed at that moment.
    MachineKept {
        /// UID of the one that was to be deleted.
        uid: String,
    },
    /// Neither key nor record of the host is kept any more.
    HostForgotten,
}

impl Outcome {
    /// Whether `inputs` show it already, so that the next plan will not ask for the same again; `None` if
    /// they never will, so that there is nothing to wait for.
    pub fn is_visible_in(&self, inputs: &InstanceInputs) -> Option<bool> {
        let record = inputs.record.as_ref();
        Some(match self {
            Self::NodeChanged { resource_version } => {
                inputs.node.as_ref().is_none_or(|node| node.resource_version >= *resource_version)
            }
            Self::FoundNode { .. } => inputs.node.is_some(),
            Self::HostForgotten => !inputs.on_record,
            Self::MachineKept { uid } => {
                !matches!(&inputs.desired.intent, Intent::Replace(permit) if permit.uid() == uid)
            }
            Self::RootRecorded(root) => inputs.is_known_closed() == (*root == RootAccess::Closed),
            Self::KeyProven(key) => record.is_some_and(|it| it.lets_in == Some(*key)),
            Self::KeyRemovalProven(key) => record.is_some_and(|it| it.key_removed == Some(*key)),
            Self::Looked(_)
            | Self::Worked(_)
            | Self::Uploaded
            | Self::NoNode
            | Self::Pods(_)
            | Self::Evicted(_)
            | Self::NodeDeleted
            | Self::MachineDeleted => return None,
        })
    }

    /// Whether the host or the cluster is another than before.
    pub(super) fn is_change(&self) -> bool {
        match self {
            Self::Looked(_) | Self::NoNode | Self::Pods(_) => false,
            Self::Worked(_)
            | Self::Uploaded
            | Self::RootRecorded(_)
            | Self::KeyProven(_)
            | Self::KeyRemovalProven(_)
            | Self::NodeChanged { .. }
            | Self::FoundNode { .. }
            | Self::Evicted(_)
            | Self::NodeDeleted
            | Self::MachineDeleted
            | Self::MachineKept { .. }
            | Self::HostForgotten => true,
        }
    }

    /// Whether nothing is left of the instance.
    pub const fn is_gone(&self) -> bool {
        matches!(self, Self::NodeDeleted | Self::MachineDeleted | Self::HostForgotten)
    }

    /// What the host's agent told.
    pub fn probe(&self) -> Option<&Probe> {
        match self {
            Self::Looked(HostSeen::Probed(probe)) | Self::Worked(HostSeen::Probed(probe)) => {
                Some(probe)
            }
            _ => None,
        }
    }
}
