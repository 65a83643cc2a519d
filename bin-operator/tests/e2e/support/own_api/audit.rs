//! What the API server wrote down of requests.

use serde_json::Value;

/// Each request once, without what was sent.
pub(super) const POLICY: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"], "rules": [{"level": "Metadata"}]}"#;

/// Lines of `log` about requests of `user` that were answered with 403.
///
/// # Errors
/// When there is no request of that user at all, so that nothing is known.
pub(crate) fn refused(log: &str, user: &str) -> anyhow::Result<Vec<String>> {
    let text = |event: &Value, pointer: &str| {
        event.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let of_user: Vec<_> = events.filter(|event| text(event, "/user/username") == user).collect();
    anyhow::ensure!(!of_user.is_empty(), "the audit log has no request of {user}");
    let refused = of_user.iter().filter(|event| event["responseStatus"]["code"] == 403);
    Ok(refused.map(|it| format!("{} {}", text(it, "/verb"), text(it, "/requestURI"))).collect())
}
