//! Pods are bound to Nodes.

use serde_json::{Value, json};

use super::pods::{PODS, with_pod};

fn binding(pod: &str, target: &Value) -> Value {
    json!({"metadata": {"name": pod, "annotations": {"a": "b"}}, "target": target})
}

#[tokio::test]
async fn a_pod_is_bound_once() {
    let api = with_pod(&json!({})).await;
    let uri = format!("{PODS}/p/binding");
    let body = binding("p", &json!({"kind": "Node", "name": "n"}));
    let (code, status) = api.post(&uri, &body).await;
    assert_eq!((code, &status["status"]), (201, &json!("Success")));
    let (_, pod) = api.get(&format!("{PODS}/p")).await;
    assert_eq!(pod["spec"]["nodeName"], "n");
    assert_eq!(pod["metadata"]["annotations"], json!({"a": "b"}));
    assert_eq!(pod["status"]["conditions"][0]["type"], "PodScheduled");
    let (code, status) = api.post(&uri, &body).await;
    let message = "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to \
                   node \"n\"";
    assert_eq!((code, &status["message"]), (409, &json!(message)));
}

#[tokio::test]
async fn bindings_name_the_pod_in_the_body() {
    let api = with_pod(&json!({})).await;
    let uri = "/api/v1/namespaces/default/bindings";
    let target = json!({"name": "n"});
    assert_eq!(api.post(&format!("{uri}?dryRun=All"), &binding("p", &target)).await.0, 201);
    assert_eq!(api.post(uri, &binding("p", &target)).await.0, 201);
    let (code, status) = api.post(uri, &binding("none", &target)).await;
    assert_eq!((code, &status["message"]), (404, &json!("pods \"none\" not found")));
    assert_eq!(api.get(uri).await.0, 405);
}

#[tokio::test]
async fn a_binding_needs_a_node_and_the_name_of_the_path() {
    let api = with_pod(&json!({})).await;
    let uri = format!("{PODS}/p/binding");
    let (code, status) = api.post(&uri, &binding("p", &json!({}))).await;
    assert_eq!((code, &status["message"]), (500, &json!("target.name: Required value")));
    let (code, status) = api.post(&uri, &binding("q", &json!({"name": "n"}))).await;
    let message = "name in URL does not match name in Binding object";
    assert_eq!((code, &status["message"]), (400, &json!(message)));
    let mut other = binding("p", &json!({"name": "n"}));
    other["metadata"]["uid"] = "u".into();
    let (code, status) = api.post(&uri, &other).await;
    assert_eq!((code, &status["reason"]), (409, &json!("Conflict")));
}
