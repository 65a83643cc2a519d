//! Reads the body of a request into an object of the expected kind.

use serde_json::{Map, Value};

use crate::call::{Call, FieldValidation};
use crate::error::{ApiError, FieldError, Result, Subject};
use crate::hex::hex;
use crate::registry::Registry;
use crate::resources::{join_api_version, split_api_version};
use crate::schema::shape::Unreadable;
use crate::{golang, kinds, protobuf, schema};

use super::duplicates::parse_json;

/// Prefix of messages about a body without a known type.
const NO_TYPE: &str = "couldn't get version/kind";

/// The form of a body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Form {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Kubernetes' protobuf envelope.
    Protobuf,
}

/// A parsed body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body {
    /// The document.
    pub value: Value,
    /// Members that occur more than once, for example `data.a`.
    pub duplicates: Vec<String>,
    /// The text as sent, for messages that quote it.
    pub text: String,
}

impl Body {
    /// Parses `bytes`; `expected` is the kind for error messages.
    ///
    /// # Errors
    /// 400 if the text is not in that form.
    pub(crate) fn parse(form: Form, bytes: &[u8], expected: &str) -> Result<Self> {
        let text = || String::from_utf8_lossy(bytes).into_owned();
        match form {
            Form::Protobuf => {
                let value = protobuf::from_protobuf(bytes, expected)?;
                Ok(Self { value, ..Self::default() })
            }
            Form::Json => {
                let body = Self::json(bytes).map_err(|why| {
                    unrecognized(expected, &format!("{NO_TYPE}; json parse error: {why}"), bytes)
                })?;
                body.interpret(expected).map(|()| body)
            }
            Form::Yaml => {
                let text = text();
                // Most YAML is JSON, whose parser accepts repeated members.
                if let Ok((value, _)) = parse_json(bytes) {
                    return Ok(Self { value, duplicates: Vec::new(), text });
                }
                let value = serde_saphyr::from_str(&text).map_err(|error| {
                    ApiError::bad_request(format!("the body cannot be read as YAML: {error}"))
                })?;
                Ok(Self { value, duplicates: Vec::new(), text })
            }
        }
    }

    /// Parses JSON.
    ///
    /// # Errors
    /// The reason why the text is not JSON.
    pub(super) fn json(bytes: &[u8]) -> Result<Self, String> {
        let (value, duplicates) = parse_json(bytes).map_err(|error| {
            golang::json::syntax_error(bytes).unwrap_or_else(|| error.to_string())
        })?;
        Ok(Self { value, duplicates, text: String::from_utf8_lossy(bytes).into_owned() })
    }

    /// Checks the type in the document before anything else is read.
    fn interpret(&self, expected: &str) -> Result<()> {
        let wrong = |why: &str| Err(unrecognized(expected, why, self.text.as_bytes()));
        let found = golang::json::type_name(&self.value);
        if !matches!(self.value, Value::Object(_) | Value::Null) {
            return wrong(&format!(
                "{NO_TYPE}; json parse error: json: cannot unmarshal {found} into Go value of type \
                 struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
                 \"json:\\\"kind,omitempty\\\"\" }}"
            ));
        }
        for member in ["apiVersion", "kind"] {
            let value = self.value.get(member).unwrap_or(&Value::Null);
            if !matches!(value, Value::String(_) | Value::Null) {
                let found = golang::json::type_name(value);
                return wrong(&format!(
                    "{NO_TYPE}; json parse error: json: cannot unmarshal {found} into Go struct \
                     field .{member} of type string"
                ));
            }
        }
        let version = self.stated("apiVersion");
        if version.matches('/').count() > 1 {
            return wrong(&format!("unexpected GroupVersion string: {version}"));
        }
        Ok(())
    }

