//! Reports of a worker about its instance.

use crate::node::{Awaited, Next};

/// The last report of a worker about its instance. The marks on Nodes show most work; this report shows the rest,
/// so that work without a mark counts, too, and a mere probe does not.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum WorkState {
    /// Nothing is changed, as far as the worker knows.
    #[default]
    Looking,
    /// A change is in progress.
    AtWork,
    /// A change failed, and is tried again.
    Failing,
    /// Waiting for this state.
    Awaits(Awaited),
    /// No work is left.
    Settled,
}

impl WorkState {
    /// Starts a step; a step that only observes changes nothing here.
    #[must_use]
    pub fn begins(self, looks: bool) -> Self {
        match self {
            // An attempt is no success.
            state if looks || state == Self::Failing => state,
            _ => Self::AtWork,
        }
    }

    /// Ends a step.
    #[must_use]
    pub fn ends(self, looks: bool, done: bool) -> Self {
        match (looks, done) {
            (true, _) => self,
            (false, true) => Self::AtWork,
            (false, false) => Self::Failing,
        }
    }

    /// Ends a plan with all steps taken.
    #[must_use]
    pub fn rests(self, next: &Next) -> Self {
        match next {
            Next::Now => self,
            Next::Await { what, .. } => Self::Awaits(*what),
            Next::Settled => Self::Settled,
        }
    }

    /// Whether work has begun and is not finished.
    pub(super) fn is_under_way(self) -> bool {
        match self {
            Self::Looking | Self::Settled => false,
            // A host that does not answer has no work in progress, unless a step failed there.
            Self::Awaits(what) => what != Awaited::HostReachable,
            Self::AtWork | Self::Failing => true,
        }
    }

    pub(super) fn drains(self) -> bool {
        self == Self::Awaits(Awaited::PodsGone)
    }
}

impl Awaited {
    /// Whether only an administrator can end the wait.
    pub(super) fn needs_administrator(self) -> bool {
        match self {
            Self::HostFit => true,
            Self::HostReachable
            | Self::OtherWriter
            | Self::HostBack
            | Self::NodeAppears
            | Self::PodsGone
            | Self::VersionMark
            | Self::NodeReady
            | Self::DisruptionSlot => false,
        }
    }
}
