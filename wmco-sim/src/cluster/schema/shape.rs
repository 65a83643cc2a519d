//! Gives JSON the shape it has after the server has read it into its own types: unknown members
//! are dropped (and named), types are checked, times and numbers take their canonical form, empty
//! members go and those that are always written come.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{Field, Message, Presence, Type, members, message};

/// A value in its canonical shape.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shaped {
    /// The value.
    pub(crate) value: Value,
    /// Paths that were dropped because no such member exists, for example `spec.taints[0].$patch`.
    pub(crate) unknown: Vec<String>,
}

/// A value that does not fit its type, in words like those of Go's decoder.
#[derive(Debug, thiserror::Error)]
#[error("json: cannot unmarshal {found} into Go struct field {path} of type {wanted}")]
pub(crate) struct TypeMismatch {
    path: String,
    found: String,
    wanted: &'static str,
}

/// Shapes a whole object of the message; `kind` and `apiVersion` are kept.
///
/// # Errors
/// A member that has a type it may not have: the server answers 400.
pub(crate) fn object(of: &'static Message, value: &Value) -> Result<Shaped, TypeMismatch> {
    let mut shaper = Shaper::default();
    let mut out = shaper.message(of, value, "", true)?;
    if let (Some(out), Some(given)) = (out.as_object_mut(), value.as_object()) {
        for word in ["kind", "apiVersion"] {
            if let Some(text) = given.get(word) {
                out.insert(word.to_owned(), text.clone());
            }
        }
    }
    Ok(Shaped { value: out, unknown: shaper.unknown })
}

#[derive(Default)]
struct Shaper {
    unknown: Vec<String>,
}

fn mismatch(path: &str, found: &Value, wanted: &'static str) -> TypeMismatch {
    let found = match found {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(number) => format!("number {number}"),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    };
    TypeMismatch { path: path.to_owned(), found, wanted }
}

fn join(path: &str, member: &str) -> String {
    if path.is_empty() { member.to_owned() } else { format!("{path}.{member}") }
}

impl Shaper {
    fn message(
        &mut self,
        of: &'static Message,
        value: &Value,
        path: &str,
        root: bool,
    ) -> Result<Value, TypeMismatch> {
        let given = value.as_object().ok_or_else(|| mismatch(path, value, of.name))?;
        let fields = members(of);
        for name in given.keys() {
            let kind = root && (name == "kind" || name == "apiVersion");
            if !kind && !fields.iter().any(|field| field.json == name) {
                self.unknown.push(join(path, name));
            }
        }
        let mut out = Map::new();
        for field in fields {
            let shaped = match given.get(field.json) {
                None | Some(Value::Null) => None,
                Some(value) => Some(self.value(&field.ty, value, &join(path, field.json))?),
            };
            if let Some(value) = present(field, shaped) {
                out.insert(field.json.to_owned(), value);
            }
        }
        Ok(out.into())
    }

    fn value(&mut self, ty: &Type, value: &Value, path: &str) -> Result<Value, TypeMismatch> {
        match ty {
            Type::Message(name) => match message(name) {
                Some(of) => self.message(of, value, path, false),
                None => Ok(value.clone()),
            },
            Type::List(inner) => self.list(inner, value, path),
            Type::Extra => self.list(&Type::Str, value, path),
            Type::Map(inner) => {
                let given = value.as_object().ok_or_else(|| mismatch(path, value, "map"))?;
                let mut out = Map::new();
                for (key, value) in given {
                    let value = match value {
                        Value::Null => zero(inner),
                        value => self.value(inner, value, &format!("{path}[{key}]"))?,
                    };
                    out.insert(key.clone(), value);
                }
                Ok(out.into())
            }
            Type::Any | Type::Raw | Type::Fields => Ok(value.clone()),
            Type::Str => scalar(value.as_str(), path, value, "string"),
            Type::Bool => scalar(value.as_bool(), path, value, "bool"),
            Type::I64 => scalar(integer(value), path, value, "int64"),
            Type::I32 => {
                let number = integer(value).and_then(|number| i32::try_from(number).ok());
                scalar(number, path, value, "int32")
            }
            Type::F64 => scalar(value.as_f64(), path, value, "float64"),
            Type::Bytes => {
                let text = value.as_str().filter(|text| STANDARD.decode(text).is_ok());
                scalar(text, path, value, "[]uint8")
            }
            Type::Time => scalar(value.as_str().and_then(seconds), path, value, "Time"),
            Type::MicroTime => scalar(value.as_str().and_then(micros), path, value, "MicroTime"),
            Type::IntOrString => match value {
                Value::String(_) => Ok(value.clone()),
                _ => self.value(&Type::I32, value, path),
            },
            Type::Quantity => match value {
                Value::String(text) if is_quantity(text) => Ok(value.clone()),
                Value::Number(number) => Ok(number.to_string().into()),
                _ => Err(mismatch(path, value, "Quantity")),
            },
        }
    }

    fn list(&mut self, inner: &Type, value: &Value, path: &str) -> Result<Value, TypeMismatch> {
        let given = value.as_array().ok_or_else(|| mismatch(path, value, "slice"))?;
        let items = given.iter().enumerate().map(|(index, item)| match item {
            Value::Null => Ok(zero(inner)),
            item => self.value(inner, item, &format!("{path}[{index}]")),
        });
        Ok(Value::Array(items.collect::<Result<_, _>>()?))
    }
}

fn scalar<T: Into<Value>>(
    read: Option<T>,
    path: &str,
    value: &Value,
    wanted: &'static str,
) -> Result<Value, TypeMismatch> {
    read.map(Into::into).ok_or_else(|| mismatch(path, value, wanted))
}