    /// Converts the document to an object of the kind that `call` expects. Returns it with the warnings about
    /// dropped fields.
    ///
    /// # Errors
    /// 400 for another kind or version and for unknown fields under strict validation; 422 for
    /// another kind of a custom resource.
    pub(crate) fn decode(
        mut self,
        call: &Call,
        registry: &Registry,
    ) -> Result<(Value, Vec<String>)> {
        let (api_version, kind) = expected(call);
        if call.resource.custom.is_some() {
            self.check_custom(&api_version, &kind)?;
        } else {
            self.check_builtin(&api_version, &kind, registry)?;
        }
        let version = split_api_version(&api_version).1;
        let unusable = |why: &str| {
            ApiError::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {kind}: {why}"
            ))
        };
        let read = typed(call, self.value).map_err(|error| unusable(&error.to_string()));
        let (object, mut unknown) = read?;
        let mut problems: Vec<String> =
            self.duplicates.iter().map(|path| format!("duplicate field {path:?}")).collect();
        unknown.sort();
        problems.extend(unknown.iter().map(|path| format!("unknown field {path:?}")));
        match call.options.validation {
            FieldValidation::Strict if !problems.is_empty() => {
                Err(unusable(&format!("strict decoding error: {}", problems.join(", "))))
            }
            FieldValidation::Ignore => Ok((object, Vec::new())),
            FieldValidation::Strict | FieldValidation::Warn => Ok((object, problems)),
        }
    }

    fn stated(&self, field: &str) -> String {
        self.value.get(field).and_then(Value::as_str).unwrap_or("").to_owned()
    }

    fn check_builtin(&mut self, api_version: &str, kind: &str, registry: &Registry) -> Result<()> {
        if self.value.is_null() {
            self.value = Value::Object(Map::new());
        }
        let Some(members) = self.value.as_object_mut() else {
            return Err(unrecognized(kind, NO_TYPE, self.text.as_bytes()));
        };
        for (field, default) in [("kind", kind), ("apiVersion", api_version)] {
            if members.get(field).and_then(Value::as_str).unwrap_or("").is_empty() {
                members.insert(field.to_owned(), default.into());
            }
        }
        let (given_version, given_kind) = (self.stated("apiVersion"), self.stated("kind"));
        if given_kind == kind && given_version == api_version {
            return Ok(());
        }
        if kind == "Eviction" && given_kind == kind && given_version == "policy/v1beta1" {
            // The only older version that is still accepted; it has the same members.
            if let Some(members) = self.value.as_object_mut() {
                members.insert("apiVersion".to_owned(), api_version.into());
            }
            return Ok(());
        }
        let (group, version) = split_api_version(&given_version);
        if given_kind == kind && registry.find_kind(group, version, &given_kind).is_some() {
            return Err(wrong_version(&given_version, api_version));
        }
        let cause = other_kind(registry, [&given_version, &given_kind], [api_version, kind]);
        Err(ApiError::bad_request(format!(
            "{given_kind} in version {version:?} cannot be handled as a {kind}: {cause}"
        )))
    }

    fn check_custom(&self, api_version: &str, kind: &str) -> Result<()> {
        let (given_version, given_kind) = (self.stated("apiVersion"), self.stated("kind"));
        if given_kind.is_empty() {
            let why = format!("Object 'Kind' is missing in '{}'", self.text);
            return Err(unrecognized(kind, &why, self.text.as_bytes()));
        }
        if given_version.is_empty() {
            return Err(ApiError::bad_request(format!(
                "{given_kind} in version \"\" cannot be handled as a {kind}: Object 'apiVersion' \
                 is missing in '{}'",
                self.text
            )));
        }
        if given_kind != kind {
            return Err(must_be_kind(&self.value, kind));
        }
        if given_version != api_version {
            return Err(wrong_version(&given_version, api_version));
        }
        Ok(())
    }
}

/// Reduces a document to the members of its kind; returns the paths of the others, too.
///
/// # Errors
/// A member that cannot be read as its type.
pub(super) fn typed(call: &Call, document: Value) -> Result<(Value, Vec<String>), Unreadable> {
    if let Some(custom) = &call.resource.custom {
        let mut document = document;
        let unknown = custom.prune(&mut document)?;
        custom.default(&mut document);
        return Ok((document, unknown));
    }
    let text = |member: &str| document.get(member).and_then(Value::as_str).unwrap_or("");
    let (mut object, unknown) = match schema::kind(text("apiVersion"), text("kind")) {
        None => (document, Vec::new()),
        Some(message) => {
            let shaped = schema::shape::object(message, &document)?;
            (shaped.value, shaped.unknown)
        }
    };
    kinds::default(call, &mut object);
    Ok((object, unknown))
}

