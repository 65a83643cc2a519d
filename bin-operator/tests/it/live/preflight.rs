//! Clusters that are not fit for Windows nodes: new work waits and is reported, running nodes stay as they are.

use std::sync::Arc;
use std::time::Duration;

use bin_operator::demo::Stage;
use bin_operator::progress::Progress;
use bin_operator::sources::Sources;
use kube_testserver::Fault;
use kube_testserver::error::ApiError;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wmco_core::cluster::rbac;
use wmco_core::names::{events, objects};
use wmco_core::protocol::ServiceRunState;

use super::https;
use super::scenery::{
    addresses, admin, configure, is_finished, listed, metrics, nodes, notes, operate_until_settled,
    stage, until,
};
use crate::requests::scenery::{daemon_of, send};

/// Long enough for anything that would be done by mistake.
const CALM: Duration = Duration::from_secs(2);

fn set_services(stage: &Stage, network: &str) {
    set_network(stage, "OVNKubernetes", network);
}

fn set_network(stage: &Stage, plug_in: &str, services: &str) {
    let network = json!({
        "apiVersion": "config.openshift.io/v1", "kind": "Network",
        "metadata": {"name": objects::CLUSTER},
        "spec": {
            "networkType": plug_in, "serviceNetwork": [services],
            "clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}],
        },
    });
    stage.cluster.put(&network).unwrap();
}

async fn told(stage: &Stage, requirement: &str) -> String {
    let told = || notes(stage, events::PREFLIGHT_FAILED).into_iter();
    until(|| told().find(|note| note.starts_with(&format!("{requirement}: ")))).await
}

