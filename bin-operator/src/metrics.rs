//! The operator's metrics, in Prometheus' form.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry};
use wmco_ssh::Pool;

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

/// Labels of the metrics of one instance.
#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub struct InstanceLabels {
    /// Its address, as listed.
    pub instance: String,
}

/// Labels of unfinished work on one instance.
#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct WorkLabels {
    /// What people call the instance: its Node, its address or its Machine.
    pub instance: String,
    /// What is done.
    pub phase: &'static str,
}

/// Labels of a certificate.
#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CertificateLabels {
    /// What it is for.
    pub certificate: &'static str,
    /// The Node whose it is; empty for one of the cluster.
    pub node: String,
}

/// Labels of Events that were not sent.
#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub struct DropLabels {
    /// `queue-full`, or `rate` where an object or a reason has had its share.
    pub cause: &'static str,
}

/// Labels of findings of the preflight.
#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub struct FindingLabels {
    /// `blocking` or `warning`.
    pub severity: &'static str,
}

/// Labels of this build.
#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub struct BuildLabels {
    /// Its version.
    pub version: &'static str,
}

/// Labels of the metrics of one Node.
#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct NodeLabels {
    /// Its name.
    pub node: String,
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
    /// Seconds that passes over the whole fleet took, with what they write; their number is that of all passes.
    pub pass_time: Histogram,
    /// Instances by intent.
    pub instances: Family<IntentLabels, Gauge>,
    /// When what failed for an instance is tried again, in seconds since 1970; nothing for others.
    pub retries: Family<InstanceLabels, Gauge>,
    /// Since when pods block the drain of a node, in seconds since 1970; nothing for others.
    pub blocked_drains: Family<NodeLabels, Gauge>,
    /// Nodes that hold a disruption slot.
    pub disrupted: Gauge<i64, AtomicI64>,
    /// Whether there is a private key that can be used.
    pub has_key: Gauge<i64, AtomicI64>,
    /// Nodes that wait for a disruption slot.
    pub waiting: Gauge<i64, AtomicI64>,
    /// Since when instances are not at rest, in seconds since 1970; nothing for others.
    pub pending: Family<WorkLabels, Gauge>,
    /// Since when hosts do not answer, likewise.
    pub unreachable: Family<InstanceLabels, Gauge>,
    /// Since when nodes hold a disruption slot, as far as this process has seen, likewise.
    pub slots: Family<NodeLabels, Gauge>,
    /// Since when nodes wait for a disruption slot, likewise.
    pub waits: Family<NodeLabels, Gauge>,
    /// Since when nodes wait for a restart, as far as this process has seen, likewise.
    pub restarts: Family<NodeLabels, Gauge>,
    /// When certificates begin to be valid, in seconds since 1970.
    pub certificates_from: Family<CertificateLabels, Gauge>,
    /// When they end to be, likewise.
    pub certificates_until: Family<CertificateLabels, Gauge>,
    /// What the preflight found.
    pub findings: Family<FindingLabels, Gauge>,
    /// Events that were not sent, by cause.
    pub events_dropped: Family<DropLabels, Counter>,
    /// 1 for the process that leads, 0 for those that wait.
    pub leader: Gauge<i64, AtomicI64>,
}