/// The expected apiVersion and kind of the body.
fn expected(call: &Call) -> (String, String) {
    match call.resource.subresource(&call.subresource) {
        Some(sub) => {
            let api_version = sub.foreign.map_or_else(
                || call.resource.api_version(),
                |(group, version)| join_api_version(group, version),
            );
            (api_version, sub.kind.clone())
        }
        None => (call.resource.api_version(), call.resource.kind.clone()),
    }
}

/// The error about an object whose apiVersion and kind are not the expected ones.
pub(super) fn other_kind(registry: &Registry, given: [&str; 2], expected: [&str; 2]) -> String {
    let ([given_version, given_kind], [api_version, kind]) = (given, expected);
    let (group, version) = split_api_version(given_version);
    if registry.find_kind(group, version, given_kind).is_some() {
        let package = go_package(split_api_version(api_version).0);
        return format!(
            "converting ({version}.{given_kind}) to ({package}.{kind}): unknown conversion"
        );
    }
    format!(
        "no kind {given_kind:?} is registered for version {given_version:?} in scheme \
         \"pkg/api/legacyscheme/scheme.go:30\""
    )
}

/// 422 for an object of another kind than the custom resource.
pub(super) fn must_be_kind(object: &Value, kind: &str) -> ApiError {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("");
    let given = text("/kind");
    let group = split_api_version(text("/apiVersion")).0;
    let of = Subject { group, kind: given, name: text("/metadata/name") };
    let error = FieldError::invalid("kind", &given.into(), &format!("must be {kind}"));
    ApiError::invalid(of, &[error])
}

fn wrong_version(given: &str, expected: &str) -> ApiError {
    ApiError::bad_request(format!(
        "the API version in the data ({given}) does not match the expected API version ({expected})"
    ))
}

/// The Go package of a group's internal types, for messages of the API.
fn go_package(group: &str) -> &str {
    if group.is_empty() { "core" } else { group.split('.').next().unwrap_or(group) }
}

/// 400 for a body of unknown type.
fn unrecognized(expected: &str, why: &str, bytes: &[u8]) -> ApiError {
    let shown = summary(bytes);
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {expected}): {why} ({shown})"
    ))
}

/// The first 30 bytes, in the form of the API's messages: objects as they are, other bodies as hexadecimal digits.
fn summary(bytes: &[u8]) -> String {
    let head = bytes.get(..30).unwrap_or(bytes);
    let more = if bytes.len() > head.len() { " ..." } else { "" };
    match head {
        [] => "<empty>".to_owned(),
        [b'{', ..] => format!("{}{more}", String::from_utf8_lossy(head)),
        _ => format!("{}{more}", hex(head)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &[u8], why: &str) {
        let error = Body::parse(Form::Json, body, "ConfigMap").unwrap_err();
        assert_eq!(error.code, 400);
        let of = "the object provided is unrecognized (must be of type ConfigMap)";
        assert_eq!(error.message, format!("{of}: {why}"));
    }

    #[test]
    fn a_body_of_no_known_type_is_told_as_by_a_real_server() {
        let no_type = |why: &str| format!("couldn't get version/kind; json parse error: {why}");
        check(b"", &no_type("unexpected end of JSON input (<empty>)"));
        check(b"{", &no_type("unexpected end of JSON input ({)"));
        check(
            b"{\"kind\": \"ConfigMap\", \"metadata\" {}}",
            &no_type(
                "invalid character '{' after object key ({\"kind\": \"ConfigMap\", \"metadat ...)",
            ),
        );
        check(
            b"[]",
            &no_type(
                r#"json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } (5b5d)"#,
            ),
        );
        check(
            b"{\"kind\": 1}",
            &no_type(
                "json: cannot unmarshal number into Go struct field .kind of type string \
                 ({\"kind\": 1})",
            ),
        );
        check(
            b"{\"apiVersion\": \"a/b/c\"}",
            "unexpected GroupVersion string: a/b/c ({\"apiVersion\": \"a/b/c\"})",
        );
    }
}
