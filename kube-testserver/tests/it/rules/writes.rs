//! Metadata of writes: versions, uids, generated names, finalizers and owners.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Api, MAPS};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

#[tokio::test]
async fn a_new_object_may_state_version_zero() {
    let api = Api::new().await;
    let map = json!({"metadata": {"name": "a", "resourceVersion": "0"}});
    assert_eq!(api.post(MAPS, &map).await.0, 201);
    let map = json!({"metadata": {"name": "b", "resourceVersion": "1"}});
    assert_eq!(api.post(MAPS, &map).await.0, 500);
}

#[tokio::test]
async fn a_write_that_names_a_uid_creates_nothing() {
    let api = Api::new().await;
    let lease = json!({"metadata": {"name": "l", "uid": "00000000-0000-0000-0000-000000000001"}});
    let (code, _) = api.put(&format!("{LEASES}/l"), &lease).await;
    assert_eq!(code, 409);
    assert_eq!(api.get(&format!("{LEASES}/l")).await.0, 404);
    let (code, _) = api.put(&format!("{LEASES}/l"), &json!({"metadata": {"name": "l"}})).await;
    assert_eq!(code, 201);
}

#[tokio::test]
async fn the_label_of_a_namespace_is_its_name() {
    let api = Api::new().await;
    let label = "kubernetes.io/metadata.name";
    let wrong = json!({"metadata": {"name": "a", "labels": {label: "wrong"}}});
    let (_, made) = api.post("/api/v1/namespaces", &wrong).await;
    assert_eq!(made["metadata"]["labels"][label], "a");
    let patch = json!({"metadata": {"labels": {label: "wrong"}}});
    let (_, changed) = api.patch("merge", "/api/v1/namespaces/a", &patch).await;
    assert_eq!(changed["metadata"]["labels"][label], "a");
    let (_, made) =
        api.post("/api/v1/namespaces", &json!({"metadata": {"generateName": "g-"}})).await;
    assert_eq!(made["metadata"]["labels"][label], made["metadata"]["name"]);
}

#[tokio::test]
async fn a_generated_name_is_validated_before_it_is_generated() {
    let api = Api::new().await;
    let (code, status) = api.post(MAPS, &json!({"metadata": {"generateName": "Bad_"}})).await;
    let fields = status["details"]["causes"].as_array().unwrap();
    let fields: Vec<_> = fields.iter().map(|cause| cause["field"].as_str().unwrap()).collect();
    assert!(code == 422 && fields.contains(&"metadata.generateName"), "{fields:?}");
}

#[tokio::test]
async fn dependents_are_orphaned_or_deleted_first_but_not_both() {
    let api = Api::new().await;
    let both = json!({"metadata": {"name": "a", "finalizers": ["orphan", "foregroundDeletion"]}});
    let (code, status) = api.post(MAPS, &both).await;
    let field = &status["details"]["causes"][0]["field"];
    assert_eq!((code, field), (422, &json!("metadata.finalizers")));
}

#[tokio::test]
async fn an_ssh_key_is_not_empty() {
    let api = Api::new().await;
    let uri = "/api/v1/namespaces/default/secrets";
    let secret = |key: &str| {
        json!({"metadata": {"name": "s"}, "type": "kubernetes.io/ssh-auth",
            "stringData": {"ssh-privatekey": key}})
    };
    assert_eq!(api.post(uri, &secret("")).await.0, 422);
    assert_eq!(api.post(uri, &secret("k")).await.0, 201);
}

#[tokio::test]
async fn allocatable_resources_follow_the_capacity_of_a_node() {
    let api = Api::new().await;
    let node = json!({"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}}});
    let (code, made) = api.post("/api/v1/nodes", &node).await;
    assert_eq!((code, &made["status"]["allocatable"]), (201, &json!({"cpu": "4"})));
}

fn owned(name: &str, kind: &str, uid: &Value) -> Value {
    let [version, kind] = kind.split(' ').collect::<Vec<_>>()[..] else { unreachable!() };
    let owner = json!({"apiVersion": version, "kind": kind, "name": "owner", "uid": uid});
    json!({"metadata": {"name": name, "ownerReferences": [owner]}})
}

#[tokio::test]
async fn owners_of_kinds_that_nobody_knows_keep_their_dependents() {
    let api = Api::new().await;
    let (_, owner) = api.post(MAPS, &json!({"metadata": {"name": "owner"}})).await;
    api.delete(&format!("{MAPS}/owner")).await;
    let gone = &owner["metadata"]["uid"];
    api.post(MAPS, &owned("known", "v1 ConfigMap", gone)).await;
    api.post(MAPS, &owned("unknown", "example.test/v1 Thing", gone)).await;
    let collected = async {
        while api.get(&format!("{MAPS}/known")).await.0 == 200 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), collected).await.expect("the owner is gone");
    assert_eq!(api.get(&format!("{MAPS}/unknown")).await.0, 200);
}
