//! Error answers of the API: a `Status` object with code, reason, message and details.
//!
//! Clients decide by `reason` and `code`, users read `message`, so each constructor uses the wording of
//! kube-apiserver (staging `apimachinery/pkg/api/errors`).

use serde_json::{Map, Value, json};

/// An error answer, as the client gets it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct ApiError {
    /// HTTP status, also in the body.
    pub code: u16,
    /// Machine-readable word, for example `NotFound`; some internal errors have none.
    pub reason: Option<&'static str>,
    /// The message for users.
    pub message: String,
    /// The `details` member; absent when `None`, `{}` when empty.
    pub details: Option<Value>,
    /// `metadata.continue`: the point at which an expired list continues.
    pub next_page: Option<Box<str>>,
    /// Texts for `Warning` headers.
    pub warnings: Vec<String>,
}

/// The object in an error: its group, its resource (or kind) and its name.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// API group, empty for core.
    pub group: &'a str,
    /// The plural resource, or the kind for `Invalid`.
    pub kind: &'a str,
    /// Object name; empty if it is not known yet.
    pub name: &'a str,
}

impl<'a> Subject<'a> {
    /// Names an object of a group by its plural resource, or by its kind for `Invalid`.
    pub fn new(group: &'a str, kind: &'a str, name: &'a str) -> Self {
        Self { group, kind, name }
    }
}

impl Subject<'_> {
    /// `leases.coordination.k8s.io`, or `configmaps` for core.
    fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.kind.to_owned()
        } else {
            format!("{}.{}", self.kind, self.group)
        }
    }

    fn details(&self) -> Value {
        let members = [("name", self.name), ("group", self.group), ("kind", self.kind)].into_iter();
        members
            .filter(|(_, value)| !value.is_empty())
            .map(|(key, value)| (key.to_owned(), Value::from(value)))
            .collect::<Map<_, _>>()
            .into()
    }
}

/// An invalid field; `message` already begins with the text for `reason`.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct FieldError {
    /// For example `FieldValueInvalid`.
    pub reason: &'static str,
    /// For example `Invalid value: "x": must be short`.
    pub message: String,
    /// For example `spec.usages[1]`.
    pub field: String,
}

impl FieldError {
    fn new(reason: &'static str, field: &str, message: String) -> Self {
        Self { reason, message, field: field.to_owned() }
    }

    /// An invalid value. `value` is printed as JSON.
    pub fn invalid(field: &str, value: &Value, why: &str) -> Self {
        Self::new("FieldValueInvalid", field, format!("Invalid value: {value}: {why}"))
    }

    /// Like [`FieldError::invalid`], if Go prints the value differently from JSON.
    pub fn invalid_text(field: &str, value: &str, why: &str) -> Self {
        Self::new("FieldValueInvalid", field, format!("Invalid value: {value}: {why}"))
    }

    /// A value of the wrong JSON type.
    pub fn type_invalid(field: &str, value: &Value, why: &str) -> Self {
        Self::new("FieldValueTypeInvalid", field, format!("Invalid value: {value}: {why}"))
    }

    /// A missing value; `why` may be empty.
    pub fn required(field: &str, why: &str) -> Self {
        Self::new("FieldValueRequired", field, join("Required value", why))
    }

    /// A forbidden value.
    pub fn forbidden(field: &str, why: &str) -> Self {
        Self::new("FieldValueForbidden", field, join("Forbidden", why))
    }

    /// A value that occurs twice.
    pub fn duplicate(field: &str, value: &Value) -> Self {
        Self::new("FieldValueDuplicate", field, format!("Duplicate value: {value}"))
    }

    /// A reference to an object that does not exist.
    pub fn not_found(field: &str, value: &Value) -> Self {
        Self::new("FieldValueNotFound", field, format!("Not found: {value}"))
    }

    /// A value outside of an enumeration. `value` is printed as JSON.
    pub fn not_supported(field: &str, value: &Value, supported: &[&str]) -> Self {
        let words: Vec<_> = supported.iter().map(|word| format!("{word:?}")).collect();
        let words = words.join(", ");
        Self::new(
            "FieldValueNotSupported",
            field,
            format!("Unsupported value: {value}: supported values: {words}"),
        )
    }

    /// A text of more than `max` bytes.
    pub fn too_long(field: &str, max: usize) -> Self {
        Self::new("FieldValueTooLong", field, format!("Too long: may not be more than {max} bytes"))
    }

    /// A list of `actual` members where `max` are allowed.
    pub fn too_many(field: &str, actual: usize, max: usize) -> Self {
        Self::new(
            "FieldValueTooMany",
            field,
            format!("Too many: {actual}: must have at most {max} items"),
        )
    }

    fn cause(&self) -> Value {
        if self.field.is_empty() {
            return json!({"reason": self.reason, "message": self.message});
        }
        json!({"reason": self.reason, "message": self.message, "field": self.field})
    }
}

fn join(word: &str, why: &str) -> String {
    if why.is_empty() { word.to_owned() } else { format!("{word}: {why}") }
}

