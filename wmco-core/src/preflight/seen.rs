//! Inputs of the preflight checks.

use k8s_openapi::api::core::v1 as api;
use serde_json::Value;

use crate::proxy::ProxyError;
use crate::text::{cut, printable};
use crate::{limits, names};

/// The cluster's objects for the preflight checks. Objects that were not read are [`Unknown`](Seen::Unknown), and
/// give no findings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterSeen {
    /// The API server's version, such as `v1.36.2`.
    pub server_version: Option<String>,
    /// `infrastructures.config.openshift.io` `cluster`.
    pub infrastructure: Seen,
    /// `clusterversions.config.openshift.io` `version`.
    pub cluster_version: Seen,
    /// `networks.config.openshift.io` `cluster`.
    pub network: Seen,
    /// `networks.operator.openshift.io` `cluster`.
    pub operator_network: Seen,
    /// `apiservers.config.openshift.io` `cluster`.
    pub api_server: Seen,
    /// The problem with the cluster's proxy.
    pub proxy: Option<ProxyError>,
    /// `machineconfigpools.machineconfiguration.openshift.io` `worker`, of which only the presence counts.
    pub worker_pool: Seen,
    /// `controllerconfigs.machineconfiguration.openshift.io` `machine-config-controller`, likewise.
    pub controller_config: Seen,
    /// Nodes of any system.
    pub nodes: Vec<NodeSeen>,
}

/// An object of the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Seen {
    /// Not read, or no answer yet.
    #[default]
    Unknown,
    /// The cluster does not have the kind.
    KindMissing,
    /// The cluster has the kind, but not this object.
    ObjectMissing,
    /// The object from the API server.
    Object(Value),
}

/// The type of a Node's addresses by which the cluster reaches it.
const INTERNAL_IP: &str = "InternalIP";

/// The relevant facts about a Node.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NodeSeen {
    /// Its name, printable and cut.
    pub name: String,
    /// Whether it is a Windows node. Of others only the addresses count.
    pub is_windows: bool,
    /// Version of its kubelet, as the kubelet reports it.
    pub kubelet: String,
    /// Version of Windows, as the kubelet reports it.
    pub windows: String,
    /// Its internal addresses.
    pub addresses: Vec<String>,
}

impl ClusterSeen {
    /// Group and kind of all objects that were not read and so not checked, as text.
    pub fn not_judged(&self) -> Vec<&'static str> {
        let all = [
            (&self.infrastructure, "Infrastructure"),
            (&self.cluster_version, "ClusterVersion"),
            (&self.network, "Network of config.openshift.io"),
            (&self.operator_network, "Network of operator.openshift.io"),
            (&self.api_server, "APIServer"),
        ];
        let unknown = all.into_iter().filter(|(seen, _)| **seen == Seen::Unknown);
        unknown.map(|(_, name)| name).collect()
    }
}

impl Seen {
    /// The object, if there is one.
    pub(super) const fn object(&self) -> Option<&Value> {
        match self {
            Self::Object(object) => Some(object),
            Self::Unknown | Self::KindMissing | Self::ObjectMissing => None,
        }
    }
}

impl NodeSeen {
    /// The relevant facts about `node`; `None` if its kubelet has not reported yet.
    pub fn of(node: &api::Node) -> Option<Self> {
        let os = node.metadata.labels.as_ref().and_then(|labels| labels.get(names::OS_LABEL));
        let is_windows = os.is_some_and(|os| os == names::OS_WINDOWS);
        let info = node.status.as_ref()?.node_info.as_ref();
        let of_windows = info.filter(|_| is_windows);
        if is_windows && info.is_none() {
            return None;
        }
        let addresses = node.status.iter().flat_map(|status| status.addresses.iter().flatten());
        let addresses = addresses.filter(|it| it.type_ == INTERNAL_IP);
        let name = node.metadata.name.as_deref().unwrap_or_default();
        Some(Self {
            name: printable(cut(name, limits::FINDING_TEXT_BYTES)),
            is_windows,
            kubelet: of_windows.map(|info| info.kubelet_version.clone()).unwrap_or_default(),
            windows: of_windows.map(|info| info.kernel_version.clone()).unwrap_or_default(),
            addresses: addresses.map(|it| it.address.clone()).collect(),
        })
    }
}
