//! Normalizes JSON as the server does when it reads it into its own types: unknown members are dropped (and named),
//! types are checked, times and numbers get their canonical form, empty members are removed, and members that are
//! always written are added.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{Field, Message, Presence, Type, members, message};
use crate::golang;
use crate::golang::time::{MICROSECONDS, SECONDS};

/// A value in its canonical form.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shaped {
    /// The value.
    pub(crate) value: Value,
    /// Paths of dropped unknown members, for example `spec.taints[0].$patch`.
    pub(crate) unknown: Vec<String>,
}

/// A value that cannot be read as its type, with the message of Go's decoder.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unreadable(String);

/// Normalizes a whole object of the message; `kind` and `apiVersion` are kept.
///
/// # Errors
/// A member has a wrong type: the server answers 400.
pub(crate) fn object(of: &'static Message, value: &Value) -> Result<Shaped, Unreadable> {
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
    /// Surrounding messages and members, outermost first.
    around: Vec<(&'static str, &'static str)>,
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
    ) -> Result<Value, Unreadable> {
        let wanted = || go_type(&Type::Message(of.name));
        let given = value.as_object().ok_or_else(|| self.mismatch(value, &wanted()))?;
        let fields = members(of);
        for name in given.keys() {
            let kind = root && (name == "kind" || name == "apiVersion");
            if !kind && !fields.iter().any(|field| field.json == name) {
                self.unknown.push(join(path, name));
            }
        }
        let mut out = Map::new();
        for field in fields {
            self.around.push((of.name, field.json));
            let shaped = match given.get(field.json) {
                None | Some(Value::Null) => None,
                Some(value) => Some(self.value(&field.ty, value, &join(path, field.json))?),
            };
            self.around.pop();
            if let Some(value) = present(field, shaped) {
                out.insert(field.json.to_owned(), value);
            }
        }
        Ok(out.into())
    }

    fn value(&mut self, ty: &Type, value: &Value, path: &str) -> Result<Value, Unreadable> {
        let read = match ty {
            Type::Message(name) => match message(name) {
                Some(of) => return self.message(of, value, path, false),
                None => Some(value.clone()),
            },
            Type::List(_) | Type::Extra if !value.is_array() => None,
            Type::List(inner) => return self.list(inner, value, path),
            Type::Extra => return self.list(&Type::Str, value, path),
            Type::Map(_) if !value.is_object() => None,
            Type::Map(inner) => return self.map(inner, value, path),
            Type::Any | Type::Raw | Type::Fields => Some(value.clone()),
            Type::Str => value.as_str().map(Into::into),
            Type::Bool => value.as_bool().map(Into::into),
            Type::I64 => integer(value).map(Into::into),
            Type::I32 => {
                integer(value).and_then(|number| i32::try_from(number).ok()).map(Into::into)
            }
            Type::F64 => value.as_f64().map(Into::into),
            Type::Bytes => value.as_str().map(bytes).transpose()?,
            Type::Time => value.as_str().map(|text| time(text, seconds, SECONDS)).transpose()?,
            Type::MicroTime => {
                value.as_str().map(|text| time(text, micros, MICROSECONDS)).transpose()?
            }
            Type::IntOrString if value.is_string() => Some(value.clone()),
            Type::IntOrString => return self.value(&Type::I32, value, path),
            Type::Quantity => Some(quantity(value)?),
        };
        read.ok_or_else(|| self.mismatch(value, &go_type(ty)))
    }

    fn list(&mut self, inner: &Type, value: &Value, path: &str) -> Result<Value, Unreadable> {
        let items = value.as_array().into_iter().flatten().enumerate();
        let items = items.map(|(index, item)| match item {
            Value::Null => Ok(zero(inner)),
            item => self.value(inner, item, &format!("{path}[{index}]")),
        });
        Ok(Value::Array(items.collect::<Result<_, _>>()?))
    }

    fn map(&mut self, inner: &Type, value: &Value, path: &str) -> Result<Value, Unreadable> {
        let members = value.as_object().into_iter().flatten();
        let members = members.map(|(key, value)| {
            let value = match value {
                Value::Null => zero(inner),
                value => self.value(inner, value, &format!("{path}[{key}]"))?,
            };
            Ok((key.clone(), value))
        });
        Ok(Value::Object(members.collect::<Result<_, _>>()?))
    }

    fn mismatch(&self, found: &Value, wanted: &str) -> Unreadable {
        let found = match found {
            Value::Number(number) if wanted.starts_with("int") => format!("number {number}"),
            found => golang::json::type_name(found).to_owned(),
        };
        let members: Vec<_> = self.around.iter().map(|(_, member)| *member).collect();
        let message = self.around.last().map_or("", |(message, _)| *message);
        Unreadable(format!(
            "json: cannot unmarshal {found} into Go struct field {}.{} of type {wanted}",
            go_name(message),
            members.join("."),
        ))
    }
}

/// The name of a message without the group prefix of the tables.
fn go_name(message: &str) -> &str {
    message.rsplit('.').next().unwrap_or(message)
}

