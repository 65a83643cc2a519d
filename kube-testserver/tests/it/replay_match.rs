//! Comparison of answers with what the transcripts expect.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;
use serde_json::{Map, Value};

/// What stands for a kind of value, and the pattern of such values.
const PLACEHOLDERS: &[(&str, &str)] = &[
    ("<uid>", "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
    ("<rv>", "[0-9]+"),
    ("<time>", r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z"),
    ("<continue>", "[A-Za-z0-9_-]+"),
    ("<token>", "(?s:.+)"),
    ("<certificate>", "[A-Za-z0-9+/=]+"),
    ("<base64>", "[A-Za-z0-9+/=]+"),
    ("<age>", "(([0-9]+[smhdy])+|<unknown>)"),
    ("<ip>", r"10\.[0-9]+\.[0-9]+\.[0-9]+"),
    ("<id>", "[^\"]+"),
    ("<any>", "(?s:.*)"),
];

/// Whether `actual` fits a text with placeholders.
pub(crate) fn text_matches(pattern: &str, actual: &str) -> bool {
    if pattern == actual {
        return true;
    }
    let mut regex = String::from("^");
    let mut rest = pattern;
    while let Some(start) = rest.find('<') {
        regex.push_str(&regex::escape(&rest[..start]));
        rest = &rest[start..];
        let generated = rest.strip_prefix("<generated:").and_then(|rest| rest.split_once('>'));
        if let Some((prefix, after)) = generated {
            regex.push_str(&regex::escape(prefix));
            regex.push_str("[a-z0-9]{5}");
            rest = after;
        } else if let Some((word, class)) =
            PLACEHOLDERS.iter().find(|(word, _)| rest.starts_with(word))
        {
            regex.push_str(class);
            rest = &rest[word.len()..];
        } else {
            regex.push('<');
            rest = &rest[1..];
        }
    }
    regex.push_str(&regex::escape(rest));
    regex.push('$');
    Regex::new(&regex).unwrap().is_match(actual)
}

/// The first difference between a value and what is expected of it, with its pointer.
pub(crate) fn difference(expected: &Value, actual: &Value, at: &str) -> Option<String> {
    let differs = || Some(format!("{at}: expected {expected}, found {actual}"));
    match (expected, actual) {
        (Value::String(pattern), Value::String(text)) => {
            if text_matches(pattern, text) {
                None
            } else {
                differs()
            }
        }
        (Value::Object(wanted), Value::Object(found)) => {
            for key in found.keys() {
                if !wanted.contains_key(key) {
                    return Some(format!("{at}/{key}: not expected, found {}", found[key]));
                }
            }
            wanted.iter().find_map(|(key, value)| {
                let at = format!("{at}/{key}");
                match found.get(key) {
                    None => Some(format!("{at}: missing, expected {value}")),
                    Some(found) if key == "managedFields" => any_order(value, found, &at),
                    Some(found) => difference(value, found, &at),
                }
            })
        }
        (Value::Array(wanted), Value::Array(found)) => {
            if wanted.len() != found.len() {
                return differs();
            }
            let pairs = wanted.iter().zip(found).enumerate();
            pairs.into_iter().find_map(|(index, (wanted, found))| {
                difference(wanted, found, &format!("{at}/{index}"))
            })
        }
        _ if expected == actual => None,
        _ => differs(),
    }
}

/// Lists whose order does not count.
fn any_order(expected: &Value, actual: &Value, at: &str) -> Option<String> {
    let (Some(wanted), Some(found)) = (expected.as_array(), actual.as_array()) else {
        return difference(expected, actual, at);
    };
    let mut left: Vec<&Value> = found.iter().collect();
    for entry in wanted {
        let Some(index) = left.iter().position(|found| difference(entry, found, at).is_none())
        else {
            return Some(format!("{at}: nothing like {entry} in {actual}"));
        };
        left.remove(index);
    }
    left.first().map(|entry| format!("{at}: not expected, found {entry}"))
}

/// Whether `actual` has at least the members of `expected`.
pub(crate) fn includes(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::Object(wanted), Value::Object(found)) => wanted
            .iter()
            .all(|(key, value)| found.get(key).is_some_and(|found| includes(value, found))),
        (Value::Array(wanted), Value::Array(found)) => {
            wanted.len() == found.len()
                && wanted.iter().zip(found).all(|(wanted, found)| includes(wanted, found))
        }
        _ => difference(expected, actual, "").is_none(),
    }
}

