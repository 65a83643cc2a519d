//! The JSON of a services ConfigMap, with all its oddities. Source: `spec/services.md`, section 2.

use std::collections::BTreeMap;
use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::ser::{CompactFormatter, Formatter};
use serde_json::{Map, Value};
use wmco_core::protocol::ServicesData;

use super::review::Problem;
use super::{Manifest, ManifestError, NodeVariable, Parts, PreScript, Service};
use crate::windows::ServiceName;

/// Key of the services.
pub const SERVICES_KEY: &str = "services";
/// Key of the files.
pub const FILES_KEY: &str = "files";
/// Key of the variables.
pub const ENVIRONMENT_KEY: &str = "environmentVars";
/// Key of the names of variables under management.
pub const WATCHED_KEY: &str = "watchedEnvironmentVars";

/// A field of an object on the wire, with the fields of what is in it.
struct Field {
    name: &'static str,
    within: &'static [Field],
}

const fn field(name: &'static str, within: &'static [Field]) -> Field {
    Field { name, within }
}

const NODE_VARIABLE: &[Field] = &[field("name", &[]), field("nodeObjectJsonPath", &[])];
const PRE_SCRIPT: &[Field] =
    &[field("variableName", &[]), field("path", &[]), field("NodeArgs", NODE_VARIABLE)];
const SERVICE: &[Field] = &[
    field("name", &[]),
    field("path", &[]),
    field("nodeVariablesInCommand", NODE_VARIABLE),
    field("powershellPreScripts", PRE_SCRIPT),
    field("dependencies", &[]),
    field("bootstrap", &[]),
    field("priority", &[]),
];
const FILE: &[Field] = &[field("path", &[]), field("checksum", &[])];

/// A service whose names are not checked yet.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawService {
    name: String,
    path: String,
    node_variables_in_command: Vec<NodeVariable>,
    powershell_pre_scripts: Vec<PreScript>,
    dependencies: Vec<String>,
    bootstrap: bool,
    priority: u64,
}

/// What was read, with where each service stands on the wire.
pub(super) struct Draft {
    pub(super) parts: Parts,
    /// As many as there are services.
    pub(super) places: Vec<usize>,
}

impl From<Parts> for Draft {
    fn from(parts: Parts) -> Self {
        Self { places: (0..parts.services.len()).collect(), parts }
    }
}

/// Reads as much as can be read; the rest is among the problems.
pub(super) fn read(data: &ServicesData) -> (Draft, Vec<Problem>) {
    let mut found = Vec::new();
    let known = [SERVICES_KEY, FILES_KEY, ENVIRONMENT_KEY, WATCHED_KEY];
    for key in data.0.keys().filter(|key| !known.contains(&key.as_str())) {
        let error = ManifestError::UnknownKey { key: key.clone() };
        found.push(Problem { at: key.clone(), error });
    }
    let text = |key: &str| data.0.get(key).map(String::as_str);
    let mut required = |key: &'static str| {
        let text = text(key);
        if text.is_none() {
            found.push(Problem { at: key.to_owned(), error: ManifestError::MissingKey { key } });
        }
        text
    };
    let (services, files) = (required(SERVICES_KEY), required(FILES_KEY));
    // Unlike the required keys, these two count as absent when they are empty or null.
    let optional = |key| text(key).filter(|text| !text.is_empty());
    let items = |key, text: Option<&str>, found: &mut Vec<Problem>| -> Vec<Value> {
        let list: Option<Option<_>> = text.map(|text| keep(json(key, text), found).flatten());
        list.flatten().unwrap_or_default()
    };
    let (mut parts, mut places) = (Parts::default(), Vec::new());
    for (place, item) in items(SERVICES_KEY, services, &mut found).into_iter().enumerate() {
        let at = format!("{SERVICES_KEY}[{place}]");
        let raw: Option<RawService> = keep(respelled(SERVICES_KEY, &at, item, SERVICE), &mut found);
        if let Some(service) = raw.and_then(|raw| checked(raw, &at, &mut found)) {
            parts.services.push(service);
            places.push(place);
        }
    }
    for (place, item) in items(FILES_KEY, files, &mut found).into_iter().enumerate() {
        let at = format!("{FILES_KEY}[{place}]");
        parts.files.extend(keep(respelled(FILES_KEY, &at, item, FILE), &mut found));
    }
    if let Some(text) = optional(ENVIRONMENT_KEY) {
        let variables: Result<Option<_>, _> = json(ENVIRONMENT_KEY, text);
        parts.environment = keep(variables, &mut found).flatten().unwrap_or_default();
    }
    if let Some(text) = optional(WATCHED_KEY) {
        let names: Result<Option<_>, _> = json(WATCHED_KEY, text);
        parts.watched = keep(names, &mut found).flatten().unwrap_or_default();
    }
    (Draft { parts, places }, found)
}

/// The value, if there is one; a problem goes to the others.
fn keep<T>(result: Result<T, Problem>, found: &mut Vec<Problem>) -> Option<T> {
    result.map_err(|problem| found.push(problem)).ok()
}

