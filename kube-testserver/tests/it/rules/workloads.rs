//! Generations, status and immutable members of workloads.

use serde_json::{Value, json};

use super::Api;

const APPS: &str = "/apis/apps/v1/namespaces/default";

fn workload(more: &Value) -> Value {
    let mut spec = json!({"selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]}}});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"metadata": {"name": "w"}, "spec": spec})
}

#[tokio::test]
async fn annotations_of_a_deployment_count_in_its_generation() {
    let api = Api::new().await;
    api.post(&format!("{APPS}/deployments"), &workload(&json!({}))).await;
    let uri = format!("{APPS}/deployments/w");
    let (_, changed) = api.patch("merge", &uri, &json!({"metadata": {"labels": {"x": "y"}}})).await;
    assert_eq!(changed["metadata"]["generation"], 1);
    let patch = json!({"metadata": {"annotations": {"x": "y"}}});
    let (_, changed) = api.patch("merge", &uri, &patch).await;
    assert_eq!(changed["metadata"]["generation"], 2);
}

#[tokio::test]
async fn labels_of_an_endpoint_slice_count_in_its_generation() {
    let api = Api::new().await;
    let uri = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let slice = json!({"metadata": {"name": "s"}, "addressType": "IPv4", "endpoints": []});
    assert_eq!(api.post(uri, &slice).await.1["metadata"]["generation"], 1);
    let patch = json!({"metadata": {"labels": {"x": "y"}}});
    let (_, changed) = api.patch("merge", &format!("{uri}/s"), &patch).await;
    assert_eq!(changed["metadata"]["generation"], 2);
}

#[tokio::test]
async fn the_status_of_a_deployment_carries_no_labels() {
    let api = Api::new().await;
    api.post(&format!("{APPS}/deployments"), &workload(&json!({}))).await;
    let patch = json!({"metadata": {"labels": {"x": "y"}}, "status": {"replicas": 1}});
    let (code, changed) = api.patch("merge", &format!("{APPS}/deployments/w/status"), &patch).await;
    assert_eq!((code, &changed["status"]["replicas"]), (200, &json!(1)));
    assert_eq!(changed["metadata"].get("labels"), None);
}

#[tokio::test]
async fn a_stateful_set_keeps_the_name_of_its_service() {
    let api = Api::new().await;
    let set = workload(&json!({"serviceName": "s"}));
    assert_eq!(api.post(&format!("{APPS}/statefulsets"), &set).await.0, 201);
    let uri = format!("{APPS}/statefulsets/w");
    let (code, _) = api.patch("merge", &uri, &json!({"spec": {"replicas": 2}})).await;
    assert_eq!(code, 200);
    let (code, status) = api.patch("merge", &uri, &json!({"spec": {"serviceName": "t"}})).await;
    assert_eq!((code, &status["details"]["causes"][0]["field"]), (422, &json!("spec")));
}

#[tokio::test]
async fn zero_unavailable_is_no_default() {
    let api = Api::new().await;
    let rolling = json!({"maxUnavailable": 0, "maxSurge": 1});
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": rolling});
    let deployment = workload(&json!({"strategy": strategy}));
    let (code, made) = api.post(&format!("{APPS}/deployments"), &deployment).await;
    assert_eq!((code, &made["spec"]["strategy"]["rollingUpdate"]), (201, &rolling));
}
