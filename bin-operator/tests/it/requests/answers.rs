//! Each verdict is carried out, once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bin_operator::host_reports::HostReport;
use kube::api::{Patch, PatchParams};
use kube_testserver::Fault;
use kube_testserver::error::{ApiError, Subject};
use serde_json::json;
use wmco_core::limits;
use wmco_core::names::{MACHINE_OS_LABEL, OS_ID_WINDOWS, events, objects};

use super::scenery::{Asked, Scene, client_of, daemon_of, put, report, serving_of};

const HOST: &str = "10.9.8.1";

async fn scene() -> Scene {
    Scene::start(&BTreeMap::from([(HOST.to_owned(), "WIN-1".to_owned())])).await
}

fn approval(reason: &str) -> (String, String) {
    ("Approved".to_owned(), reason.to_owned())
}

#[tokio::test]
async fn each_kind_is_approved_by_its_own_reason() {
    let scene = scene().await;
    scene.approve(false).await;
    scene.ask(&client_of("win-1")).await;
    assert_eq!(scene.condition("client-win-1").await, approval("WMCOApprove"));
    scene.node("win-1", "windows", HOST);
    scene.ask(&serving_of("win-1")).await;
    assert_eq!(scene.condition("serving-win-1").await, approval("WMCOApprove"));
    scene.ask(&daemon_of("win-1")).await;
    assert_eq!(scene.condition("wicd-win-1").await, approval("WICDAutoApproved"));
    for kind in ["kubelet-client", "kubelet-serving", "wicd"] {
        assert_eq!(scene.count(kind, "approve", ""), 1, "{}", scene.metrics.text());
    }
    assert!(scene.events("client-win-1").is_empty());
    scene.stop().await;
}

/// The approval belongs to the version that was looked at, so a newer one is looked at first.
#[tokio::test]
async fn a_conflict_is_decided_anew() {
    let scene = scene().await;
    let left = Arc::new(AtomicU64::new(u64::from(limits::CSR_CONFLICTS)));
    let countdown = Arc::clone(&left);
    scene.cluster.inject_faults(move |request| {
        let ours = request.resource == "certificatesigningrequests/approval";
        let fails = ours
            && countdown
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1))
                .is_ok();
        let of = Subject { group: "certificates.k8s.io", kind: "x", name: &request.name };
        fails.then(|| Fault::Answer(ApiError::modified(of)))
    });
    scene.approve(false).await;
    scene.ask(&client_of("win-1")).await;
    assert_eq!(scene.condition("client-win-1").await, approval("WMCOApprove"));
    assert_eq!(left.load(Ordering::SeqCst), 0);
    assert_eq!(
        scene.cluster.count("get", "certificatesigningrequests"),
        u64::from(limits::CSR_CONFLICTS)
    );
    assert_eq!(scene.count("kubelet-client", "approve", ""), 1, "one approval is counted");
    scene.stop().await;
}

/// What was denied between the decision and the write stays denied.
#[tokio::test]
async fn a_conflict_with_another_verdict_is_respected() {
    let scene = scene().await;
    scene.ask(&client_of("win-1")).await;
    let mut denied = scene.stored("client-win-1");
    let condition = json!({"type": "Denied", "status": "True", "reason": "ByHand"});
    denied.status = Some(serde_json::from_value(json!({"conditions": [condition]})).unwrap());
    let denied = Arc::new(std::sync::Mutex::new(Some((scene.requests(), denied))));
    let handle = tokio::runtime::Handle::current();
    scene.cluster.inject_faults(move |request| {
        if request.verb == "get" && request.name == "client-win-1" {
            // Long enough for the other verdict to be there.
            return Some(Fault::Delay(Duration::from_secs(2)));
        }
        let first = request.resource == "certificatesigningrequests/approval";
        let (requests, denied) = first.then(|| denied.lock().unwrap().take()).flatten()?;
        let write = async move {
            let parameters = kube::api::PostParams::default();
            requests.replace_subresource("approval", "client-win-1", &parameters, &denied).await
        };
        let _writing = handle.spawn(write);
        let of = Subject { group: "certificates.k8s.io", kind: "x", name: &request.name };
        Some(Fault::Answer(ApiError::modified(of)))
    });
    scene.approve(false).await;
    let denied = ("Denied".to_owned(), "ByHand".to_owned());
    assert_eq!(scene.condition("client-win-1").await, denied);
    scene.until(|| scene.cluster.count("get", "certificatesigningrequests") == 1).await;
    assert_eq!(scene.condition("client-win-1").await, denied, "and nothing is added");
    scene.stop().await;
}

