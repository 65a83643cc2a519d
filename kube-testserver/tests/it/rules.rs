//! Answers that no transcript at hand shows, one rule per test. Each is from the sources of
//! `k8s.io/apiserver`.

use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use kube_testserver::TestServer;
use serde_json::{Value, json};

use crate::client::Client;

mod apply;
mod binding;
mod csr;
mod events;
mod eviction;
mod patch;
mod paths;
mod pods;
mod warnings;
mod workloads;
mod writes;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

struct Api {
    cluster: TestServer,
    client: Client,
}

impl Api {
    async fn new() -> Self {
        let cluster = TestServer::start().await.unwrap();
        let client = Client::of(&cluster, "admin", &["system:masters"]);
        Self { cluster, client }
    }

    async fn ask(&self, method: &str, uri: &str, headers: [&str; 2], body: &Value) -> (u16, Value) {
        let (code, body, _) = self.ask_with_warnings(method, uri, headers, body).await;
        (code, body)
    }

    async fn ask_with_warnings(
        &self,
        method: &str,
        uri: &str,
        headers: [&str; 2],
        body: &Value,
    ) -> (u16, Value, Vec<String>) {
        let [accept, content_type] = headers;
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header("host", "localhost")
            .header("accept", accept)
            .header("content-type", content_type)
            .body(Full::new(body))
            .unwrap();
        let answer = self.client.fetch(request).await;
        let body = serde_json::from_slice(answer.body()).unwrap_or_default();
        let warnings = answer.headers().get_all("warning").iter();
        let warnings = warnings.map(|text| text.to_str().unwrap().replace("\\\"", "\""));
        (answer.status().as_u16(), body, warnings.collect())
    }

    async fn get(&self, uri: &str) -> (u16, Value) {
        self.ask("GET", uri, ["application/json", ""], &Value::Null).await
    }

    async fn post(&self, uri: &str, body: &Value) -> (u16, Value) {
        self.ask("POST", uri, ["application/json", "application/json"], body).await
    }

    async fn put(&self, uri: &str, body: &Value) -> (u16, Value) {
        self.ask("PUT", uri, ["application/json", "application/json"], body).await
    }

    /// A patch of the form `merge`, `json`, `strategic-merge` or `apply`.
    async fn patch(&self, form: &str, uri: &str, body: &Value) -> (u16, Value) {
        let suffix = if form == "apply" { "yaml" } else { "json" };
        let content_type = format!("application/{form}-patch+{suffix}");
        self.ask("PATCH", uri, ["application/json", &content_type], body).await
    }

    async fn delete(&self, uri: &str) -> (u16, Value) {
        self.ask("DELETE", uri, ["application/json", ""], &Value::Null).await
    }

    /// Defines the kind `A` of `as.example.test`.
    async fn with_definition(scope: &str) -> Self {
        Self::with_schema(scope, &json!({"type": "object"})).await
    }

    /// The same with a schema.
    async fn with_schema(scope: &str, schema: &Value) -> Self {
        let api = Self::new().await;
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "as.example.test"},
            "spec": {
                "group": "example.test", "scope": scope, "names": {"plural": "as", "kind": "A"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": schema}}],
            },
        });
        let uri = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        assert_eq!(api.post(uri, &crd).await.0, 201);
        api
    }

    async fn with_maps(count: usize) -> Self {
        let api = Self::new().await;
        for index in 0..count {
            let (code, _) =
                api.post(MAPS, &json!({"metadata": {"name": format!("m{index}")}})).await;
            assert_eq!(code, 201);
        }
        api
    }
}

