//! Defaults of Pods, and what admission adds to them.

use serde_json::{Value, json};

use super::Api;

pub(super) const PODS: &str = "/api/v1/namespaces/default/pods";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

fn pod(name: &str, more: &Value) -> Value {
    let mut spec = json!({"containers": [{"name": "c", "image": "i"}]});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"metadata": {"name": name}, "spec": spec})
}

/// A server with the Pod `p`, whose spec has `more` members.
pub(super) async fn with_pod(more: &Value) -> Api {
    let api = Api::new().await;
    let (code, made) = api.post(PODS, &pod("p", more)).await;
    assert_eq!(code, 201, "{made}");
    api
}

async fn spec(api: &Api) -> Value {
    api.get(&format!("{PODS}/p")).await.1["spec"].clone()
}

#[tokio::test]
async fn ports_of_a_pod_on_the_network_of_its_node_are_those_of_the_node() {
    let containers = json!([{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]);
    let on_node = json!({"hostNetwork": true, "containers": containers});
    let api = with_pod(&on_node).await;
    assert_eq!(spec(&api).await["containers"][0]["ports"][0]["hostPort"], 80);
    let set = json!({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": on_node}}});
    let (code, set) = api.post("/apis/apps/v1/namespaces/default/daemonsets", &set).await;
    let port = &set["spec"]["template"]["spec"]["containers"][0]["ports"][0];
    assert_eq!((code, port), (201, &json!({"containerPort": 80, "protocol": "TCP"})));
}

#[tokio::test]
async fn the_tolerations_of_every_pod_come_back() {
    let api = with_pod(&json!({})).await;
    assert_eq!(spec(&api).await["tolerations"].as_array().unwrap().len(), 2);
    let only = json!({"spec": {"tolerations": [{"key": "y", "operator": "Exists"}]}});
    let (code, changed) = api.patch("merge", &format!("{PODS}/p"), &only).await;
    assert_eq!(code, 200, "{changed}");
    let tolerations = changed["spec"]["tolerations"].as_array().unwrap();
    let keys: Vec<_> = tolerations.iter().map(|own| own["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["y", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]);
}

#[tokio::test]
async fn pull_secrets_of_the_account_are_those_of_its_pods() {
    let api = with_pod(&json!({})).await;
    let secrets = json!([{"name": "pull"}]);
    let patch = json!({"imagePullSecrets": secrets});
    assert_eq!(api.patch("merge", &format!("{ACCOUNTS}/default"), &patch).await.0, 200);
    let (_, made) = api.post(PODS, &pod("q", &json!({}))).await;
    assert_eq!(made["spec"]["imagePullSecrets"], secrets);
    let own = json!([{"name": "own"}]);
    let (_, made) = api.post(PODS, &pod("r", &json!({"imagePullSecrets": own}))).await;
    assert_eq!(made["spec"]["imagePullSecrets"], own);
}

#[tokio::test]
async fn one_address_of_a_pod_is_a_list_of_addresses() {
    let api = with_pod(&json!({})).await;
    let uri = format!("{PODS}/p/status");
    let (code, changed) = api.patch("merge", &uri, &json!({"status": {"podIP": "10.0.0.1"}})).await;
    assert_eq!((code, &changed["status"]["podIPs"]), (200, &json!([{"ip": "10.0.0.1"}])));
}
