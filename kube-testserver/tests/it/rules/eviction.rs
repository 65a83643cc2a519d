//! Evictions: their preconditions and names.

use serde_json::{Value, json};

use super::Api;
use super::pods::{PODS, with_pod};

fn eviction(metadata: &Value, preconditions: &Value) -> Value {
    json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata,
        "deleteOptions": {"preconditions": preconditions}})
}

async fn version(api: &Api) -> Value {
    let (code, pod) = api.get(&format!("{PODS}/p")).await;
    assert_eq!(code, 200);
    pod["metadata"]["resourceVersion"].clone()
}

#[tokio::test]
async fn the_version_that_was_seen_may_be_evicted() {
    let api = with_pod(&json!({})).await;
    let uri = format!("{PODS}/p/eviction");
    let seen = version(&api).await;
    let stale = eviction(&json!({"name": "p"}), &json!({"resourceVersion": "1"}));
    assert_eq!(api.post(&uri, &stale).await.0, 409);
    assert_eq!(version(&api).await, seen, "a refused eviction leaves no trace");
    let exact = eviction(&json!({"name": "p"}), &json!({"resourceVersion": seen}));
    let (code, status) = api.post(&uri, &exact).await;
    assert_eq!(code, 201, "{status}");
}

#[tokio::test]
async fn an_eviction_names_the_namespace_of_the_path() {
    let api = with_pod(&json!({})).await;
    let elsewhere = eviction(&json!({"name": "p", "namespace": "kube-system"}), &json!({}));
    let (code, status) = api.post(&format!("{PODS}/p/eviction"), &elsewhere).await;
    assert_eq!((code, &status["reason"]), (400, &json!("BadRequest")));
    version(&api).await;
}

#[tokio::test]
async fn zero_is_a_limit_of_a_budget() {
    let api = Api::new().await;
    let uri = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let budget = |spec: Value| json!({"metadata": {"name": "b"}, "spec": spec});
    let (code, _) = api.post(uri, &budget(json!({"minAvailable": 0, "maxUnavailable": 1}))).await;
    assert_eq!(code, 422);
    let (code, _) = api.post(uri, &budget(json!({"minAvailable": "150%"}))).await;
    assert_eq!(code, 422);
    let (code, made) = api.post(uri, &budget(json!({"maxUnavailable": 0}))).await;
    assert_eq!((code, &made["spec"]["maxUnavailable"]), (201, &json!(0)));
}
