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

/// A container with these ports.
fn with_ports(ports: &Value) -> Value {
    deployment(&json!([{"name": "c", "image": "i", "ports": ports}]))
}

fn ports(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]["containers"][0]["ports"]
}

#[tokio::test]
async fn managers_share_an_item_whose_key_has_a_default() {
    let api = Api::new().await;
    apply(&api, DEPLOYMENT, &with_ports(&json!([{"containerPort": 80}]))).await;
    let uri = format!("{DEPLOYMENT}?fieldManager=other");
    let port = json!([{"containerPort": 80, "protocol": "TCP"}]);
    for same in [json!([{"containerPort": 80}]), port.clone()] {
        let (code, shared) = api.patch("apply", &uri, &with_ports(&same)).await;
        assert_eq!((code, ports(&shared)), (200, &port), "{shared}");
    }
}

#[tokio::test]
async fn an_item_whose_key_has_a_default_goes_with_its_manager() {
    let api = Api::new().await;
    let two = json!([{"containerPort": 80}, {"containerPort": 81}]);
    apply(&api, DEPLOYMENT, &with_ports(&two)).await;
    let one = apply(&api, DEPLOYMENT, &with_ports(&json!([{"containerPort": 80}]))).await;
    assert_eq!(ports(&one), &json!([{"containerPort": 80, "protocol": "TCP"}]));
    let udp = json!([{"containerPort": 80, "protocol": "UDP"}]);
    let other = apply(&api, DEPLOYMENT, &with_ports(&udp)).await;
    assert_eq!(ports(&other), &udp);
}

/// What `helm upgrade` sends: all objects again, one of them with another value.
#[tokio::test]
async fn a_release_is_upgraded() {
    let api = Api::new().await;
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {"selector": {"a": "b"}, "ports": [{"name": "http", "port": 80}]}});
    let mut workload = with_ports(&json!([{"containerPort": 80}]));
    for replicas in [1, 2] {
        workload["spec"]["replicas"] = replicas.into();
        let service = apply(&api, SERVICE, &service).await;
        let expected = json!([{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 80}]);
        assert_eq!(service["spec"]["ports"], expected);
        let workload = apply(&api, DEPLOYMENT, &workload).await;
        assert_eq!(workload["spec"]["replicas"], replicas);
        assert_eq!(ports(&workload), &json!([{"containerPort": 80, "protocol": "TCP"}]));
    }
}

#[tokio::test]
async fn a_key_of_a_custom_resource_has_the_default_of_its_schema() {
    let rule = json!({"type": "object", "required": ["port"], "properties": {
        "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"},
        "note": {"type": "string"}}});
    let rules = json!({"type": "array", "items": rule, "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["port", "protocol"]});
    let api = Api::with_schema(
        "Cluster",
        &json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"rules": rules}}}}),
    )
    .await;
    let object = json!({"apiVersion": "example.test/v1", "kind": "A", "metadata": {"name": "a"},
        "spec": {"rules": [{"port": 80, "note": "x"}]}});
    for _ in 0..2 {
        let applied = apply(&api, "/apis/example.test/v1/as/a", &object).await;
        let expected = json!([{"note": "x", "port": 80, "protocol": "TCP"}]);
        assert_eq!(applied["spec"]["rules"], expected);
    }
}
