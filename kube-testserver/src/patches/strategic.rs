//! Strategic merge patch: like a merge patch, but lists of known kinds merge by key.
//!
//! Source: `k8s.io/apimachinery/pkg/util/strategicpatch`, whose directives (`$patch`,
//! `$retainKeys`, `$setElementOrder/…`, `$deleteFromPrimitiveList/…`) kubectl writes.

use serde_json::{Map, Value};

use crate::error::{ApiError, Result};
use crate::schema::{self, Field, Merge, Message, Type};

const PATCH: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE: &str = "$deleteFromPrimitiveList/";

type Object = Map<String, Value>;

/// Applies `patch` to `document`, an object of the message type `of`.
///
/// # Errors
/// 400 if the patch is not an object, 500 for invalid directives, like the API.
pub(crate) fn strategic_merge_patch(
    document: &Value,
    patch: &Value,
    of: &'static Message,
) -> Result<Value> {
    let (Some(document), Some(patch)) = (document.as_object(), patch.as_object()) else {
        return Err(ApiError::bad_request("error decoding patch: it is not a JSON object"));
    };
    Ok(merge_map(document.clone(), patch.clone(), Some(of))?.into())
}

fn message_of(ty: &Type) -> Option<&'static Message> {
    match ty {
        Type::Message(name) => schema::message(name),
        Type::List(inner) | Type::Map(inner) => message_of(inner),
        _ => None,
    }
}

fn merge_map(
    mut original: Object,
    mut patch: Object,
    of: Option<&'static Message>,
) -> Result<Object> {
    match patch.remove(PATCH) {
        None => {}
        Some(Value::String(word)) if word == "replace" => return Ok(patch),
        Some(Value::String(word)) if word == "delete" => return Ok(Object::new()),
        Some(Value::String(word)) if word == "merge" => {}
        Some(other) => {
            let word = other.as_str().map_or_else(|| other.to_string(), str::to_owned);
            return Err(ApiError::plain(format!(
                "unknown patch type: {word} in map: map[$patch:{word}]"
            )));
        }
    }
    if let Some(Value::Array(keys)) = patch.remove(RETAIN) {
        original.retain(|key, _| keys.iter().any(|kept| kept == key));
    }
    apply_orders(&mut original, &mut patch, of)?;
    for (key, value) in patch {
        if let Some(name) = key.strip_prefix(DELETE) {
            delete_primitives(&mut original, name, &value);
            continue;
        }
        if value.is_null() {
            original.remove(&key);
            continue;
        }
        let field = of.and_then(|of| schema::member(of, &key));
        let merged = match original.remove(&key) {
            None => without_directives(value),
            Some(old) => merge_value(old, value, field)?,
        };
        original.insert(key, merged);
    }
    Ok(original)
}

fn merge_value(old: Value, new: Value, field: Option<&'static Field>) -> Result<Value> {
    let replaces = field.is_some_and(|field| field.merge == Merge::Replace);
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let is_message = field.is_none_or(|field| !matches!(field.ty, Type::List(_)));
            if replaces || !is_message {
                return Ok(new.into());
            }
            let of = match field.map(|field| &field.ty) {
                Some(ty @ Type::Message(_)) => message_of(ty),
                _ => None,
            };
            Ok(merge_map(old, new, of)?.into())
        }
        (Value::Array(old), Value::Array(new)) => Ok(merge_list(old, new, field)?.into()),
        (_, new) => Ok(new),
    }
}

fn merge_list(
    old: Vec<Value>,
    new: Vec<Value>,
    field: Option<&'static Field>,
) -> Result<Vec<Value>> {
    match field.map(|field| (&field.merge, &field.ty)) {
        Some((Merge::Key(key), ty)) => merge_by_key(old, new, key, message_of(ty)),
        Some((Merge::Set, _)) => {
            let mut merged = old.clone();
            merged.extend(new.iter().filter(|item| !old.contains(item)).cloned());
            Ok(in_order(merged, &new, &old, None))
        }
        _ => Ok(new),
    }
}

