//! Clusters that somebody may need.

use kube::config::Kubeconfig;
use serde_json::{Value, json};
use wmco_core::names::{self, objects};

use super::cluster::plain;
use super::support::asked::ANY_CLUSTER;
use super::support::objects::Objects;
use super::support::{Api, fitness};

/// A cluster with `object` is refused, and the reason is this.
async fn refused(definitions: &[Value], object: &Value, reason: &str) {
    let (cluster, api) = plain().await;
    fitness::throw_away(&api).await.expect("without it, it is fit");
    for object in definitions.iter().chain([object]) {
        cluster.put(object).unwrap();
    }
    let refusal = fitness::throw_away(&api).await.unwrap_err().to_string();
    assert!(refusal.contains(reason) && refusal.contains(ANY_CLUSTER), "{refusal}");
    assert!(refusal.starts_with(&cluster.url()), "{refusal}");
    cluster.stop().await;
}

#[tokio::test]
async fn a_cluster_with_a_windows_node_is_refused() {
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "w1", "labels": {names::OS_LABEL: names::OS_WINDOWS}},
    });
    refused(&[], &node, "Windows node w1").await;
}

#[tokio::test]
async fn a_cluster_with_an_operator_is_refused_wherever_it_is() {
    let labels = json!({"app": "wmco"});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": objects::OPERATOR, "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "manager", "image": "wmco:1"}]},
        }},
    });
    let reason = "deployment default/windows-machine-config-operator";
    refused(&[], &deployment, reason).await;
}

#[tokio::test]
async fn an_openshift_is_refused() {
    let kinds = bin_operator::demo::kinds::all().into_iter();
    let kind = kinds
        .map(|kind| kind.definition())
        .filter(|definition| definition["spec"]["names"]["kind"] == "ClusterVersion");
    let version = json!({
        "apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion",
        "metadata": {"name": objects::CLUSTER_VERSION},
        "spec": {"clusterID": "c0ffee00-0000-4000-8000-000000000000"},
    });
    refused(&kind.collect::<Vec<_>>(), &version, "it is an OpenShift").await;
}

#[tokio::test]
async fn a_namespace_of_the_operator_is_refused_unless_an_earlier_run_left_it() {
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": objects::DEFAULT_NAMESPACE},
    });
    refused(&[], &namespace, "namespace openshift-windows-machine-config-operator").await;

    let (cluster, api) = plain().await;
    assert!(Objects::new(&api.client).make(&namespace).await.unwrap());
    fitness::throw_away(&api).await.unwrap();
    cluster.stop().await;
}

#[tokio::test]
async fn a_version_that_the_operator_does_not_work_with_is_refused() {
    let (cluster, mut api) = plain().await;
    fitness::supported(&api).unwrap();
    for other in ["v1.20.2", "v0.0.0-master+0a1b2c3", ""] {
        api.version = other.to_owned();
        let refusal = fitness::supported(&api).unwrap_err().to_string();
        assert!(refusal.starts_with(&format!("Kubernetes {other} is none")), "{refusal}");
    }
    cluster.stop().await;
}

#[tokio::test]
async fn credentials_in_a_url_are_shown_to_nobody() {
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {
            "server": "https://someone:s3cret@127.0.0.1:1/path", "certificate-authority-data": "",
        }}],
        "users": [{"name": "u", "user": {"token": "t0ken"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    });
    let kubeconfig = Kubeconfig::from_yaml(&kubeconfig.to_string()).unwrap();
    let Err(error) = Api::connect(kubeconfig).await else { panic!("nobody listens there") };
    let text = bin_operator::chain(error.as_ref());
    assert!(text.contains("https://127.0.0.1:1/path"), "{text}");
    assert!(!text.contains("s3cret") && !text.contains("t0ken"), "{text}");
}
