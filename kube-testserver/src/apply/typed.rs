//! How apply treats the values of a kind: as a whole, member by member, or item by item.

use serde_json::{Map, Value};

use super::set::FieldSet;
use crate::schema::{self, Field, ListKind, Message, Type};

/// The position of a value in a kind's types.
#[derive(Clone, Copy, Debug)]
pub(super) enum Node<'a> {
    /// A whole object of a built-in kind.
    Message(&'static Message),
    /// A member of a built-in kind.
    Field(&'static Field),
    /// An item of a list or map of a built-in kind.
    Item(&'static Type),
    /// A value under an OpenAPI schema; the flag marks a whole object.
    Open(&'a Value, bool),
    /// Unknown type: objects are maps, lists are atomic.
    Unknown,
}

/// How apply treats a value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Way {
    /// As a whole.
    Atomic,
    /// Item by item, identified by these members.
    Keyed(Vec<Key>),
    /// Member by member.
    Map,
    /// Item by item, identified by value.
    Set,
}

/// A member that identifies an item of a list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Key {
    name: String,
    /// The value that an item without the member has.
    default: Option<Value>,
}

impl<'a> Node<'a> {
    /// How `value` is treated here. Scalars are atomic.
    pub(super) fn way(self, value: &Value) -> Way {
        match self {
            Self::Message(message) => of_message(message),
            Self::Field(field) if field.atomic => Way::Atomic,
            Self::Field(field) => match (&field.ty, &field.list) {
                (Type::List(_), ListKind::Map(keys)) => {
                    let key = |key: &schema::MapKey| Key {
                        name: key.name.to_owned(),
                        default: key.default.map(Into::into),
                    };
                    Way::Keyed(keys.iter().map(key).collect())
                }
                (Type::List(_), ListKind::Set) => Way::Set,
                (ty, _) => of_type(ty, value),
            },
            Self::Item(ty) => of_type(ty, value),
            Self::Open(schema, _) => open(schema, value),
            Self::Unknown if value.is_object() => Way::Map,
            Self::Unknown => Way::Atomic,
        }
    }

    /// The type of a member; `None` without such a member.
    pub(super) fn member(self, name: &str) -> Option<Node<'a>> {
        let of = |message| schema::member(message, name).map(Node::Field);
        match self {
            Self::Message(_) if name == "kind" || name == "apiVersion" => Some(Self::Unknown),
            Self::Message(message) => of(message),
            Self::Field(field) => Self::Item(&field.ty).member(name),
            Self::Item(Type::Message(inner)) => of(schema::message(inner)?),
            Self::Item(Type::Map(inner)) => Some(Self::Item(inner)),
            Self::Item(_) | Self::Unknown => Some(Self::Unknown),
            Self::Open(_, true) if name == "metadata" => {
                schema::message("ObjectMeta").map(Node::Message)
            }
            Self::Open(_, true) if name == "kind" || name == "apiVersion" => Some(Self::Unknown),
            Self::Open(schema, _) => {
                let flag = |name: &str| schema.get(name) == Some(&Value::Bool(true));
                if let Some(member) = schema.get("properties").and_then(|all| all.get(name)) {
                    return Some(Self::Open(member, flag_embedded(member)));
                }
                match schema.get("additionalProperties") {
                    Some(Value::Object(_)) => {
                        schema.get("additionalProperties").map(|all| Self::Open(all, false))
                    }
                    Some(Value::Bool(true)) => Some(Self::Unknown),
                    _ if flag("x-kubernetes-preserve-unknown-fields") => Some(Self::Unknown),
                    _ => None,
                }
            }
        }
    }

    /// Whether members are free keys of a map and not named in the type.
    pub(super) fn is_free_map(self) -> bool {
        match self {
            Self::Message(_) => false,
            Self::Field(field) => Self::Item(&field.ty).is_free_map(),
            Self::Item(ty) => !matches!(ty, Type::Message(_)),
            Self::Open(schema, _) => schema.get("properties").is_none(),
            Self::Unknown => true,
        }
    }

    /// The type of the items of a list.
    pub(super) fn item(self) -> Node<'a> {
        match self {
            Self::Field(Field { ty: Type::List(inner), .. }) | Self::Item(Type::List(inner)) => {
                Self::Item(inner)
            }
            Self::Open(schema, _) => {
                schema.get("items").map_or(Self::Unknown, |items| Self::Open(items, false))
            }
            _ => Self::Unknown,
        }
    }
}

fn flag_embedded(schema: &Value) -> bool {
    schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true))
}

fn of_message(message: &Message) -> Way {
    if message.atomic { Way::Atomic } else { Way::Map }
}

fn of_type(ty: &Type, value: &Value) -> Way {
    match ty {
        Type::Message(name) => schema::message(name).map_or(Way::Map, of_message),
        Type::Map(_) => Way::Map,
        Type::Any if value.is_object() => Way::Map,
        _ => Way::Atomic,
    }
}

fn open(schema: &Value, value: &Value) -> Way {
    let text = |name: &str| schema.get(name).and_then(Value::as_str).unwrap_or("");
    match (value, text("x-kubernetes-list-type")) {
        (Value::Object(_), _) if text("x-kubernetes-map-type") == "atomic" => Way::Atomic,
        (Value::Object(_), _) => Way::Map,
        (Value::Array(_), "set") => Way::Set,
        (Value::Array(_), "map") => {
            let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
            let properties = schema.pointer("/items/properties");
            let default = |name: &str| properties?.get(name)?.get("default").cloned();
            let keys = keys.into_iter().flatten().filter_map(Value::as_str);
            let key = |name: &str| Key { name: name.to_owned(), default: default(name) };
            Way::Keyed(keys.map(key).collect())
        }
        _ => Way::Atomic,
    }
}

