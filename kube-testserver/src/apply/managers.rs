//! `metadata.managedFields`: which manager set which fields, how, and through which path.

use serde_json::{Map, Value};

use super::set::FieldSet;

/// The manager applied a configuration.
pub(super) const APPLY: &str = "Apply";
/// The manager wrote in any other way.
pub(super) const UPDATE: &str = "Update";

/// An entry of `managedFields`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) manager: String,
    pub(super) operation: String,
    pub(super) api_version: String,
    pub(super) subresource: String,
    pub(super) time: Option<String>,
    pub(super) set: FieldSet,
}

impl Entry {
    /// Whether both entries are for the same manager and operation. An applier may change the version.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == APPLY || self.api_version == other.api_version)
    }

    /// The entry's name in messages about conflicts.
    pub(super) fn shown(&self) -> String {
        let mut text = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            text = format!("{text} with subresource {:?}", self.subresource);
        }
        if self.operation == UPDATE {
            text = format!("{text} using {}", self.api_version);
        }
        text
    }
}

/// The content of the field.
#[derive(Debug, PartialEq)]
pub(super) enum Managed {
    /// `[{}]`: the client asks to clear it.
    Cleared,
    /// The entries; empty also if they could not be read.
    Entries(Vec<Entry>),
}

/// Reads `metadata.managedFields`.
pub(super) fn parse(object: &Value) -> Managed {
    let list = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let list = list.map(Vec::as_slice).unwrap_or_default();
    if let [only] = list
        && only.as_object().is_some_and(Map::is_empty)
    {
        return Managed::Cleared;
    }
    let entries: Option<Vec<_>> = list.iter().map(entry).collect();
    Managed::Entries(entries.unwrap_or_default())
}

fn entry(value: &Value) -> Option<Entry> {
    let text = |member: &str| value.get(member).and_then(Value::as_str).unwrap_or("").to_owned();
    let operation = text("operation");
    let known = [APPLY, UPDATE].contains(&operation.as_str());
    (known && text("fieldsType") == "FieldsV1").then(|| Entry {
        manager: text("manager"),
        operation,
        api_version: text("apiVersion"),
        subresource: text("subresource"),
        time: value.get("time").and_then(Value::as_str).map(ToOwned::to_owned),
        set: FieldSet::parse(value.get("fieldsV1").unwrap_or(&Value::Null)),
    })
}

/// Writes the entries in the order of the server; `None` if there are none.
pub(super) fn write(mut entries: Vec<Entry>) -> Option<Value> {
    entries.retain(|entry| !entry.set.is_empty());
    let key = |entry: &Entry| {
        (
            entry.operation.clone(),
            entry.time.clone(),
            entry.manager.clone(),
            entry.api_version.clone(),
            entry.subresource.clone(),
        )
    };
    entries.sort_by_key(key);
    let shown = |entry: &Entry| {
        let mut out = Map::new();
        let mut put = |member: &str, value: Value| out.insert(member.to_owned(), value);
        if !entry.manager.is_empty() {
            put("manager", entry.manager.clone().into());
        }
        put("operation", entry.operation.clone().into());
        put("apiVersion", entry.api_version.clone().into());
        put("fieldsType", "FieldsV1".into());
        put("fieldsV1", entry.set.to_fields());
        if let Some(time) = &entry.time {
            put("time", time.clone().into());
        }
        if !entry.subresource.is_empty() {
            put("subresource", entry.subresource.clone().into());
        }
        Value::from(out)
    };
    let list: Vec<_> = entries.iter().map(shown).collect();
    (!list.is_empty()).then(|| list.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_survive() {
        let list = json!([{"manager": "m", "operation": "Apply", "apiVersion": "v1",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}, "time": "t",
            "subresource": "status"}]);
        let object = json!({"metadata": {"managedFields": list}});
        let Managed::Entries(entries) = parse(&object) else { panic!() };
        assert_eq!(write(entries), Some(list));
    }

    #[test]
    fn one_empty_entry_clears() {
        assert_eq!(parse(&json!({"metadata": {"managedFields": [{}]}})), Managed::Cleared);
        assert_eq!(parse(&json!({"metadata": {}})), Managed::Entries(vec![]));
    }
}
