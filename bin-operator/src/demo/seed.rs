//! What an OpenShift cluster has before our operator is installed, and the installation itself.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube_testserver::TestServer;
use kube_testserver::error::ApiError;
use serde_json::{Value, json};
use wmco_core::ignition::CREDENTIAL_PROVIDER;
use wmco_core::manifests::{self, Installation, WATCH_NAMESPACE};
use wmco_core::names;
use wmco_core::names::monitoring::{CLUSTER_MONITORING_LABEL, OPERATOR_CONDITION_VARIABLE};
use wmco_core::names::objects;
use wmco_core::names::registries::PULL_SECRET_NAMESPACE;
use wmco_core::secret::Secret;

use super::kinds::{self, ForeignKind};
use super::lifecycle;

const NAMESPACE: &str = objects::DEFAULT_NAMESPACE;

/// What the worker pool's machines have.
const RENDERED_CONFIG: &str = "rendered-worker-0a1b2c3d";

/// Where kubelets on AWS get credentials for images.
const CREDENTIAL_PROVIDERS: &str = "data:,apiVersion:%20kubelet.config.k8s.io/v1%0A\
     kind:%20CredentialProviderConfig%0A\
     providers:%20[{name:%20ecr-credential-provider,%20\
     apiVersion:%20credentialprovider.kubelet.k8s.io/v1,%20\
     defaultCacheDuration:%2012h,%20matchImages:%20[public.ecr.aws]}]";

/// The operator's environment in the demo.
pub(super) fn environment(name: &str) -> Option<String> {
    match name {
        WATCH_NAMESPACE => Some(NAMESPACE.to_owned()),
        OPERATOR_CONDITION_VARIABLE => Some(lifecycle::CONDITION.to_owned()),
        _ => None,
    }
}

/// How nodes reach the API server.
#[derive(Clone, Copy, Debug)]
pub struct Endpoint<'a> {
    /// URL.
    pub url: &'a str,
    /// Who signed its certificate, in PEM.
    pub ca_pem: &'a str,
}

/// Fills the cluster.
pub(super) fn seed(
    cluster: &TestServer,
    platform: &str,
    key: &Secret,
    listed: &BTreeMap<String, String>,
) -> anyhow::Result<()> {
    let definitions = kinds::all();
    let definitions = definitions.iter().map(ForeignKind::definition_for_one_writer);
    let endpoint = Endpoint { url: &cluster.url(), ca_pem: cluster.ca_pem() };
    for object in namespaces()
        .into_iter()
        .chain(definitions)
        .chain(openshift(endpoint, platform)?)
        .chain(installation(key, listed))
    {
        cluster.put(&object)?;
    }
    Ok(())
}

/// The namespaces that objects of the operator and of OpenShift are in.
pub fn namespaces() -> [Value; 4] {
    let labels = |namespace| match namespace {
        NAMESPACE => json!({ CLUSTER_MONITORING_LABEL: names::TRUE }),
        _ => json!({}),
    };
    [
        NAMESPACE,
        objects::BOOTSTRAPPER_NAMESPACE,
        objects::MACHINE_API_NAMESPACE,
        PULL_SECRET_NAMESPACE,
    ]
    .map(|name| {
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": name, "labels": labels(name) },
        })
    })
}

/// What OpenShift's installer and operators have made by the time that ours is installed.
///
/// # Errors
/// When no certificate can be made.
pub fn openshift(endpoint: Endpoint<'_>, platform: &str) -> anyhow::Result<Vec<Value>> {
    let (certificate, private) = super::stand_in::serving_certificate()?;
    let mut objects = configuration(endpoint, platform);
    objects.extend(networks());
    objects.extend(bootstrapper());
    objects.push(secret(
        objects::TLS_SECRET,
        &[
            (objects::TLS_CERTIFICATE_KEY, certificate.as_bytes()),
            (objects::TLS_PRIVATE_KEY_KEY, private.as_bytes()),
        ],
    ));
    Ok(objects)
}

/// The installation of our operator, but for its Deployment, and what people write for it.
pub fn installation(key: &Secret, listed: &BTreeMap<String, String>) -> Vec<Value> {
    let key = secret(objects::PRIVATE_KEY_SECRET, &[(objects::PRIVATE_KEY_KEY, key.expose())]);
    lifecycle::objects().into_iter().chain(rights()).chain([key, instances(listed)]).collect()
}

/// The list of instances.
pub fn instances(listed: &BTreeMap<String, String>) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": objects::INSTANCES_CONFIG_MAP, "namespace": NAMESPACE },
        "data": listed,
    })
}

/// What operator and daemon may do in a real cluster, what is refused to them, and who they are.
fn rights() -> impl Iterator<Item = Value> {
    let is_right = |object: &Value| {
        let kind = object["kind"].as_str().unwrap_or_default();
        kind == "ServiceAccount" || kind.contains("Role") || kind.contains("Policy")
    };
    manifests::objects(&Installation::default()).into_iter().filter(is_right)
}

/// Writes the list of instances.
pub(super) fn list(
    cluster: &TestServer,
    listed: &BTreeMap<String, String>,
) -> Result<(), ApiError> {
    cluster.put(&instances(listed)).map(drop)
}

/// Writes the private key's Secret.
pub(super) fn give_key(cluster: &TestServer, pem: &[u8]) -> Result<(), ApiError> {
    let secret = secret(objects::PRIVATE_KEY_SECRET, &[(objects::PRIVATE_KEY_KEY, pem)]);
    cluster.put(&secret).map(drop)
}

