//! A Node, reduced to the fields that decisions need.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as api;
use schemars::JsonSchema;
use serde::Serialize;

use super::{DrainNotice, DrainStage, GivenUp};
use crate::names;

/// The fields of a Node object that decisions need.
///
/// ```
/// use k8s_openapi::api::core::v1::Node;
/// use wmco_core::facts::NodeFacts;
///
/// let node: Node = serde_json::from_str(
///     r#"{"metadata": {"name": "win-1", "labels": {"kubernetes.io/os": "windows"}},
///         "status": {"conditions": [{"type": "Ready", "status": "True"}]}}"#,
/// )?;
/// let facts = NodeFacts::from(&node);
/// assert!(facts.is_windows() && facts.ready && !facts.unschedulable);
/// Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
pub struct NodeFacts {
    /// Name of the Node.
    pub name: String,
    /// UID of the Node, so that a plan never hits its successor.
    pub uid: String,
    /// Its resource version; Kubernetes allows us to compare the versions of one object by size.
    pub resource_version: u64,
    /// All labels.
    pub labels: BTreeMap<String, String>,
    /// All annotations.
    pub annotations: BTreeMap<String, String>,
    /// Texts of all addresses, in the Node's order.
    pub addresses: Vec<String>,
    /// Whether it is cordoned.
    pub unschedulable: bool,
    /// Whether its condition `Ready` is `True`.
    pub ready: bool,
    /// Whether it is deleted and only waits for its finalizers.
    pub is_deleted: bool,
    /// Message of its condition [`HOST_KEY_CONDITION`](names::HOST_KEY_CONDITION), if that is `True`.
    pub host_key_mismatch: Option<String>,
    /// Its condition [`DRAIN_CONDITION`](names::DRAIN_CONDITION), if that is `True`.
    pub drain_notice: Option<DrainNotice>,
    /// Since when that condition is `True`.
    pub drain_blocked_since: Option<Timestamp>,
}

impl NodeFacts {
    /// Whether it is a Windows node.
    pub fn is_windows(&self) -> bool {
        self.labels.get(names::OS_LABEL).is_some_and(|os| os == names::OS_WINDOWS)
    }

    /// Whether it was made from an entry of the instances ConfigMap.
    pub fn is_byoh(&self) -> bool {
        self.has_mark(names::BYOH_LABEL)
    }

    /// Whether a Machine owns it.
    pub fn belongs_to_machine(&self) -> bool {
        !self.is_byoh() && self.annotations.contains_key(names::MACHINE_ANNOTATION)
    }

    /// Whether this operator, rather than the Go operator, has configured its host: annotations that only this one
    /// writes.
    pub fn is_marked_by_us(&self) -> bool {
        let ours =
            [names::INSTANCE_ANNOTATION, names::SERVICES_ANNOTATION, names::ROOTS_ANNOTATION];
        ours.iter().any(|name| self.annotations.contains_key(*name))
    }

    /// Whether it holds a disruption slot.
    pub fn holds_slot(&self) -> bool {
        self.has_mark(names::UPGRADING_LABEL)
    }

    /// Whether the operator has cordoned it, so that it serves nobody however ready it is.
    pub fn is_cordoned_by_us(&self) -> bool {
        self.annotation(names::CORDONED_ANNOTATION).is_some()
    }

    /// Whether it takes pods, whatever marks it has: one that people uncordoned does, though our cordon is still noted on
    /// it.
    pub fn serves(&self) -> bool {
        self.ready && !self.unschedulable
    }

    /// Whether it holds a slot and is out of service because of us.
    pub fn is_out_of_service(&self) -> bool {
        self.holds_slot() && self.is_cordoned_by_us() && !self.serves()
    }

    /// Version that fully configured it.
    pub fn version(&self) -> Option<&str> {
        self.annotation(names::VERSION_ANNOTATION)
    }

    /// Version to which WICD is to bring it.
    pub fn desired_version(&self) -> Option<&str> {
        self.annotation(names::DESIRED_VERSION_ANNOTATION)
    }

    /// Whether a restart of its host is requested.
    pub fn wants_restart(&self) -> bool {
        self.annotations.contains_key(names::REBOOT_ANNOTATION)
    }

    /// Drains given up, as recorded on the Node; the caller decides whether to trust the record.
    pub fn given_up(&self) -> Option<GivenUp> {
        GivenUp::read(self.annotation(names::DRAIN_GIVEN_UP_ANNOTATION)?)
    }

    /// The value of one annotation.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.get(name).map(String::as_str)
    }

    /// The address that reaches its host: the first IPv4 literal, else the first address that is not an IPv6
    /// literal. Source: `docs/contract/nodes.md`, NODE3.
    pub fn usable_address(&self) -> Option<&str> {
        let ipv4 = |text: &&String| text.parse::<Ipv4Addr>().is_ok();
        let not_ipv6 = |text: &&String| text.parse::<Ipv6Addr>().is_err();
        let addresses = &self.addresses;
        addresses.iter().find(ipv4).or_else(|| addresses.iter().find(not_ipv6)).map(String::as_str)
    }

    /// Whether its kubelet runs on a machine that has none of `addresses`. Only IPv4 addresses tell: a Node may show
    /// names and IPv6 addresses alone, and a Node that is not ready may show those of before.
    pub fn is_ready_elsewhere(&self, addresses: &[Ipv4Addr]) -> bool {
        let mut shown = self.addresses.iter().filter_map(|text| text.parse().ok()).peekable();
        self.ready && shown.peek().is_some() && shown.all(|one| !addresses.contains(&one))
    }

    fn has_mark(&self, label: &str) -> bool {
        self.labels.get(label).is_some_and(|value| value == names::TRUE)
    }
}

impl From<&api::Node> for NodeFacts {
    fn from(node: &api::Node) -> Self {
        let meta = &node.metadata;
        let status = node.status.as_ref();
        let conditions = status.and_then(|s| s.conditions.as_deref()).unwrap_or_default();
        let addresses = status.and_then(|s| s.addresses.as_deref()).unwrap_or_default();
        let holds = |c: &&api::NodeCondition, type_| c.type_ == type_ && c.status == "True";
        let of_type = |type_| conditions.iter().find(|c| holds(c, type_));
        let message = |c: &api::NodeCondition| c.message.clone().unwrap_or_default();
        let drain = of_type(names::DRAIN_CONDITION);
        let version = meta.resource_version.as_deref();
        Self {
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
            resource_version: version.and_then(|text| text.parse().ok()).unwrap_or_default(),
            labels: meta.labels.clone().unwrap_or_default(),
            annotations: meta.annotations.clone().unwrap_or_default(),
            addresses: addresses.iter().map(|a| a.address.clone()).collect(),
            unschedulable: node.spec.as_ref().and_then(|s| s.unschedulable).unwrap_or_default(),
            ready: conditions.iter().any(|c| holds(&c, "Ready")),
            is_deleted: meta.deletion_timestamp.is_some(),
            host_key_mismatch: of_type(names::HOST_KEY_CONDITION).map(message),
            drain_notice: drain.map(|c| DrainNotice {
                stage: DrainStage::of_reason(c.reason.as_deref().unwrap_or_default())
                    .unwrap_or(DrainStage::Blocked),
                message: message(c),
            }),
            drain_blocked_since: drain.and_then(|c| Some(c.last_transition_time.as_ref()?.0)),
        }
    }
}
