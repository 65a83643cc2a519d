//! How long a worker rests, and what ends the rest.

use jiff::Timestamp;

use super::{Awaited, InstanceInputs};

/// A worker's rest after a pass.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rest {
    /// When the rest ends by itself.
    pub until: Timestamp,
    heeds: Heeds,
}

/// Changes that end a rest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Heeds {
    /// A change of the desired state.
    Requests,
    /// A change of the desired state, or any change of the Node.
    Node,
}

/// The reason for the end of a rest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Wake {
    /// The deadline passed.
    Deadline,
    /// The Node, or the known facts about its host key, changed.
    NodeChanged,
    /// The desired state changed.
    AskedOtherwise,
    /// An awaited permit was granted, or one was taken back. Nothing else is asked for, so what failed before counts.
    PermitChanged,
}

impl Rest {
    /// A rest without expected events.
    pub(super) const fn settled(until: Timestamp) -> Self {
        Self { until, heeds: Heeds::Node }
    }

    /// A wait for `what`. A Node tells nothing about a host that does not answer.
    pub(super) const fn awaiting(what: Awaited, until: Timestamp) -> Self {
        let heeds = match what {
            Awaited::HostReachable | Awaited::HostBack | Awaited::HostFit => Heeds::Requests,
            Awaited::DisruptionSlot
            | Awaited::OtherWriter
            | Awaited::NodeAppears
            | Awaited::NodeReady
            | Awaited::PodsGone
            | Awaited::VersionMark => Heeds::Node,
        };
        Self { until, heeds }
    }

    /// A pause after a failure.
    pub const fn after_failure(retry_at: Timestamp) -> Self {
        Self { until: retry_at, heeds: Heeds::Requests }
    }

    /// The reason to end the rest when `old` becomes `new`; `None` if the rest continues.
    pub fn ended_by(&self, new: &InstanceInputs, old: &InstanceInputs) -> Option<Wake> {
        let granted = new.desired.intent != old.desired.intent;
        if new.intent_changed_since(old) {
            return Some(Wake::AskedOtherwise);
        }
        match (self.heeds, granted) {
            (Heeds::Requests, _) => None,
            (Heeds::Node, true) => Some(Wake::PermitChanged),
            (Heeds::Node, false) => Some(Wake::NodeChanged),
        }
    }
}
