//! Parses the JSON of a services ConfigMap and collects the problems.
//!
//! Field names ignore case, unknown fields and nulls count as absent, as in the original. Source:
//! `docs/contract/services.md`, SVC11 and SVC12.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde_json::{Map, Value};
use wmco_core::protocol::ServicesData;

use super::{
    ENVIRONMENT_KEY, FILES_KEY, FileInfo, ManifestError, NodeVariable, Parts, PreScript, Problem,
    SERVICES_KEY, Service, WATCHED_KEY,
};
use crate::windows::ServiceName;

/// The parsed parts, with the place of each service on the wire.
pub(super) struct Draft {
    pub(super) parts: Parts,
    /// The index of each service on the wire.
    pub(super) places: Vec<usize>,
}

impl From<Parts> for Draft {
    fn from(parts: Parts) -> Self {
        Self { places: (0..parts.services.len()).collect(), parts }
    }
}

/// Parses as much as possible; everything else is reported as a problem.
pub(super) fn read(data: &ServicesData) -> (Draft, Vec<Problem>) {
    let mut found = Found(Vec::new());
    let known = [SERVICES_KEY, FILES_KEY, ENVIRONMENT_KEY, WATCHED_KEY];
    for key in data.0.keys().filter(|key| !known.contains(&key.as_str())) {
        found.add(key.clone(), ManifestError::UnknownKey { key: key.clone() });
    }
    let text = |key: &str| data.0.get(key).map(String::as_str);
    for key in [SERVICES_KEY, FILES_KEY] {
        if text(key).is_none() {
            found.add(key.to_owned(), ManifestError::MissingKey { key });
        }
    }
    let (mut parts, mut places) = (Parts::default(), Vec::new());
    for (place, item) in found.items(SERVICES_KEY, text(SERVICES_KEY)).into_iter().enumerate() {
        if let Some(service) = found.service(&format!("{SERVICES_KEY}[{place}]"), item) {
            parts.services.push(service);
            places.push(place);
        }
    }
    for (place, item) in found.items(FILES_KEY, text(FILES_KEY)).into_iter().enumerate() {
        parts.files.push(found.file(&format!("{FILES_KEY}[{place}]"), item));
    }
    // Unlike the required keys, these two count as absent when they are empty.
    let optional = |key| text(key).filter(|text| !text.is_empty());
    let variables = optional(ENVIRONMENT_KEY).and_then(|text| found.json(ENVIRONMENT_KEY, text));
    for (name, value) in found.members(ENVIRONMENT_KEY, variables.unwrap_or_default()) {
        let value = found.text(&format!("{ENVIRONMENT_KEY}.{name}"), value);
        parts.environment.insert(name, value);
    }
    for (place, item) in found.items(WATCHED_KEY, optional(WATCHED_KEY)).into_iter().enumerate() {
        parts.watched.push(found.text(&format!("{WATCHED_KEY}[{place}]"), item));
    }
    (Draft { parts, places }, found.0)
}

/// The known members of an object, by name.
type Fields = BTreeMap<&'static str, Value>;

/// The problems so far. A value that cannot be parsed counts as absent.
struct Found(Vec<Problem>);

impl Found {
    fn add(&mut self, at: String, error: ManifestError) {
        self.0.push(Problem { at, error });
    }

    /// Reports a value of the wrong type. The value is not quoted, since variables can hold passwords.
    fn wrong(&mut self, at: &str, instead: &str) {
        let source = serde_json::Error::custom(instead);
        self.add(at.to_owned(), ManifestError::Json { at: at.to_owned(), source });
    }

    fn json(&mut self, key: &str, text: &str) -> Option<Value> {
        let at = || key.to_owned();
        serde_json::from_str(text)
            .map_err(|source| self.add(at(), ManifestError::Json { at: at(), source }))
            .ok()
    }

    /// Parses the list under a key.
    fn items(&mut self, key: &str, text: Option<&str>) -> Vec<Value> {
        let value = text.and_then(|text| self.json(key, text));
        self.list(key, value.unwrap_or_default())
    }

    fn text(&mut self, at: &str, value: Value) -> String {
        self.readable(at, value).unwrap_or_default()
    }

    /// Returns the text, empty for null; `None` if the value has another type.
    fn readable(&mut self, at: &str, value: Value) -> Option<String> {
        match value {
            Value::String(text) => Some(text),
            Value::Null => Some(String::new()),
            _ => {
                self.wrong(at, "write text");
                None
            }
        }
    }

    fn list(&mut self, at: &str, value: Value) -> Vec<Value> {
        match value {
            Value::Array(items) => return items,
            Value::Null => {}
            _ => self.wrong(at, "write a list"),
        }
        Vec::new()
    }

    fn members(&mut self, at: &str, value: Value) -> Map<String, Value> {
        match value {
            Value::Object(members) => return members,
            Value::Null => {}
            _ => self.wrong(at, "write an object"),
        }
        Map::new()
    }

