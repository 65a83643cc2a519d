//! Deletes the objects of a deleted namespace, then the namespace.

use jiff::Timestamp;
use serde_json::Value;

use crate::meta;
use crate::resources::StorageKey;
use crate::state::State;

/// Empties every namespace that is terminating, and removes those that are empty.
pub(super) fn finish(state: &mut State, now: Timestamp) {
    let place = StorageKey::new("", "namespaces");
    let terminating: Vec<_> = state
        .store
        .list(&place, "")
        .filter(|namespace| meta::is_deleting(namespace))
        .cloned()
        .collect();
    for namespace in terminating {
        let name = meta::name(&namespace);
        let content = content(state, name);
        for (place, object, deleting) in &content {
            if !deleting {
                super::delete(state, place, name, object, now);
            }
        }
        if self::content(state, name).is_empty() {
            release(state, &place, &namespace);
        }
    }
}

/// The content of a namespace: place, name, and whether it is being deleted.
fn content(state: &State, namespace: &str) -> Vec<(StorageKey, String, bool)> {
    let mut all: Vec<(StorageKey, String, bool)> = vec![];
    for resource in state.registry.all().filter(|resource| resource.namespaced) {
        let place = resource.storage();
        if all.iter().any(|(seen, ..)| *seen == place) {
            continue;
        }
        let objects = state.store.list(&place, namespace);
        all.extend(objects.map(|object| {
            (place.clone(), meta::name(object).to_owned(), meta::is_deleting(object))
        }));
    }
    all
}

/// Removes our finalizer; without other finalizers the namespace is deleted.
fn release(state: &mut State, place: &StorageKey, namespace: &Value) {
    let others = |list: Option<&Value>| -> Vec<Value> {
        let list = list.and_then(Value::as_array).into_iter().flatten();
        list.filter(|finalizer| finalizer.as_str() != Some("kubernetes")).cloned().collect()
    };
    let left = others(namespace.pointer("/spec/finalizers"));
    if left.is_empty() && meta::finalizers(namespace).is_empty() {
        state.store.remove(place, "", meta::name(namespace));
        return;
    }
    let mut released = namespace.clone();
    if let Some(finalizers) = released.pointer_mut("/spec/finalizers") {
        *finalizers = left.into();
    }
    if released != *namespace {
        state.store.put(place, released);
    }
}
