//! Matches writes with policies and bindings.

use serde_json::Value;

use crate::call::Operation;
use crate::label_selector::selects;
use crate::meta;
use crate::resources::StorageKey;
use crate::store::Store;

use super::{Write, list};

/// The name of an operation.
pub(super) fn word(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "CREATE",
        Operation::Delete => "DELETE",
        Operation::Update => "UPDATE",
    }
}

/// Whether `part` (`MatchResources`) matches the write.
pub(super) fn matches(store: &Store, part: &Value, write: Write<'_>) -> bool {
    let rules = list(part, "/resourceRules");
    let excluded = list(part, "/excludeResourceRules");
    (rules.is_empty() || rules.iter().any(|rule| rule_matches(rule, write)))
        && !excluded.iter().any(|rule| rule_matches(rule, write))
        && namespace_matches(store, part, write)
        && object_matches(part, write)
}

fn rule_matches(rule: &Value, write: Write<'_>) -> bool {
    let call = write.call;
    let has = |member: &str, word: &str| {
        let words = list(rule, &format!("/{member}"));
        words.iter().any(|own| own == "*" || own == word)
    };
    let names = list(rule, "/resourceNames");
    let scope = rule.get("scope").and_then(Value::as_str).unwrap_or("*");
    let scope_fits = match scope {
        "Cluster" => !call.resource.namespaced,
        "Namespaced" => call.resource.namespaced,
        _ => true,
    };
    let resource = list(rule, "/resources").iter().filter_map(Value::as_str).any(|own| {
        let (own, sub) = own.split_once('/').unwrap_or((own, ""));
        let sub_fits = sub == call.subresource || sub == "*";
        sub_fits && (own == "*" || own == call.resource.plural)
    });
    resource
        && scope_fits
        && has("operations", word(write.operation))
        && has("apiGroups", &call.resource.group)
        && has("apiVersions", &call.resource.version)
        && (names.is_empty() || names.iter().any(|name| name == call.name.as_str()))
}

fn namespace_matches(store: &Store, part: &Value, write: Write<'_>) -> bool {
    let selector = part.get("namespaceSelector");
    let namespaces = StorageKey::new("", "namespaces");
    let namespace = if write.call.resource.is("", "namespaces") {
        write.object.or(write.before)
    } else if write.call.resource.namespaced {
        store.get(&namespaces, "", &write.call.namespace).map(AsRef::as_ref)
    } else {
        return true;
    };
    match (selector, namespace) {
        (None, _) => true,
        (selector, Some(namespace)) => selects(selector, namespace),
        (Some(_), None) => false,
    }
}

fn object_matches(part: &Value, write: Write<'_>) -> bool {
    let Some(selector) = part.get("objectSelector") else { return true };
    // Objects without metadata, such as reviews, have no labels.
    let states = [write.object, write.before];
    states
        .into_iter()
        .flatten()
        .any(|object| meta::get(object, "name").is_some() && selects(Some(selector), object))
}
