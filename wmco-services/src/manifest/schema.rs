//! JSON Schemas of the documents under the keys of a services ConfigMap.

use std::collections::BTreeMap;

use schemars::{Schema, schema_for};

use super::{ENVIRONMENT_KEY, FILES_KEY, FileInfo, SERVICES_KEY, Service, WATCHED_KEY};

/// Returns the schema of each key's JSON document.
pub fn schemas() -> BTreeMap<&'static str, Schema> {
    BTreeMap::from([
        (SERVICES_KEY, schema_for!(Vec<Service>)),
        (FILES_KEY, schema_for!(Vec<FileInfo>)),
        (ENVIRONMENT_KEY, schema_for!(BTreeMap<String, String>)),
        (WATCHED_KEY, schema_for!(Vec<String>)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_spells_fields_as_the_wire_does() {
        let schema = serde_json::to_value(schemas().remove(SERVICES_KEY)).unwrap();
        let fields = |name: &str| -> Vec<String> {
            let path = format!("/$defs/{name}/properties");
            schema.pointer(&path).unwrap().as_object().unwrap().keys().cloned().collect()
        };
        assert_eq!(
            fields("Service"),
            [
                "bootstrap",
                "dependencies",
                "name",
                "nodeVariablesInCommand",
                "path",
                "powershellPreScripts",
                "priority",
            ]
        );
        assert_eq!(fields("PreScript"), ["NodeArgs", "path", "variableName"]);
        assert_eq!(fields("NodeVariable"), ["name", "nodeObjectJsonPath"]);
        let required = schema.pointer("/$defs/Service/required").unwrap();
        assert_eq!(*required, serde_json::json!(["name", "path", "bootstrap", "priority"]));
    }
}