/// Drops what the transcripts do not have.
pub(crate) fn normalise(value: &mut Value, keeps_managed_fields: bool) {
    match value {
        Value::Object(members) => {
            members.remove("storageVersionHash");
            if !keeps_managed_fields
                && let Some(meta) = members.get_mut("metadata").and_then(Value::as_object_mut)
            {
                meta.remove("managedFields");
            }
            if let Some(columns) =
                members.get_mut("columnDefinitions").and_then(Value::as_array_mut)
            {
                for column in columns.iter_mut().filter_map(Value::as_object_mut) {
                    column.remove("description");
                }
            }
            members.values_mut().for_each(|member| normalise(member, keeps_managed_fields));
        }
        Value::Array(items) => {
            for item in items {
                normalise(item, keeps_managed_fields);
            }
        }
        _ => {}
    }
}

/// Values that earlier answers gave to later requests.
#[derive(Default)]
pub(crate) struct Captured(HashMap<String, String>);

impl Captured {
    /// Keeps what stands at the pointers of `capture`.
    pub(crate) fn keep(
        &mut self,
        capture: &Map<String, Value>,
        body: &Value,
    ) -> Result<(), String> {
        for (name, pointer) in capture {
            let pointer = pointer.as_str().unwrap();
            let value = body.pointer(pointer).ok_or(format!("{pointer}: nothing to capture"))?;
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            self.0.insert(name.clone(), text);
        }
        Ok(())
    }

    /// A text with `${name}` and `${name|base64decode}` replaced.
    pub(crate) fn fill(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for (name, value) in &self.0 {
            out = out.replace(&format!("${{{name}}}"), value);
            let decoded = format!("${{{name}|base64decode}}");
            if out.contains(&decoded) {
                let bytes = STANDARD.decode(value).unwrap();
                out = out.replace(&decoded, &String::from_utf8(bytes).unwrap());
            }
        }
        out
    }

    /// The same for all texts of a value.
    pub(crate) fn fill_all(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.fill(text).into(),
            Value::Array(items) => items.iter().map(|item| self.fill_all(item)).collect(),
            Value::Object(members) => {
                let members = members.iter();
                members
                    .map(|(key, value)| (self.fill(key), self.fill_all(value)))
                    .collect::<Map<_, _>>()
                    .into()
            }
            other => other.clone(),
        }
    }

    /// Checks `{"of", "to", "is"}`.
    pub(crate) fn check(&self, relation: &Value) -> Result<(), String> {
        let value = |field: &str| self.0.get(relation[field].as_str().unwrap()).unwrap();
        let (of, to) = (value("of"), value("to"));
        let numbers = || (of.parse::<u64>().unwrap(), to.parse::<u64>().unwrap());
        let holds = match relation["is"].as_str().unwrap() {
            "unchanged" => of == to,
            "different" => of != to,
            "increased" => numbers().0 > numbers().1,
            "decreased" => numbers().0 < numbers().1,
            other => panic!("unknown relation {other}"),
        };
        if holds { Ok(()) } else { Err(format!("{relation} does not hold: {of} and {to}")) }
    }
}

#[test]
fn placeholders_stand_for_values() {
    assert!(text_matches("a <rv> (<rv>)", "a 12 (3)"));
    assert!(!text_matches("a <rv>", "a b"));
    assert!(text_matches("<generated:gen->", "gen-ab2x9"));
    assert!(!text_matches("<generated:gen->", "gen-ab"));
    assert!(text_matches("<none>", "<none>"));
    assert!(!text_matches("<none>", "none"));
    assert!(text_matches("<age>", "3m2s"));
}
