//! CustomResourceDefinitions: their defaults and validation, and how they take effect.

mod definition;
mod names;
mod reconcile;
mod schema;
mod version;

pub(crate) use definition::{complete, note_storage, validate, validate_update};
pub(crate) use reconcile::{reconcile, retry};

use serde_json::Value;

use super::resources::Resource;

const GROUP: &str = "apiextensions.k8s.io";
const PLURAL: &str = "customresourcedefinitions";

/// Whether objects of the resource are CustomResourceDefinitions.
pub(crate) fn is_definition(resource: &Resource) -> bool {
    resource.is(GROUP, PLURAL)
}

/// Whether objects of the definition are served.
fn is_established(definition: &Value) -> bool {
    list(definition, "/status/conditions").iter().any(|condition| {
        text(condition, "/type") == "Established" && text(condition, "/status") == "True"
    })
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
