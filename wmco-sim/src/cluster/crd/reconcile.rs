//! What apiextensions' controllers do: accept names, serve versions, clean up.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::cluster::custom_resource::{Column, CustomResource};
use crate::cluster::meta;
use crate::cluster::resources::{self, Resource, StorageKey};
use crate::cluster::state::State;
use crate::cluster::store::rfc3339;

/// Keeps a definition until its objects are gone.
const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Where the definitions are.
pub(crate) fn place() -> StorageKey {
    StorageKey::new(super::GROUP, super::PLURAL)
}

/// Brings what is served in line with the definition `name`, and its status in line with that.
pub(crate) fn reconcile(state: &mut State, name: &str, now: Timestamp) {
    let definition = state.store.get(&place(), "", name).cloned();
    let Some(definition) = definition else {
        let (plural, group) = name.split_once('.').unwrap_or((name, ""));
        withdraw(state, group, plural);
        return;
    };
    if meta::is_deleting(&definition) {
        finish(state, &definition, now);
        return;
    }
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or("");
    let (group, plural) = (text("/spec/group").to_owned(), text("/spec/names/plural").to_owned());
    state.store.open(&StorageKey::new(&group, &plural));
    state.registry.replace(&group, &plural, served(&definition));
    let mut wanted = Value::clone(&definition);
    let finalizers = meta::finalizers(&definition);
    if !finalizers.contains(&FINALIZER) {
        let mut finalizers = finalizers.clone();
        finalizers.push(FINALIZER);
        meta::set(&mut wanted, "finalizers", finalizers.into());
    }
    accept(&mut wanted, now);
    if wanted != *definition {
        state.store.put(&place(), wanted);
    }
}

/// The status of a definition whose names are taken by nobody else.
fn accept(definition: &mut Value, now: Timestamp) {
    let names = definition.pointer("/spec/names").cloned().unwrap_or_default();
    let storage = definition.pointer("/spec/versions").and_then(Value::as_array).and_then(|all| {
        all.iter().find(|version| version.get("storage") == Some(&Value::Bool(true)))
    });
    let storage = storage.and_then(|version| version.get("name")).cloned();
    let Some(status) = meta::map_mut(definition, "status") else { return };
    status.insert("acceptedNames".to_owned(), names);
    let stored = status.entry("storedVersions").or_insert_with(|| json!([]));
    if !stored.is_array() {
        *stored = json!([]);
    }
    if let (Some(stored), Some(storage)) = (stored.as_array_mut(), storage)
        && !stored.contains(&storage)
    {
        stored.push(storage);
    }
    condition(status, now, "NamesAccepted", "NoConflicts", "no conflicts found");
    let accepted = "the initial names have been accepted";
    condition(status, now, "Established", "InitialNamesAccepted", accepted);
}

fn condition(
    status: &mut serde_json::Map<String, Value>,
    now: Timestamp,
    kind: &str,
    reason: &str,
    message: &str,
) {
    let list = status.entry("conditions").or_insert_with(|| json!([]));
    if !list.is_array() {
        *list = json!([]);
    }
    let Some(list) = list.as_array_mut() else { return };
    if list.iter().any(|condition| condition.get("type") == Some(&kind.into())) {
        return;
    }
    list.push(json!({
        "type": kind, "status": "True", "lastTransitionTime": rfc3339(now),
        "reason": reason, "message": message,
    }));
}

/// Deletes the objects of a definition that is to go, then the definition.
fn finish(state: &mut State, definition: &Value, now: Timestamp) {
    if !meta::finalizers(definition).contains(&FINALIZER) {
        return;
    }
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or("");
    let (group, plural) = (text("/spec/group").to_owned(), text("/spec/names/plural").to_owned());
    let objects = StorageKey::new(&group, &plural);
    let all: Vec<Arc<Value>> = state.store.list(&objects, "").cloned().collect();
    let mut held = false;
    for object in all {
        if meta::finalizers(&object).is_empty() {
            state.store.remove(&objects, meta::namespace(&object), meta::name(&object));
            continue;
        }
        held = true;
        if !meta::is_deleting(&object) {
            let mut marked = Value::clone(&object);
            meta::set(&mut marked, "deletionTimestamp", rfc3339(now).into());
            meta::set(&mut marked, "deletionGracePeriodSeconds", 0.into());
            state.store.put(&objects, marked);
        }
    }
    if held {
        return;
    }
    let mut finalizers = meta::finalizers(definition);
    finalizers.retain(|finalizer| *finalizer != FINALIZER);
    if finalizers.is_empty() {
        state.store.remove(&place(), "", meta::name(definition));
        withdraw(state, &group, &plural);
    } else {
        let mut left = definition.clone();
        meta::set(&mut left, "finalizers", finalizers.into());
        state.store.put(&place(), left);
    }
}