fn merge_by_key(
    old: Vec<Value>,
    new: Vec<Value>,
    key: &str,
    of: Option<&'static Message>,
) -> Result<Vec<Value>> {
    let server_order = old.clone();
    let mut merged = old;
    let mut patches = Vec::new();
    let mut replace = false;
    for item in new {
        match item.get(PATCH).and_then(Value::as_str) {
            None | Some("merge") => patches.push(item),
            Some("replace") => replace = true,
            Some("delete") => {
                let wanted = key_of(&item, key)?;
                merged.retain(|existing| existing.get(key) != Some(&wanted));
            }
            Some(other) => {
                return Err(ApiError::plain(format!("unknown patch type: {other} in list")));
            }
        }
    }
    if replace {
        return Ok(patches.into_iter().map(without_directives).collect());
    }
    for item in &patches {
        let wanted = key_of(item, key)?;
        let found = merged.iter_mut().find(|existing| existing.get(key) == Some(&wanted));
        match (found, item) {
            (Some(existing), Value::Object(item)) => {
                let old = existing.as_object().cloned().unwrap_or_default();
                *existing = merge_map(old, item.clone(), of)?.into();
            }
            _ => merged.push(without_directives(item.clone())),
        }
    }
    Ok(in_order(merged, &patches, &server_order, Some(key)))
}

fn key_of(item: &Value, key: &str) -> Result<Value> {
    item.get(key).cloned().ok_or_else(|| {
        ApiError::plain(format!("map: {item} does not contain declared merge key: {key}"))
    })
}

/// Merges lists with a `$setElementOrder` and sorts them in that order; both are removed from the patch.
fn apply_orders(
    original: &mut Object,
    patch: &mut Object,
    of: Option<&'static Message>,
) -> Result<()> {
    let orders: Vec<String> = patch.keys().filter(|key| key.starts_with(ORDER)).cloned().collect();
    for directive in orders {
        let Some(Value::Array(order)) = patch.remove(&directive) else { continue };
        let name = directive.trim_start_matches(ORDER);
        let field = of.and_then(|of| schema::member(of, name));
        let old = original.get(name).and_then(Value::as_array).cloned();
        if patch.get(name).is_some_and(Value::is_null) {
            continue;
        }
        let new = patch.remove(name).and_then(|value| value.as_array().cloned());
        let merged = match (old.clone(), new) {
            (None, None) => continue,
            (Some(old), None) => old,
            (None, Some(new)) => {
                let added = new.into_iter().filter(|item| item.get(PATCH).is_none());
                added.map(without_directives).collect()
            }
            (Some(old), Some(new)) => merge_list(old, new, field)?,
        };
        let key = match field.map(|field| &field.merge) {
            Some(Merge::Key(key)) => Some(*key),
            _ => None,
        };
        let merged = in_order(merged, &order, &old.unwrap_or_default(), key);
        original.insert(name.to_owned(), merged.into());
    }
    Ok(())
}

/// The identity of an item: the merge key, or the whole item.
fn identity<'a>(item: &'a Value, key: Option<&str>) -> Option<&'a Value> {
    match key {
        Some(key) => item.get(key),
        None => Some(item),
    }
}

fn place(items: &[Value], item: &Value, key: Option<&str>) -> Option<usize> {
    let wanted = identity(item, key)?;
    items.iter().position(|other| identity(other, key) == Some(wanted))
}

