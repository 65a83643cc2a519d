//! The Node of a simulated kubelet, as data.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{
    Node, NodeAddress, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference, Time};
use wmco_core::names;

use super::settings::Settings;

/// Version that the kubelet reports.
const VERSION: &str = "v1.35.0";

/// Seconds after which a kubelet counts as dead. Source: Kubernetes, KubeletConfiguration.
const LEASE_SECONDS: i32 = 40;

/// Facts about the machine for its Node.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) os_build: String,
    pub(super) boot_id: String,
    pub(super) ipv6: Vec<Ipv6Addr>,
    /// Address that the cloud leads to the machine.
    pub(super) cloud_address: Option<IpAddr>,
}

impl Facts {
    /// Returns all addresses of the Node with their types: its own of both families, and that of the cloud.
    pub(super) fn addresses(&self, settings: &Settings) -> Vec<(&'static str, IpAddr)> {
        let internal = [settings.address.into()].into_iter();
        let internal = internal.chain(self.ipv6.iter().copied().map(IpAddr::from));
        let internal = internal.map(|address| ("InternalIP", address));
        internal.chain(self.cloud_address.map(|address| ("ExternalIP", address))).collect()
    }
}

/// Whether a node can take pods, and why not.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Readiness {
    Ready,
    /// containerd does not run.
    RuntimeDown,
    /// The kubelet is gone. On a real cluster a controller detects that.
    Silent,
}

impl Readiness {
    pub(super) const fn status(self) -> &'static str {
        match self {
            Self::Ready => "True",
            Self::RuntimeDown => "False",
            Self::Silent => "Unknown",
        }
    }

    const fn reason(self) -> (&'static str, &'static str) {
        match self {
            Self::Ready => ("KubeletReady", "kubelet is posting ready status"),
            Self::RuntimeDown => ("KubeletNotReady", "container runtime is down"),
            Self::Silent => ("NodeStatusUnknown", "Kubelet stopped posting node status."),
        }
    }
}

/// Builds the Node that the kubelet registers, with its status, as a real kubelet does.
pub(super) fn node(settings: &Settings, facts: &Facts, ready: Readiness, now: Timestamp) -> Node {
    let build = facts.os_build.split('.').take(3).collect::<Vec<_>>().join(".");
    let mut labels = BTreeMap::from(
        [
            (names::OS_LABEL, names::OS_WINDOWS),
            ("beta.kubernetes.io/os", names::OS_WINDOWS),
            ("beta.kubernetes.io/arch", "amd64"),
            ("kubernetes.io/arch", "amd64"),
            ("kubernetes.io/hostname", &settings.node),
            ("node.kubernetes.io/windows-build", &build),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned())),
    );
    labels.extend(settings.labels.clone());
    Node {
        metadata: ObjectMeta {
            name: Some(settings.node.clone()),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            taints: Some(settings.taints.clone()).filter(|taints| !taints.is_empty()),
            ..NodeSpec::default()
        }),
        status: Some(status(settings, facts, ready, None, now)),
    }
}

/// Builds the status; conditions unchanged since `last` keep their time of transition.
pub(super) fn status(
    settings: &Settings,
    facts: &Facts,
    ready: Readiness,
    last: Option<&NodeStatus>,
    now: Timestamp,
) -> NodeStatus {
    let capacity = BTreeMap::from(
        [
            ("cpu", "4".to_owned()),
            ("ephemeral-storage", "104857600Ki".to_owned()),
            ("memory", "16777216Ki".to_owned()),
            ("pods", settings.max_pods.to_string()),
        ]
        .map(|(name, amount)| (name.to_owned(), Quantity(amount))),
    );
    let address = |kind: &str, address: String| NodeAddress { address, type_: kind.to_owned() };
    let own = facts.addresses(settings).into_iter();
    let own = own.map(|(kind, own)| address(kind, own.to_string()));
    let addresses = own.chain([address("Hostname", settings.node.clone())]).collect();
    NodeStatus {
        addresses: Some(addresses),
        allocatable: Some(capacity.clone()),
        capacity: Some(capacity),
        conditions: Some(conditions(ready, last, now)),
        node_info: Some(NodeSystemInfo {
            architecture: "amd64".to_owned(),
            boot_id: facts.boot_id.clone(),
            container_runtime_version: "containerd://2.0.0".to_owned(),
            kernel_version: facts.os_build.clone(),
            kube_proxy_version: VERSION.to_owned(),
            kubelet_version: VERSION.to_owned(),
            machine_id: settings.node.clone(),
            operating_system: names::OS_WINDOWS.to_owned(),
            os_image: "Windows Server 2022 Datacenter".to_owned(),
            ..NodeSystemInfo::default()
        }),
        ..NodeStatus::default()
    }
}

