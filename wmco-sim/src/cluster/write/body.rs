//! Reading the body of a request into an object of the expected kind.

use std::fmt;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::cluster::call::{Call, FieldValidation};
use crate::cluster::error::{ApiError, FieldError, Result, Subject};
use crate::cluster::registry::Registry;
use crate::cluster::resources::{join_api_version, split_api_version};
use crate::cluster::{protobuf, schema, validate};

/// How a body is written.
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
    /// Members that stand more than once, for example `data.a`.
    pub duplicates: Vec<String>,
    /// The text as sent, for messages that quote it.
    pub text: String,
}

impl Body {
    /// Parses `bytes`; `expected` is the kind that an error names.
    ///
    /// # Errors
    /// 400 when the text is not in that form.
    pub(crate) fn parse(form: Form, bytes: &[u8], expected: &str) -> Result<Self> {
        let text = || String::from_utf8_lossy(bytes).into_owned();
        match form {
            Form::Protobuf => {
                let value = protobuf::from_protobuf(bytes, expected)?;
                Ok(Self { value, ..Self::default() })
            }
            Form::Json => {
                let (value, duplicates) = parse_json(bytes).map_err(|error| {
                    ApiError::bad_request(format!("the body cannot be read as JSON: {error}"))
                })?;
                Ok(Self { value, duplicates, text: text() })
            }
            Form::Yaml => {
                let text = text();
                let value = serde_saphyr::from_str(&text).map_err(|error| {
                    ApiError::bad_request(format!("the body cannot be read as YAML: {error}"))
                })?;
                Ok(Self { value, duplicates: Vec::new(), text })
            }
        }
    }

    /// Turns the document into an object of the kind that `call` expects. Returns it with the
    /// warnings about what was dropped.
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
        let (object, mut unknown) = typed(call, self.value)?;
        let mut problems: Vec<String> =
            self.duplicates.iter().map(|path| format!("duplicate field {path:?}")).collect();
        unknown.sort();
        problems.extend(unknown.iter().map(|path| format!("unknown field {path:?}")));
        let version = split_api_version(&api_version).1;
        match call.options.validation {
            FieldValidation::Strict if !problems.is_empty() => Err(ApiError::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {kind}: strict decoding \
                 error: {}",
                problems.join(", ")
            ))),
            FieldValidation::Ignore => Ok((object, Vec::new())),
            FieldValidation::Strict | FieldValidation::Warn => Ok((object, problems)),
        }
    }

    fn stated(&self, field: &str) -> String {
        self.value.get(field).and_then(Value::as_str).unwrap_or("").to_owned()
    }

    fn check_builtin(&mut self, api_version: &str, kind: &str, registry: &Registry) -> Result<()> {
        let Some(members) = self.value.as_object_mut() else {
            return Err(ApiError::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind}): it is no JSON object"
            )));
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
            // The one old version that is still read; it has the same members.
            if let Some(members) = self.value.as_object_mut() {
                members.insert("apiVersion".to_owned(), api_version.into());
            }
            return Ok(());
        }
        let (group, version) = split_api_version(&given_version);
        let known = registry.find_kind(group, version, &given_kind).is_some();
        let same_kind = given_kind == kind && (known || group == split_api_version(api_version).0);
        if same_kind && known {
            return Err(wrong_version(&given_version, api_version));
        }
        let cause = if known {
            format!(
                "converting ({version}.{given_kind}) to ({}.{kind}): unknown conversion",
                go_package(split_api_version(api_version).0)
            )
        } else {
            format!(
                "no kind {given_kind:?} is registered for version {given_version:?} in scheme \
                 \"pkg/api/legacyscheme/scheme.go:30\""
            )
        };
        Err(ApiError::bad_request(format!(
            "{given_kind} in version {version:?} cannot be handled as a {kind}: {cause}"
        )))
    }

    fn check_custom(&self, api_version: &str, kind: &str) -> Result<()> {
        let (given_version, given_kind) = (self.stated("apiVersion"), self.stated("kind"));
        if given_kind.is_empty() {
            return Err(ApiError::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind}): Object 'Kind' is \
                 missing in '{}' ({})",
                self.text,
                summary(&self.text)
            )));
        }
        if given_version.is_empty() {
            return Err(ApiError::bad_request(format!(
                "{given_kind} in version \"\" cannot be handled as a {kind}: Object 'apiVersion' \
                 is missing in '{}'",
                self.text
            )));
        }
        if given_kind != kind {
            let name = self.value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("");
            let group = split_api_version(&given_version).0;
            let of = Subject { group, kind: &given_kind, name };
            let why = format!("must be {kind}");
            let error = FieldError::invalid("kind", &given_kind.as_str().into(), &why);
            return Err(ApiError::invalid(of, &[error]));
        }
        if given_version != api_version {
            return Err(wrong_version(&given_version, api_version));
        }
        Ok(())
    }
}

