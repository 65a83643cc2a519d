//! Kubernetes' protobuf form of objects, to JSON and back.
//!
//! A body is the magic `k8s` and NUL, then a `runtime.Unknown` message: apiVersion and kind (member
//! 1) and the object's own message (member 2). The messages are those of [`super::schema`].
//!
//! Source: Kubernetes API concepts, "Kubernetes Protobuf encoding".

mod decode;
mod encode;
mod wire;

use serde_json::Value;

use super::error::{ApiError, Result};
use super::hex::hex;
use super::schema::{self, Message};

/// The media type.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// Whether protobuf is supported for built-in kinds.
pub(crate) const IS_OFFERED: bool = true;

const MAGIC: &[u8] = b"k8s\0";
/// Most bytes of a body that an error quotes.
const SHOWN_BYTES: usize = 1024;

/// A request body as JSON, with `apiVersion` and `kind`. `expected` is the kind of the resource.
///
/// # Errors
/// 400 if it cannot be read.
pub(crate) fn from_protobuf(body: &[u8], expected: &str) -> Result<Value> {
    let unrecognized = |why: &str| {
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {expected}): {why}"
        ))
    };
    let Some(rest) = body.strip_prefix(MAGIC) else {
        let digits = hex(body.get(..SHOWN_BYTES).unwrap_or(body));
        return Err(unrecognized(&format!(
            "provided data does not appear to be a protobuf message, expected prefix \
             [107 56 115 0] ({digits})"
        )));
    };
    let unknown = decode::envelope(rest).map_err(|error| unrecognized(&error.to_string()))?;
    let (api_version, kind) = (unknown.api_version.as_str(), unknown.kind.as_str());
    let Some(message) = schema::kind(api_version, kind) else {
        return Err(ApiError::bad_request(format!(
            "no kind {kind:?} is registered for version {api_version:?} in scheme"
        )));
    };
    let mut object = decode::message(message, &unknown.raw).map_err(|error| {
        ApiError::bad_request(format!(
            "{kind} in version {api_version:?} cannot be handled as a {expected}: {error}"
        ))
    })?;
    if let Some(members) = object.as_object_mut() {
        members.insert("apiVersion".to_owned(), api_version.into());
        members.insert("kind".to_owned(), kind.into());
    }
    Ok(object)
}

/// An answer in protobuf; `None` for kinds without a protobuf form (custom resources, Tables).
pub(crate) fn to_protobuf(answer: &Value) -> Option<Vec<u8>> {
    let text = |member| answer.get(member).and_then(Value::as_str).unwrap_or("");
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let raw = match schema::kind(api_version, kind) {
        Some(message) => encode::message(message, answer)?,
        None => encode::list(item_message(api_version, kind)?, answer)?,
    };
    let mut out = MAGIC.to_vec();
    out.extend(encode::envelope(api_version, kind, &raw));
    Some(out)
}

/// An event of a watch: its length in four bytes, then a `WatchEvent` with the enveloped object.
pub(crate) fn watch_frame(kind: &str, object: &Value) -> Option<Vec<u8>> {
    let event = encode::watch_event(kind, &to_protobuf(object)?);
    let mut out = u32::try_from(event.len()).ok()?.to_be_bytes().to_vec();
    out.extend(event);
    Some(out)
}

