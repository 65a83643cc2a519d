//! The `token` sub-resource of service accounts.

use serde_json::{Value, json};

use crate::call::Call;
use crate::error::{ApiError, FieldError, Result, Subject};
use crate::resources::StorageKey;
use crate::store::{Store, rfc3339};
use crate::{meta, random};

use super::{AUDIENCE, TokenIssuer, text};

const DEFAULT_S: i64 = 3600;
const SHORTEST_S: i64 = 600;
const LONGEST_S: i64 = 1 << 32;

/// Answers a `TokenRequest` for the service account that `call` names.
///
/// # Errors
/// 404 without the account or the bound object, 422 for an invalid duration, 409 if the bound object has another
/// uid.
pub(crate) fn request(
    store: &Store,
    issuer: &TokenIssuer,
    call: &Call,
    body: &Value,
) -> Result<Value> {
    let (namespace, name) = (call.namespace.as_str(), call.name.as_str());
    let account = store
        .get(&StorageKey::new("", "serviceaccounts"), namespace, name)
        .ok_or_else(|| call.not_found())?;
    let stated = meta::name(body);
    if !stated.is_empty() && stated != name {
        let why = "must match the service account name if specified";
        let error = FieldError::invalid("metadata.name", &stated.into(), why);
        return Err(invalid(stated, &[error]));
    }
    let seconds = body.pointer("/spec/expirationSeconds").and_then(Value::as_i64);
    let seconds = seconds.unwrap_or(DEFAULT_S);
    let why = if seconds < SHORTEST_S {
        Some("may not specify a duration less than 10 minutes")
    } else if seconds > LONGEST_S {
        Some("may not specify a duration larger than 2^32 seconds")
    } else {
        None
    };
    if let Some(why) = why {
        let error = FieldError::invalid("spec.expirationSeconds", &seconds.into(), why);
        return Err(invalid(stated, &[error]));
    }
    let audiences = match body.pointer("/spec/audiences").and_then(Value::as_array) {
        Some(given) if !given.is_empty() => Value::Array(given.clone()),
        _ => json!([AUDIENCE]),
    };
    let bound = body.pointer("/spec/boundObjectRef").cloned().unwrap_or_default();
    let now = call.now.as_second();
    let mut about = json!({
        "namespace": namespace,
        "serviceaccount": {"name": name, "uid": meta::uid(account)},
    });
    bind(store, call, &bound, &mut about)?;
    let claims = json!({
        "iss": AUDIENCE, "sub": format!("system:serviceaccount:{namespace}:{name}"),
        "aud": audiences, "iat": now, "nbf": now, "exp": now + seconds,
        "jti": random::uid(), "kubernetes.io": about,
    });
    let token = issuer.sign(&claims).map_err(|error| ApiError::internal(&error.to_string()))?;
    let ends = call.now + jiff::SignedDuration::from_secs(seconds);
    Ok(json!({
        "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
        "metadata": {
            "name": name, "namespace": namespace, "uid": meta::uid(account),
            "creationTimestamp": rfc3339(call.now),
        },
        "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": bound},
        "status": {"token": token, "expirationTimestamp": rfc3339(ends)},
    }))
}

fn invalid(name: &str, errors: &[FieldError]) -> ApiError {
    let of = Subject { group: "authentication.k8s.io", kind: "TokenRequest", name };
    ApiError::invalid(of, errors)
}

/// Adds the bound object to the claims.
fn bind(store: &Store, call: &Call, bound: &Value, about: &mut Value) -> Result<()> {
    if bound.is_null() {
        return Ok(());
    }
    let (kind, name, uid) = (text(bound, "/kind"), text(bound, "/name"), text(bound, "/uid"));
    let (member, plural, namespace) = match (text(bound, "/apiVersion"), kind) {
        ("v1", "Pod") => ("pod", "pods", call.namespace.as_str()),
        ("v1", "Secret") => ("secret", "secrets", call.namespace.as_str()),
        ("v1", "Node") => ("node", "nodes", ""),
        (version, kind) => {
            return Err(ApiError::bad_request(format!(
                "cannot bind token for serviceaccount {:?} to object with kind {kind:?} and \
                 apiVersion {version:?}",
                call.name
            )));
        }
    };
    let of = Subject { group: "", kind: plural, name };
    let object = store
        .get(&StorageKey::new("", plural), namespace, name)
        .ok_or_else(|| ApiError::not_found(of))?;
    if !uid.is_empty() && uid != meta::uid(object) {
        let why = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The \
             object might have been deleted and then recreated"
        );
        let of = Subject { group: "", kind: plural, name };
        return Err(ApiError::conflict(of, &why));
    }
    if member == "pod" && text(object, "/spec/serviceAccountName") != call.name {
        return Err(ApiError::bad_request(format!(
            "cannot bind token for serviceaccount {:?} to pod running with different \
             serviceaccount name.",
            call.name
        )));
    }
    let mut add = |member: &str, object: &Value| {
        let reference = json!({"name": meta::name(object), "uid": meta::uid(object)});
        if let Some(about) = about.as_object_mut() {
            about.insert(member.to_owned(), reference);
        }
    };
    add(member, object);
    let node = text(object, "/spec/nodeName");
    if let Some(node) = store.get(&StorageKey::new("", "nodes"), "", node)
        && member == "pod"
    {
        add("node", node);
    }
    Ok(())
}
