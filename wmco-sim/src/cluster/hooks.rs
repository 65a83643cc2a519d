//! The seam between the generic pipeline and what each kind, user or controller brings.
//!
//! The pipeline (`write`, `server`, `list`) calls nothing but these functions; each one line here
//! leads to the module that knows.

use serde_json::Value;

use super::call::{Call, Operation};
use super::error::{ApiError, FieldError, Result};
use super::identity::User;
use super::state::{Answer, Shared, State};
use super::{auth, protobuf, schema};

/// A body after decoding into its kind.
#[derive(Debug, Default)]
pub struct Decoded {
    /// The object, with just the fields that its kind knows.
    pub object: Value,
    /// Paths of fields that it does not know, for example `spec.unknown`.
    pub unknown: Vec<String>,
}

/// What came with a request to prove an identity.
#[derive(Clone, Copy, Debug)]
pub struct Credentials<'a> {
    /// The client certificate in DER, already verified against our CA.
    pub certificate: Option<&'a [u8]>,
    /// The `Authorization` header.
    pub authorization: Option<&'a str>,
    /// All headers, for impersonation.
    pub headers: &'a axum::http::HeaderMap,
}

/// What is to be allowed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attributes<'a> {
    /// For example `list`; lower-case HTTP method for paths.
    pub verb: &'a str,
    /// API group.
    pub group: &'a str,
    /// API version.
    pub version: &'a str,
    /// Plural; empty when `path` is asked for.
    pub resource: &'a str,
    /// For example `status`.
    pub subresource: &'a str,
    /// Empty for cluster scope.
    pub namespace: &'a str,
    /// Empty for collections.
    pub name: &'a str,
    /// The URL path.
    pub path: &'a str,
    /// What the field selector demands to be equal.
    pub fields: &'a [(String, String)],
}

/// Who sent the request.
///
/// # Errors
/// 401 when what was sent proves nothing, 403 when impersonation is refused.
pub fn authenticate(
    _cluster: &Shared,
    _credentials: Credentials<'_>,
    _of: &Attributes<'_>,
) -> Result<User> {
    Ok(User::authenticated("admin", &["system:masters".to_owned()]))
}

/// Whether `user` may do it.
///
/// # Errors
/// 403 with the reason.
pub fn authorize(state: &State, user: &User, of: &Attributes<'_>) -> Result<()> {
    auth::require(&state.store, user, of)
}

/// Reduces a body to what its built-in kind knows; wrong types are 400.
///
/// # Errors
/// 400 naming the field.
pub fn decode(call: &Call, object: Value) -> Result<Decoded> {
    let text = |member: &str| object.get(member).and_then(Value::as_str).unwrap_or("");
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let Some(message) = schema::kind(api_version, kind) else {
        return Ok(Decoded { object, unknown: Vec::new() });
    };
    match schema::shape::object(message, &object) {
        Ok(shaped) => Ok(Decoded { object: shaped.value, unknown: shaped.unknown }),
        Err(error) => {
            let version = super::resources::split_api_version(api_version).1;
            let wanted = call.body_kind();
            Err(ApiError::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {wanted}: {error}"
            )))
        }
    }
}

/// Fills in the defaults of a built-in kind, as decoding does on every write.
pub fn default(_call: &Call, _object: &mut Value) {}

/// Admission that may change the object (`before` is `None` for a create).
///
/// # Errors
/// Usually 403.
pub fn admit_changing(
    _state: &State,
    _call: &Call,
    _operation: Operation,
    _before: Option<&Value>,
    _object: &mut Value,
) -> Result<()> {
    Ok(())
}

/// Admission that may only refuse. `object` is `None` for a delete.
///
/// # Errors
/// Usually 403 or 422.
pub fn admit(
    _state: &State,
    _call: &Call,
    _operation: Operation,
    _before: Option<&Value>,
    _object: Option<&Value>,
) -> Result<()> {
    Ok(())
}

/// What the kind's strategy sets or resets on a create, for example a Pod's first status.
pub fn prepare_create(_state: &State, _call: &Call, _object: &mut Value) {}

/// What the kind's strategy keeps or resets on an update.
pub fn prepare_update(_state: &State, _call: &Call, _before: &Value, _object: &mut Value) {}

/// The kind's own validation of a new object; metadata is checked elsewhere.
///
/// # Errors
/// Anything that is not a complaint about a field.
pub fn validate_create(_state: &State, _call: &Call, _object: &Value) -> Result<Vec<FieldError>> {
    Ok(Vec::new())
}

/// The kind's own validation of a change; metadata is checked elsewhere.
///
/// # Errors
/// Anything that is not a complaint about a field.
pub fn validate_update(
    _state: &State,
    _call: &Call,
    _before: &Value,
    _object: &Value,
) -> Result<Vec<FieldError>> {
    Ok(Vec::new())
}

/// Records in `managedFields` what a create or update (not an apply) has set.
pub fn track(_state: &State, _call: &Call, _before: Option<&Value>, _object: &mut Value) {}

/// Server-side apply: merges the applied configuration into `before` (`None`: there is none yet)
/// and records who owns what.
///
/// # Errors
/// 409 with the conflicts, 400 and 422 for bad configurations.
pub fn apply(
    _state: &State,
    _call: &Call,
    _before: Option<&Value>,
    _configuration: &Value,
) -> Result<Value> {
    Err(ApiError::not_implemented("server-side apply"))
}

/// A POST to a sub-resource (eviction, token) or to a resource that is never stored (reviews).
///
/// # Errors
/// What the sub-resource answers.
pub fn post(_cluster: &Shared, _state: &mut State, call: &Call, _body: Value) -> Result<Answer> {
    Err(ApiError::not_implemented(&format!("{}/{}", call.resource.plural, call.subresource)))
}

/// Controllers: called after every request that wrote something, under the same lock.
pub fn react(_cluster: &Shared, _state: &mut State) {}

/// A protobuf body as JSON. `expected` is the kind that the resource or sub-resource takes.
///
/// # Errors
/// 400 when it is not readable or its kind is not known.
pub fn from_protobuf(body: &[u8], expected: &str) -> Result<Value> {
    protobuf::from_protobuf(body, expected)
}

/// An answer in protobuf, or `None` when its kind has no such form here.
pub fn to_protobuf(answer: &Value) -> Option<Vec<u8>> {
    protobuf::to_protobuf(answer)
}

/// One event of a watch in protobuf with its length in front, or `None` when its kind has no such
/// form here.
pub fn protobuf_frame(kind: &str, object: &Value) -> Option<Vec<u8>> {
    protobuf::watch_frame(kind, object)
}

/// What a new cluster has besides namespaces, for example the system's ClusterRoles.
pub fn initial_objects() -> Vec<Value> {
    Vec::new()
}
