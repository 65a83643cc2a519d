//! Garbage collection: deletes objects with the last of their owners.
//!
//! Source: Kubernetes documentation, "Garbage Collection".

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::meta;
use crate::resources::{StorageKey, split_api_version};
use crate::state::State;
use crate::store::{Change, ChangeKind};

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";
/// An owner may be created right after its dependents; wait for it this long.
const PATIENCE: SignedDuration = SignedDuration::from_secs(2);

/// Objects whose owners did not exist when they were written.
#[derive(Debug, Default)]
pub(super) struct Suspects(Vec<Suspect>);

#[derive(Clone, Debug)]
struct Suspect {
    place: StorageKey,
    namespace: String,
    name: String,
    uid: String,
    since: Timestamp,
}

impl Suspects {
    /// Handles a change: of an owner that was deleted or waits for deletion, or of an object with owners.
    pub(super) fn look(
        &mut self,
        state: &mut State,
        now: Timestamp,
        place: &StorageKey,
        change: &Change,
    ) {
        let object = &change.object;
        if change.kind == ChangeKind::Deleted {
            for (place, dependent) in dependents(state, meta::uid(object)) {
                if is_collected(state, &dependent, meta::uid(object)) {
                    remove(state, now, &place, &dependent);
                }
            }
            // Owners that waited for this object in foreground deletion.
            for (place, owner) in owners(state, object) {
                finalize(state, now, &place, &owner);
            }
            return;
        }
        let current = state.store.get(place, meta::namespace(object), meta::name(object)).cloned();
        let Some(current) = current else { return };
        if meta::is_deleting(&current) {
            finalize(state, now, place, &current);
        } else if !references(&current).is_empty() && is_collected(state, &current, "") {
            self.0.push(Suspect {
                place: place.clone(),
                namespace: meta::namespace(&current).to_owned(),
                name: meta::name(&current).to_owned(),
                uid: meta::uid(&current).to_owned(),
                since: now,
            });
        }
    }

    /// Removes objects whose owners did not appear.
    pub(super) fn collect(&mut self, state: &mut State, now: Timestamp) {
        let suspects = std::mem::take(&mut self.0);
        for suspect in suspects {
            if now.duration_since(suspect.since) < PATIENCE {
                self.0.push(suspect);
                continue;
            }
            let found = state.store.get(&suspect.place, &suspect.namespace, &suspect.name).cloned();
            if let Some(object) = found
                && meta::uid(&object) == suspect.uid
                && !references(&object).is_empty()
                && is_collected(state, &object, "")
            {
                remove(state, now, &suspect.place, &object);
            }
        }
    }
}

fn remove(state: &mut State, now: Timestamp, place: &StorageKey, object: &Value) {
    super::delete(state, place, meta::namespace(object), meta::name(object), now);
}

fn references(object: &Value) -> &[Value] {
    let list = meta::get(object, "ownerReferences").and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

fn text<'a>(reference: &'a Value, member: &str) -> &'a str {
    reference.get(member).and_then(Value::as_str).unwrap_or("")
}

/// The existing owners of an object.
fn owners(state: &State, object: &Value) -> Vec<(StorageKey, Arc<Value>)> {
    let find = |reference: &Value| {
        let (group, version) = split_api_version(text(reference, "apiVersion"));
        let resource = state.registry.find_kind(group, version, text(reference, "kind"))?;
        let namespace = if resource.namespaced { meta::namespace(object) } else { "" };
        let owner = state.store.get(&resource.storage(), namespace, text(reference, "name"))?;
        (meta::uid(owner) == text(reference, "uid"))
            .then(|| (resource.storage(), Arc::clone(owner)))
    };
    references(object).iter().filter_map(find).collect()
}

/// Whether none of the owners exists. `deleted` is the `uid` of an owner that was just deleted; of a kind that the
/// server does not know nothing can be said, so such an owner counts as existing.
fn is_collected(state: &State, object: &Value, deleted: &str) -> bool {
    let is_known = |reference: &Value| {
        let (group, version) = split_api_version(text(reference, "apiVersion"));
        state.registry.find_kind(group, version, text(reference, "kind")).is_some()
    };
    let mut left = references(object).iter().filter(|own| text(own, "uid") != deleted);
    left.all(is_known) && owners(state, object).is_empty()
}

/// All objects that name `uid` as an owner.
fn dependents(state: &State, uid: &str) -> Vec<(StorageKey, Arc<Value>)> {
    if uid.is_empty() {
        return vec![];
    }
    let owned = |object: &Value| references(object).iter().any(|own| text(own, "uid") == uid);
    let of = |place: &StorageKey| {
        let objects = state.store.list(place, "").filter(|object| owned(object));
        objects.map(|object| (place.clone(), Arc::clone(object))).collect::<Vec<_>>()
    };
    state.store.places().flat_map(of).collect()
}

/// Handles the finalizers of the propagation policies.
fn finalize(state: &mut State, now: Timestamp, place: &StorageKey, owner: &Arc<Value>) {
    let finalizers = meta::finalizers(owner);
    let uid = meta::uid(owner);
    if finalizers.contains(&ORPHAN) {
        for (place, dependent) in dependents(state, uid) {
            let mut released = Value::clone(&dependent);
            let mut left = references(&dependent).to_vec();
            left.retain(|reference| text(reference, "uid") != uid);
            let left = (!left.is_empty()).then(|| left.into());
            meta::put(&mut released, "ownerReferences", left);
            state.store.put(&place, released);
        }
        drop_finalizer(state, place, owner, ORPHAN);
    } else if finalizers.contains(&FOREGROUND) {
        for (place, dependent) in dependents(state, uid) {
            if !meta::is_deleting(&dependent) {
                remove(state, now, &place, &dependent);
            }
        }
        let blocks = |object: &Value| {
            references(object).iter().any(|own| {
                text(own, "uid") == uid && own.get("blockOwnerDeletion") == Some(&true.into())
            })
        };
        if !dependents(state, uid).iter().any(|(_, dependent)| blocks(dependent)) {
            drop_finalizer(state, place, owner, FOREGROUND);
        }
    }
}

fn drop_finalizer(state: &mut State, place: &StorageKey, owner: &Value, finalizer: &str) {
    let (namespace, name) = (meta::namespace(owner), meta::name(owner));
    let Some(current) = state.store.get(place, namespace, name).cloned() else { return };
    let mut left = meta::finalizers(&current);
    left.retain(|own| *own != finalizer);
    if left.is_empty() {
        state.store.remove(place, namespace, name);
        return;
    }
    let mut released = Value::clone(&current);
    meta::set(&mut released, "finalizers", left.into());
    state.store.put(place, released);
}
