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
    /// Look at its host and do nothing else there: for the first time, since the removal of another one waits for that, or
    /// from time to time, since it has the key and the name of another entry's host and may be another one meanwhile.
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

    /// What is left of it when a permit that is part of it is taken back; `None` if there is none.
    pub fn without_permit(&self) -> Option<Self> {
        match self {
            Self::Configure(Some(_)) => Some(Self::Configure(None)),
            Self::Remove(Some(_)) => Some(Self::Remove(None)),
            Self::Replace(_) => Some(Self::Leave),
            Self::Configure(None) | Self::Remove(None) | Self::Look | Self::Leave => None,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_its_permit_nothing_disruptive_is_asked_for() {
        let permit = || Some(DisruptionPermit::for_node("win-1"));
        let replace = Intent::Replace(ReplacementPermit::for_machine("win", "u-1"));
        for (intent, expected) in [
            (Intent::Configure(permit()), Some(Intent::Configure(None))),
            (Intent::Remove(permit()), Some(Intent::Remove(None))),
            (replace, Some(Intent::Leave)),
            (Intent::Configure(None), None),
            (Intent::Remove(None), None),
            (Intent::Look, None),
            (Intent::Leave, None),
        ] {
            assert_eq!(intent.without_permit(), expected, "{intent:?}");
        }
    }
}
