//! Converts between the stored form of an object and the requested API version.
//!
//! There are only two cases: both Event APIs share one store, and a custom resource may be served in several
//! versions without a conversion webhook, which differ only in `apiVersion`.

use serde_json::{Map, Value};

use super::resources::Resource;

/// Members of an Event: name in core v1, name in events.k8s.io/v1.
const EVENT_MEMBERS: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

impl Resource {
    fn is_new_event(&self) -> bool {
        self.is("events.k8s.io", "events")
    }

    /// Converts the stored object to this resource's version.
    pub(crate) fn present(&self, stored: &Value) -> Value {
        let mut object = stored.clone();
        if self.is_new_event() {
            rename(&mut object, |(core, new)| (core, new));
        }
        self.stamp(&mut object, &self.version);
        object
    }

    /// Converts an object of this resource to its stored form.
    pub(crate) fn to_storage(&self, mut object: Value) -> Value {
        if self.is_new_event() {
            rename(&mut object, |(core, new)| (new, core));
            set(&mut object, "apiVersion", "v1".into());
        } else if let Some(custom) = &self.custom {
            self.stamp(&mut object, &custom.storage_version);
        }
        object
    }

    fn stamp(&self, object: &mut Value, version: &str) {
        let api_version = super::resources::join_api_version(&self.group, version);
        set(object, "apiVersion", api_version.into());
        set(object, "kind", self.kind.clone().into());
    }
}

fn set(object: &mut Value, field: &str, value: Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert(field.to_owned(), value);
    }
}

fn rename(
    object: &mut Value,
    direction: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str),
) {
    let Some(members) = object.as_object_mut() else { return };
    let mut renamed = Map::new();
    for pair in EVENT_MEMBERS {
        let (from, to) = direction(*pair);
        if let Some(value) = members.remove(from) {
            renamed.insert(to.to_owned(), value);
        }
    }
    members.extend(renamed);
}
