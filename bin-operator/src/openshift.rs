//! The few OpenShift objects that we read, cut down to the fields that matter.
//!
//! Source: `docs/contract/cluster.md`, CLU3, and `docs/contract/node-files.md`, FILE12 to FILE22.

use std::net::IpAddr;

use k8s_openapi::ByteString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wmco_core::cluster_addresses::ClusterAddresses;
use wmco_core::ip_network::IpNetwork;
use wmco_core::machine_set::Platform;
use wmco_core::proxy::{ClusterProxy, ProxyError, ProxySettings};
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
    /// Where the control plane runs; `External`: in another cluster.
    pub control_plane_topology: Option<String>,
    /// The platform.
    pub platform_status: Option<PlatformStatus>,
}

/// The platform.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct PlatformStatus {
    /// Its name, for example `AWS` or `None`.
    #[serde(rename = "type")]
    pub type_: String,
    /// What each platform says in its own member, for example addresses of the API server.
    #[serde(flatten)]
    #[schemars(skip)]
    pub of_platforms: serde_json::Map<String, serde_json::Value>,
}

/// The cluster's networks; one object named `cluster`.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[kube(group = "config.openshift.io", version = "v1", kind = "Network", plural = "networks")]
#[serde(default, rename_all = "camelCase")]
pub struct NetworkSpec {
    /// Name of the network plug-in.
    pub network_type: String,
    /// Networks of pods on Linux nodes.
    pub cluster_network: Vec<PodNetwork>,
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
    /// Networks of pods on Windows nodes.
    #[serde(rename = "hybridClusterNetwork")]
    pub cluster_network: Vec<PodNetwork>,
    /// Its VXLAN port, if it is not the usual one.
    #[serde(rename = "hybridOverlayVXLANPort")]
    pub vxlan_port: Option<u16>,
}

/// A network of pods, of which each node gets a part.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodNetwork {
    /// The network, in CIDR notation.
    pub cidr: String,
    /// Prefix length of a node's part.
    pub host_prefix: Option<u32>,
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

impl MachineConfigPool {
    /// Name of the configuration that all machines of the pool `object` have had, if there is one.
    pub fn configuration(object: &serde_json::Value) -> Option<String> {
        let name = object.pointer("/status/configuration/name")?.as_str()?;
        (!name.is_empty()).then(|| name.to_owned())
    }
}

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

/// A configuration of machines. A rendered configuration is never changed, only replaced.
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
#[derive(Clone, CustomResource, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
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

impl ControllerConfigSpec {
    /// What `object` says; `None` if that makes no sense.
    pub fn of(object: &serde_json::Value) -> Option<Self> {
        Self::deserialize(object.get("spec")?).ok()
    }
}

/// CA of one registry.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct RegistryBundle {
    /// The registry, as a file name.
    pub file: String,
    /// PEM text.
    #[schemars(with = "String")]
    pub data: ByteString,
}

/// Which version of OpenShift is installed; one object named `version`.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[kube(
    group = "config.openshift.io",
    version = "v1",
    kind = "ClusterVersion",
    plural = "clusterversions",
    status = "ClusterVersionStatus"
)]
pub struct ClusterVersionSpec {
    /// Identity of the cluster, which it keeps for life.
    #[serde(rename = "clusterID")]
    pub cluster_id: Option<String>,
}

/// How its installation goes.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub struct ClusterVersionStatus {
    /// Conditions as all objects have them.
    #[schemars(schema_with = "any_list")]
    pub conditions: Vec<serde_json::Value>,
}

fn any_list(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array",
        "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    })
}

impl ClusterVersion {
    /// The `object` with its identity and its condition `Failing` alone: the others tell of progress, many times a
    /// minute.
    pub fn watched(object: &serde_json::Value) -> serde_json::Value {
        let conditions = object.pointer("/status/conditions").and_then(serde_json::Value::as_array);
        let failing = conditions.into_iter().flatten().filter(|it| it["type"] == "Failing");
        let fields = |it: &serde_json::Value| {
            let fields = ["type", "status", "reason", "message"].into_iter();
            let fields = fields.filter_map(|name| Some((name.to_owned(), it.get(name)?.clone())));
            fields.collect::<serde_json::Value>()
        };
        let failing: Vec<_> = failing.map(fields).collect();
        let id = object.pointer("/spec/clusterID");
        serde_json::json!({ "spec": { "clusterID": id }, "status": { "conditions": failing } })
    }
}

/// The proxy of the whole cluster; one object named `cluster`.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[kube(
    group = "config.openshift.io",
    version = "v1",
    kind = "Proxy",
    plural = "proxies",
    status = "ProxyStatus"
)]
pub struct ProxySpec {}

/// The proxy that is in force. URLs can hold passwords, so `Debug` shows nothing.
#[derive(Clone, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ProxyStatus {
    /// URL of the proxy for HTTP.
    pub http_proxy: String,
    /// URL of the proxy for HTTPS.
    pub https_proxy: String,
    /// Where no proxy is used, with commas between.
    pub no_proxy: String,
}

impl ProxyStatus {
    /// What is in force by `object`; `None` where a proxy is asked for and its status cannot tell, as in an
    /// object that was just restored from a backup, or one that the cluster has not looked at yet.
    pub fn in_force(object: &serde_json::Value) -> Option<Self> {
        let asks = ["/spec/httpProxy", "/spec/httpsProxy"].iter().any(|field| {
            let url = object.pointer(field).and_then(serde_json::Value::as_str);
            url.is_some_and(|url| !url.is_empty())
        });
        let status = match object.get("status").filter(|status| !status.is_null()) {
            Some(status) => Self::deserialize(status).ok()?,
            None => Self::default(),
        };
        // The cluster fills it in later, and empties it where it takes none of what is asked for.
        let is_open = asks && status.http_proxy.is_empty() && status.https_proxy.is_empty();
        (!is_open).then_some(status)
    }
}

