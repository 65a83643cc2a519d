//! State of a drain, as the Node records it.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::names::events;

/// Drains that the operator gave up.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, PartialEq, Serialize)]
pub struct GivenUp {
    /// Number of drains given up in a row.
    pub times: u32,
    /// The time from which the node may be drained again.
    pub retry_at: Timestamp,
}

impl GivenUp {
    /// Reads the annotation's value.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (times, retry_at) = text.split_once(' ')?;
        Some(Self { times: times.parse().ok()?, retry_at: retry_at.parse().ok()? })
    }
}

impl fmt::Display for GivenUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:.0}", self.times, self.retry_at)
    }
}

/// The Node's condition about its drain.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
pub struct DrainNotice {
    /// Progress of the drain.
    pub stage: DrainStage,
    /// Message: the remaining pods, what blocks them, since when, and the next step.
    pub message: String,
}

/// Progress of a blocked drain.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum DrainStage {
    /// Waiting for the remaining pods.
    Blocked,
    /// The time is over, but the host is already changed, so the node keeps its slot.
    Overdue,
    /// The node was uncordoned, to be drained again later.
    GivenUp,
}

impl DrainStage {
    const ALL: [Self; 3] = [Self::Blocked, Self::Overdue, Self::GivenUp];

    /// Reason of the condition and of Events.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Blocked => events::DRAIN_BLOCKED,
            Self::Overdue => events::DRAIN_OVERDUE,
            Self::GivenUp => events::DRAIN_GIVEN_UP,
        }
    }

    /// The stage of a condition's reason.
    pub fn of_reason(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.reason() == reason)
    }
}