/// Go's name for a type.
fn go_type(ty: &Type) -> String {
    match ty {
        Type::Bool => "bool".to_owned(),
        Type::Bytes => "[]uint8".to_owned(),
        Type::Extra => "v1.ExtraValue".to_owned(),
        Type::F64 => "float64".to_owned(),
        Type::I32 | Type::IntOrString => "int32".to_owned(),
        Type::I64 => "int64".to_owned(),
        Type::List(inner) => format!("[]{}", go_type(inner)),
        Type::Map(inner) => format!("map[string]{}", go_type(inner)),
        Type::Message(name) => format!("v1.{}", go_name(name)),
        Type::Quantity => "resource.Quantity".to_owned(),
        // Both types are read from a text.
        Type::MicroTime | Type::Str | Type::Time => "string".to_owned(),
        Type::Any | Type::Fields | Type::Raw => "interface {}".to_owned(),
    }
}

fn bytes(text: &str) -> Result<Value, Unreadable> {
    golang::base64::canonical(text).map(Into::into).map_err(Unreadable)
}

fn time(text: &str, read: fn(&str) -> Option<String>, layout: &str) -> Result<Value, Unreadable> {
    let read = read(text).map(Into::into);
    read.ok_or_else(|| Unreadable(golang::time::parse_error(text, layout)))
}

fn quantity(value: &Value) -> Result<Value, Unreadable> {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let canonical = golang::quantity::canonical(&text).map(Into::into);
    canonical.map_err(|why| Unreadable(why.to_owned()))
}

/// Reads whole numbers only, like Go; `3.0` counts.
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

/// The value of a member in the answer.
fn present(field: &'static Field, value: Option<Value>) -> Option<Value> {
    match (field.presence, value) {
        (Presence::Always, None) => Some(zero(&field.ty)),
        (Presence::OrNull, None) => Some(Value::Null),
        (Presence::Always | Presence::Given | Presence::OrNull, value) => value,
        // An empty message that was given stays: it is a pointer.
        (Presence::NonZero, Some(Value::Object(members))) if members.is_empty() => {
            matches!(field.ty, Type::Message(_) | Type::Any).then(|| members.into())
        }
        (Presence::NonZero, value) => value.filter(|value| !is_zero(value)),
    }
}

/// Whether a value is null, false, 0 or empty.
pub(crate) fn is_zero(value: &Value) -> bool {
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
    fn what_cannot_be_read_is_told_as_by_go() {
        let struct_field = |rest: &str| format!("json: cannot unmarshal {rest}");
        for (version, name, given, error) in [
            (
                "v1",
                "ConfigMap",
                json!({"data": {"a": 1}}),
                struct_field("number into Go struct field ConfigMap.data of type string"),
            ),
            (
                "v1",
                "ConfigMap",
                json!({"data": ["a"]}),
                struct_field("array into Go struct field ConfigMap.data of type map[string]string"),
            ),
            (
                "v1",
                "ConfigMap",
                json!({"metadata": "x"}),
                struct_field("string into Go struct field ConfigMap.metadata of type v1.ObjectMeta"),
            ),
            (
                "v1",
                "ConfigMap",
                json!({"metadata": {"labels": {"a": true}}}),
                struct_field("bool into Go struct field ObjectMeta.metadata.labels of type string"),
            ),
            (
                "apps/v1",
                "Deployment",
                json!({"spec": {"replicas": "1"}}),
                struct_field(
                    "string into Go struct field DeploymentSpec.spec.replicas of type int32",
                ),
            ),
            (
                "apps/v1",
                "Deployment",
                json!({"spec": {"replicas": 1.5}}),
                struct_field(
                    "number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
                ),
            ),
            (
                "v1",
                "Pod",
                json!({"spec": {"containers": [{"env": [{"name": "A", "value": 1}]}]}}),
                struct_field(
                    "number into Go struct field EnvVar.spec.containers.env.value of type string",
                ),
            ),
            (
                "v1",
                "Pod",
                json!({"spec": {"containers": {}}}),
                struct_field(
                    "object into Go struct field PodSpec.spec.containers of type []v1.Container",
                ),
            ),
            (
                "v1",
                "Secret",
                json!({"data": {"a": "a!=="}}),
                "illegal base64 data at input byte 1".to_owned(),
            ),
            (
                "v1",
                "Secret",
                json!({"data": {"a": "YWJjZ"}}),
                "illegal base64 data at input byte 4".to_owned(),
            ),
            (
                "v1",
                "Node",
                json!({"status": {"capacity": {"cpu": "1Kii"}}}),
                "unable to parse quantity's suffix".to_owned(),
            ),
            (
                "v1",
                "ConfigMap",
                json!({"metadata": {"creationTimestamp": "x"}}),
                "parsing time \"x\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"x\" as \"2006\""
                    .to_owned(),
            ),
        ] {
            let read = object(kind(version, name).unwrap(), &given);
            assert_eq!(read.unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn quantities_are_canonical() {
        let node = kind("v1", "Node").unwrap();
        let given =
            json!({"status": {"capacity": {"cpu": "4000m", "memory": "1024Mi", "pods": 110}}});
        assert_eq!(
            object(node, &given).unwrap().value["status"]["capacity"],
            json!({"cpu": "4", "memory": "1Gi", "pods": "110"})
        );
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