impl Metrics {
    /// Registers everything, what `pool` holds and did included.
    pub fn new(pool: Pool) -> Self {
        let mut registry = Registry::with_prefix("wmco");
        // From 1 µs to a quarter of a second.
        let csr_decision_time = Histogram::new(exponential_buckets(1e-6, 2.0, 19));
        // From 1 ms to half a minute.
        let pass_time = Histogram::new(exponential_buckets(1e-3, 2.0, 16));
        let metrics = {
            let mut at = Registering(&mut registry);
            at.add(
                "csr_decision_seconds",
                "Time that decisions about certificate requests took",
                csr_decision_time.clone(),
            );
            at.add(
                "fleet_pass_seconds",
                "Time that passes over all instances took",
                pass_time.clone(),
            );
            let build: Family<BuildLabels, Gauge> = at.made("build_info", "This build");
            build.get_or_create(&BuildLabels { version: crate::VERSION }).set(1);
            Self {
                actions: at.made("actions", "Actions carried out on nodes and hosts"),
                csrs: at.made("csr_decisions", "Decisions about certificate requests"),
                csr_decision_time,
                pass_time,
                instances: at.made("instances", "Instances by what is wanted of them"),
                disrupted: at.made("disrupted_nodes", "Nodes that hold a disruption slot"),
                has_key: at.made("private_key_usable", "1 while there is a private key for logins"),
                waiting: at.made("waiting_nodes", "Nodes that wait for a disruption slot"),
                retries: at.made(
                    "instance_next_attempt_timestamp_seconds",
                    "When what failed for an instance is tried again",
                ),
                blocked_drains: at.made(
                    "drain_blocked_since_timestamp_seconds",
                    "Since when pods block the drain of a node",
                ),
                pending: at.made(
                    "instance_pending_since_timestamp_seconds",
                    "Since when an instance is not at rest, by what is done",
                ),
                unreachable: at.made(
                    "host_unreachable_since_timestamp_seconds",
                    "Since when a host does not answer",
                ),
                slots: at.made(
                    "slot_held_since_timestamp_seconds",
                    "Since when a node holds a disruption slot",
                ),
                waits: at.made(
                    "slot_awaited_since_timestamp_seconds",
                    "Since when a node waits for a disruption slot",
                ),
                restarts: at.made(
                    "restart_pending_since_timestamp_seconds",
                    "Since when a node waits for a restart",
                ),
                certificates_from: at.made(
                    "certificate_valid_from_timestamp_seconds",
                    "When a certificate begins to be valid",
                ),
                certificates_until: at.made(
                    "certificate_expiry_timestamp_seconds",
                    "When a certificate ends to be valid",
                ),
                findings: at.made("preflight_findings", "What the preflight found in the cluster"),
                events_dropped: at.made("events_dropped", "Events that were not sent"),
                leader: at.made("leader", "1 for the process that leads"),
                registry: Arc::default(),
            }
        };
        registry.register_collector(Box::new(Connections(pool)));
        Self { registry: Arc::new(registry), ..metrics }
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

/// Registers metrics.
struct Registering<'a>(&'a mut Registry);

impl Registering<'_> {
    fn add(&mut self, name: &str, help: &str, metric: impl Metric + Clone) {
        self.0.register(name, help, metric);
    }

    fn made<M: Metric + Clone + Default>(&mut self, name: &str, help: &str) -> M {
        let metric = M::default();
        self.add(name, help, metric.clone());
        metric
    }
}

/// Connections to hosts, looked at when somebody asks.
#[derive(Debug)]
struct Connections(Pool);

impl Collector for Connections {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let now = self.0.gauges();
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let done = self.0.counters().snapshot();
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        for (name, help, value) in [
            ("ssh_connections", "Connections to hosts that are open", count(now.open)),
            ("ssh_connections_idle", "Open connections that nobody uses", count(now.idle)),
            ("ssh_connections_waiting", "Workers that wait for a connection", count(now.waiting)),
            ("ssh_uploads", "Hosts that receive files", number(done.uploading)),
            ("ssh_upload_blocks", "Blocks of files on their way", number(done.blocks_in_flight)),
        ] {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        for (name, help, value) in [
            ("ssh_connects", "Connections made to hosts", done.connects),
            ("ssh_commands", "Commands run on hosts", done.executions),
            ("ssh_sftp_sessions", "SFTP sessions opened on hosts", done.sftp_sessions),
            ("ssh_uploaded_bytes", "Bytes of files sent to hosts", done.uploaded_bytes),
            ("ssh_wire_bytes", "Bytes sent to hosts in all", done.wire_bytes),
        ] {
            let counter = ConstCounter::new(value);
            counter.encode(encoder.encode_descriptor(
                name,
                help,
                None,
                counter.metric_type(),
            )?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use wmco_ssh::{Options, PoolLimits, TcpDialer};

    use super::*;

    fn metrics() -> Metrics {
        Metrics::new(Pool::new(Arc::new(TcpDialer), Options::default(), PoolLimits::default()))
    }

    #[test]
    fn connections_show_up_unasked() {
        let text = metrics().text();
        for line in [
            "wmco_ssh_connections 0",
            "wmco_ssh_connections_waiting 0",
            "wmco_ssh_connects_total 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing: {text}");
        }
    }

    #[test]
    fn a_counted_action_shows_up() {
        let metrics = metrics();
        metrics.actions.get_or_create(&ActionLabels { action: "probe", result: "ok" }).inc();
        let text = metrics.text();
        assert!(text.contains(r#"wmco_actions_total{action="probe",result="ok"} 1"#), "{text}");
    }
}