/// Sorts the items of the patch in the patch's order and the others in the server's, so that each item of the patch
/// comes before the others that followed it on the server.
fn in_order(
    merged: Vec<Value>,
    patch_order: &[Value],
    server_order: &[Value],
    key: Option<&str>,
) -> Vec<Value> {
    let (mut ours, mut others): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| place(patch_order, item, key).is_some());
    ours.sort_by_key(|item| place(patch_order, item, key));
    others.sort_by_key(|item| place(server_order, item, key).unwrap_or(usize::MAX));
    let mut out = Vec::with_capacity(ours.len() + others.len());
    let mut others = others.into_iter().peekable();
    for item in ours {
        while let Some(other) = others.peek() {
            let pair = (place(server_order, &item, key), place(server_order, other, key));
            let (Some(mine), Some(theirs)) = pair else { break };
            if mine < theirs {
                break;
            }
            out.extend(others.next());
        }
        out.push(item);
    }
    out.extend(others);
    out
}

fn delete_primitives(original: &mut Object, name: &str, gone: &Value) {
    let (Some(list), Some(gone)) =
        (original.get_mut(name).and_then(Value::as_array_mut), gone.as_array())
    else {
        return;
    };
    list.retain(|item| !gone.contains(item));
}

/// Removes directives from a new value, in which they have no effect.
fn without_directives(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(key, value)| {
                !value.is_null()
                    && key != PATCH
                    && key != RETAIN
                    && !key.starts_with(ORDER)
                    && !key.starts_with(DELETE)
            });
            kept.map(|(key, value)| (key, without_directives(value))).collect::<Object>().into()
        }
        Value::Array(items) => items.into_iter().map(without_directives).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(kind: &str, document: &Value, patch: &Value, expected: &Value) {
        check_of("v1", kind, document, patch, expected);
    }

    #[track_caller]
    fn check_of(version: &str, kind: &str, document: &Value, patch: &Value, expected: &Value) {
        let of = schema::kind(version, kind).unwrap();
        assert_eq!(&strategic_merge_patch(document, patch, of).unwrap(), expected);
    }

    #[test]
    fn containers_merge_by_name_and_keep_their_order() {
        check(
            "Pod",
            &json!({"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b"}]}}),
            &json!({"spec": {"containers": [{"name": "c"}, {"name": "a", "image": "2"}]}}),
            &json!({"spec": {"containers":
                [{"name": "c"}, {"name": "a", "image": "2"}, {"name": "b"}]}}),
        );
    }

    #[test]
    fn element_order_is_kept_and_deleted_items_go() {
        check(
            "Pod",
            &json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}, {"name": "s"}]}}),
            &json!({"spec": {
                "$setElementOrder/containers": [{"name": "b"}, {"name": "n"}],
                "containers": [{"name": "n"}, {"name": "a", "$patch": "delete"}],
            }}),
            &json!({"spec": {"containers": [{"name": "b"}, {"name": "n"}, {"name": "s"}]}}),
        );
    }

    /// The selector of a PodDisruptionBudget has the strategy `replace`. That of a Service has none, although apply
    /// treats it as atomic.
    #[test]
    fn selectors_merge_by_their_strategy() {
        let labels = |labels: Value| json!({"spec": {"selector": {"matchLabels": labels}}});
        check_of(
            "policy/v1",
            "PodDisruptionBudget",
            &labels(json!({"a": "1"})),
            &labels(json!({"b": "2"})),
            &labels(json!({"b": "2"})),
        );
        check(
            "Service",
            &json!({"spec": {"selector": {"a": "1"}}}),
            &json!({"spec": {"selector": {"b": "2"}}}),
            &json!({"spec": {"selector": {"a": "1", "b": "2"}}}),
        );
    }

    #[test]
    fn replace_and_retain_keys_forget_the_rest() {
        check(
            "ConfigMap",
            &json!({"data": {"a": "1"}, "metadata": {"labels": {"x": "1"}}}),
            &json!({"data": {"$patch": "replace", "b": "2"}}),
            &json!({"data": {"b": "2"}, "metadata": {"labels": {"x": "1"}}}),
        );
        check(
            "Pod",
            &json!({"spec": {"nodeName": "n", "hostname": "h"}}),
            &json!({"spec": {"$retainKeys": ["nodeName"]}}),
            &json!({"spec": {"nodeName": "n"}}),
        );
    }
}
