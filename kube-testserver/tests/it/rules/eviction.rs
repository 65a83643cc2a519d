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

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";

/// Pod `p`, and a policy that refuses an operation on a resource where `expression` is false.
async fn with_policy(operation: &str, resource: &str, expression: &str) -> Api {
    let api = with_pod(&json!({})).await;
    let policy = json!({"metadata": {"name": "keep"}, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
            "operations": [operation], "resources": [resource]}]},
        "validations": [{"expression": expression, "message": "keep this pod"}]}});
    let binding = json!({"metadata": {"name": "keep"},
        "spec": {"policyName": "keep", "validationActions": ["Deny"]}});
    for (uri, object) in [(POLICIES, &policy), (BINDINGS, &binding)] {
        let (code, made) = api.post(uri, object).await;
        assert_eq!(code, 201, "{made}");
    }
    api
}

async fn evict(api: &Api) -> (u16, Value) {
    api.post(&format!("{PODS}/p/eviction"), &eviction(&json!({"name": "p"}), &json!({}))).await
}

#[tokio::test]
async fn a_policy_about_evictions_refuses_one() {
    let says = "object.kind == 'Eviction' && request.subResource == 'eviction' && \
                request.operation == 'CREATE' && oldObject == null && object.metadata.name != 'p'";
    let api = with_policy("CREATE", "pods/eviction", says).await;
    let seen = version(&api).await;
    let (code, status) = evict(&api).await;
    assert_eq!((code, &status["reason"]), (422, &json!("Invalid")));
    let message = status["message"].as_str().unwrap();
    assert!(message.contains("denied request: keep this pod"), "{message}");
    assert_eq!(version(&api).await, seen, "a refused eviction leaves no trace");
    let others = with_policy("CREATE", "pods/eviction", &says.replace("!=", "==")).await;
    assert_eq!(evict(&others).await.0, 201);
}

/// The deletion is the server's own.
#[tokio::test]
async fn a_policy_about_the_deletion_of_pods_does_not_see_evictions() {
    let api = with_policy("DELETE", "pods", "false").await;
    assert_eq!(
        api.ask("DELETE", &format!("{PODS}/p"), ["application/json"; 2], &Value::Null).await.0,
        422
    );
    assert_eq!(evict(&api).await.0, 201);
}

#[tokio::test]
async fn nothing_is_evicted_from_a_namespace_that_is_being_deleted() {
    let api = Api::new().await;
    let namespace = json!({"metadata": {"name": "leaves"}});
    assert_eq!(api.post("/api/v1/namespaces", &namespace).await.0, 201);
    let pods = "/api/v1/namespaces/leaves/pods";
    // The finalizer keeps the pod, and the pod the namespace.
    let pod = json!({"metadata": {"name": "p", "finalizers": ["example.test/keep"]},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    assert_eq!(api.post(pods, &pod).await.0, 201);
    let deleted =
        api.ask("DELETE", "/api/v1/namespaces/leaves", ["application/json"; 2], &Value::Null);
    assert_eq!(deleted.await.0, 200);
    let (code, status) =
        api.post(&format!("{pods}/p/eviction"), &eviction(&json!({"name": "p"}), &json!({}))).await;
    assert_eq!((code, &status["reason"]), (403, &json!("Forbidden")));
    assert_eq!(status["details"]["causes"][0]["reason"], "NamespaceTerminating");
}
