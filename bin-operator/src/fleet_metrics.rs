//! Metrics of the fleet.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use wmco_core::facts::NodeFacts;
use wmco_core::fleet::{Assignments, SlotWait};
use wmco_core::names::objects::TLS_CERTIFICATE_KEY;
use wmco_core::preflight::{Finding, Severity};

use crate::csr::{Issued, Validity};
use crate::metrics::{CertificateLabels, FindingLabels, IntentLabels, Metrics, NodeLabels};

/// The gauges of the whole fleet.
pub struct FleetMetrics {
    metrics: Metrics,
    blocked: Times,
    slots: Times,
    waits: Times,
    restarts: Times,
    issued: Issued,
    certificates: BTreeSet<CertificateLabels>,
}

/// A time of each Node that has one.
struct Times {
    gauges: Family<NodeLabels, Gauge>,
    shown: BTreeMap<NodeLabels, i64>,
}

impl FleetMetrics {
    /// Shows nothing yet.
    pub fn new(metrics: Metrics, issued: Issued) -> Self {
        let times = |gauges: &Family<NodeLabels, Gauge>| Times {
            gauges: gauges.clone(),
            shown: BTreeMap::new(),
        };
        Self {
            blocked: times(&metrics.blocked_drains),
            slots: times(&metrics.slots),
            waits: times(&metrics.waits),
            restarts: times(&metrics.restarts),
            metrics,
            issued,
            certificates: BTreeSet::new(),
        }
    }

    /// Shows how long certificates of nodes are valid, and the one of the exporters.
    pub fn show_certificates(
        &mut self,
        nodes: &[NodeFacts],
        exporter: Option<&Secret>,
        now: Timestamp,
    ) {
        let ours: BTreeSet<&str> =
            nodes.iter().filter(|node| node.is_windows()).map(|node| node.name.as_str()).collect();
        let hour_ago = now.as_second() - 3600;
        let found = self.issued.of_nodes(|node| ours.contains(node), hour_ago).into_iter();
        let found = found.map(|(node, certificate, validity)| {
            (CertificateLabels { certificate, node }, validity)
        });
        let pem = exporter.and_then(|secret| secret.data.as_ref()?.get(TLS_CERTIFICATE_KEY));
        let exporter = pem.and_then(|pem| Validity::of_pem(&pem.0)).map(|(validity, _)| {
            (CertificateLabels { certificate: "exporter", node: String::new() }, validity)
        });
        let found: BTreeMap<_, _> = found.chain(exporter).collect();
        let (from, until) = (&self.metrics.certificates_from, &self.metrics.certificates_until);
        for (label, validity) in &found {
            from.get_or_create(label).set(validity.from);
            until.get_or_create(label).set(validity.until);
        }
        for label in self.certificates.iter().filter(|label| !found.contains_key(label)) {
            from.remove(label);
            until.remove(label);
        }
        self.certificates = found.into_keys().collect();
    }

    /// Shows what the preflight found.
    pub fn show_findings(&self, findings: &[Finding]) {
        for (severity, label) in [(Severity::Blocking, "blocking"), (Severity::Warning, "warning")]
        {
            let count = findings.iter().filter(|finding| finding.severity == severity).count();
            let gauge =
                self.metrics.findings.get_or_create(&FindingLabels { severity: label }).clone();
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// Shows one pass.
    pub fn show(
        &mut self,
        assignments: &Assignments<'_>,
        waits: &[SlotWait],
        nodes: &[NodeFacts],
        now: Timestamp,
    ) {
        let instances = &assignments.instances;
        for intent in ["configure", "remove", "replace", "leave"] {
            let count = instances.iter().filter(|a| a.intent.verb() == intent).count();
            let gauge = self.metrics.instances.get_or_create(&IntentLabels { intent }).clone();
            gauge.set(count.try_into().unwrap_or(i64::MAX));
        }
        let disrupted = assignments.disrupted.len();
        self.metrics.disrupted.set(disrupted.try_into().unwrap_or(i64::MAX));
        let waiting = assignments.waiting.len();
        self.metrics.waiting.set(waiting.try_into().unwrap_or(i64::MAX));
        let ours = || nodes.iter().filter(|node| node.is_windows());
        let now = now.as_second();
        self.blocked.show(
            ours().filter_map(|node| {
                Some((node.name.as_str(), node.drain_blocked_since?.as_second()))
            }),
        );
        self.waits.show(waits.iter().map(|wait| (wait.node.as_str(), wait.since.as_second())));
        // A mark has no time, so it counts from when it was seen first.
        self.slots.show_marks(assignments.disrupted.iter().copied(), now);
        let restarts = ours().filter(|node| node.wants_restart());
        self.restarts.show_marks(restarts.map(|node| node.name.as_str()), now);
    }
}

impl Times {
    /// Shows these Nodes with the time that each has, and no others.
    fn show<'a>(&mut self, times: impl Iterator<Item = (&'a str, i64)>) {
        let times: BTreeMap<_, _> =
            times.map(|(node, time)| (NodeLabels { node: node.to_owned() }, time)).collect();
        for (label, time) in &times {
            self.gauges.get_or_create(label).set(*time);
        }
        for label in self.shown.keys().filter(|label| !times.contains_key(label)) {
            self.gauges.remove(label);
        }
        self.shown = times;
    }

    /// Shows these Nodes with the time since when each was shown, and no others.
    fn show_marks<'a>(&mut self, marked: impl Iterator<Item = &'a str>, now: i64) {
        let before = std::mem::take(&mut self.shown);
        let since = |node: &str| before.get(&NodeLabels { node: node.to_owned() }).copied();
        let marked: Vec<_> = marked.map(|node| (node, since(node).unwrap_or(now))).collect();
        self.shown = before;
        self.show(marked.into_iter());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_counts_from_when_it_was_seen_first_and_goes_with_its_node() {
        let mut times = Times { gauges: Family::default(), shown: BTreeMap::new() };
        let label = NodeLabels { node: "win-1".into() };
        times.show_marks(["win-1"].into_iter(), 10);
        times.show_marks(["win-1", "win-2"].into_iter(), 20);
        assert_eq!(times.gauges.get(&label).map(|gauge| gauge.get()), Some(10));
        times.show_marks(["win-2"].into_iter(), 30);
        assert!(times.gauges.get(&label).is_none());
        times.show_marks(["win-1"].into_iter(), 40);
        assert_eq!(times.gauges.get(&label).map(|gauge| gauge.get()), Some(40));
    }
}