/// Builds all conditions that a kubelet reports.
pub(super) fn conditions(
    ready: Readiness,
    last: Option<&NodeStatus>,
    now: Timestamp,
) -> Vec<NodeCondition> {
    let pressure = if ready == Readiness::Silent { "Unknown" } else { "False" };
    let (reason, message) = ready.reason();
    let old: Vec<_> = last.and_then(|last| last.conditions.clone()).unwrap_or_default();
    [
        ("MemoryPressure", pressure, "KubeletHasSufficientMemory"),
        ("DiskPressure", pressure, "KubeletHasNoDiskPressure"),
        ("PIDPressure", pressure, "KubeletHasSufficientPID"),
        ("Ready", ready.status(), reason),
    ]
    .map(|(kind, status, reason)| {
        let same = old.iter().find(|old| old.type_ == kind && old.status == status);
        NodeCondition {
            last_heartbeat_time: Some(Time(now)),
            last_transition_time: same
                .and_then(|old| old.last_transition_time.clone())
                .or(Some(Time(now))),
            message: Some(if kind == "Ready" { message } else { "" }.to_owned()),
            reason: Some(reason.to_owned()),
            status: status.to_owned(),
            type_: kind.to_owned(),
        }
    })
    .to_vec()
}

/// Whether the Node's `Ready` condition has the status of `ready`.
pub(super) fn has_readiness(node: &Node, ready: Readiness) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions
        .is_some_and(|all| all.iter().any(|c| c.type_ == "Ready" && c.status == ready.status()))
}

/// Builds the Lease that the kubelet renews.
pub(super) fn lease(node: &Node, now: Timestamp) -> Lease {
    let name = node.metadata.name.clone().unwrap_or_default();
    let owner = OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        name: name.clone(),
        uid: node.metadata.uid.clone().unwrap_or_default(),
        ..OwnerReference::default()
    };
    Lease {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(name),
            lease_duration_seconds: Some(LEASE_SECONDS),
            renew_time: Some(MicroTime(now)),
            ..LeaseSpec::default()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        let path = || r"C:\k\x".parse().unwrap();
        Settings {
            node: "winhost".to_owned(),
            address: [10, 0, 0, 10].into(),
            labels: BTreeMap::from([("node.openshift.io/os_id".into(), "Windows".into())]),
            taints: vec![],
            max_pods: 250,
            bootstrap_kubeconfig: path(),
            kubeconfig: path(),
            certificates: path(),
        }
    }

    fn facts() -> Facts {
        Facts {
            os_build: "10.0.20348.2700".into(),
            boot_id: "boot-1".into(),
            ipv6: Vec::new(),
            cloud_address: None,
        }
    }

    #[test]
    fn a_node_shows_what_the_operator_looks_for() {
        let node = node(&settings(), &facts(), Readiness::Ready, Timestamp::UNIX_EPOCH);
        let labels = node.metadata.labels.as_ref().unwrap();
        assert_eq!(labels[names::OS_LABEL], "windows");
        assert_eq!(labels[names::OS_ID_LABEL], "Windows");
        assert_eq!(labels["kubernetes.io/hostname"], "winhost");
        assert_eq!(labels["node.kubernetes.io/windows-build"], "10.0.20348");
        assert!(has_readiness(&node, Readiness::Ready) && !has_readiness(&node, Readiness::Silent));
        let status = node.status.unwrap();
        assert_eq!(status.addresses.unwrap()[0].address, "10.0.0.10");
        assert_eq!(status.capacity.unwrap()["pods"].0, "250");
    }

    #[test]
    fn a_node_shows_both_families_and_what_its_cloud_leads_there() {
        let cloud_address = Some([203, 0, 113, 7].into());
        let facts = Facts { ipv6: vec![Ipv6Addr::LOCALHOST], cloud_address, ..facts() };
        let node = node(&settings(), &facts, Readiness::Ready, Timestamp::UNIX_EPOCH);
        let shown: Vec<_> = node.status.unwrap().addresses.unwrap();
        let shown: Vec<_> = shown.iter().map(|it| (&*it.type_, &*it.address)).collect();
        assert_eq!(
            shown,
            [
                ("InternalIP", "10.0.0.10"),
                ("InternalIP", "::1"),
                ("ExternalIP", "203.0.113.7"),
                ("Hostname", "winhost"),
            ]
        );
    }

    #[test]
    fn a_condition_keeps_its_time_until_it_changes() {
        let (first, later) = (Timestamp::UNIX_EPOCH, Timestamp::from_second(60).unwrap());
        let old = status(&settings(), &facts(), Readiness::Ready, None, first);
        for (ready, since) in [(Readiness::Ready, first), (Readiness::Silent, later)] {
            let new = conditions(ready, Some(&old), later);
            assert_eq!(new[3].last_transition_time, Some(Time(since)), "{ready:?}");
            assert_eq!(new[3].last_heartbeat_time, Some(Time(later)));
        }
    }
}