fn by_jane(node: &str) -> Asked {
    Asked { user: "jane".to_owned(), groups: vec!["people"], ..client_of(node) }
}

#[tokio::test]
async fn a_refused_request_is_told_once_and_left_alone() {
    let scene = scene().await;
    scene.approve(false).await;
    let made = scene.ask(&by_jane("win-1")).await;
    let note = "requester: \"jane\" may not ask for system:node:win-1".to_owned();
    let told = vec![(events::CERTIFICATE_REFUSED.to_owned(), note)];
    scene.until(|| scene.events("client-win-1") == told).await;
    assert_eq!(
        scene.stored("client-win-1").metadata.resource_version,
        made.metadata.resource_version
    );

    // Neither another event for it nor a change of the cluster is a reason to tell it again.
    let touch = Patch::Merge(json!({"metadata": {"annotations": {"a": "b"}}}));
    scene.requests().patch("client-win-1", &PatchParams::default(), &touch).await.unwrap();
    scene.node("win-9", "windows", HOST);
    scene.ask(&daemon_of("win-9")).await;
    scene.condition("wicd-win-9").await;
    assert_eq!(scene.count("kubelet-client", "refuse", "requester"), 1);
    assert_eq!(scene.events("client-win-1").len(), 1);
    assert!(scene.stored("client-win-1").status.unwrap_or_default().conditions.is_none());
    assert_eq!(
        scene.cluster.count("update", "certificatesigningrequests/approval"),
        1,
        "the daemon's"
    );
    scene.stop().await;
}

#[tokio::test]
async fn a_refused_request_is_denied_if_that_was_asked_for() {
    let scene = scene().await;
    scene.approve(true).await;
    scene.ask(&by_jane("win-1")).await;
    let denied = ("Denied".to_owned(), "WMCODeny".to_owned());
    assert_eq!(scene.condition("client-win-1").await, denied);
    // Not even then is anything denied that is not ours.
    let foreign = Asked { name: "foreign".to_owned(), ..client_of("linux-1") };
    scene.ask(&foreign).await;
    scene.answered("kubelet-client", "ignore", "instance").await;
    assert!(scene.stored("foreign").status.unwrap_or_default().conditions.is_none());
    scene.stop().await;
}

#[tokio::test]
async fn a_bad_node_name_has_its_own_event() {
    let scene = scene().await;
    scene.approve(false).await;
    let asked = Asked { name: "upper".to_owned(), ..client_of("WIN-1") };
    scene.ask(&asked).await;
    scene.until(|| !scene.events("upper").is_empty()).await;
    assert_eq!(scene.events("upper")[0].0, events::NODE_NAME);
    scene.stop().await;
}

/// Where a cloud names its machines, a node has the name of the DNS and not that of its host.
#[tokio::test]
async fn the_name_of_an_address_in_the_dns_is_evidence() {
    let scene = Scene::start(&[("127.0.0.1".to_owned(), "WIN-1".to_owned())].into()).await;
    scene.approve(false).await;
    scene.ask(&client_of("ip-127-0-0-1")).await;
    assert_eq!(scene.condition("client-ip-127-0-0-1").await, approval("WMCOApprove"));
    scene.ask(&client_of("win-1")).await;
    assert_eq!(scene.condition("client-win-1").await, approval("WMCOApprove"));
    scene.stop().await;
}