/// The same with the key that comes next.
pub(super) fn give_keys(cluster: &TestServer, pem: &[u8], next: &[u8]) -> Result<(), ApiError> {
    let keys = [(objects::PRIVATE_KEY_KEY, pem), (objects::NEXT_PRIVATE_KEY_KEY, next)];
    cluster.put(&secret(objects::PRIVATE_KEY_SECRET, &keys)).map(drop)
}

/// Makes the Lease good for a second only.
pub(super) fn let_lease_run_out(cluster: &TestServer) -> Result<(), ApiError> {
    let (group, name) = ("coordination.k8s.io", objects::LEADER_LEASE);
    let Some(lease) = cluster.object(group, "leases", NAMESPACE, name) else { return Ok(()) };
    let mut lease = (*lease).clone();
    if let Some(seconds) = lease.pointer_mut("/spec/leaseDurationSeconds") {
        *seconds = 1.into();
    }
    cluster.put(&lease).map(drop)
}

/// Facts about the cluster that its installer and the machine config operator write down, complete enough
/// for OpenShift's own definitions of the kinds.
fn configuration(endpoint: Endpoint<'_>, platform: &str) -> Vec<Value> {
    let ca = BASE64_STANDARD.encode(endpoint.ca_pem);
    let unit = "[Service]\nExecStart=/usr/bin/kubelet --node-labels=example.com/rack=7\n";
    let (image, rendered) = ("example.com/release:1", json!({ "name": RENDERED_CONFIG }));
    vec![
        json!({
            "apiVersion": "config.openshift.io/v1", "kind": "Infrastructure",
            "metadata": { "name": objects::CLUSTER },
            "spec": {},
            "status": {
                "apiServerInternalURI": endpoint.url,
                "platformStatus": { "type": platform },
            },
        }),
        json!({
            "apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion",
            "metadata": { "name": objects::CLUSTER_VERSION },
            "spec": { "clusterID": "00000000-0000-4000-8000-000000000000" },
            "status": {
                "availableUpdates": null, "desired": { "image": image, "version": "4.99.0" },
                "observedGeneration": 1, "versionHash": "",
            },
        }),
        json!({
            "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "ControllerConfig",
            "metadata": { "name": objects::CONTROLLER_CONFIG },
            "spec": {
                "additionalTrustBundle": null, "baseOSContainerImage": image,
                "cloudProviderCAData": null, "cloudProviderConfig": "",
                "clusterDNSIP": "172.30.0.10", "dns": null, "images": {}, "infra": null,
                "ipFamilies": "IPv4", "kubeAPIServerServingCAData": ca, "network": null,
                "proxy": null, "releaseImage": image, "rootCAData": ca,
            },
        }),
        json!({
            "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
            "metadata": { "name": RENDERED_CONFIG },
            "spec": { "config": {
                "ignition": { "version": "3.5.0" },
                "storage": { "files": [{
                    "path": CREDENTIAL_PROVIDER, "contents": { "source": CREDENTIAL_PROVIDERS },
                }] },
                "systemd": { "units": [{ "name": "kubelet.service", "contents": unit }] },
            } },
        }),
        json!({
            "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
            "metadata": { "name": objects::WORKER_POOL },
            "spec": { "configuration": rendered },
            "status": { "configuration": rendered },
        }),
    ]
}

/// Networks that Windows nodes can work with.
pub(super) fn networks() -> [Value; 2] {
    let pods = json!([{ "cidr": "10.132.0.0/14", "hostPrefix": 23 }]);
    let overlay = json!({ "hybridClusterNetwork": pods, "hybridOverlayVXLANPort": 9898 });
    both_networks("172.30.0.0/16", &overlay)
}

/// Networks that they cannot work with: the DNS service has a reserved address, and pods have no network.
pub(super) fn broken_networks() -> [Value; 2] {
    both_networks("240.0.0.0/12", &json!({}))
}

fn both_networks(services: &str, overlay: &Value) -> [Value; 2] {
    let pods = json!([{ "cidr": "10.128.0.0/14", "hostPrefix": 23 }]);
    [
        json!({
            "apiVersion": "config.openshift.io/v1", "kind": "Network",
            "metadata": { "name": objects::CLUSTER },
            "spec": {
                "networkType": "OVNKubernetes", "serviceNetwork": [services],
                "clusterNetwork": pods,
            },
        }),
        json!({
            "apiVersion": "operator.openshift.io/v1", "kind": "Network",
            "metadata": { "name": objects::CLUSTER },
            "spec": { "clusterNetwork": pods, "defaultNetwork": {
                "type": "OVNKubernetes", "ovnKubernetesConfig": { "hybridOverlayConfig": overlay },
            } },
        }),
    ]
}

/// The identity with which kubelets ask for their first certificate.
fn bootstrapper() -> [Value; 3] {
    const ACCOUNT: &str = "node-bootstrapper";
    let namespace = objects::BOOTSTRAPPER_NAMESPACE;
    [
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": { "name": ACCOUNT, "namespace": namespace },
        }),
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "type": objects::SERVICE_ACCOUNT_TOKEN_TYPE,
            "metadata": {
                "name": objects::BOOTSTRAPPER_SECRET, "namespace": namespace,
                "annotations": { objects::SERVICE_ACCOUNT_ANNOTATION: ACCOUNT },
            },
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": { "name": "node-bootstrapper" },
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                "name": "system:node-bootstrapper",
            },
            "subjects": [{ "kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace }],
        }),
    ]
}

fn secret(name: &str, data: &[(&str, &[u8])]) -> Value {
    let data: serde_json::Map<String, Value> = data
        .iter()
        .map(|(key, bytes)| ((*key).to_owned(), BASE64_STANDARD.encode(bytes).into()))
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "data": data,
    })
}