/// Reduces a document to what its kind knows; the paths of the rest come along.
///
/// # Errors
/// 400 for a member of the wrong type.
pub(super) fn typed(call: &Call, document: Value) -> Result<(Value, Vec<String>)> {
    if let Some(custom) = &call.resource.custom {
        let mut document = document;
        let unknown = custom.prune(&mut document)?;
        custom.default(&mut document);
        return Ok((document, unknown));
    }
    let (mut object, unknown) = decode(call, document)?;
    validate::default(call, &mut object);
    Ok((object, unknown))
}

/// A document with just the fields that its built-in kind knows, and the paths of the rest.
fn decode(call: &Call, object: Value) -> Result<(Value, Vec<String>)> {
    let text = |member: &str| object.get(member).and_then(Value::as_str).unwrap_or("");
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let Some(message) = schema::kind(api_version, kind) else { return Ok((object, Vec::new())) };
    match schema::shape::object(message, &object) {
        Ok(shaped) => Ok((shaped.value, shaped.unknown)),
        Err(error) => {
            let version = split_api_version(api_version).1;
            let wanted = call.body_kind();
            Err(ApiError::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {wanted}: {error}"
            )))
        }
    }
}

/// The apiVersion and kind of the body.
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

fn wrong_version(given: &str, expected: &str) -> ApiError {
    ApiError::bad_request(format!(
        "the API version in the data ({given}) does not match the expected API version ({expected})"
    ))
}

/// The Go package of a group's internal types, which a message of the API quotes.
fn go_package(group: &str) -> &str {
    if group.is_empty() { "core" } else { group.split('.').next().unwrap_or(group) }
}

/// The first 30 bytes, as messages of the API show bodies.
fn summary(text: &str) -> String {
    match text.get(..30) {
        Some(head) if text.len() > 30 => format!("{head} ..."),
        _ if text.is_empty() => "<empty>".to_owned(),
        _ => text.to_owned(),
    }
}

/// Parses JSON and notes members that stand twice; the last one counts.
fn parse_json(bytes: &[u8]) -> serde_json::Result<(Value, Vec<String>)> {
    let mut duplicates = Vec::new();
    let mut parser = serde_json::Deserializer::from_slice(bytes);
    let seed = Noting { path: String::new(), duplicates: &mut duplicates };
    let value = seed.deserialize(&mut parser)?;
    parser.end()?;
    Ok((value, duplicates))
}

struct Noting<'a> {
    path: String,
    duplicates: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Noting<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Noting<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        let number = serde_json::Number::from_f64(value);
        number.map(Value::Number).ok_or_else(|| E::custom("not a JSON number"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let path = format!("{}[{}]", self.path, items.len());
            match from.next_element_seed(Noting { path, duplicates: self.duplicates })? {
                Some(item) => items.push(item),
                None => return Ok(items.into()),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = from.next_key::<String>()? {
            let path =
                if self.path.is_empty() { key.clone() } else { format!("{}.{key}", self.path) };
            if members.contains_key(&key) {
                self.duplicates.push(path.clone());
            }
            let value = from.next_value_seed(Noting { path, duplicates: self.duplicates })?;
            members.insert(key, value);
        }
        Ok(members.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_members_are_noted_and_the_last_one_counts() {
        let text = br#"{"data": {"a": "1", "a": "2"}, "l": [{"x": 1, "x": 2}]}"#;
        let (value, duplicates) = parse_json(text).unwrap();
        assert_eq!(value["data"]["a"], "2");
        assert_eq!(duplicates, ["data.a", "l[0].x"]);
        assert!(parse_json(b"{} {}").is_err());
    }

    #[test]
    fn long_bodies_are_shown_in_part() {
        assert_eq!(summary(&"x".repeat(31)), format!("{} ...", "x".repeat(30)));
    }
}