/// The Event is recorded on the Node as well, since the Node is what a person can delete.
#[tokio::test]
async fn a_node_in_the_way_is_told_on_both() {
    let scene = scene().await;
    scene.node("win-1", "windows", "10.0.0.1");
    scene.approve(false).await;
    scene.ask(&client_of("win-1")).await;
    let note = "node-absent: node win-1 exists, delete it if it is stale".to_owned();
    let told = vec![(events::CERTIFICATE_NODE_EXISTS.to_owned(), note)];
    scene.until(|| scene.events("client-win-1") == told).await;
    assert_eq!(scene.events("win-1"), told);
    scene.stop().await;
}

/// The cache holds Windows nodes only, but nobody may become a node that exists.
#[tokio::test]
async fn a_linux_node_of_the_same_name_is_seen() {
    let scene = scene().await;
    scene.node("win-1", "linux", "10.0.0.1");
    scene.approve(false).await;
    scene.ask(&client_of("win-1")).await;
    scene.answered("kubelet-client", "ignore", "node-os").await;
    assert_eq!(scene.cluster.count("update", "certificatesigningrequests/approval"), 0);
    scene.stop().await;
}

#[tokio::test]
async fn a_request_waits_for_its_node() {
    let scene = scene().await;
    scene.approve(false).await;
    scene.ask(&serving_of("win-1")).await;
    scene.answered("kubelet-serving", "wait", "node").await;
    scene.node("win-1", "windows", HOST);
    assert_eq!(scene.condition("serving-win-1").await, approval("WMCOApprove"));
    scene.stop().await;
}

#[tokio::test]
async fn a_request_waits_for_the_name_of_its_host() {
    let hosts = BTreeMap::from([(HOST.to_owned(), String::new())]);
    let scene = Scene::start(&hosts).await;
    scene.approve(false).await;
    scene.ask(&client_of("win-1")).await;
    scene.answered("kubelet-client", "wait", "instance").await;
    scene.host_reports.set(HOST, report("WIN-1"));
    assert_eq!(scene.condition("client-win-1").await, approval("WMCOApprove"));
    scene.stop().await;
}

fn machine_api(scene: &Scene) {
    put(
        &scene.cluster,
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "openshift-machine-api"}}),
    );
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    put(
        &scene.cluster,
        &json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "machines.machine.openshift.io"},
            "spec": {
                "group": "machine.openshift.io", "scope": "Namespaced",
                "names": {"plural": "machines", "singular": "machine", "kind": "Machine", "listKind": "MachineList"},
                "versions": [{
                    "name": "v1beta1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": any},
                }],
            },
        }),
    );
}

fn machine(scene: &Scene, node: &str) {
    put(
        &scene.cluster,
        &json!({
            "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
            "metadata": {"name": "m-1", "namespace": "openshift-machine-api"},
            "status": {"nodeRef": {"kind": "Node", "name": node}},
        }),
    );
}

#[tokio::test]
async fn requests_of_machines_are_left_to_their_approver() {
    let scene = scene().await;
    machine_api(&scene);
    machine(&scene, "win-1");
    scene.approve(false).await;
    scene.ask(&client_of("win-1")).await;
    scene.answered("kubelet-client", "ignore", "machine").await;
    // The Machine turns out to be another node.
    machine(&scene, "other");
    assert_eq!(scene.condition("client-win-1").await, approval("WMCOApprove"));
    scene.stop().await;
}

fn hosts(list: &[(&str, &str)]) -> BTreeMap<String, String> {
    list.iter().map(|(address, name)| ((*address).to_owned(), (*name).to_owned())).collect()
}

