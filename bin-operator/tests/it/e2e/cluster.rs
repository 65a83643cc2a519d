//! The whole story in a cluster of plain Kubernetes.

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api as KubeApi;
use kube_testserver::TestServer;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use wmco_core::names::{self, objects};

use super::support::objects::Objects;
use super::support::story::{self, Findings, Story};
use super::support::{Api, HOST_PREFIX, MADE_LABEL, asked, fitness};

/// A cluster without anything of OpenShift, and its API as a kubeconfig file gives it.
pub(super) async fn plain() -> (TestServer, Api) {
    let cluster = TestServer::builder().taint_nodes().start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    cluster.write_kubeconfig(&path, "admin", &["system:masters"]).unwrap();
    let api = Api::connect(asked::kubeconfig(&[path]).unwrap()).await.unwrap();
    (cluster, api)
}

/// Lets the story happen with so many hosts.
pub(super) async fn run(api: &Api, hosts: u8) -> Findings {
    let story = Story { hosts, stop: CancellationToken::new() };
    story::run(api, None, &story, &|_| {}).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_join_are_upgraded_one_by_one_and_leave() {
    let (cluster, api) = plain().await;
    fitness::throw_away(&api).await.unwrap();
    let findings = run(&api, 3).await;
    assert!(findings.installed.contains(&"infrastructures.config.openshift.io".to_owned()));
    assert_eq!(findings.left_alone, Vec::<String>::new());
    assert_eq!(findings.most_disrupted, 1);

    let user =
        format!("system:serviceaccount:{}:{}", objects::DEFAULT_NAMESPACE, objects::OPERATOR);
    let requests = cluster.requests();
    let operators = || requests.iter().filter(|request| request.user == user);
    let approvals =
        operators().filter(|it| it.verb == "update" && it.resource.ends_with("/approval"));
    // A client and a serving certificate for each kubelet, and one for each daemon.
    assert!(approvals.count() >= 9, "the operator answered with its own account");
    let refused: Vec<_> = operators().filter(|request| request.code == 403).collect();
    assert!(refused.is_empty(), "{refused:#?}");

    // Nothing is left behind.
    assert_eq!(findings.not_removed, Vec::<String>::new());
    for (group, plural) in [
        ("apiextensions.k8s.io", "customresourcedefinitions"),
        ("certificates.k8s.io", "certificatesigningrequests"),
        ("", "nodes"),
    ] {
        assert_eq!(cluster.objects(group, plural, ""), Vec::new(), "{plural}");
    }
    for (group, plural) in [
        ("", "namespaces"),
        ("coordination.k8s.io", "leases"),
        ("rbac.authorization.k8s.io", "clusterroles"),
        ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ] {
        let ours = cluster.objects(group, plural, "").into_iter().filter(|object| {
            let name = object["metadata"]["name"].as_str().unwrap();
            let made = object["metadata"]["labels"][MADE_LABEL].is_string();
            made || name.starts_with(HOST_PREFIX) || name.contains("windows")
        });
        assert_eq!(ours.collect::<Vec<_>>(), Vec::new(), "{plural}");
    }
    // So that it can be used once more.
    fitness::throw_away(&api).await.unwrap();
    cluster.stop().await;
}

/// Its operator holds the Lease for long, and knows another key of a host with this address.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_run_left_is_in_nobodys_way() {
    let (cluster, api) = plain().await;
    let mut killed = Objects::new(&api.client);
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": objects::DEFAULT_NAMESPACE},
    });
    killed.make(&namespace).await.unwrap();
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": objects::LEADER_LEASE, "namespace": objects::DEFAULT_NAMESPACE},
        "spec": {"holderIdentity": "killed", "leaseDurationSeconds": 3600},
    });
    let keys = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": objects::HOST_KEYS_CONFIG_MAP, "namespace": objects::DEFAULT_NAMESPACE,
        },
        "data": {"192.0.2.1": "AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"},
    });
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "wmco-e2e-9", "labels": {names::OS_LABEL: names::OS_WINDOWS}},
    });
    for object in [lease, keys, node] {
        cluster.put(&object).unwrap();
    }
    fitness::throw_away(&api).await.unwrap();
    assert_eq!(run(&api, 1).await.not_removed, Vec::<String>::new());
    let leases: KubeApi<Lease> = KubeApi::all(api.client.clone());
    assert_eq!(leases.list(&kube::api::ListParams::default()).await.unwrap().items, Vec::new());
    cluster.stop().await;
}
