//! The few OpenShift objects that we read, cut down to the fields that matter.
//!
//! Source: `spec/operator.md`, section 3, and `spec/node-config.md`, sections 6 and 7.

use k8s_openapi::ByteString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wmco_core::machine_set::Platform;
use wmco_core::render::ServiceNetwork;
use wmco_csr::{ClusterFacts, NodeNames};

/// Where the cluster runs and how it is reached from within; one object named `cluster`.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[kube(
    group = "config.openshift.io",
    version = "v1",
    kind = "Infrastructure",
    plural = "infrastructures",
    status = "InfrastructureStatus"
)]
pub struct InfrastructureSpec {}

/// Observed facts about the cluster.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct InfrastructureStatus {
    /// URL of the API server for nodes.
    #[serde(rename = "apiServerInternalURI")]
    pub api_server_internal_uri: String,
    /// URL of the API server for people.
    #[serde(rename = "apiServerURL")]
    pub api_server_url: String,
    /// The platform.
    pub platform_status: Option<PlatformStatus>,
}

/// The platform.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub struct PlatformStatus {
    /// Its name, for example `AWS` or `None`.
    #[serde(rename = "type")]
    pub type_: String,
}

/// The cluster's networks; one object named `cluster`.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[kube(group = "config.openshift.io", version = "v1", kind = "Network", plural = "networks")]
#[serde(default, rename_all = "camelCase")]
pub struct NetworkSpec {
    /// Name of the network plug-in.
    pub network_type: String,
    /// CIDRs of services.
    pub service_network: Vec<String>,
}

/// How the cluster's networks are made; one object named `cluster`.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[kube(
    group = "operator.openshift.io",
    version = "v1",
    kind = "Network",
    root = "OperatorNetwork",
    plural = "networks"
)]
#[serde(default, rename_all = "camelCase")]
pub struct OperatorNetworkSpec {
    /// The network that pods are in.
    pub default_network: DefaultNetwork,
}

/// The network that pods are in.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DefaultNetwork {
    /// Settings of the one plug-in that serves Windows.
    pub ovn_kubernetes_config: OvnKubernetesConfig,
}

/// Settings of OVN-Kubernetes.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OvnKubernetesConfig {
    /// The overlay that Windows nodes are in.
    pub hybrid_overlay_config: HybridOverlayConfig,
}

/// The overlay that Windows nodes are in.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub struct HybridOverlayConfig {
    /// Its VXLAN port, if it is not the usual one.
    #[serde(rename = "hybridOverlayVXLANPort")]
    pub vxlan_port: Option<u16>,
}

/// A pool of machines with one configuration; ours is the one named `worker`.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[kube(
    group = "machineconfiguration.openshift.io",
    version = "v1",
    kind = "MachineConfigPool",
    plural = "machineconfigpools",
    status = "MachineConfigPoolStatus"
)]
pub struct MachineConfigPoolSpec {}

/// Where a pool stands.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub struct MachineConfigPoolStatus {
    /// The configuration that all its machines have had.
    pub configuration: MachineConfigName,
}

/// Names a MachineConfig.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub struct MachineConfigName {
    /// Its name.
    pub name: String,
}

/// A configuration of machines. One that was rendered is never changed, only replaced.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[kube(
    group = "machineconfiguration.openshift.io",
    version = "v1",
    kind = "MachineConfig",
    plural = "machineconfigs"
)]
#[serde(default)]
pub struct MachineConfigSpec {
    /// An Ignition document.
    #[schemars(schema_with = "any_object")]
    pub config: serde_json::Value,
}

fn any_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// What the machine config operator knows; ours is the one named `machine-config-controller`.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[kube(
    group = "machineconfiguration.openshift.io",
    version = "v1",
    kind = "ControllerConfig",
    plural = "controllerconfigs"
)]
#[serde(default, rename_all = "camelCase")]
pub struct ControllerConfigSpec {
    /// CA of the clients that kubelets let in.
    #[serde(rename = "kubeAPIServerServingCAData")]
    #[schemars(with = "String")]
    pub kube_api_server_serving_ca_data: ByteString,
    /// Registry CAs of users.
    pub image_registry_bundle_user_data: Vec<RegistryBundle>,
    /// Registry CAs of the cluster.
    pub image_registry_bundle_data: Vec<RegistryBundle>,
}

/// CA of one registry.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub struct RegistryBundle {
    /// The registry, as a file name.
    pub file: String,
    /// PEM text.
    #[schemars(with = "String")]
    pub data: ByteString,
}

/// What decisions about certificates need: nothing is assumed where an object is missing, or where
/// its networks cannot be read.
pub fn cluster_facts(
    infrastructure: Option<&InfrastructureStatus>,
    network: Option<&NetworkSpec>,
) -> ClusterFacts {
    let platform = infrastructure.map(|status| {
        let platform = status.platform_status.as_ref().map(|status| status.type_.as_str());
        platform.unwrap_or_default()
    });
    let urls = infrastructure.map(|i| [&i.api_server_internal_uri, &i.api_server_url]);
    let networks = network.map(|network| network.service_network.iter().map(|text| text.parse()));
    let networks: Option<Result<Vec<ServiceNetwork>, _>> = networks.map(Iterator::collect);
    ClusterFacts {
        node_names: platform.map_or(NodeNames::Unknown, NodeNames::of_platform),
        hosts_named_as_machines: platform
            .and_then(|platform| platform.parse().ok())
            .is_some_and(Platform::names_computers),
        service_networks: networks.and_then(Result::ok).filter(|networks| !networks.is_empty()),
        api_names: urls.into_iter().flatten().filter_map(|url| host_name(url)).collect(),
    }
}

/// The host name in a URL, in lower case.
fn host_name(url: &str) -> Option<String> {
    let url: axum::http::Uri = url.parse().ok()?;
    let host = url.host()?.to_ascii_lowercase();
    host.parse::<std::net::IpAddr>().is_err().then_some(host)
}
