//! The operator's intent for an instance.

use schemars::JsonSchema;
use serde::Serialize;

use super::{DisruptionPermit, ReplacementPermit};

/// The operator's intent for an instance, decided by [`reconcile`](super::reconcile).
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Intent {
    /// Bring the instance to the desired version and keep it there; disrupt it only with a permit.
    Configure(Option<DisruptionPermit>),
    /// Clean the host and delete the Node; disrupt it only with a permit.
    Remove(Option<DisruptionPermit>),
    /// Delete the instance's Machine, so that its MachineSet creates a replacement.
    Replace(ReplacementPermit),
    /// Look at its host for the first time, since the removal of another one waits for that, and do nothing else there.
    Look,
    /// Leave the instance alone: it is not ours, or must not be touched now.
    Leave,
}

impl Intent {
    /// The permit to disrupt its node, if there is one.
    pub fn permit(&self) -> Option<&DisruptionPermit> {
        match self {
            Self::Configure(permit) | Self::Remove(permit) => permit.as_ref(),
            Self::Replace(_) | Self::Look | Self::Leave => None,
        }
    }

    /// Short stable name for logs, metric labels and tests.
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::Configure(_) => "configure",
            Self::Remove(_) => "remove",
            Self::Replace(_) => "replace",
            Self::Look => "look",
            Self::Leave => "leave",
        }
    }
}