#[tokio::test]
async fn two_hosts_of_one_name_are_refused_and_told_once() {
    let other = "10.9.8.2";
    let scene = Scene::start(&hosts(&[(HOST, "WIN-1"), (other, "win-1")])).await;
    scene.approve(false).await;
    scene.ask(&client_of("win-1")).await;
    let conflict = "10.9.8.1 (by its host name) and 10.9.8.2 (by its host name) both claim the name \
                    win-1, rename one of the hosts or correct the DNS";
    let refused = vec![(events::CERTIFICATE_REFUSED.to_owned(), format!("instance: {conflict}"))];
    scene.until(|| scene.events("client-win-1") == refused).await;
    let told = vec![(events::NAME_CONFLICT.to_owned(), conflict.to_owned())];
    scene.until(|| scene.events(objects::INSTANCES_CONFIG_MAP) == told).await;
    // Another change is no reason to tell it again.
    scene
        .host_reports
        .set(other, HostReport { addresses: vec![[10, 9, 8, 2].into()], ..report("win-1") });
    scene.node("win-9", "windows", HOST);
    scene.ask(&daemon_of("win-9")).await;
    scene.condition("wicd-win-9").await;
    assert_eq!(scene.events("client-win-1"), refused);
    assert_eq!(scene.events(objects::INSTANCES_CONFIG_MAP), told);
    // Somebody renames the other one.
    scene.host_reports.set(other, report("win-2"));
    assert_eq!(scene.condition("client-win-1").await, approval("WMCOApprove"));
    scene.stop().await;
}

#[tokio::test]
async fn a_reported_name_that_leads_elsewhere_is_refused() {
    let scene = Scene::start(&hosts(&[(HOST, "files.corp.example")])).await;
    let elsewhere = vec![[192, 0, 2, 1].into()];
    scene.dns.lock().unwrap().insert("files.corp.example".to_owned(), elsewhere);
    scene.approve(false).await;
    scene.ask(&client_of("files.corp.example")).await;
    scene.answered("kubelet-client", "refuse", "instance").await;
    assert_eq!(scene.events(objects::INSTANCES_CONFIG_MAP).len(), 1);
    scene.stop().await;
}

/// A report of the host that the name led to before says nothing about the one that it leads to now.
#[tokio::test]
async fn a_report_counts_for_the_address_that_was_asked() {
    let name = "win-1.corp.example";
    let scene = Scene::start(&hosts(&[(name, "")])).await;
    scene.dns.lock().unwrap().insert(name.to_owned(), vec![[10, 9, 8, 2].into()]);
    let before = HostReport { at: Some([10, 9, 8, 1].into()), ..report("other") };
    scene.host_reports.set(name, before.clone());
    scene.approve(false).await;
    scene.ask(&client_of("other")).await;
    scene.answered("kubelet-client", "wait", "instance").await;
    scene.host_reports.set(name, HostReport { at: Some([10, 9, 8, 2].into()), ..before });
    assert_eq!(scene.condition("client-other").await, approval("WMCOApprove"));
    scene.stop().await;
}

/// The host of a Windows Machine reports under the key of the Machine, and for its address alone.
#[tokio::test]
async fn a_report_of_a_machines_host_counts_for_that_machine() {
    let scene = Scene::start(&BTreeMap::new()).await;
    machine_api(&scene);
    put(
        &scene.cluster,
        &json!({
            "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
            "metadata": {
                "name": "m-1", "namespace": "openshift-machine-api",
                "labels": {MACHINE_OS_LABEL: OS_ID_WINDOWS},
            },
            "status": {
                "phase": "Provisioned",
                "addresses": [{"type": "InternalIP", "address": "10.9.8.2"}],
            },
        }),
    );
    let key = wmco_core::machines::key("m-1");
    let before = HostReport { at: Some([10, 9, 8, 1].into()), ..report("WIN-1") };
    scene.host_reports.set(&key, before.clone());
    scene.approve(false).await;
    scene.ask(&client_of("win-1")).await;
    scene.answered("kubelet-client", "wait", "instance").await;
    scene.host_reports.set(&key, HostReport { at: Some([10, 9, 8, 2].into()), ..before });
    assert_eq!(scene.condition("client-win-1").await, approval("WMCOApprove"));
    scene.stop().await;
}

fn network(scene: &Scene, cidr: &str) {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    put(
        &scene.cluster,
        &json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "networks.config.openshift.io"},
            "spec": {
                "group": "config.openshift.io", "scope": "Cluster",
                "names": {"plural": "networks", "singular": "network", "kind": "Network", "listKind": "NetworkList"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": any},
                }],
            },
        }),
    );
    put(
        &scene.cluster,
        &json!({
            "apiVersion": "config.openshift.io/v1", "kind": "Network", "metadata": {"name": "cluster"},
            "spec": {"networkType": "OVNKubernetes", "serviceNetwork": [cidr]},
        }),
    );
}