/// What hosts were asked to do; `None` for those that nobody logged in to.
fn work(stage: &Stage) -> Vec<usize> {
    stage.hosts.counts().iter().map(|counts| counts.executions.len()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unfit_cluster_gets_no_node_until_it_is_put_right() {
    let (stage, all) = (stage(2).await, addresses(2));
    // Hosts could be told what to do all the same.
    set_network(&stage, "OpenShiftSDN", "172.30.0.0/16");
    let running = stage.operate(Progress::new()).unwrap();
    let note = told(&stage, "network-type").await;
    assert!(note.contains("needed: OVNKubernetes") && note.contains("next: "), "{note}");
    tokio::time::sleep(CALM).await;
    assert_eq!(work(&stage), [0, 0]);
    assert!(nodes(&stage).is_empty());
    set_services(&stage, "172.30.0.0/16");
    until(|| (nodes(&stage).iter().filter(|node| is_finished(node)).count() == 2).then_some(()))
        .await;
    running.stop().await.unwrap();
    configure(&stage, &all).await;
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_breaks_changes_nothing_on_nodes_that_run() {
    let (stage, all) = (stage(3).await, addresses(3));
    stage.list(&listed(&all[..2])).unwrap();
    let running = operate_until_settled(&stage, &all[..2]).await;
    let before: Vec<Arc<Value>> = nodes(&stage);
    let spec = |nodes: &[Arc<Value>]| -> Vec<Value> {
        let parts = |node: &Arc<Value>| json!([node["spec"], node["metadata"]["annotations"]]);
        nodes.iter().map(parts).collect()
    };
    stage.hosts.iter().for_each(|(_, host)| host.reset_counts());
    set_services(&stage, "240.0.0.0/12");
    told(&stage, "service-network").await;
    stage.list(&listed(&all)).unwrap();
    tokio::time::sleep(CALM).await;
    assert_eq!(work(&stage), [0, 0, 0], "neither nodes nor the new host");
    running.stop().await.unwrap();
    // An operator that has never seen the network as it was does not know what hosts need.
    let running = stage.operate(Progress::new()).unwrap();
    tokio::time::sleep(CALM).await;
    let now = nodes(&stage);
    assert_eq!(spec(&now), spec(&before));
    for (_, host) in stage.hosts.iter().take(2) {
        assert!(
            host.counts().executions.iter().all(|it| !it.contains("apply")),
            "{:?}",
            host.counts()
        );
        let services = host.model().snapshot().services;
        assert!(services.values().all(|it| it.1 == ServiceRunState::Running), "{services:?}");
    }
    set_services(&stage, "172.30.0.0/16");
    until(|| (nodes(&stage).iter().filter(|node| is_finished(node)).count() == 3).then_some(()))
        .await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_doubtful_about_a_host_is_told_once_it_is_a_node() {
    let stage = stage(1).await;
    let (_, host) = stage.hosts.iter().next().unwrap();
    host.model().set_free_bytes(7_000_000_000);
    let running = operate_until_settled(&stage, &addresses(1)).await;
    let told = || notes(&stage, events::PREFLIGHT_WARNING).into_iter();
    let note = until(|| told().find(|note| note.contains("disk-space: "))).await;
    assert!(note.starts_with("10.") && note.contains("next: "), "{note}");
    running.stop().await.unwrap();
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overlay_that_nobody_describes_any_more_keeps_its_port() {
    let (stage, all) = (stage(1).await, addresses(1));
    let running = operate_until_settled(&stage, &all).await;
    let services = || {
        let maps = stage.cluster.objects("", "configmaps", stage.namespace()).into_iter();
        let is_services = |name: &str| name.starts_with(objects::SERVICES_CONFIG_MAP_PREFIX);
        let ours = maps.filter(|map| map["metadata"]["name"].as_str().is_some_and(is_services));
        ours.map(|map| map["data"].to_string()).collect::<String>()
    };
    let before = services();
    assert!(before.contains("9898"), "{before}");
    let (group, kind) = ("operator.openshift.io", "networks");
    let network = stage.cluster.object(group, kind, "", objects::CLUSTER).unwrap();
    let mut network = network.as_ref().clone();
    network["spec"]["defaultNetwork"]["ovnKubernetesConfig"]["hybridOverlayConfig"] = Value::Null;
    stage.cluster.put(&network).unwrap();
    told(&stage, "hybrid-overlay").await;
    tokio::time::sleep(CALM).await;
    assert_eq!(services(), before);
    running.stop().await.unwrap();
    stage.shutdown().await;
}

/// Groups that OpenShift brings.
const OPENSHIFT: [&str; 3] =
    ["config.openshift.io", "operator.openshift.io", "machineconfiguration.openshift.io"];

#[tokio::test(flavor = "multi_thread")]
async fn without_openshift_the_operator_is_ready_and_answers_certificate_requests() {
    let (stage, all) = (stage(1).await, addresses(1));
    stage.cluster.inject_faults(|request| {
        let missing = OPENSHIFT.contains(&request.group.as_str());
        missing.then(|| Fault::Answer(ApiError::no_such_resource()))
    });
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "win-1", "labels": {"kubernetes.io/os": "windows"}},
        "status": {"addresses": [
            {"type": "InternalIP", "address": all[0]}, {"type": "Hostname", "address": "win-1"},
        ]},
    });
    stage.cluster.put(&node).unwrap();
    let binding = rbac::cluster_role_binding(stage.namespace());
    stage.cluster.put(&with_type("ClusterRoleBinding", json!(binding))).unwrap();
    let running = stage.operate(Progress::new()).unwrap();
    let finding = told(&stage, "open-shift").await;
    for kind in ["infrastructures", "networks.operator", "machineconfigpools", "controllerconfigs"]
    {
        assert!(finding.contains(kind), "{kind}: {finding}");
    }
    assert_eq!(https::code(running.http, "/readyz", None).await, 200);
    assert!(metrics(&stage, &running).await.contains(r#"findings{severity="blocking"} 1"#));
    let asked = daemon_of("win-1");
    send(&admin(&stage).await, &asked, &asked.pem()).await;
    until(|| {
        let (group, kind) = ("certificates.k8s.io", "certificatesigningrequests");
        let request = stage.cluster.object(group, kind, "", &asked.name)?;
        (request["status"]["conditions"][0]["type"] == "Approved").then_some(())
    })
    .await;
    assert_eq!(work(&stage), [0]);
    running.stop().await.unwrap();
    stage.cluster.clear_faults();
    stage.shutdown().await;
}

fn with_type(kind: &str, mut object: Value) -> Value {
    object["apiVersion"] = "rbac.authorization.k8s.io/v1".into();
    object["kind"] = kind.into();
    object
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_start_waits_for_is_named() {
    let stage = stage(0).await;
    stage.cluster.inject_faults(|request| {
        let is_kept = request.resource == "infrastructures";
        is_kept.then(|| Fault::Answer(ApiError::forbidden_path("no right")))
    });
    let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
    let sources = Sources::watch(&admin(&stage).await, stage.namespace(), None, &stop, &tasks);
    until(|| (sources.unknown() == ["infrastructures.config.openshift.io"]).then_some(())).await;
    stage.cluster.inject_faults(|_| None);
    sources.ready().await.unwrap();
    assert_eq!(sources.unknown(), Vec::<&str>::new());
    stop.cancel();
    tasks.close();
    tasks.wait().await;
    stage.shutdown().await;
}