impl ApiError {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason: Some(reason),
            message: message.into(),
            details: None,
            next_page: None,
            warnings: Vec::new(),
        }
    }

    /// Adds `details` to the answer.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// Adds causes (`{"reason", "message", "field"}`) to the details.
    #[must_use]
    pub fn with_causes(mut self, causes: Vec<Value>) -> Self {
        let details = self.details.get_or_insert_with(|| json!({}));
        if let Some(details) = details.as_object_mut() {
            details.insert("causes".to_owned(), causes.into());
        }
        self
    }

    /// Adds field errors as causes.
    #[must_use]
    pub fn with_field_causes(self, errors: &[FieldError]) -> Self {
        self.with_causes(errors.iter().map(FieldError::cause).collect())
    }

    /// 404 for an object of a resource (plural in `Subject::kind`).
    pub fn not_found(of: Subject<'_>) -> Self {
        Self::new(404, "NotFound", format!("{} {:?} not found", of.qualified(), of.name))
            .with_details(of.details())
    }

    /// 404 for an unknown resource or sub-resource.
    pub fn no_such_resource() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource")
            .with_details(json!({}))
    }

    /// 409: the name is in use.
    pub fn already_exists(of: Subject<'_>) -> Self {
        Self::new(409, "AlreadyExists", format!("{} {:?} already exists", of.qualified(), of.name))
            .with_details(of.details())
    }

    /// 409 with the reason of the conflict.
    pub fn conflict(of: Subject<'_>, why: &str) -> Self {
        let what = of.qualified();
        Self::new(
            409,
            "Conflict",
            format!("Operation cannot be fulfilled on {what} {:?}: {why}", of.name),
        )
        .with_details(of.details())
    }

    /// 409: the object was changed in between.
    pub fn modified(of: Subject<'_>) -> Self {
        Self::conflict(
            of,
            "the object has been modified; please apply your changes to the latest version and \
             try again",
        )
    }

    /// 409 of server-side apply, with a cause for each field that another manager owns.
    pub fn apply_conflict(message: impl Into<String>, causes: Vec<Value>) -> Self {
        Self::new(409, "Conflict", message).with_causes(causes)
    }

    /// 422 with all invalid fields (kind in `Subject::kind`).
    pub fn invalid(of: Subject<'_>, errors: &[FieldError]) -> Self {
        let mut texts: Vec<String> = Vec::new();
        for error in errors {
            let text = format!("{}: {}", error.field, error.message);
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let texts = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{} {:?} is invalid: {texts}", of.qualified(), of.name);
        Self::new(422, "Invalid", message).with_details(of.details()).with_field_causes(errors)
    }

    /// 400 without details.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 401.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 403 for a resource (plural in `Subject::kind`; the name may be empty).
    pub fn forbidden(of: Subject<'_>, why: &str) -> Self {
        let name = if of.name.is_empty() { String::new() } else { format!(" {:?}", of.name) };
        Self::new(403, "Forbidden", format!("{}{name} is forbidden: {why}", of.qualified()))
            .with_details(of.details())
    }

    /// 403 for a path outside of resources.
    pub fn forbidden_path(why: &str) -> Self {
        Self::new(403, "Forbidden", format!("forbidden: {why}")).with_details(json!({}))
    }

    /// 405.
    pub fn method_not_allowed() -> Self {
        Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
        .with_details(json!({}))
    }

    /// 405 of a custom resource.
    pub fn verb_not_supported(verb: &str, group: &str, plural: &str) -> Self {
        let of = Subject { group, kind: plural, name: "" };
        let what = of.qualified();
        let message = format!("{verb} is not supported on resources of kind {what:?}");
        Self::new(405, "MethodNotAllowed", message).with_details(of.details())
    }

    /// 413.
    pub fn too_large(why: &str) -> Self {
        let message = format!("Request entity too large: {why}");
        Self::new(413, "RequestEntityTooLarge", message)
    }

    /// 406 with the server's own wording.
    pub fn not_acceptable(message: impl Into<String>) -> Self {
        Self::new(406, "NotAcceptable", message)
    }

    /// 410: the requested history is gone.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 415 with the server's own wording.
    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// 422 for a JSON patch that cannot be applied.
    pub fn rejected() -> Self {
        let why = "the server rejected our request due to an error in our request";
        Self::new(422, "Invalid", why).with_details(json!({}))
    }

    /// 429.
    pub fn too_many_requests(message: impl Into<String>) -> Self {
        Self::new(429, "TooManyRequests", message).with_details(json!({}))
    }

    /// 500 without a reason, like plain Go errors.
    pub fn plain(message: impl Into<String>) -> Self {
        Self {
            code: 500,
            reason: None,
            message: message.into(),
            details: None,
            next_page: None,
            warnings: Vec::new(),
        }
    }

    /// 500 `InternalError`.
    pub fn internal(message: &str) -> Self {
        Self::new(500, "InternalError", format!("Internal error occurred: {message}"))
            .with_causes(vec![json!({"message": message})])
    }

    /// 501: a feature of real clusters that the simulator does not have.
    pub fn not_implemented(what: &str) -> Self {
        Self::new(501, "NotImplemented", format!("the test server does not support {what}"))
            .with_details(json!({}))
    }

    /// 504 that asks the client to retry.
    pub fn timeout(message: &str, retry_after_s: u64) -> Self {
        Self::new(504, "Timeout", format!("Timeout: {message}"))
            .with_details(json!({"retryAfterSeconds": retry_after_s}))
    }

    /// The body to send.
    pub fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if let Some(members) = status.as_object_mut() {
            if let Some(reason) = self.reason {
                members.insert("reason".to_owned(), reason.into());
            }
            if let Some(details) = &self.details {
                members.insert("details".to_owned(), details.clone());
            }
            if let Some(next_page) = &self.next_page {
                members.insert("metadata".to_owned(), json!({"continue": next_page.as_ref()}));
            }
        }
        status
    }
}

/// A result whose error is an [`ApiError`] by default.
pub type Result<T, E = ApiError> = std::result::Result<T, E>;