/// Goes on with the definition of a group and plural that waits for its last object.
pub(crate) fn retry(state: &mut State, group: &str, plural: &str, now: Timestamp) {
    let name = format!("{plural}.{group}");
    let waits = state.store.get(&place(), "", &name).is_some_and(|it| meta::is_deleting(it));
    if waits {
        reconcile(state, &name, now);
    }
}

fn withdraw(state: &mut State, group: &str, plural: &str) {
    state.registry.replace(group, plural, Vec::new());
    state.store.close(&StorageKey::new(group, plural));
}

/// One resource per served version.
fn served(definition: &Value) -> Vec<Arc<Resource>> {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let flag = |version: &Value, name: &str| version.get(name) == Some(&Value::Bool(true));
    let all = versions.map(Vec::as_slice).unwrap_or_default();
    let storage = all.iter().find(|version| flag(version, "storage"));
    let storage = storage.and_then(|v| v.get("name")).and_then(Value::as_str).unwrap_or("");
    let served = all.iter().filter(|version| flag(version, "served"));
    served.map(|version| Arc::new(resource(definition, version, storage))).collect()
}

fn resource(definition: &Value, version: &Value, storage: &str) -> Resource {
    let text = |pointer: &str| {
        definition.pointer(pointer).and_then(Value::as_str).unwrap_or("").to_owned()
    };
    let list = |pointer: &str| {
        let list = definition.pointer(pointer).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let kind = text("/spec/names/kind");
    let status = version.pointer("/subresources/status").is_some();
    Resource {
        group: text("/spec/group"),
        version: version.get("name").and_then(Value::as_str).unwrap_or("").to_owned(),
        plural: text("/spec/names/plural"),
        singular: text("/spec/names/singular"),
        list_kind: text("/spec/names/listKind"),
        namespaced: text("/spec/scope") == "Namespaced",
        short_names: list("/spec/names/shortNames"),
        categories: list("/spec/names/categories"),
        verbs: resources::CUSTOM_VERBS,
        subresources: status.then(|| resources::status_of(&kind)).into_iter().collect(),
        kind,
        rules: resources::CUSTOM,
        custom: Some(Arc::new(CustomResource {
            schema: version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or_default(),
            storage_version: storage.to_owned(),
            columns: columns(version),
            selectable: selectable(version),
        })),
    }
}

fn selectable(version: &Value) -> Vec<String> {
    let fields = version.get("selectableFields").and_then(Value::as_array);
    let paths = fields.into_iter().flatten().filter_map(|field| field.get("jsonPath"));
    paths.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn columns(version: &Value) -> Vec<Column> {
    let given = version.get("additionalPrinterColumns").and_then(Value::as_array);
    let text = |column: &Value, name: &str| {
        column.get(name).and_then(Value::as_str).unwrap_or("").to_owned()
    };
    let columns: Vec<Column> = given
        .into_iter()
        .flatten()
        .map(|column| Column {
            name: text(column, "name"),
            kind: text(column, "type"),
            format: text(column, "format"),
            priority: column.get("priority").and_then(Value::as_i64).unwrap_or(0),
            path: text(column, "jsonPath"),
        })
        .collect();
    if !columns.is_empty() {
        return columns;
    }
    vec![Column {
        name: "Age".to_owned(),
        kind: "date".to_owned(),
        format: String::new(),
        priority: 0,
        path: ".metadata.creationTimestamp".to_owned(),
    }]
}
