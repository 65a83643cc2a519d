//! The JSON of a services ConfigMap, with all its oddities. Source: `spec/services.md`, section 2.

use std::collections::BTreeMap;
use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::ser::{CompactFormatter, Formatter};
use serde_json::{Map, Value};
use wmco_core::protocol::ServicesData;

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

pub(super) fn read(data: &ServicesData) -> Result<Parts, ManifestError> {
    let known = [SERVICES_KEY, FILES_KEY, ENVIRONMENT_KEY, WATCHED_KEY];
    if let Some(key) = data.0.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(ManifestError::UnknownKey { key: key.clone() });
    }
    let text = |key| data.0.get(key).map(String::as_str);
    let required = |key| text(key).ok_or(ManifestError::MissingKey { key });
    let services: Vec<RawService> =
        respelled(SERVICES_KEY, required(SERVICES_KEY)?, SERVICE)?.unwrap_or_default();
    let files = respelled(FILES_KEY, required(FILES_KEY)?, FILE)?.unwrap_or_default();
    // Unlike the required keys, these two count as absent when they are empty or null.
    let optional = |key| text(key).filter(|text| !text.is_empty());
    Ok(Parts {
        services: services.into_iter().map(checked).collect::<Result<_, _>>()?,
        files,
        environment: optional(ENVIRONMENT_KEY)
            .map(|text| json::<Option<BTreeMap<String, String>>>(ENVIRONMENT_KEY, text))
            .transpose()?
            .flatten()
            .unwrap_or_default(),
        watched: optional(WATCHED_KEY)
            .map(|text| json::<Option<Vec<String>>>(WATCHED_KEY, text))
            .transpose()?
            .flatten()
            .unwrap_or_default(),
    })
}

fn checked(raw: RawService) -> Result<Service, ManifestError> {
    let legal = |text: &str, field| {
        text.parse::<ServiceName>().map_err(|source| ManifestError::BadName {
            service: raw.name.clone(),
            field,
            source,
        })
    };
    Ok(Service {
        name: legal(&raw.name, "name")?,
        dependencies: raw
            .dependencies
            .iter()
            .map(|text| legal(text, "dependencies"))
            .collect::<Result<_, _>>()?,
        command: raw.path,
        node_variables_in_command: raw.node_variables_in_command,
        powershell_pre_scripts: raw.powershell_pre_scripts,
        bootstrap: raw.bootstrap,
        priority: raw.priority,
    })
}

fn json<T: DeserializeOwned>(key: &'static str, text: &str) -> Result<T, ManifestError> {
    serde_json::from_str(text).map_err(|source| ManifestError::Json { key, source })
}

/// Reads a list of objects whose field names may be in any case; unknown fields and nulls count as
/// absent.
fn respelled<T: DeserializeOwned>(
    key: &'static str,
    text: &str,
    fields: &[Field],
) -> Result<Option<T>, ManifestError> {
    let value: Value = json(key, text)?;
    respell(value, fields)
        .and_then(serde_json::from_value)
        .map_err(|source| ManifestError::Json { key, source })
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