/// The requester writes its Node's status; who else has an address is seen of all Nodes.
#[tokio::test]
async fn an_address_of_another_node_is_refused_until_that_gives_it_back() {
    let scene = Scene::start(&hosts(&[("win-1", "WIN-1")])).await;
    scene.dns.lock().unwrap().insert("win-1".to_owned(), vec![HOST.parse().unwrap()]);
    network(&scene, "172.30.0.0/16");
    scene.node("win-1", "windows", HOST);
    scene.node("linux-1", "linux", HOST);
    scene.approve(false).await;
    let mut asked = serving_of("win-1");
    asked.names.push(rcgen::SanType::IpAddress(HOST.parse().unwrap()));
    scene.ask(&asked).await;
    let note = "belongs: 10.9.8.1: that is node linux-1's".to_owned();
    let told = vec![(events::CERTIFICATE_REFUSED.to_owned(), note)];
    scene.until(|| scene.events("serving-win-1") == told).await;
    let nodes: kube::Api<k8s_openapi::api::core::v1::Node> = kube::Api::all(scene.client.clone());
    let addresses = json!([{"type": "InternalIP", "address": "10.9.8.7"}]);
    let status = Patch::Merge(json!({"status": {"addresses": addresses}}));
    nodes.patch_status("linux-1", &PatchParams::default(), &status).await.unwrap();
    assert_eq!(scene.condition("serving-win-1").await, approval("WMCOApprove"));
    scene.stop().await;
}

/// Nothing is denied before the DNS was asked for what the request holds.
#[tokio::test]
async fn a_public_address_and_ipv6_are_looked_up_before_anything_is_denied() {
    let scene = Scene::start(&hosts(&[(HOST, "WIN-1")])).await;
    network(&scene, "172.30.0.0/16");
    let (public, ipv6, name) = ("203.0.113.7", "2001:db8::7", "pub-1.cloud.example");
    let own = vec![HOST.parse().unwrap()];
    scene.dns.lock().unwrap().insert(name.to_owned(), own);
    let pointers = [public, ipv6].map(|address| (address.parse().unwrap(), format!("{name}.")));
    scene.reverse.lock().unwrap().extend(pointers);
    put(
        &scene.cluster,
        &json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": "win-1", "labels": {"kubernetes.io/os": "windows"}},
            "status": {"addresses": [
                {"type": "InternalIP", "address": HOST},
                {"type": "InternalIP", "address": ipv6},
                {"type": "ExternalIP", "address": public},
                {"type": "ExternalDNS", "address": name},
                {"type": "Hostname", "address": "win-1"},
            ]},
        }),
    );
    scene.approve(true).await;
    let mut asked = serving_of("win-1");
    asked.names.push(rcgen::SanType::DnsName(name.try_into().unwrap()));
    let addresses = [HOST, public, ipv6].map(|address| address.parse().unwrap());
    asked.names.extend(addresses.map(rcgen::SanType::IpAddress));
    scene.ask(&asked).await;
    assert_eq!(scene.condition("serving-win-1").await, approval("WMCOApprove"));
    scene.stop().await;
}

#[tokio::test]
async fn an_address_waits_for_the_service_network() {
    let scene = scene().await;
    network(&scene, "10.9.0.0/16");
    scene.node("win-1", "windows", HOST);
    scene.approve(false).await;
    let mut asked = serving_of("win-1");
    asked.names.push(rcgen::SanType::IpAddress(HOST.parse().unwrap()));
    scene.ask(&asked).await;
    scene.answered("kubelet-serving", "refuse", "belongs").await;
    network(&scene, "172.30.0.0/16");
    assert_eq!(scene.condition("serving-win-1").await, approval("WMCOApprove"));
    scene.stop().await;
}
