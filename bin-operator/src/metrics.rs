//! What the operator counts, in Prometheus' form.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// Labels of a counted action.
#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub struct ActionLabels {
    /// The action's verb.
    pub action: &'static str,
    /// `ok` or `error`.
    pub result: &'static str,
}

/// Labels of a counted decision about a certificate request.
#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub struct CsrLabels {
    /// Kind of the request, `none` for those of other signers.
    pub kind: &'static str,
    /// What was decided.
    pub verdict: &'static str,
    /// The rule that decided, empty for approvals.
    pub rule: &'static str,
}

/// Labels of the gauge of instances.
#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub struct IntentLabels {
    /// What is wanted of them.
    pub intent: &'static str,
}

/// All metrics; cheap to clone.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Registry>,
    /// Actions carried out.
    pub actions: Family<ActionLabels, Counter>,
    /// Decisions about certificate requests.
    pub csrs: Family<CsrLabels, Counter>,
    /// Seconds that decisions about certificate requests took, without reads and writes.
    pub csr_decision_time: Histogram,
    /// Instances by intent.
    pub instances: Family<IntentLabels, Gauge>,
    /// Nodes that hold a disruption slot.
    pub disrupted: Gauge<i64, AtomicI64>,
}

impl Metrics {
    /// Registers everything.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("wmco");
        let (actions, csrs) = (Family::default(), Family::default());
        let (instances, disrupted) = (Family::default(), Gauge::default());
        registry.register("actions", "Actions carried out on nodes and hosts", actions.clone());
        registry.register("csr_decisions", "Decisions about certificate requests", csrs.clone());
        // From 1 µs to a quarter of a second.
        let csr_decision_time = Histogram::new(exponential_buckets(1e-6, 2.0, 19));
        registry.register(
            "csr_decision_seconds",
            "Time that decisions about certificate requests took",
            csr_decision_time.clone(),
        );
        registry.register("instances", "Instances by what is wanted of them", instances.clone());
        registry.register(
            "disrupted_nodes",
            "Nodes that hold a disruption slot",
            disrupted.clone(),
        );
        Self {
            registry: Arc::new(registry),
            actions,
            csrs,
            csr_decision_time,
            instances,
            disrupted,
        }
    }

    /// The text that a scrape gets.
    pub fn text(&self) -> String {
        let mut text = String::new();
        match prometheus_client::encoding::text::encode(&mut text, &self.registry) {
            Ok(()) => text,
            Err(_) => String::new(),
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counted_action_shows_up() {
        let metrics = Metrics::new();
        metrics.actions.get_or_create(&ActionLabels { action: "probe", result: "ok" }).inc();
        let text = metrics.text();
        assert!(text.contains(r#"wmco_actions_total{action="probe",result="ok"} 1"#), "{text}");
    }
}
