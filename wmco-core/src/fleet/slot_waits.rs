//! Since when Nodes wait for a slot of the disruption budget, and what each of them is told.
//!
//! # Source
//! `docs/contract/lifecycle.md`, LIFE42.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;

use super::notice::{Holders, Notice};
use super::{Assignments, Hold};

/// The Nodes that wait, with the time of the first pass that saw each wait.
#[derive(Clone, Debug, Default)]
pub struct SlotWaits(BTreeMap<String, Timestamp>);

/// One Node that waits. Its text says since when, for which Nodes, and what frees a slot.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SlotWait {
    /// The Node.
    pub node: String,
    /// Since when.
    pub since: Timestamp,
    /// The Nodes that hold the slots.
    pub holders: BTreeMap<String, Hold>,
}

impl SlotWaits {
    /// Takes the result of a pass at `now`; returns who waits. While nothing may be disrupted at all, nobody waits for a
    /// slot.
    pub fn update(&mut self, assignments: &Assignments<'_>, now: Timestamp) -> Vec<SlotWait> {
        let holders = assignments.notices.iter().find_map(|notice| match notice {
            Notice::SlotAwaited { holders, .. } => Some(holders),
            _ => None,
        });
        let waiting = if holders.is_some() { assignments.waiting.clone() } else { BTreeSet::new() };
        let since = |node: &&str| self.0.get(*node).copied().unwrap_or(now);
        self.0 = waiting.iter().map(|node| ((*node).to_owned(), since(node))).collect();
        let wait = |(node, since): (&String, &Timestamp)| SlotWait {
            node: node.clone(),
            since: *since,
            holders: holders.cloned().unwrap_or_default(),
        };
        self.0.iter().map(wait).collect()
    }
}

impl fmt::Display for SlotWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = self.since.strftime("%Y-%m-%dT%H:%M:%SZ");
        write!(
            f,
            "waits since {since} for a slot of the disruption budget; {}",
            Holders(&self.holders)
        )
    }
}
