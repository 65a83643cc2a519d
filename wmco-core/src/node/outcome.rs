//! Outcomes of steps.

use super::{HostSeen, InstanceInputs, Refusal};
use crate::digest::Sha256;
use crate::facts::PodFacts;
use crate::fleet::Intent;
use crate::protocol::{Probe, RootAccess};

/// The outcome of a successful step.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// The host was only probed.
    Looked(HostSeen),
    /// The host was changed and is now in this state.
    Worked(HostSeen),
    /// Contents were uploaded to the host.
    Uploaded,
    /// The host's record says who may write below its root folder.
    RootRecorded(RootAccess),
    /// The host's record says that a login with this key alone succeeded.
    KeyProven(Sha256),
    /// The host's record says that the key with this hash was removed from the host.
    KeyRemovalProven(Sha256),
    /// The Node was changed, by us or by another writer before us.
    NodeChanged {
        /// Its resource version, at least.
        resource_version: u64,
        /// Whether we changed it; otherwise another writer was first.
        is_ours: bool,
    },
    /// The API server has no Node.
    NoNode,
    /// The API server has a Node.
    FoundNode {
        /// Its name.
        name: String,
    },
    /// The node's pods that a drain has to evict.
    Pods(Vec<PodFacts>),
    /// Pods were evicted; these evictions were refused.
    Evicted(Vec<Refusal>),
    /// The Node was deleted.
    NodeDeleted,
    /// The user data of new Machines let every key in.
    UserDataProven,
    /// The Machine was deleted.
    MachineDeleted,
    /// The API server kept the Machine: it is not the expected one, or was changed at that moment.
    MachineKept {
        /// UID of the Machine that was to be deleted.
        uid: String,
    },
    /// The host's key and record were deleted.
    HostForgotten,
}

impl Outcome {
    /// Whether `inputs` already show the outcome, so that the next plan does not repeat the step; `None` for
    /// outcomes that inputs never show, so that there is nothing to wait for.
    pub fn is_visible_in(&self, inputs: &InstanceInputs) -> Option<bool> {
        let record = inputs.record.as_ref();
        Some(match self {
            Self::NodeChanged { resource_version, .. } => {
                inputs.node.as_ref().is_none_or(|node| node.resource_version >= *resource_version)
            }
            Self::FoundNode { .. } => inputs.node.is_some(),
            Self::HostForgotten => !inputs.on_record,
            Self::MachineKept { uid } => {
                !matches!(&inputs.desired.intent, Intent::Replace(permit) if permit.uid() == uid)
            }
            Self::RootRecorded(root) => inputs.is_known_closed() == (*root == RootAccess::Closed),
            Self::KeyProven(key) => record.is_some_and(|it| it.accepted_key == Some(*key)),
            Self::KeyRemovalProven(key) => record.is_some_and(|it| it.removed_key == Some(*key)),
            Self::Looked(_)
            | Self::Worked(_)
            | Self::Uploaded
            | Self::NoNode
            | Self::Pods(_)
            | Self::Evicted(_)
            | Self::NodeDeleted
            | Self::UserDataProven
            | Self::MachineDeleted => return None,
        })
    }

    /// Whether the host or the cluster has changed.
    pub(super) fn is_change(&self) -> bool {
        match self {
            Self::Looked(_) | Self::NoNode | Self::Pods(_) | Self::UserDataProven => false,
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

    /// Whether the instance is completely removed.
    pub const fn is_gone(&self) -> bool {
        matches!(self, Self::NodeDeleted | Self::MachineDeleted | Self::HostForgotten)
    }

    /// The probe that the host's agent reported.
    pub fn probe(&self) -> Option<&Probe> {
        match self {
            Self::Looked(HostSeen::Probed(probe)) | Self::Worked(HostSeen::Probed(probe)) => {
                Some(probe)
            }
            _ => None,
        }
    }
}
