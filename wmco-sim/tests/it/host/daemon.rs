//! A complete node: agent, kubelet and daemon with a simulated cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use wmco_core::names::{self, host as paths, objects};
use wmco_core::protocol::{HostStep, ReportLine, ServiceRunState, ServicesData};
use wmco_services::manifest::{Manifest, NodeVariable, Parts, PreScript, Service};
use wmco_services::scripts::NODE_IP;
use wmco_services::windows::{Machine as _, ServiceManager as _};
use wmco_sim::host::SimHost;

use super::agent::{Operator, configuration};
use super::client::{until, within};
use super::join::{Joining, NODE};

const VERSION: &str = "1.2.3-test";
const LATER: &str = "1.2.4-test";
const NAMESPACE: &str = "operator";
const ARGUMENTS: &str = r"controller --windows-service --log-dir C:\var\log\wicd --namespace operator --kubeconfig C:\k\wicd-kubeconfig --cert-dir C:\k\wicd-certs --cert-duration 1h --ca-bundle C:\k\ca-bundle.crt";

fn service(name: &str, command: &str, needs: &[&str], priority: u64) -> Service {
    Service {
        dependencies: needs.iter().map(|name| name.parse().unwrap()).collect(),
        bootstrap: priority < 2,
        priority,
        ..Service::new(name.parse().unwrap(), command)
    }
}

/// Returns a simplified version of the generated ConfigMap.
fn manifest(environment: &[(&str, &str)]) -> ServicesData {
    let containerd =
        service(paths::CONTAINERD_SERVICE, r"C:\k\containerd\containerd.exe --run-service", &[], 0);
    let mut kubelet = service(
        paths::KUBELET_SERVICE,
        r"C:\k\kubelet.exe --config=C:\k\kubelet.conf --bootstrap-kubeconfig=C:\k\bootstrap-kubeconfig --kubeconfig=C:\k\kubeconfig --cert-dir=c:\var\lib\kubelet\pki\ --windows-service --node-labels=node.openshift.io/os_id=Windows --node-ip=NODE_IP",
        &[paths::CONTAINERD_SERVICE],
        1,
    );
    kubelet.powershell_pre_scripts = vec![PreScript {
        variable_name: "NODE_IP".to_owned(),
        path: NODE_IP.to_owned(),
        node_args: Vec::new(),
    }];
    let mut overlay = service(
        "hybrid-overlay-node",
        r"C:\k\hybrid-overlay-node.exe --node NODE_NAME",
        &[paths::KUBELET_SERVICE],
        2,
    );
    overlay.node_variables_in_command = vec![NodeVariable {
        name: "NODE_NAME".to_owned(),
        node_object_json_path: "{.metadata.name}".to_owned(),
    }];
    let pairs = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let parts = Parts {
        services: vec![containerd, kubelet, overlay],
        files: Vec::new(),
        environment: pairs.collect(),
        watched: environment.iter().map(|(name, _)| (*name).to_owned()).collect(),
    };
    Manifest::new(parts).unwrap().render()
}

fn map(version: &str, data: &ServicesData) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": data.0,
        "metadata": {"namespace": NAMESPACE,
            "name": format!("{}{version}", objects::SERVICES_CONFIG_MAP_PREFIX)},
    })
}

/// Starts a node whose kubelet and daemon run; all certificates are approved.
async fn joined(environment: &[(&str, &str)]) -> (Joining, russh::keys::PrivateKey) {
    let (joining, key) = Joining::empty().await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "daemons"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group",
            "name": names::WICD_NODES_GROUP}],
    });
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let data = manifest(environment);
    for object in [binding, namespace, map(VERSION, &data), map(LATER, &data)] {
        joining.cluster.put(&object).unwrap();
    }
    let model = joining.host.model();
    let kubeconfig = joining.cluster.kubeconfig("daemon", &["system:masters"]).unwrap();
    model.put_file(&paths::WICD_KUBECONFIG.parse().unwrap(), kubeconfig);
    model.put_file(&paths::CA_BUNDLE.parse().unwrap(), "");
    model.put_file(&r"C:\k\hybrid-overlay-node.exe".parse().unwrap(), "MZ");

    let mut operator = Operator::new(&joining.host, &key).await;
    operator.bring(&SimHost::agent_binary(VERSION)).await;
    let mut steps = configuration(b"");
    steps.pop(); // the kubelet is there
    steps.push(HostStep::Bootstrap { manifest: data });
    steps.push(HostStep::EnsureDaemon {
        arguments: ARGUMENTS.split(' ').map(str::to_owned).collect(),
    });
    let lines = operator.apply(steps).await;
    assert!(!lines.iter().any(|line| matches!(line, ReportLine::Failed { .. })), "{lines:?}");
    let mut signers: Vec<String> = Vec::new();
    for _ in 0..3 {
        signers.push(joining.approve().await.spec.signer_name);
    }
    signers.sort();
    let expected = ["kube-apiserver-client", "kube-apiserver-client-kubelet", "kubelet-serving"];
    assert_eq!(signers, expected.map(|name| format!("kubernetes.io/{name}")));
    (joining, key)
}

