//! Unmet requirements of Windows nodes.

use std::fmt;

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::Serialize;

use crate::limits;
use crate::names::events;

/// An unmet requirement. Displays as one printable line that ends with the next step.
///
/// ```
/// use serde_json::json;
/// use wmco_core::preflight::{self, ClusterSeen, Requirement, Seen};
///
/// let network = json!({"spec": {"networkType": "OpenShiftSDN", "serviceNetwork": ["172.30.0.0/16"]}});
/// let seen = ClusterSeen { network: Seen::Object(network), ..ClusterSeen::default() };
/// let findings = preflight::cluster(&seen);
/// assert_eq!(findings[0].requirement, Requirement::NetworkType);
/// assert!(findings[0].blocks() && findings[0].to_string().contains("OVNKubernetes"));
/// ```
#[derive(Clone, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The requirement.
    pub requirement: Requirement,
    /// The consequence.
    pub severity: Severity,
    /// The object and its field, or the property of the host.
    pub at: String,
    /// The observed value.
    pub seen: String,
    /// The needed value.
    pub needed: String,
    /// The next step.
    pub next_step: String,
}

/// The consequence of a [`Finding`].
#[derive(Clone, Copy, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// No new work begins: no host becomes a node, no node is upgraded, no Machine is replaced. Running nodes stay
    /// as they are.
    Blocking,
    /// Work continues; a feature will not work as expected.
    Warning,
}

/// Names of requirements; they do not change.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Requirement {
    /// The cluster is OpenShift or OKD: it has the kinds that the operator reads.
    OpenShift,
    /// The object `cluster` of such a kind exists.
    ClusterObject,
    /// The version of the API server is supported.
    KubernetesVersion,
    /// The installation or update of OpenShift is not failing.
    ClusterVersion,
    /// The platform is supported.
    Platform,
    /// The control plane runs in this cluster.
    ControlPlane,
    /// The API server has a URL that nodes can use.
    ApiServerUrl,
    /// The network plug-in is supported.
    NetworkType,
    /// Services have a network that Windows can use, with a DNS address in it.
    ServiceNetwork,
    /// Pods of Linux nodes have a network that Windows can use.
    ClusterNetwork,
    /// The overlay network of Windows nodes is enabled.
    HybridOverlay,
    /// The overlay network has a range for pods.
    HybridClusterNetwork,
    /// The overlay's port is valid, and Windows can use it.
    VxlanPort,
    /// The networks do not overlap.
    NetworkOverlap,
    /// The cluster's proxy can be used.
    Proxy,
    /// The cluster's TLS profile can be used.
    TlsProfile,
    /// Kubelets on Windows nodes are neither newer nor much older than the API server.
    KubeletSkew,
    /// The release of Windows is supported, and is a server.
    WindowsRelease,
    /// The login user of a host is an administrator there.
    Administrator,
    /// A host's name is valid for a Node.
    HostName,
    /// A host has an IPv4 address.
    HostAddress,
    /// A host has exactly one default route, whose network card has the address of its node.
    DefaultRoute,
    /// A host belongs to this cluster, or to none.
    OtherCluster,
    /// A host runs its Node itself.
    OtherMachine,
    /// A host has no foreign containerd.
    ForeignContainerd,
    /// A host has no foreign kubelet.
    ForeignKubelet,
    /// The ports of kubelet and exporter are free on the host.
    Ports,
    /// A host has enough disk space for programs and images.
    DiskSpace,
    /// Reverse DNS of a host's address gives its name.
    ReverseName,
}

impl Finding {
    /// How long a finding may last before it is reported: objects that the cluster writes itself appear a moment
    /// later, and reports of a node may change for a short time.
    pub const fn patience(&self) -> SignedDuration {
        match self.requirement {
            Requirement::OpenShift
            | Requirement::ClusterObject
            | Requirement::ApiServerUrl
            | Requirement::ClusterVersion
            | Requirement::KubeletSkew
            | Requirement::VxlanPort
            | Requirement::WindowsRelease => limits::MISSING_OBJECT_PATIENCE,
            _ => SignedDuration::ZERO,
        }
    }

    /// Reason of the Event.
    pub const fn reason(&self) -> &'static str {
        match (self.requirement, self.severity) {
            (Requirement::ForeignContainerd, _) => events::FOREIGN_CONTAINERD,
            (_, Severity::Blocking) => events::PREFLIGHT_FAILED,
            (_, Severity::Warning) => events::PREFLIGHT_WARNING,
        }
    }

    /// Whether the finding forbids new work.
    pub fn blocks(&self) -> bool {
        self.severity == Severity::Blocking
    }
}

impl Requirement {
    /// The name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenShift => "open-shift",
            Self::ClusterObject => "cluster-object",
            Self::KubernetesVersion => "kubernetes-version",
            Self::ClusterVersion => "cluster-version",
            Self::Platform => "platform",
            Self::ControlPlane => "control-plane",
            Self::ApiServerUrl => "api-server-url",
            Self::NetworkType => "network-type",
            Self::ServiceNetwork => "service-network",
            Self::ClusterNetwork => "cluster-network",
            Self::HybridOverlay => "hybrid-overlay",
            Self::HybridClusterNetwork => "hybrid-cluster-network",
            Self::VxlanPort => "vxlan-port",
            Self::NetworkOverlap => "network-overlap",
            Self::Proxy => "proxy",
            Self::TlsProfile => "tls-profile",
            Self::KubeletSkew => "kubelet-skew",
            Self::WindowsRelease => "windows-release",
            Self::HostName => "host-name",
            Self::HostAddress => "host-address",
            Self::DefaultRoute => "default-route",
            Self::OtherCluster => "other-cluster",
            Self::OtherMachine => "other-machine",
            Self::ForeignContainerd => "foreign-containerd",
            Self::ForeignKubelet => "foreign-kubelet",
            Self::Ports => "ports",
            Self::DiskSpace => "disk-space",
            Self::Administrator => "administrator",
            Self::ReverseName => "reverse-name",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { requirement, at, seen, needed, next_step, .. } = self;
        write!(f, "{}: {at} {seen}; needed: {needed}; next: {next_step}", requirement.name())
    }
}
