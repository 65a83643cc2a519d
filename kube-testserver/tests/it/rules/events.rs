//! Events of both groups.

use serde_json::{Value, json};

use super::Api;

fn events(namespace: &str) -> String {
    format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events")
}

fn event(regarding: &Value) -> Value {
    json!({"metadata": {"name": "e"}, "regarding": regarding, "reason": "r", "note": "n",
        "type": "Normal", "action": "a", "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "example.com/c", "reportingInstance": "c-0"})
}

#[tokio::test]
async fn an_exact_event_may_regard_an_object_elsewhere() {
    let api = Api::new().await;
    let node = event(&json!({"kind": "Node", "name": "n"}));
    assert_eq!(api.post(&events("kube-system"), &node).await.0, 201);
    let pod = event(&json!({"kind": "Pod", "name": "p", "namespace": "kube-system"}));
    assert_eq!(api.post(&events("default"), &pod).await.0, 201);
    let old = json!({"metadata": {"name": "old"}, "type": "Normal",
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "kube-system"}});
    assert_eq!(api.post("/api/v1/namespaces/default/events", &old).await.0, 422);
}

#[tokio::test]
async fn an_event_changes_its_series_alone() {
    let api = Api::new().await;
    let uri = events("default");
    let (code, mut made) = api.post(&uri, &event(&json!({"kind": "Node", "name": "n"}))).await;
    assert_eq!(code, 201, "{made}");
    let uri = format!("{uri}/e");
    made["series"] = json!({"count": 1, "lastObservedTime": "2026-01-01T00:00:01.000000Z"});
    let (code, status) = api.put(&uri, &made).await;
    assert_eq!((code, &status["details"]["causes"][0]["field"]), (422, &json!("series.count")));
    made["series"]["count"] = 2.into();
    let (code, mut made) = api.put(&uri, &made).await;
    assert_eq!(code, 200, "{made}");
    made["note"] = "other".into();
    let (code, status) = api.put(&uri, &made).await;
    assert_eq!((code, &status["details"]["causes"][0]["field"]), (422, &json!("note")));
}

#[tokio::test]
async fn new_events_have_none_of_the_old_members() {
    let api = Api::new().await;
    let mut event = event(&json!({"kind": "Node", "name": "n"}));
    event["deprecatedCount"] = 2.into();
    let (code, status) = api.post(&events("default"), &event).await;
    let field = &status["details"]["causes"][0]["field"];
    assert_eq!((code, field), (422, &json!("deprecatedCount")));
}
