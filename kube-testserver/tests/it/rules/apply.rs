//! Apply of objects whose lists and structs have several managers or defaults.

use serde_json::{Value, json};

use super::Api;

const SERVICE: &str = "/api/v1/namespaces/default/services/s";
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/default/deployments/d";

fn deployment(containers: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers}}}})
}

async fn apply(api: &Api, uri: &str, body: &Value) -> Value {
    let (code, object) = api.patch("apply", &format!("{uri}?fieldManager=m"), body).await;
    assert!([200, 201].contains(&code), "{object}");
    object
}

#[tokio::test]
async fn a_key_left_to_its_default_names_the_same_item_again() {
    let api = Api::new().await;
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}});
    let first = apply(&api, SERVICE, &service).await;
    let second = apply(&api, SERVICE, &service).await;
    assert_eq!(first["metadata"]["resourceVersion"], second["metadata"]["resourceVersion"]);
    assert_eq!(second["spec"]["ports"].as_array().unwrap().len(), 1);
    let owned = &second["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:ports"];
    assert!(owned.get("k:{\"port\":80,\"protocol\":\"TCP\"}").is_some(), "{owned}");
}

#[tokio::test]
async fn an_item_goes_with_the_manager_that_applied_it() {
    let api = Api::new().await;
    let both = json!([{"name": "c", "image": "i"}, {"name": "sidecar", "image": "i"}]);
    apply(&api, DEPLOYMENT, &deployment(&both)).await;
    let variables = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "sidecar", "env": [{"name": "A", "value": "1"}]}]}}}});
    let uri = format!("{DEPLOYMENT}?fieldManager=other");
    assert_eq!(api.patch("strategic-merge", &uri, &variables).await.0, 200);
    let left = apply(&api, DEPLOYMENT, &deployment(&json!([{"name": "c", "image": "i"}]))).await;
    let containers = left["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    assert_eq!(containers.len(), 1, "{containers:?}");
}

#[tokio::test]
async fn a_struct_goes_with_its_defaults() {
    let api = Api::new().await;
    let limited = json!([{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}}]);
    apply(&api, DEPLOYMENT, &deployment(&limited)).await;
    let free = apply(&api, DEPLOYMENT, &deployment(&json!([{"name": "c", "image": "i"}]))).await;
    let resources = &free["spec"]["template"]["spec"]["containers"][0]["resources"];
    assert_eq!(resources, &json!({}));
}
