//! What an OpenShift cluster has before our operator is installed, and the installation itself.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube::CustomResourceExt as _;
use serde_json::{Value, json};
use wmco_core::cluster::rbac;
use wmco_core::names::objects;
use wmco_core::secret::Secret;
use wmco_sim::cluster::SimCluster;
use wmco_sim::cluster::error::ApiError;

use crate::openshift::{
    ControllerConfig, Infrastructure, MachineConfig, MachineConfigPool, Network, OperatorNetwork,
};

const NAMESPACE: &str = objects::DEFAULT_NAMESPACE;

/// What the operator may do in a real cluster.
const OPERATOR_RIGHTS: [&str; 2] = [
    include_str!("../../../deploy/operator-rights.yaml"),
    include_str!("../../../deploy/machine-api-rights.yaml"),
];

/// What the worker pool's machines have.
const RENDERED_CONFIG: &str = "rendered-worker-0a1b2c3d";

/// The operator's environment in the demo.
pub(super) fn environment(name: &str) -> Option<String> {
    (name == "WATCH_NAMESPACE").then(|| NAMESPACE.to_owned())
}

/// Fills the cluster.
pub(super) fn seed(
    cluster: &SimCluster,
    platform: &str,
    key: &Secret,
    listed: &BTreeMap<String, String>,
) -> anyhow::Result<()> {
    let namespaces = [NAMESPACE, objects::BOOTSTRAPPER_NAMESPACE, objects::MACHINE_API_NAMESPACE];
    for namespace in namespaces {
        cluster.apply(&json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace },
        }))?;
    }
    let kinds = [
        Infrastructure::crd(),
        Network::crd(),
        OperatorNetwork::crd(),
        ControllerConfig::crd(),
        MachineConfigPool::crd(),
        MachineConfig::crd(),
    ];
    for mut crd in kinds {
        // No other component runs here that would write a status afterwards.
        crd.spec.versions.iter_mut().for_each(|version| version.subresources = None);
        cluster.apply(&serde_json::to_value(crd)?)?;
    }
    cluster_configuration(cluster, platform)?;
    bootstrapper(cluster)?;
    for rights in OPERATOR_RIGHTS {
        for object in serde_saphyr::from_multiple::<Value>(rights)? {
            cluster.apply(&object)?;
        }
    }
    for object in rbac::shipped(NAMESPACE) {
        cluster.apply(&object)?;
    }
    cluster
        .apply(&secret(objects::PRIVATE_KEY_SECRET, &[(objects::PRIVATE_KEY_KEY, key.expose())]))?;
    let (certificate, private) = super::stand_in::serving_certificate()?;
    cluster.apply(&secret(
        objects::TLS_SECRET,
        &[
            (objects::TLS_CERTIFICATE_KEY, certificate.as_bytes()),
            (objects::TLS_PRIVATE_KEY_KEY, private.as_bytes()),
        ],
    ))?;
    list(cluster, listed)?;
    Ok(())
}

/// Writes the list of instances.
pub(super) fn list(
    cluster: &SimCluster,
    listed: &BTreeMap<String, String>,
) -> Result<(), ApiError> {
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": objects::INSTANCES_CONFIG_MAP, "namespace": NAMESPACE },
        "data": listed,
    });
    cluster.apply(&map).map(drop)
}

/// Writes the private key's Secret.
pub(super) fn give_key(cluster: &SimCluster, pem: &[u8]) -> Result<(), ApiError> {
    let secret = secret(objects::PRIVATE_KEY_SECRET, &[(objects::PRIVATE_KEY_KEY, pem)]);
    cluster.apply(&secret).map(drop)
}

/// The same with the key that comes next.
pub(super) fn give_keys(cluster: &SimCluster, pem: &[u8], next: &[u8]) -> Result<(), ApiError> {
    let keys = [(objects::PRIVATE_KEY_KEY, pem), (objects::NEXT_PRIVATE_KEY_KEY, next)];
    cluster.apply(&secret(objects::PRIVATE_KEY_SECRET, &keys)).map(drop)
}

/// Makes the Lease good for a second only.
pub(super) fn let_lease_run_out(cluster: &SimCluster) -> Result<(), ApiError> {
    let (group, name) = ("coordination.k8s.io", objects::LEADER_LEASE);
    let Some(lease) = cluster.object(group, "leases", NAMESPACE, name) else { return Ok(()) };
    let mut lease = (*lease).clone();
    if let Some(seconds) = lease.pointer_mut("/spec/leaseDurationSeconds") {
        *seconds = 1.into();
    }
    cluster.apply(&lease).map(drop)
}

/// Facts about the cluster that its installer writes down.
fn cluster_configuration(cluster: &SimCluster, platform: &str) -> anyhow::Result<()> {
    cluster.apply(&json!({
        "apiVersion": "config.openshift.io/v1", "kind": "Infrastructure",
        "metadata": { "name": objects::CLUSTER },
        "spec": {},
        "status": {
            "apiServerInternalURI": cluster.url(),
            "platformStatus": { "type": platform },
        },
    }))?;
    cluster.apply(&json!({
        "apiVersion": "config.openshift.io/v1", "kind": "Network",
        "metadata": { "name": objects::CLUSTER },
        "spec": { "networkType": "OVNKubernetes", "serviceNetwork": ["172.30.0.0/16"] },
    }))?;
    cluster.apply(&json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "ControllerConfig",
        "metadata": { "name": objects::CONTROLLER_CONFIG },
        "spec": {
            "kubeAPIServerServingCAData": BASE64_STANDARD.encode(cluster.ca_pem()),
        },
    }))?;
    cluster.apply(&json!({
        "apiVersion": "operator.openshift.io/v1", "kind": "Network",
        "metadata": { "name": objects::CLUSTER },
        "spec": { "defaultNetwork": { "ovnKubernetesConfig": { "hybridOverlayConfig": {
            "hybridOverlayVXLANPort": 9898,
        } } } },
    }))?;
    let unit = "[Service]\nExecStart=/usr/bin/kubelet --node-labels=example.com/rack=7\n";
    cluster.apply(&json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": { "name": RENDERED_CONFIG },
        "spec": { "config": {
            "ignition": { "version": "3.5.0" },
            "systemd": { "units": [{ "name": "kubelet.service", "contents": unit }] },
        } },
    }))?;
    cluster.apply(&json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
        "metadata": { "name": objects::WORKER_POOL },
        "spec": {},
        "status": { "configuration": { "name": RENDERED_CONFIG } },
    }))?;
    Ok(())
}

/// The identity with which kubelets ask for their first certificate.
fn bootstrapper(cluster: &SimCluster) -> anyhow::Result<()> {
    const ACCOUNT: &str = "node-bootstrapper";
    let namespace = objects::BOOTSTRAPPER_NAMESPACE;
    cluster.apply(&json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": { "name": ACCOUNT, "namespace": namespace },
    }))?;
    cluster.apply(&json!({
        "apiVersion": "v1", "kind": "Secret",
        "type": objects::SERVICE_ACCOUNT_TOKEN_TYPE,
        "metadata": {
            "name": objects::BOOTSTRAPPER_SECRET, "namespace": namespace,
            "annotations": { objects::SERVICE_ACCOUNT_ANNOTATION: ACCOUNT },
        },
    }))?;
    cluster.apply(&json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": { "name": "node-bootstrapper" },
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "system:node-bootstrapper",
        },
        "subjects": [{ "kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace }],
    }))?;
    Ok(())
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
