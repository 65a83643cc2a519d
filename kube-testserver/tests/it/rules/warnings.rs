//! `Warning` headers.

use serde_json::{Value, json};

use super::{Api, MAPS};

#[track_caller]
fn warned(found: &[String], expected: &[&str]) {
    let expected: Vec<_> = expected.iter().map(|text| format!("299 - \"{text}\"")).collect();
    assert_eq!(found, expected);
}

async fn send(api: &Api, method: &str, uri: &str, body: &Value) -> (u16, Vec<String>) {
    let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let headers = ["application/json", media];
    let (code, _, warnings) = api.ask_with_warnings(method, uri, headers, body).await;
    (code, warnings)
}

#[tokio::test]
async fn headless_services_have_no_affinity() {
    let api = Api::new().await;
    let service = json!({"metadata": {"name": "s"}, "spec": {"clusterIP": "None",
        "sessionAffinity": "ClientIP", "externalName": "x", "ports": [{"port": 1}]}});
    let (_, warnings) = send(&api, "POST", "/api/v1/namespaces/default/services", &service).await;
    warned(
        &warnings,
        &[
            "spec.SessionAffinity is ignored for headless services",
            "spec.externalName is ignored when spec.type is not \"ExternalName\"",
        ],
    );
}

#[tokio::test]
async fn templates_are_warned_of_when_they_change() {
    let api = Api::new().await;
    let set = json!({"metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
            "nodeSelector": {"beta.kubernetes.io/os": "windows"},
            "containers": [{"name": "c", "image": "i",
                "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}],
                "ports": [{"containerPort": 1}, {"containerPort": 1}]}]}}}});
    let uri = "/apis/apps/v1/namespaces/default/daemonsets";
    let all = [
        "spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \
         \"kubernetes.io/os\" instead",
        "spec.template.spec.containers[0].env[1]: hides previous definition of \"A\", which may be \
         dropped when using apply",
        "spec.template.spec.containers[0].ports[1]: duplicate port definition with \
         spec.template.spec.containers[0].ports[0]",
    ];
    let (code, warnings) = send(&api, "POST", uri, &set).await;
    assert_eq!(code, 201);
    warned(&warnings, &all);
    let uri = format!("{uri}/d");
    let (_, warnings) =
        send(&api, "PATCH", &uri, &json!({"metadata": {"labels": {"x": "y"}}})).await;
    warned(&warnings, &[]);
    let (_, warnings) = send(&api, "PATCH", &uri, &json!({"spec": {"minReadySeconds": 1}})).await;
    warned(&warnings, &all);
}

#[tokio::test]
async fn owners_that_stand_twice_are_dropped() {
    let api = Api::new().await;
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"});
    let owners = json!({"metadata": {"name": "a", "ownerReferences": [owner, owner]}});
    let text = |when: &str| {
        format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner \
             references in 1.20+, and may reject such requests as early as 1.24; please fix your \
             requests; duplicate UID(s) observed: [u]"
        )
    };
    let headers = ["application/json", "application/json"];
    let uri = format!("{MAPS}?dryRun=All");
    let (_, map, warnings) = api.ask_with_warnings("POST", &uri, headers, &owners).await;
    warned(&warnings, &[&text("")]);
    assert_eq!(map["metadata"]["ownerReferences"], json!([owner]));
    api.post(MAPS, &json!({"metadata": {"name": "a"}})).await;
    let (_, warnings) = send(&api, "PATCH", &format!("{MAPS}/a?dryRun=All"), &owners).await;
    warned(&warnings, &[&text(" after mutating admission happens")]);
}

#[tokio::test]
async fn only_new_finalizers_of_custom_resources_are_warned_of() {
    let api = Api::with_definition("Cluster").await;
    let object = json!({"apiVersion": "example.test/v1", "kind": "A",
        "metadata": {"name": "a", "finalizers": ["x.test"]}});
    let text = |name: &str| {
        format!(
            "metadata.finalizers: \"{name}\": prefer a domain-qualified finalizer name including a \
             path (/) to avoid accidental conflicts with other finalizer writers"
        )
    };
    let (_, warnings) = send(&api, "POST", "/apis/example.test/v1/as", &object).await;
    warned(&warnings, &[&text("x.test")]);
    let patch = json!({"metadata": {"finalizers": ["x.test", "y.test"]}});
    let (_, warnings) = send(&api, "PATCH", "/apis/example.test/v1/as/a", &patch).await;
    warned(&warnings, &[&text("y.test")]);
}

#[tokio::test]
async fn a_write_that_fails_warns_of_its_fields_all_the_same() {
    let api = Api::with_maps(1).await;
    let map = json!({"metadata": {"name": "m0"}, "dta": {}});
    let (code, warnings) = send(&api, "POST", MAPS, &map).await;
    assert_eq!(code, 409);
    warned(&warnings, &["unknown field \"dta\""]);
}
