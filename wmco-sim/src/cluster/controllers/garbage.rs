//! Garbage collection: objects go with the last of their owners.
//!
//! Source: Kubernetes documentation, "Garbage Collection".

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::cluster::meta;
use crate::cluster::resources::{StorageKey, split_api_version};
use crate::cluster::state::State;
use crate::cluster::store::{Change, ChangeKind};

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";
/// An owner may be created right after what it owns; wait for it this long.
const PATIENCE: SignedDuration = SignedDuration::from_secs(2);

/// Objects none of whose owners were there when they were written.
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
    /// Looks at one change: of an owner that went or waits, or of an object with owners.
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
                if !has_owner(state, &dependent) {
                    remove(state, now, &place, &dependent);
                }
            }
            // Owners that waited for this one in the foreground.
            for (place, owner) in owners(state, object) {
                finalize(state, now, &place, &owner);
            }
            return;
        }
        let current = state.store.get(place, meta::namespace(object), meta::name(object)).cloned();
        let Some(current) = current else { return };
        if meta::is_deleting(&current) {
            finalize(state, now, place, &current);
        } else if !references(&current).is_empty() && !has_owner(state, &current) {
            self.0.push(Suspect {
                place: place.clone(),
                namespace: meta::namespace(&current).to_owned(),
                name: meta::name(&current).to_owned(),
                uid: meta::uid(&current).to_owned(),
                since: now,
            });
        }
    }

    /// Removes objects whose owners did not turn up.
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
                && !has_owner(state, &object)
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

/// The owners of an object that are there.
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

fn has_owner(state: &State, object: &Value) -> bool {
    !owners(state, object).is_empty()
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

/// Works off the finalizers of the propagation policies.
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
