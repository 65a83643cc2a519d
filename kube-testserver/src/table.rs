//! The Table form of objects, which `kubectl get` prints, and their metadata-only form.

use jiff::Timestamp;
use jsonpath_rust::JsonPath as _;
use serde_json::{Value, json};

use super::custom_resource::CustomResource;
use super::kinds;
use super::negotiate::RowObject;
use super::resources::Resource;

/// Reduces an object to `PartialObjectMetadata`.
pub(crate) fn partial_metadata(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object.get("metadata").cloned().unwrap_or_default(),
    })
}

/// A Table of these objects, in the resource's version, without list metadata.
pub(crate) fn table_of(
    resource: &Resource,
    objects: &[Value],
    include: RowObject,
    now: Timestamp,
) -> Value {
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let cells = match &resource.custom {
                Some(custom) => custom_cells(custom, object, now),
                None => kinds::of(resource).cells(object, now),
            };
            let shown = match include {
                RowObject::Metadata => partial_metadata(object),
                RowObject::Nothing => Value::Null,
                RowObject::Whole => object.clone(),
            };
            json!({"cells": cells, "object": shown})
        })
        .collect();
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": columns(resource),
        "rows": rows,
    })
}

fn column(name: &str, kind: &str, format: &str, priority: i64) -> Value {
    json!({"name": name, "type": kind, "format": format, "description": "", "priority": priority})
}

fn columns(resource: &Resource) -> Vec<Value> {
    let mut columns = Vec::new();
    if let Some(custom) = &resource.custom {
        columns.push(column("Name", "string", "name", 0));
        columns.extend(
            custom
                .columns
                .iter()
                .map(|own| column(&own.name, &own.kind, &own.format, own.priority)),
        );
        return columns;
    }
    for (name, kind, priority) in kinds::of(resource).columns() {
        let format = if *name == "Name" { "name" } else { "" };
        columns.push(column(name, kind, format, *priority));
    }
    columns
}

fn custom_cells(custom: &CustomResource, object: &Value, now: Timestamp) -> Vec<Value> {
    let mut row = vec![super::meta::name(object).into()];
    for column in &custom.columns {
        let path = format!("${}", column.path);
        let found = object.query(&path).unwrap_or_default();
        let value = found.first().copied().filter(|value| !value.is_null());
        row.push(match (value, column.kind.as_str()) {
            (None, _) => Value::Null,
            (Some(Value::String(time)), "date") => kinds::age_of(time, now).into(),
            (Some(value), "string") => {
                value.as_str().map_or_else(|| value.to_string().into(), Value::from)
            }
            (Some(value), _) => value.clone(),
        });
    }
    row
}