#[tokio::test]
async fn a_page_that_expired_says_where_to_go_on() {
    let api = Api::with_maps(3).await;
    let (_, first) = api.get(&format!("{MAPS}?limit=1")).await;
    let token = first["metadata"]["continue"].as_str().unwrap();
    api.cluster.expire_history();
    api.post(MAPS, &json!({"metadata": {"name": "new"}})).await;
    api.cluster.expire_history();
    let (code, expired) = api.get(&format!("{MAPS}?limit=1&continue={token}")).await;
    assert_eq!((code, &expired["reason"]), (410, &json!("Expired")));
    let token = expired["metadata"]["continue"].as_str().unwrap();
    let (_, rest) = api.get(&format!("{MAPS}?continue={token}")).await;
    let names = rest["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["m1", "m2", "new"]);
}

#[tokio::test]
async fn pages_show_the_state_of_the_first_one() {
    let api = Api::with_maps(3).await;
    let (_, first) = api.get(&format!("{MAPS}?limit=1")).await;
    let token = first["metadata"]["continue"].as_str().unwrap();
    api.delete(&format!("{MAPS}/m2")).await;
    api.post(MAPS, &json!({"metadata": {"name": "m9"}})).await;
    let (_, rest) = api.get(&format!("{MAPS}?continue={token}")).await;
    let names = rest["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["m1", "m2"]);
    assert_eq!(rest["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn an_exact_list_of_expired_history_is_gone() {
    let api = Api::with_maps(2).await;
    api.cluster.expire_history();
    let uri = format!("{MAPS}?resourceVersion=1&resourceVersionMatch=Exact");
    let (code, status) = api.get(&uri).await;
    assert_eq!((code, &status["reason"]), (410, &json!("Expired")));
}

#[tokio::test]
async fn rows_of_a_table_carry_what_is_asked_for() {
    let api = Api::with_maps(1).await;
    for (include, expected) in [
        ("None", json!(null)),
        ("Object", json!("ConfigMap")),
        ("Metadata", json!("PartialObjectMetadata")),
    ] {
        let uri = format!("{MAPS}?includeObject={include}");
        let (_, table) = api.ask("GET", &uri, [TABLE, ""], &Value::Null).await;
        let object = &table["rows"][0]["object"];
        assert_eq!(object.get("kind").unwrap_or(&Value::Null), &expected, "{include}");
    }
}

#[tokio::test]
async fn what_is_left_out_is_501() {
    let api = Api::new().await;
    let (code, status) = api.get("/api/v1/namespaces/default/pods/p/log").await;
    assert_eq!((code, &status["reason"]), (501, &json!("NotImplemented")));
    let rule = json!([{"rule": "self == self"}]);
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "as.example.test"},
        "spec": {
            "group": "example.test", "scope": "Cluster", "names": {"plural": "as", "kind": "A"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema":
                {"openAPIV3Schema": {"type": "object", "x-kubernetes-validations": rule}}}],
        },
    });
    let (code, _) = api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd).await;
    assert_eq!(code, 501);
    let aggregated = json!({"metadata": {"name": "all"}, "rules": [],
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}});
    let (code, _) = api.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", &aggregated).await;
    assert_eq!(code, 501);
}

#[tokio::test]
async fn strict_validation_names_unknown_and_repeated_fields() {
    let api = Api::new().await;
    let uri = format!("{MAPS}?fieldValidation=Strict");
    let (code, status) = api.post(&uri, &json!({"metadata": {"name": "a"}, "dta": {}})).await;
    let message = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding \
                   error: unknown field \"dta\"";
    assert_eq!((code, &status["message"]), (400, &json!(message)));
}

#[tokio::test]
async fn a_patch_that_breaks_the_type_is_invalid() {
    let api = Api::with_maps(1).await;
    let headers = ["application/json", "application/merge-patch+json"];
    let patch = json!({"data": {"k": 1}});
    let (code, status) = api.ask("PATCH", &format!("{MAPS}/m0"), headers, &patch).await;
    assert_eq!((code, &status["details"]["causes"][0]["field"]), (422, &json!("patch")));
}

#[tokio::test]
async fn finalizers_of_built_in_kinds_need_a_domain() {
    let api = Api::new().await;
    let object = json!({"metadata": {"name": "a", "finalizers": ["mine"]}});
    let (code, status) = api.post(MAPS, &object).await;
    let field = &status["details"]["causes"][0]["field"];
    assert_eq!((code, field), (422, &json!("metadata.finalizers[0]")));
}

#[tokio::test]
async fn bad_selectors_are_explained() {
    let api = Api::new().await;
    let (code, status) = api.get(&format!("{MAPS}?labelSelector=a%20b")).await;
    let message = "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt";
    assert_eq!((code, &status["message"]), (400, &json!(message)));
}

#[tokio::test]
async fn a_body_beyond_three_megabytes_is_refused() {
    let api = Api::new().await;
    let data = "x".repeat(3 * 1024 * 1024);
    let object = json!({"metadata": {"name": "a"}, "data": {"k": data}});
    let (code, status) = api.post(MAPS, &object).await;
    assert_eq!((code, &status["reason"]), (413, &json!("RequestEntityTooLarge")));
}

#[tokio::test]
async fn custom_resources_know_no_strategic_merge() {
    let api = Api::new().await;
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "as.example.test"},
        "spec": {
            "group": "example.test", "scope": "Cluster", "names": {"plural": "as", "kind": "A"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd).await;
    let object = json!({"apiVersion": "example.test/v1", "kind": "A", "metadata": {"name": "a"}});
    let (code, _) = api.post("/apis/example.test/v1/as", &object).await;
    assert_eq!(code, 201);
    let headers = ["application/json", "application/strategic-merge-patch+json"];
    let (code, _) = api.ask("PATCH", "/apis/example.test/v1/as/a", headers, &json!({})).await;
    assert_eq!(code, 415);
}