/// Whole numbers only, as Go reads them; `3.0` counts.
fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        let float = value.as_f64().filter(|float| float.fract() == 0.0)?;
        format!("{float:.0}").parse().ok()
    })
}

fn seconds(text: &str) -> Option<String> {
    let time: Timestamp = text.parse().ok()?;
    Some(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

fn micros(text: &str) -> Option<String> {
    // `2006-01-02T15:04:05.000000` and then the zone.
    let (_, fraction) = text.split_once('.')?;
    let digits = fraction.chars().take_while(char::is_ascii_digit).count();
    let time: Timestamp = text.parse().ok()?;
    (digits == 6).then(|| time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string())
}

fn is_quantity(text: &str) -> bool {
    let number = text.trim_start_matches(['+', '-']);
    let digits = number.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let digits = digits.trim_end_matches(['e', 'E', '+', '-']);
    !digits.is_empty()
        && digits.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'))
}

/// What stands for a member in the answer.
fn present(field: &'static Field, value: Option<Value>) -> Option<Value> {
    match (field.presence, value) {
        (Presence::Always, None) => Some(zero(&field.ty)),
        (Presence::OrNull, None) => Some(Value::Null),
        (Presence::Always | Presence::Given | Presence::OrNull, value) => value,
        // A message given empty stays: it is a pointer.
        (Presence::NonZero, Some(Value::Object(members))) if members.is_empty() => {
            matches!(field.ty, Type::Message(_) | Type::Any).then(|| members.into())
        }
        (Presence::NonZero, value) => value.filter(|value| !is_zero(value)),
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_f64() == Some(0.0),
        Value::String(value) => value.is_empty(),
        Value::Array(value) => value.is_empty(),
        Value::Object(value) => value.is_empty(),
    }
}

/// Go's zero value of a type, as JSON.
pub(crate) fn zero(ty: &Type) -> Value {
    match ty {
        Type::Bool => false.into(),
        Type::F64 | Type::I32 | Type::I64 | Type::IntOrString => 0.into(),
        Type::Quantity => "0".into(),
        Type::Str => "".into(),
        Type::Any
        | Type::Bytes
        | Type::Extra
        | Type::Fields
        | Type::List(_)
        | Type::Map(_)
        | Type::MicroTime
        | Type::Raw
        | Type::Time => Value::Null,
        Type::Message(name) => message(name).map_or(Value::Null, |of| {
            members(of)
                .into_iter()
                .filter_map(|field| Some((field.json.to_owned(), present(field, None)?)))
                .collect::<Map<_, _>>()
                .into()
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::kind;
    use super::*;

    #[track_caller]
    fn check(api_version: &str, name: &str, given: &Value, expected: &Value, unknown: &[&str]) {
        let shaped = object(kind(api_version, name).unwrap(), given).unwrap();
        assert_eq!(&shaped.value, expected);
        assert_eq!(shaped.unknown, unknown);
    }

    #[test]
    fn empty_members_go_and_fixed_ones_come() {
        let given = json!({"kind": "Node", "spec": {"unschedulable": false, "taints": []}});
        let shaped = object(kind("v1", "Node").unwrap(), &given).unwrap();
        assert_eq!(shaped.value["spec"], json!({}));
        assert_eq!(
            shaped.value["status"]["daemonEndpoints"],
            json!({"kubeletEndpoint": {"Port": 0}})
        );
        assert_eq!(shaped.value["status"]["nodeInfo"]["bootID"], "");
    }

    #[test]
    fn unknown_members_are_named() {
        check(
            "v1",
            "ConfigMap",
            &json!({"dta": {}, "metadata": {"name": "a", "ownerReferences": [{"x": 1}]}}),
            &json!({"metadata": {"name": "a", "ownerReferences":
                [{"apiVersion": "", "kind": "", "name": "", "uid": ""}]}}),
            &["dta", "metadata.ownerReferences[0].x"],
        );
    }

    #[test]
    fn pointers_keep_zero_values() {
        check(
            "coordination.k8s.io/v1",
            "Lease",
            &json!({"spec": {"holderIdentity": "", "leaseTransitions": 0, "renewTime": null}}),
            &json!({"metadata": {}, "spec": {"holderIdentity": "", "leaseTransitions": 0}}),
            &[],
        );
    }

    #[test]
    fn micro_times_want_six_decimals() {
        let lease = kind("coordination.k8s.io/v1", "Lease").unwrap();
        let with = |time: &str| object(lease, &json!({"spec": {"renewTime": time}}));
        assert!(with("2026-01-01T00:00:00Z").is_err());
        assert!(with("2026-01-01T00:00:00.123456789Z").is_err());
        assert!(with("yesterday").is_err());
        let shaped = with("2026-01-01T02:00:00.123456+02:00").unwrap();
        assert_eq!(shaped.value["spec"]["renewTime"], "2026-01-01T00:00:00.123456Z");
    }

    #[test]
    fn wrong_types_are_refused() {
        let map = kind("v1", "ConfigMap").unwrap();
        assert!(object(map, &json!({"data": {"a": 1}})).is_err());
        assert!(object(map, &json!({"binaryData": {"a": "!!!"}})).is_err());
        assert!(object(map, &json!({"metadata": []})).is_err());
    }

    #[test]
    fn shaping_twice_changes_nothing() {
        let pod = kind("v1", "Pod").unwrap();
        let given =
            json!({"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 1}]}]}});
        let once = object(pod, &given).unwrap().value;
        assert_eq!(object(pod, &once).unwrap().value, once);
    }
}
