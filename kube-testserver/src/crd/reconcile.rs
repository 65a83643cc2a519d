//! The work of apiextensions' controllers: accept names, serve versions, clean up.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::custom_resource::{Column, CustomResource};
use crate::meta;
use crate::resources::{self, Resource, StorageKey};
use crate::state::State;
use crate::store::rfc3339;

use super::{is_established, names};

/// Finalizer that keeps a definition until its objects are deleted.
const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The storage place of definitions.
pub(crate) fn place() -> StorageKey {
    StorageKey::new(super::GROUP, super::PLURAL)
}

/// Updates the served resources for the definition `name`, and then its status.
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
    let mut wanted = Value::clone(&definition);
    let finalizers = meta::finalizers(&definition);
    if !finalizers.contains(&FINALIZER) {
        let mut finalizers = finalizers.clone();
        finalizers.push(FINALIZER);
        meta::set(&mut wanted, "finalizers", finalizers.into());
    }
    let of_group =
        |other: &Value| super::text(other, "/spec/group") == group && meta::name(other) != name;
    let others: Vec<Arc<Value>> =
        state.store.list(&place(), "").filter(|other| of_group(other)).cloned().collect();
    let (names, problem) = names::accepted(&definition, others.iter().map(AsRef::as_ref));
    accept(&mut wanted, names, problem, now);
    // Names that were accepted once are served until the definition goes.
    if is_established(&wanted) {
        state.store.open(&StorageKey::new(&group, &plural));
        state.registry.replace(&group, &plural, served(&definition));
    }
    if wanted != *definition {
        state.store.put(&place(), wanted);
    }
}

/// The status of a definition that gets these names.
fn accept(
    definition: &mut Value,
    names: Value,
    problem: Result<(), (&'static str, String)>,
    now: Timestamp,
) {
    let was_established = is_established(definition);
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
    match problem {
        Ok(()) => {
            condition(status, now, "NamesAccepted", ("True", "NoConflicts", "no conflicts found"));
            let accepted = "the initial names have been accepted";
            condition(status, now, "Established", ("True", "InitialNamesAccepted", accepted));
        }
        Err((reason, message)) => {
            condition(status, now, "NamesAccepted", ("False", reason, &message));
            if !was_established {
                let refused = ("False", "NotAccepted", "not all names are accepted");
                condition(status, now, "Established", refused);
            }
        }
    }
}

/// Sets a condition to status, reason and message, unless it has the status already.
fn condition(
    status: &mut serde_json::Map<String, Value>,
    now: Timestamp,
    kind: &str,
    (value, reason, message): (&str, &str, &str),
) {
    let list = status.entry("conditions").or_insert_with(|| json!([]));
    if !list.is_array() {
        *list = json!([]);
    }
    let Some(list) = list.as_array_mut() else { return };
    let found = list.iter().position(|condition| condition.get("type") == Some(&kind.into()));
    let old = found.and_then(|at| list.get(at));
    if old.is_some_and(|old| {
        old.get("status") == Some(&value.into()) && old.get("reason") == Some(&reason.into())
    }) {
        return;
    }
    let new = json!({
        "type": kind, "status": value, "lastTransitionTime": rfc3339(now),
        "reason": reason, "message": message,
    });
    match found.and_then(|at| list.get_mut(at)) {
        Some(old) => *old = new,
        None => list.push(new),
    }
}

/// Deletes the objects of a deleted definition, then the definition.
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
        give_names(state, &group, now);
    } else {
        let mut left = definition.clone();
        meta::set(&mut left, "finalizers", finalizers.into());
        state.store.put(&place(), left);
    }
}

/// Continues the deletion of a definition that waits for its last object.
pub(crate) fn retry(state: &mut State, group: &str, plural: &str, now: Timestamp) {
    let name = format!("{plural}.{group}");
    let waits = state.store.get(&place(), "", &name).is_some_and(|it| meta::is_deleting(it));
    if waits {
        reconcile(state, &name, now);
    }
}

/// Names that went may be those that others of the group wait for.
fn give_names(state: &mut State, group: &str, now: Timestamp) {
    let waiting = state.store.list(&place(), "").filter(|other| {
        super::text(other, "/spec/group") == group
            && !is_established(other)
            && !meta::is_deleting(other)
    });
    let names: Vec<String> = waiting.map(|other| meta::name(other).to_owned()).collect();
    for name in names {
        reconcile(state, &name, now);
    }
}

fn withdraw(state: &mut State, group: &str, plural: &str) {
    state.registry.replace(group, plural, Vec::new());
    state.store.close(&StorageKey::new(group, plural));
}

/// The resource of each served version.
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