async fn annotate(joining: &Joining, name: &str, value: Value) {
    let nodes: Api<Node> = Api::all(joining.client.clone());
    let patch = Patch::Merge(json!({"metadata": {"annotations": {name: value}}}));
    within(nodes.patch(NODE, &PatchParams::default(), &patch)).await.unwrap();
}

fn annotations(joining: &Joining) -> BTreeMap<String, String> {
    joining.node().and_then(|node| node.metadata.annotations).unwrap_or_default()
}

fn version(joining: &Joining) -> Option<String> {
    annotations(joining).get(names::VERSION_ANNOTATION).cloned()
}

/// Waits until the daemon stops reading manifests.
async fn idle(joining: &Joining) {
    let reads = || joining.cluster.count("get", "configmaps");
    within(async {
        let mut before = u64::MAX;
        while before != reads() {
            before = reads();
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn the_daemon_brings_the_node_to_the_desired_version() {
    let (joining, _) = joined(&[]).await;
    joining.ready("True").await;
    assert_eq!(version(&joining), None);
    annotate(&joining, names::DESIRED_VERSION_ANNOTATION, VERSION.into()).await;
    until(|| version(&joining).is_some()).await;
    assert_eq!(version(&joining).as_deref(), Some(VERSION));
    let overlay = "hybrid-overlay-node".parse().unwrap();
    let overlay = joining.host.model().query(&overlay).unwrap().unwrap();
    assert_eq!(overlay.config.command, r"C:\k\hybrid-overlay-node.exe --node winhost");
    assert_eq!(overlay.state, ServiceRunState::Running);
    let certificate = joining.file(paths::WICD_CURRENT_CERTIFICATE).unwrap();
    assert!(certificate.contains("BEGIN CERTIFICATE"), "{certificate}");
}

#[tokio::test]
async fn a_settled_daemon_follows_changes_at_once() {
    let (joining, _) = joined(&[]).await;
    annotate(&joining, names::DESIRED_VERSION_ANNOTATION, VERSION.into()).await;
    until(|| version(&joining).as_deref() == Some(VERSION)).await;
    // The next regular pass would be in two minutes.
    idle(&joining).await;
    annotate(&joining, names::DESIRED_VERSION_ANNOTATION, LATER.into()).await;
    until(|| version(&joining).as_deref() == Some(LATER)).await;
    idle(&joining).await;
    let mut data = manifest(&[]);
    let services = data.0.get_mut("services").unwrap();
    *services = services.replace("--node NODE_NAME", "--node NODE_NAME --more");
    joining.cluster.put(&map(LATER, &data)).unwrap();
    let overlay = "hybrid-overlay-node".parse().unwrap();
    let command = || joining.host.model().query(&overlay).unwrap().unwrap().config.command;
    until(|| command().ends_with("--node winhost --more")).await;
}

#[tokio::test]
async fn a_changed_variable_asks_for_a_restart_before_anything_else() {
    let (joining, _) = joined(&[("HTTP_PROXY", "http://proxy:3128")]).await;
    joining.ready("True").await;
    annotate(&joining, names::DESIRED_VERSION_ANNOTATION, VERSION.into()).await;
    until(|| annotations(&joining).contains_key(names::REBOOT_ANNOTATION)).await;
    assert_eq!(version(&joining), None);
    joining.host.model().restart().unwrap();
    until(|| joining.host.counts().restarts == 1).await;
    annotate(&joining, names::REBOOT_ANNOTATION, Value::Null).await;
    until(|| version(&joining).is_some()).await;
    // Both programs still have their earlier certificates.
    assert_eq!(joining.requests(), 3);
    joining.ready("True").await;
}

#[tokio::test]
async fn a_node_that_is_removed_leaves_nothing_that_runs() {
    let (joining, key) = joined(&[]).await;
    annotate(&joining, names::DESIRED_VERSION_ANNOTATION, VERSION.into()).await;
    until(|| version(&joining).is_some()).await;
    let operator = Operator::new(&joining.host, &key).await;
    let removal =
        vec![HostStep::RemoveDaemon, HostStep::RemoveServices { manifests: vec![manifest(&[])] }];
    let lines = operator.apply(removal).await;
    assert!(!lines.iter().any(|line| matches!(line, ReportLine::Failed { .. })), "{lines:?}");
    joining.ready("Unknown").await;
    let services = joining.host.model().list().unwrap();
    let ours = services.iter().filter(|s| s.config.description.starts_with(paths::SERVICE_TAG));
    assert_eq!(ours.count(), 0);
}
