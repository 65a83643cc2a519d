//! Patches that change what an object is, and apply of objects that are not there.

use serde_json::json;

use super::{Api, MAPS};

#[tokio::test]
async fn a_json_patch_replaces_a_missing_member_and_removes_none() {
    let api = Api::with_maps(1).await;
    let uri = format!("{MAPS}/m0");
    let patch = json!([{"op": "add", "path": "/data", "value": {}},
        {"op": "replace", "path": "/data/k", "value": "v"}]);
    let (code, map) = api.patch("json", &uri, &patch).await;
    assert_eq!((code, &map["data"]), (200, &json!({"k": "v"})));
    let (code, status) =
        api.patch("json", &uri, &json!([{"op": "remove", "path": "/data/none"}])).await;
    let message = "the server rejected our request due to an error in our request";
    assert_eq!((code, &status["message"]), (422, &json!(message)));
}

#[tokio::test]
async fn a_merge_patch_may_not_change_the_kind() {
    let api = Api::with_maps(1).await;
    for patch in [json!({"kind": "Secret"}), json!({"apiVersion": "apps/v1"})] {
        let (code, status) = api.patch("merge", &format!("{MAPS}/m0"), &patch).await;
        assert_eq!((code, &status["details"]["causes"][0]["field"]), (422, &json!("patch")));
    }
}

#[tokio::test]
async fn a_strategic_patch_ignores_the_type_it_states() {
    let api = Api::with_maps(1).await;
    let patch = json!({"kind": "Secret", "apiVersion": "x/v1", "data": {"k": "v"}});
    let (code, map) = api.patch("strategic-merge", &format!("{MAPS}/m0"), &patch).await;
    assert_eq!((code, &map["kind"], &map["data"]), (200, &json!("ConfigMap"), &json!({"k": "v"})));
}

#[tokio::test]
async fn a_strict_strategic_patch_is_quoted_as_go_prints_it() {
    let api = Api::with_maps(1).await;
    let patch = json!({"dta": {"b": "1", "a": ["x", "y"]}});
    let uri = format!("{MAPS}/m0?fieldValidation=Strict");
    let (code, status) = api.patch("strategic-merge", &uri, &patch).await;
    let message = " \"\" is invalid: patch: Invalid value: \"map[dta:map[a:[x y] b:1]]\": strict \
                   decoding error: unknown field \"dta\"";
    assert_eq!((code, &status["message"]), (422, &json!(message)));
}

#[tokio::test]
async fn a_custom_resource_keeps_its_kind() {
    let api = Api::with_definition("Cluster").await;
    let object = json!({"apiVersion": "example.test/v1", "kind": "A", "metadata": {"name": "a"}});
    api.post("/apis/example.test/v1/as", &object).await;
    let uri = "/apis/example.test/v1/as/a";
    let (code, status) = api.patch("merge", uri, &json!({"kind": "B"})).await;
    let message = "B.example.test \"a\" is invalid: kind: Invalid value: \"B\": must be A";
    assert_eq!((code, &status["message"]), (422, &json!(message)));
}

#[tokio::test]
async fn apply_of_an_absent_object_asks_for_its_uid_but_not_its_version() {
    let api = Api::new().await;
    let uri = format!("{MAPS}/a?fieldManager=me");
    let object = |meta| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta});
    let (code, status) = api.patch("apply", &uri, &object(json!({"name": "a", "uid": "u"}))).await;
    let message = "Operation cannot be fulfilled on configmaps \"a\": uid mismatch: the provided \
                   object specified uid u, and no existing object was found";
    assert_eq!((code, &status["message"]), (409, &json!(message)));
    let (code, status) = api.patch("apply", &uri, &object(json!({}))).await;
    let message =
        "the name of the object (a based on URL) was undeterminable: name must be provided";
    assert_eq!((code, &status["message"]), (400, &json!(message)));
    let versioned = object(json!({"name": "a", "resourceVersion": "5"}));
    assert_eq!(api.patch("apply", &uri, &versioned).await.0, 201);
    let (code, status) = api.patch("apply", &uri, &versioned).await;
    assert_eq!((code, &status["reason"]), (409, &json!("Conflict")));
}

#[tokio::test]
async fn apply_names_the_type_that_it_expects() {
    let api = Api::new().await;
    let uri = format!("{MAPS}/a?fieldManager=me");
    let typed = |version: &str, kind: &str| json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}});
    let (code, status) = api.patch("apply", &uri, &typed("apps/v1", "ConfigMap")).await;
    let message = "Incorrect version specified in apply patch. Specified patch version: apps/v1, \
                   expected: v1";
    assert_eq!((code, &status["message"]), (400, &json!(message)));
    let (code, status) = api.patch("apply", &uri, &typed("v1", "Frob")).await;
    let message = "failed to create typed patch object (/a; /v1, Kind=Frob): no corresponding type \
                   for /v1, Kind=Frob";
    assert_eq!((code, &status["message"]), (500, &json!(message)));
}

#[tokio::test]
async fn a_put_compares_the_uid_before_the_version() {
    let api = Api::with_maps(1).await;
    let object = json!({"metadata": {"name": "m0", "uid": "u", "resourceVersion": "1"}});
    let (code, status) = api.put(&format!("{MAPS}/m0"), &object).await;
    assert_eq!(code, 409);
    assert!(status["message"].as_str().unwrap().contains("UID in precondition: u"));
}
