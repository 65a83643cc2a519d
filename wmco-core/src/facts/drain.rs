//! What is noted on a Node of its drain.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::names::events;

/// Drains that were given up.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, PartialEq, Serialize)]
pub struct GivenUp {
    /// How many in a row.
    pub times: u32,
    /// When the node may be drained again.
    pub retry_at: Timestamp,
}

impl GivenUp {
    /// Reads it as it is noted on a Node.
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

/// What a Node's condition says of its drain.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
pub struct DrainNotice {
    /// How far the drain has come.
    pub stage: DrainStage,
    /// For people: which pods, what holds them, since when, and what follows.
    pub message: String,
}

/// How far a blocked drain has come.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum DrainStage {
    /// Pods stay, and are waited for.
    Blocked,
    /// The time is over, but the host has been changed already, so the node keeps its slot.
    Overdue,
    /// The node was given back, to be drained again later.
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

    /// The stage that a condition's reason stands for.
    pub fn of_reason(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.reason() == reason)
    }
}
