//! What the server answers with and without each of its features: these tests hold in every build.

#![allow(clippy::unwrap_used, reason = "tests")]

use axum::http::Request;
use k8s_openapi::api::admissionregistration::v1::{
    MatchResources, NamedRuleWithOperations, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicySpec, Validation,
};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{Api, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube_testserver::TestServer;

/// Code of the answer.
fn code<K>(answer: &kube::Result<K>) -> u16 {
    if let Err(kube::Error::Api(status)) = answer {
        return status.code;
    }
    answer.as_ref().unwrap();
    200
}

fn config_map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some([("a".to_owned(), "1".to_owned())].into()),
        ..ConfigMap::default()
    }
}

#[tokio::test]
async fn clients_speak_https_with_tls_alone() {
    let server = TestServer::start().await.unwrap();
    assert_eq!(server.url().starts_with("https://"), cfg!(feature = "tls"));
    let nodes: Api<Node> = Api::all(server.client().unwrap());
    assert_eq!(nodes.list(&ListParams::default()).await.unwrap().items.len(), 0);
}

#[tokio::test]
async fn fields_have_managers_with_server_side_apply_alone() {
    let server = TestServer::start().await.unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client().unwrap());
    let made = maps.create(&PostParams::default(), &config_map("made")).await.unwrap();
    let has_apply = cfg!(feature = "server-side-apply");
    assert_eq!(made.metadata.managed_fields.is_some(), has_apply);

    let applied = serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"a": "1"}
    });
    let answer = maps.patch("applied", &PatchParams::apply("me"), &Patch::Apply(applied)).await;
    assert_eq!(code(&answer), if has_apply { 200 } else { 501 });
    assert_eq!(maps.get_opt("applied").await.unwrap().is_some(), has_apply);
}

#[tokio::test]
async fn policies_are_known_with_admission_policy_alone() {
    let server = TestServer::start().await.unwrap();
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(server.client().unwrap());
    let rule = NamedRuleWithOperations {
        api_groups: Some(vec![String::new()]),
        api_versions: Some(vec!["v1".to_owned()]),
        operations: Some(vec!["CREATE".to_owned()]),
        resources: Some(vec!["configmaps".to_owned()]),
        ..NamedRuleWithOperations::default()
    };
    let policy = ValidatingAdmissionPolicy {
        metadata: ObjectMeta { name: Some("never".to_owned()), ..ObjectMeta::default() },
        spec: Some(ValidatingAdmissionPolicySpec {
            match_constraints: Some(MatchResources {
                resource_rules: Some(vec![rule]),
                ..MatchResources::default()
            }),
            validations: Some(vec![Validation {
                expression: "false".to_owned(),
                ..Validation::default()
            }]),
            ..ValidatingAdmissionPolicySpec::default()
        }),
        ..ValidatingAdmissionPolicy::default()
    };
    let has_policies = cfg!(feature = "admission-policy");
    let answer = policies.create(&PostParams::default(), &policy).await;
    assert_eq!(code(&answer), if has_policies { 200 } else { 501 });
    assert_eq!(code(&policies.list(&ListParams::default()).await), code(&answer));
}

#[tokio::test]
async fn protobuf_is_spoken_with_its_feature_alone() {
    const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
    let server = TestServer::start().await.unwrap();
    let client = server.client().unwrap();
    let ask = |accept: &str| {
        let request = Request::get("/api/v1/nodes").header("accept", accept);
        client.send(request.body(kube::client::Body::empty()).unwrap())
    };
    let has_protobuf = cfg!(feature = "protobuf");
    let only = ask(MEDIA_TYPE).await.unwrap();
    assert_eq!(only.status().as_u16(), if has_protobuf { 200 } else { 406 });
    let either = ask(&format!("{MEDIA_TYPE}, application/json")).await.unwrap();
    let spoken = if has_protobuf { MEDIA_TYPE } else { "application/json" };
    assert_eq!(either.headers()["content-type"], spoken);

    let body = kube::client::Body::from(b"k8s\0".to_vec());
    let sent = Request::post("/api/v1/nodes").header("content-type", MEDIA_TYPE);
    let answer = client.send(sent.body(body).unwrap()).await.unwrap();
    assert_eq!(answer.status().as_u16(), if has_protobuf { 400 } else { 415 });
}