    fn fields(&mut self, at: &str, value: Value, known: &[&'static str]) -> Fields {
        let mut fields = Fields::new();
        for (name, value) in self.members(at, value) {
            let known = known.iter().find(|known| known.eq_ignore_ascii_case(&name));
            if let (Some(known), false) = (known, value.is_null())
                && fields.insert(known, value).is_some()
            {
                self.wrong(&format!("{at}.{known}"), "it is there twice, drop one");
            }
        }
        fields
    }

    fn flag(&mut self, at: &str, value: &Value) -> bool {
        match value {
            Value::Bool(flag) => return *flag,
            Value::Null => {}
            _ => self.wrong(at, "write true or false"),
        }
        false
    }

    fn number(&mut self, at: &str, value: &Value) -> Option<u64> {
        match value {
            Value::Null => return Some(0),
            Value::Number(number) if number.is_u64() => return number.as_u64(),
            _ => self.wrong(at, "write a whole number, 0 or more"),
        }
        None
    }

    fn name(
        &mut self,
        at: String,
        text: &str,
        of: &str,
        field: &'static str,
    ) -> Option<ServiceName> {
        let bad = |source| ManifestError::BadName { service: of.to_owned(), field, source };
        text.parse().map_err(|source| self.add(at, bad(source))).ok()
    }

    /// Parses a service; `None` if its own name is illegal. A dependency with an illegal name is left out.
    fn service(&mut self, at: &str, item: Value) -> Option<Service> {
        const KNOWN: [&str; 7] = [
            "name",
            "path",
            "nodeVariablesInCommand",
            "powershellPreScripts",
            "dependencies",
            "bootstrap",
            "priority",
        ];
        let mut fields = self.fields(at, item, &KNOWN);
        let mut take = |name| (format!("{at}.{name}"), fields.remove(name).unwrap_or_default());
        let [name, command, variables, scripts, needs, bootstrap, priority] = KNOWN.map(&mut take);
        let called = self.readable(&name.0, name.1);
        let of = called.as_deref().unwrap_or_default();
        let command = self.text(&command.0, command.1);
        let node_variables_in_command = self.variables(&variables.0, variables.1);
        let scripts = (self.list(&scripts.0, scripts.1).into_iter().enumerate())
            .map(|(k, item)| self.script(&format!("{}[{k}]", scripts.0), item))
            .collect();
        let mut dependencies = Vec::new();
        for (k, item) in self.list(&needs.0, needs.1).into_iter().enumerate() {
            let at = format!("{}[{k}]", needs.0);
            let need = self.readable(&at, item);
            let need = need.and_then(|need| self.name(at, &need, of, "dependencies"));
            dependencies.extend(need);
        }
        let bootstrap = self.flag(&bootstrap.0, &bootstrap.1);
        // An unreadable priority must not cause further problems.
        let unknown = if bootstrap { 0 } else { u64::MAX };
        let priority = self.number(&priority.0, &priority.1).unwrap_or(unknown);
        Some(Service {
            name: self.name(name.0, called.as_deref()?, of, "name")?,
            command,
            node_variables_in_command,
            powershell_pre_scripts: scripts,
            dependencies,
            bootstrap,
            priority,
        })
    }

    fn script(&mut self, at: &str, item: Value) -> PreScript {
        let mut fields = self.fields(at, item, &["variableName", "path", "NodeArgs"]);
        let mut take = |name| (format!("{at}.{name}"), fields.remove(name).unwrap_or_default());
        let (variable, path, arguments) = (take("variableName"), take("path"), take("NodeArgs"));
        PreScript {
            variable_name: self.text(&variable.0, variable.1),
            path: self.text(&path.0, path.1),
            node_args: self.variables(&arguments.0, arguments.1),
        }
    }

    fn variables(&mut self, at: &str, value: Value) -> Vec<NodeVariable> {
        let mut variables = Vec::new();
        for (k, item) in self.list(at, value).into_iter().enumerate() {
            let at = format!("{at}[{k}]");
            let [name, path] = self.texts(&at, item, ["name", "nodeObjectJsonPath"]);
            variables.push(NodeVariable { name, node_object_json_path: path });
        }
        variables
    }

    fn file(&mut self, at: &str, item: Value) -> FileInfo {
        let [path, checksum] = self.texts(at, item, ["path", "checksum"]);
        FileInfo { path, checksum }
    }

    /// Parses the fields of an object that has only texts.
    fn texts(&mut self, at: &str, item: Value, known: [&'static str; 2]) -> [String; 2] {
        let mut fields = self.fields(at, item, &known);
        known.map(|name| {
            let value = fields.remove(name).unwrap_or_default();
            self.text(&format!("{at}.{name}"), value)
        })
    }
}