/// The proxy that nodes use: that of the operator's `environment`, else that of the cluster's object `found`, which is
/// [`None`] where it cannot tell.
///
/// # Errors
/// [`ProxyError`] while that makes no sense.
pub fn proxy_settings(
    environment: &ProxySettings,
    found: Option<Option<&ProxyStatus>>,
) -> Result<ProxySettings, ProxyError> {
    let status = match found {
        Some(None) if !environment.is_enabled() => return Err(ProxyError::NoStatus),
        found => found.flatten(),
    };
    let cluster = status.map(|status| ClusterProxy {
        http: &status.http_proxy,
        https: &status.https_proxy,
        no: &status.no_proxy,
    });
    ProxySettings::in_force(environment, cluster)
}

impl std::fmt::Debug for ProxyStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProxyStatus").finish_non_exhaustive()
    }
}

/// How the cluster's servers serve; one object named `cluster`.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[kube(
    group = "config.openshift.io",
    version = "v1",
    kind = "APIServer",
    root = "ApiServer",
    plural = "apiservers"
)]
#[serde(default, rename_all = "camelCase")]
pub struct ApiServerSpec {
    /// Whether others than the first components follow the profile.
    pub tls_adherence: Option<String>,
    /// Versions and ciphers of TLS.
    #[schemars(schema_with = "any_object")]
    pub tls_security_profile: serde_json::Value,
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
    ClusterFacts {
        node_names: platform.map_or(NodeNames::Unknown, NodeNames::of_platform),
        hosts_named_as_machines: platform
            .and_then(|platform| platform.parse().ok())
            .is_some_and(Platform::names_computers),
        addresses: cluster_addresses(infrastructure, network),
    }
}

/// Addresses and names of the cluster itself.
fn cluster_addresses(
    infrastructure: Option<&InfrastructureStatus>,
    network: Option<&NetworkSpec>,
) -> ClusterAddresses {
    let mut addresses = ClusterAddresses::default();
    if let Some(status) = infrastructure {
        for url in [&status.api_server_internal_uri, &status.api_server_url] {
            match host_in(url) {
                // That of a made-up cluster, which is on the same machine as its hosts.
                Some(Ok(address)) if address.is_loopback() => {}
                Some(Ok(address)) => {
                    addresses.api.insert(address);
                }
                Some(Err(name)) => {
                    addresses.api_names.insert(name);
                }
                None => {}
            }
        }
        let platform = status.platform_status.as_ref();
        for of_platform in platform.into_iter().flat_map(|platform| platform.of_platforms.values())
        {
            addresses.add_platform(of_platform);
        }
    }
    if let Some(network) = network {
        let pods = network.cluster_network.iter().map(|network| &network.cidr);
        addresses.services = networks(network.service_network.iter()).filter(|all| !all.is_empty());
        match networks(pods) {
            Some(pods) => addresses.pods = pods,
            // What cannot be read could be any network.
            None => addresses.services = None,
        }
    }
    addresses
}

/// The networks, if all of them can be read.
fn networks<'a>(texts: impl Iterator<Item = &'a String>) -> Option<Vec<IpNetwork>> {
    texts.map(|text| text.parse().ok()).collect()
}

/// The host in a URL: its address, or its name in lower case without a last dot.
fn host_in(url: &str) -> Option<Result<IpAddr, String>> {
    let url: axum::http::Uri = url.parse().ok()?;
    let host = url.host()?.trim_matches(['[', ']']);
    Some(match host.parse::<IpAddr>() {
        Ok(address) => Ok(address.to_canonical()),
        Err(_) => Err(host.trim_end_matches('.').to_ascii_lowercase()),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hosts_in_urls_are_names_or_addresses() {
        let name = |text: &str| Some(Err(text.to_owned()));
        let address = |text: &str| Some(Ok(text.parse().unwrap()));
        assert_eq!(host_in("https://API-int.c.test.:6443"), name("api-int.c.test"));
        assert_eq!(host_in("https://10.0.0.2:6443"), address("10.0.0.2"));
        assert_eq!(host_in("https://[fd00::2]:6443"), address("fd00::2"));
        assert_eq!(host_in(""), None);
    }

    #[test]
    fn a_pod_network_that_cannot_be_read_could_be_any() {
        let network = |pods: &str| NetworkSpec {
            cluster_network: vec![PodNetwork { cidr: pods.to_owned(), host_prefix: None }],
            service_network: vec!["172.30.0.0/16".to_owned()],
            ..NetworkSpec::default()
        };
        assert!(cluster_facts(None, Some(&network("10.128.0.0/14"))).addresses.services.is_some());
        assert_eq!(cluster_facts(None, Some(&network("10.128/14"))).addresses.services, None);
    }

    #[test]
    fn a_proxy_that_is_asked_for_is_not_taken_away_for_lack_of_a_status() {
        let spec = json!({"httpsProxy": "http://p:1"});
        let status = json!({"httpsProxy": "http://q:1"});
        let https = |object| Some(ProxyStatus::in_force(&object)?.https_proxy);
        assert_eq!(https(json!({"spec": spec})), None);
        assert_eq!(https(json!({"spec": spec, "status": null})), None);
        assert_eq!(https(json!({"spec": spec, "status": {"httpsProxy": 7}})), None);
        assert_eq!(https(json!({"spec": spec, "status": status})), Some("http://q:1".into()));
        assert_eq!(
            https(json!({"spec": spec, "status": {}})),
            None,
            "the cluster has not looked yet"
        );
        assert_eq!(https(json!({"spec": {}})), Some(String::new()));
    }
}