/// The service, if its own name is legal. A dependency that is not is left out.
fn checked(raw: RawService, at: &str, found: &mut Vec<Problem>) -> Option<Service> {
    let mut legal = |text: &str, place: String, field| {
        let name = text.parse::<ServiceName>().map_err(|source| Problem {
            at: format!("{at}.{place}"),
            error: ManifestError::BadName { service: raw.name.clone(), field, source },
        });
        keep(name, found)
    };
    let name = legal(&raw.name, "name".to_owned(), "name");
    let needs = raw.dependencies.iter().enumerate();
    let dependencies = needs
        .filter_map(|(k, text)| legal(text, format!("dependencies[{k}]"), "dependencies"))
        .collect();
    Some(Service {
        name: name?,
        dependencies,
        command: raw.path,
        node_variables_in_command: raw.node_variables_in_command,
        powershell_pre_scripts: raw.powershell_pre_scripts,
        bootstrap: raw.bootstrap,
        priority: raw.priority,
    })
}

/// Reads the text under a key.
fn json<T: DeserializeOwned>(key: &'static str, text: &str) -> Result<T, Problem> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut reader);
    let value = value.map_err(|error| {
        let at = joined(key, &error.path().to_string());
        wrong(key, at, error.into_inner())
    })?;
    reader.end().map_err(|error| wrong(key, key.to_owned(), error))?;
    Ok(value)
}

/// Reads an object whose field names may be in any case; unknown fields and nulls count as absent.
fn respelled<T: DeserializeOwned>(
    key: &'static str,
    at: &str,
    item: Value,
    fields: &[Field],
) -> Result<T, Problem> {
    let known = respell(item, fields).map_err(|error| wrong(key, at.to_owned(), error))?;
    serde_path_to_error::deserialize(known).map_err(|error| {
        let at = joined(at, &error.path().to_string());
        wrong(key, at, error.into_inner())
    })
}

fn joined(at: &str, path: &str) -> String {
    match path {
        "." => at.to_owned(),
        path if path.starts_with('[') => format!("{at}{path}"),
        path => format!("{at}.{path}"),
    }
}

fn wrong(key: &'static str, at: String, source: serde_json::Error) -> Problem {
    // Such messages repeat what was found, and values of variables can hold passwords.
    let source = if key == ENVIRONMENT_KEY && source.is_data() {
        serde::de::Error::custom("write an object whose values are text")
    } else {
        source
    };
    Problem { error: ManifestError::Json { at: at.clone(), source }, at }
}

fn respell(value: Value, fields: &[Field]) -> Result<Value, serde_json::Error> {
    match value {
        Value::Array(items) if !fields.is_empty() => {
            items.into_iter().map(|item| respell(item, fields)).collect::<Result<_, _>>()
        }
        Value::Object(members) if !fields.is_empty() => {
            let mut known = Map::new();
            for (name, value) in members {
                let Some(field) = fields.iter().find(|f| f.name.eq_ignore_ascii_case(&name)) else {
                    continue;
                };
                if !value.is_null()
                    && known.insert(field.name.to_owned(), respell(value, field.within)?).is_some()
                {
                    let problem = format!("field `{}` is there twice, drop one", field.name);
                    return Err(serde::de::Error::custom(problem));
                }
            }
            Ok(Value::Object(known))
        }
        other => Ok(other),
    }
}

pub(super) fn write(manifest: &Manifest) -> ServicesData {
    let mut data = BTreeMap::from([
        (SERVICES_KEY.to_owned(), text(&manifest.services)),
        (FILES_KEY.to_owned(), text(&manifest.files)),
        (WATCHED_KEY.to_owned(), text(&manifest.watched)),
    ]);
    if !manifest.environment.is_empty() {
        data.insert(ENVIRONMENT_KEY.to_owned(), text(&manifest.environment));
    }
    ServicesData(data)
}

#[expect(clippy::expect_used, reason = "plain data with text keys, written to memory")]
fn text(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, HtmlSafe);
    value.serialize(&mut serializer).expect("plain data is JSON");
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

/// Escapes what the original escapes, so that unchanged content is the same text.
struct HtmlSafe;

impl Formatter for HtmlSafe {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let special = |c: char| matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}');
        let mut rest = fragment;
        while let Some((place, c)) = rest.char_indices().find(|(_, c)| special(*c)) {
            let (before, from) = rest.split_at(place);
            CompactFormatter.write_string_fragment(writer, before)?;
            write!(writer, "\\u{:04x}", u32::from(c))?;
            rest = from.get(c.len_utf8()..).unwrap_or_default();
        }
        CompactFormatter.write_string_fragment(writer, rest)
    }
}

/// Writes an empty list as `null`.
pub(super) fn null_when_empty<S: Serializer>(
    list: &[NodeVariable],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    if list.is_empty() { serializer.serialize_none() } else { list.serialize(serializer) }
}