/// The path element of an item.
pub(super) fn element(way: &Way, item: &Value) -> String {
    match way {
        Way::Keyed(keys) => {
            let value = |key: &Key| item.get(&key.name).or(key.default.as_ref()).cloned();
            let of: Map<String, Value> =
                keys.iter().filter_map(|key| Some((key.name.clone(), value(key)?))).collect();
            format!("k:{}", Value::from(of))
        }
        Way::Atomic | Way::Map | Way::Set => format!("v:{item}"),
    }
}

/// The path element of a member.
pub(super) fn named(member: &str) -> String {
    format!("f:{member}")
}

/// Reasons why a value does not fit its type, each with its path, for example
/// `.spec.frob: field not declared in schema`.
pub(super) fn errors(node: Node<'_>, value: &Value) -> Vec<String> {
    let mut out = vec![];
    match value {
        Value::Object(members) if !matches!(node, Node::Unknown) => {
            for (name, value) in members {
                match node.member(name) {
                    None => out.push(format!(".{name}: field not declared in schema")),
                    Some(below) => {
                        let below = errors(below, value);
                        out.extend(below.into_iter().map(|error| format!(".{name}{error}")));
                    }
                }
            }
        }
        Value::Array(items) => {
            let way = node.way(value);
            if let Way::Keyed(keys) = &way {
                out.extend(key_errors(&way, keys, items));
            }
            for (index, item) in items.iter().enumerate() {
                let at = match way {
                    Way::Keyed(_) => path_of(&way, item),
                    Way::Atomic | Way::Map | Way::Set => format!("[{index}]"),
                };
                let below = errors(node.item(), item);
                out.extend(below.into_iter().map(|error| format!("{at}{error}")));
            }
        }
        _ => {}
    }
    out
}

/// Items that cannot be told apart by the keys of their list.
fn key_errors(way: &Way, keys: &[Key], items: &[Value]) -> Vec<String> {
    let mut out = vec![];
    let mut seen = vec![];
    for (index, item) in items.iter().enumerate() {
        let lacks = |key: &&Key| item.get(&key.name).is_none() && key.default.is_none();
        if let Some(key) = keys.iter().find(lacks) {
            out.push(format!(
                ": element {index}: associative list with keys has an element that omits key field \
                 {:?} (and doesn't have default value)",
                key.name
            ));
            continue;
        }
        let element = element(way, item);
        if seen.contains(&element) {
            out.push(format!(": duplicate entries for key {}", path_of(way, item)));
        }
        seen.push(element);
    }
    out
}

/// The path of an item, for example `[type="Ready"]`.
fn path_of(way: &Way, item: &Value) -> String {
    let mut set = FieldSet::default();
    set.insert(&[element(way, item)]);
    set.paths().pop().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(name: &str, default: Option<Value>) -> Key {
        Key { name: name.to_owned(), default }
    }

    fn node_kind() -> Node<'static> {
        Node::Message(schema::kind("v1", "Node").unwrap())
    }

    #[test]
    fn lists_of_built_in_kinds() {
        let list = json!([]);
        let taints = node_kind().member("spec").unwrap().member("taints").unwrap();
        assert_eq!(taints.way(&list), Way::Atomic);
        let conditions = node_kind().member("status").unwrap().member("conditions").unwrap();
        assert_eq!(conditions.way(&list), Way::Keyed(vec![key("type", None)]));
        let finalizers = node_kind().member("metadata").unwrap().member("finalizers").unwrap();
        assert_eq!(finalizers.way(&list), Way::Set);
    }

    #[test]
    fn unknown_members_are_found_at_any_depth() {
        let value = json!({"kind": "Node", "dta": {}, "spec": {"x": 1},
            "status": {"conditions": [{"type": "Ready", "y": 1}]}});
        assert_eq!(
            errors(node_kind(), &value),
            [".dta", ".spec.x", ".status.conditions[type=\"Ready\"].y"]
                .map(|path| format!("{path}: field not declared in schema"))
        );
    }

    #[test]
    fn items_differ_in_their_keys() {
        let service = Node::Message(schema::kind("v1", "Service").unwrap());
        let of = |ports: Value| errors(service, &json!({"spec": {"ports": ports}}));
        assert_eq!(of(json!([{"port": 80}, {"port": 80, "protocol": "UDP"}])), [""; 0]);
        assert_eq!(
            of(json!([{"port": 80}, {"port": 80, "protocol": "TCP"}])),
            [".spec.ports: duplicate entries for key [port=80,protocol=\"TCP\"]"]
        );
        assert_eq!(
            of(json!([{"protocol": "TCP"}])),
            [
                ".spec.ports: element 0: associative list with keys has an element that omits key field \
              \"port\" (and doesn't have default value)"
            ]
        );
    }

    #[test]
    fn custom_schemas_say_how() {
        let schema = json!({"properties": {"spec": {"properties": {
            "l": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"],
                "items": {"properties": {"a": {"default": "x"}}}},
            "free": {"x-kubernetes-preserve-unknown-fields": true}}}}});
        let spec = Node::Open(&schema, true).member("spec").unwrap();
        assert_eq!(
            spec.member("l").unwrap().way(&json!([])),
            Way::Keyed(vec![key("a", Some("x".into()))])
        );
        assert!(spec.member("none").is_none());
        assert!(spec.member("free").unwrap().member("x").is_some());
    }
}