fn item_message(api_version: &str, list: &str) -> Option<&'static Message> {
    schema::kind(api_version, list.strip_suffix("List")?)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    use super::super::schema::shape;
    use super::*;

    fn read(base64: &str, expected: &str) -> Result<Value> {
        let value = from_protobuf(&STANDARD.decode(base64).unwrap(), expected)?;
        let text = |member: &str| value[member].as_str().unwrap_or("").to_owned();
        let message = schema::kind(&text("apiVersion"), &text("kind")).unwrap();
        Ok(shape::object(message, &value).unwrap().value)
    }

    #[test]
    fn configmap_of_kubectl() {
        let body =
            "azhzAAoPCgJ2MRIJQ29uZmlnTWFwEh8KFQoCYzESABoDcGJ4IgAqADIAOABCABIGCgFrEgF2GgAiAA==";
        let expected = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "c1", "namespace": "pbx"}, "data": {"k": "v"}});
        assert_eq!(read(body, "ConfigMap").unwrap(), expected);
    }

    #[test]
    fn secret_data_is_base64() {
        let body = "azhzAAoMCgJ2MRIGU2VjcmV0EiEKFQoCczESABoDcGJ4IgAqADIAOABCABIGCgFrEgF2GgAaACIA";
        assert_eq!(read(body, "Secret").unwrap()["data"], json!({"k": "dg=="}));
    }

    #[test]
    fn access_review_of_kubectl() {
        let body = "azhzAAoyChdhdXRob3JpemF0aW9uLms4cy5pby92MRIXU2VsZlN1YmplY3RBY2Nlc3NSZXZpZXcSPAoQ\
                    CgASABoAIgAqADIAOABCABIeChwKB2RlZmF1bHQSA2dldBoAIgAqBHBvZHMyADoAGggIABIAGgAgABoAIgA=";
        let body: String = body.split_whitespace().collect();
        let spec = read(&body, "SelfSubjectAccessReview").unwrap()["spec"].clone();
        let attributes = json!({"namespace": "default", "verb": "get", "resource": "pods"});
        assert_eq!(spec, json!({"resourceAttributes": attributes}));
    }

    #[test]
    fn delete_options_keep_zero_grace() {
        let body = "azhzAAoTCgJ2MRINRGVsZXRlT3B0aW9ucxICCAAaACIA";
        assert_eq!(read(body, "DeleteOptions").unwrap()["gracePeriodSeconds"], 0);
    }

    #[test]
    fn no_magic() {
        let error = read("AAAA", "ConfigMap").unwrap_err();
        assert_eq!(error.code, 400);
        assert!(error.message.ends_with("expected prefix [107 56 115 0] (000000)"));
    }

    #[test]
    fn garbage_after_the_magic() {
        assert_eq!(read("azhzAP////8=", "ConfigMap").unwrap_err().code, 400);
    }

    #[test]
    fn every_type_survives_the_round_trip() {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "generation": 3, "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {"a": "b", "c": ""}, "deletionGracePeriodSeconds": 0,
                "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {}}}]},
            "spec": {"containers": [{"name": "c", "resources": {"limits": {"memory": "4Gi"}},
                "livenessProbe": {"httpGet": {"port": "http", "path": "/"}, "periodSeconds": 3},
                "env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}],
                "hostNetwork": true, "priority": -7,
                "volumes": [{"name": "v", "configMap": {"name": "x", "defaultMode": 420}}]},
            "status": {"phase": "Running"},
        });
        let message = schema::kind("v1", "Pod").unwrap();
        let pod = shape::object(message, &pod).unwrap().value;
        let back = from_protobuf(&to_protobuf(&pod).unwrap(), "Pod").unwrap();
        assert_eq!(shape::object(message, &back).unwrap().value, pod);
    }

    #[test]
    fn lists_carry_items_without_kind() {
        let list = json!({"apiVersion": "v1", "kind": "ConfigMapList",
            "metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "a"}}]});
        let bytes = to_protobuf(&list).unwrap();
        let start = STANDARD.decode("azhzAAoT").unwrap();
        assert!(bytes.starts_with(&start));
    }

    #[test]
    fn statuses_are_protobuf_too() {
        let status = ApiError::bad_request("x").to_status();
        assert_eq!(STANDARD.encode(&to_protobuf(&status).unwrap()[..6]), "azhzAAoM");
    }

    #[test]
    fn custom_resources_are_not() {
        assert_eq!(to_protobuf(&json!({"apiVersion": "a.b/v1", "kind": "Life"})), None);
    }
}
