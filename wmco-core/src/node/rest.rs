//! How long a worker rests, and what ends that.

use jiff::Timestamp;

use super::{Awaited, InstanceInputs};

/// A worker's rest after a pass.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rest {
    /// When it ends by itself.
    pub until: Timestamp,
    heeds: Heeds,
}

/// Which changes end a rest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Heeds {
    /// What people and the cluster ask for.
    Requests,
    /// That, and whatever happens to the Node.
    Node,
}

/// What ended a rest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Wake {
    /// The time was over.
    Deadline,
    /// The Node, or what is known of its host key, changed.
    NodeChanged,
    /// People or the cluster ask for something else, or grant what was waited for.
    AskedOtherwise,
}

impl Rest {
    /// Until nothing else is to be expected of the instance.
    pub(super) const fn settled(until: Timestamp) -> Self {
        Self { until, heeds: Heeds::Node }
    }

    /// A wait for `what`. A Node tells nothing of a host that does not answer.
    pub(super) const fn awaiting(what: Awaited, until: Timestamp) -> Self {
        let heeds = match what {
            Awaited::HostReachable | Awaited::HostBack => Heeds::Requests,
            Awaited::DisruptionSlot
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

    /// What ends it when `old` becomes `new`; `None`: it goes on.
    pub fn ended_by(&self, new: &InstanceInputs, old: &InstanceInputs) -> Option<Wake> {
        let granted = new.desired.intent != old.desired.intent;
        if new.intent_changed_since(old) {
            return Some(Wake::AskedOtherwise);
        }
        match (self.heeds, granted) {
            (Heeds::Requests, _) => None,
            (Heeds::Node, true) => Some(Wake::AskedOtherwise),
            (Heeds::Node, false) => Some(Wake::NodeChanged),
        }
    }
}
