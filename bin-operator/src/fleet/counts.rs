//! What is counted of the fleet.

use std::collections::{BTreeMap, BTreeSet};

use wmco_core::facts::NodeFacts;
use wmco_core::fleet::Assignment;

use crate::metrics::{IntentLabels, Metrics, NodeLabels};

/// The gauges of the whole fleet.
pub(super) struct Counts {
    metrics: Metrics,
    /// Nodes that are shown with a blocked drain.
    blocked: BTreeSet<NodeLabels>,
}

impl Counts {
    pub(super) fn new(metrics: Metrics) -> Self {
        Self { metrics, blocked: BTreeSet::new() }
    }

    /// Shows one pass.
    pub(super) fn show(&mut self, assignments: &[Assignment<'_>], nodes: &[NodeFacts]) {
        for intent in ["configure", "remove", "replace", "leave"] {
            let count = assignments.iter().filter(|a| a.intent.verb() == intent).count();
            let gauge = self.metrics.instances.get_or_create(&IntentLabels { intent }).clone();
            gauge.set(count.try_into().unwrap_or(i64::MAX));
        }
        let disrupted = nodes.iter().filter(|node| node.holds_slot()).count();
        self.metrics.disrupted.set(disrupted.try_into().unwrap_or(i64::MAX));
        self.show_blocked(nodes);
    }

    /// Shows of each Node since when pods block its drain.
    fn show_blocked(&mut self, nodes: &[NodeFacts]) {
        let gauges = &self.metrics.blocked_drains;
        let label = |node: &NodeFacts| NodeLabels { node: node.name.clone() };
        let since = |node: &NodeFacts| Some((label(node), node.drain_blocked_since?.as_second()));
        let blocked: BTreeMap<_, _> = nodes.iter().filter_map(since).collect();
        for (label, since) in &blocked {
            gauges.get_or_create(label).set(*since);
        }
        for label in self.blocked.iter().filter(|label| !blocked.contains_key(label)) {
            gauges.remove(label);
        }
        self.blocked = blocked.into_keys().collect();
    }
}
