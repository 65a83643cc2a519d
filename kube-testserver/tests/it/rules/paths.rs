//! Paths of the wrong scope, and kinds that are left out.

use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use serde_json::json;

use super::Api;

/// The README's table says which these are.
#[tokio::test]
async fn kinds_that_are_left_out_are_501() {
    let api = Api::new().await;
    let readme = include_str!("../../../README.md");
    let (_, table) =
        readme.split_once("| Group | Versions | Resources |\n|---|---|---|\n").unwrap();
    let mut asked = 0;
    for row in table.lines().take_while(|line| line.starts_with('|')) {
        let cells: Vec<_> = row.trim_matches(['|', ' ']).split(" | ").collect();
        let [group, versions, plurals] = cells.try_into().unwrap();
        for (version, plural) in
            versions.split(", ").flat_map(|v| plurals.split(", ").map(move |plural| (v, plural)))
        {
            let prefix = if group == "core" { "/api".into() } else { format!("/apis/{group}") };
            for uri in [
                format!("{prefix}/{version}/{plural}"),
                format!("{prefix}/{version}/namespaces/default/{plural}/a"),
            ] {
                let (code, status) = api.get(&uri).await;
                assert_eq!((code, &status["reason"]), (501, &json!("NotImplemented")), "{uri}");
                asked += 1;
            }
        }
    }
    assert_eq!(asked, 2 * 35);
    assert_eq!(api.get("/apis/batch/v1/frobs").await.0, 404);
}

#[tokio::test]
async fn what_needs_a_kubelet_is_501() {
    let api = Api::new().await;
    for uri in [
        "/metrics",
        "/api/v1/namespaces/default/pods/p/log",
        "/api/v1/namespaces/default/pods/p/exec",
        "/api/v1/nodes/n/proxy",
        "/apis/apps/v1/namespaces/default/deployments/d/scale",
    ] {
        let (code, status) = api.get(uri).await;
        assert_eq!((code, &status["reason"]), (501, &json!("NotImplemented")), "{uri}");
    }
}

/// A client that asks for protobuf cannot read JSON.
#[tokio::test]
async fn the_openapi_document_has_the_form_that_is_asked_for() {
    let api = Api::new().await;
    let protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    for (accept, code, media) in [
        ("application/json", 200, "application/json"),
        ("*/*", 200, "application/json"),
        (protobuf, 200, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"),
        ("application/x", 406, "application/json"),
    ] {
        let request = Request::builder().uri("/openapi/v2").header("host", "localhost");
        let request = request.header("accept", accept).body(Full::new(Bytes::new())).unwrap();
        let answer = api.client.fetch(request).await;
        let found = answer.headers()["content-type"].to_str().unwrap();
        assert_eq!((answer.status().as_u16(), found), (code, media), "{accept}");
        let is_json = serde_json::from_slice::<serde_json::Value>(answer.body()).is_ok();
        assert_eq!(is_json, media == "application/json", "{accept}");
    }
}

#[tokio::test]
async fn a_custom_resource_is_unknown_in_the_other_scope() {
    let object = json!({"apiVersion": "example.test/v1", "kind": "A", "metadata": {"name": "a"}});
    let api = Api::with_definition("Cluster").await;
    let inside = "/apis/example.test/v1/namespaces/default/as";
    // The answer is the text of an unknown page and no Status.
    assert_eq!(api.post(inside, &object).await, (404, json!(null)));
    assert_eq!(api.get(inside).await, (404, json!(null)));
    let api = Api::with_definition("Namespaced").await;
    assert_eq!(api.post("/apis/example.test/v1/as", &object).await, (404, json!(null)));
    assert_eq!(api.get("/apis/example.test/v1/as/a").await, (404, json!(null)));
    assert_eq!(api.get("/apis/example.test/v1/as").await.0, 200);
}

#[tokio::test]
async fn a_collection_of_custom_resources_has_no_name_to_write() {
    let api = Api::with_definition("Cluster").await;
    let (code, status) = api.put("/apis/example.test/v1/as", &json!({})).await;
    assert_eq!((code, &status["message"]), (400, &json!("name must be provided")));
}
