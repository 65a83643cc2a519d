//! The data of a services ConfigMap as text, and comparisons by meaning.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::digest::Sha256;
use crate::names::objects::{ENVIRONMENT_KEY, FILES_KEY, SERVICES_KEY, WATCHED_KEY};

/// List fields of a service and of its parts.
const LISTS: [&str; 4] =
    ["NodeArgs", "dependencies", "nodeVariablesInCommand", "powershellPreScripts"];

/// Data of a services ConfigMap, key to JSON text, exactly as in the cluster.
///
/// Proxy addresses in it can hold passwords, so `Debug` shows the keys only.
#[derive(Clone, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(transparent)]
pub struct ServicesData(pub BTreeMap<String, String>);

impl ServicesData {
    /// Digest of the data's meaning for its reader. Ignored differences: spacing and order of members in the JSON;
    /// null, an empty list or a missing member; repetitions and order of watched variables. The order of other
    /// lists counts.
    ///
    /// ```
    /// use wmco_core::protocol::ServicesData;
    ///
    /// let data = |json: &str| ServicesData([("files".to_owned(), json.to_owned())].into());
    /// assert_eq!(data(r#"[{"a":1,"b":2}]"#).digest(), data(r#"[{ "b": 2, "a": 1 }]"#).digest());
    /// assert_ne!(data("[1,2]").digest(), data("[2,1]").digest());
    /// ```
    pub fn digest(&self) -> Sha256 {
        let said: Map<String, Value> =
            self.said().map(|(key, said)| (key.to_owned(), said)).collect();
        Sha256::of(Value::Object(said).to_string().as_bytes())
    }

    /// The keys with another meaning in `other`; their values are left out, because they can be secret.
    pub fn differing_keys(&self, other: &Self) -> Vec<String> {
        let (mine, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
            (self.said().collect(), other.said().collect());
        let keys: BTreeSet<&str> = mine.keys().chain(others.keys()).copied().collect();
        let differs = |key: &&str| mine.get(key) != others.get(key);
        keys.into_iter().filter(differs).map(str::to_owned).collect()
    }

    /// The meaning of each key, without keys that mean the same as a missing key.
    fn said(&self) -> impl Iterator<Item = (&str, Value)> {
        self.0.iter().filter_map(|(key, text)| Some((key.as_str(), said(key, text)?)))
    }
}

fn said(key: &str, text: &str) -> Option<Value> {
    let may_be_missing = matches!(key, ENVIRONMENT_KEY | WATCHED_KEY);
    let Ok(mut json) = serde_json::from_str::<Value>(text) else {
        return (!may_be_missing || !text.is_empty()).then(|| Value::from(text));
    };
    match key {
        SERVICES_KEY | FILES_KEY => {
            if json.is_null() {
                json = Value::Array(Vec::new());
            }
            drop_absent(&mut json);
        }
        ENVIRONMENT_KEY => {
            for value in json.as_object_mut().into_iter().flat_map(Map::values_mut) {
                if value.is_null() {
                    *value = Value::from("");
                }
            }
        }
        WATCHED_KEY => {
            if let Value::Array(names) = &mut json
                && names.iter().all(Value::is_string)
            {
                names.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
                names.dedup();
            }
        }
        _ => {}
    }
    let nothing = match key {
        ENVIRONMENT_KEY => json.is_null() || json.as_object().is_some_and(Map::is_empty),
        WATCHED_KEY => json.is_null() || json.as_array().is_some_and(Vec::is_empty),
        _ => false,
    };
    json.sort_all_objects();
    // In a list, so that text that is no JSON is never mistaken for JSON.
    (!nothing).then(|| Value::from(vec![json]))
}

/// Removes members that mean the same as missing members. An empty list counts as missing only in a list field:
/// elsewhere it is refused.
fn drop_absent(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(drop_absent),
        Value::Object(members) => {
            members.retain(|name, value| {
                let is_list = LISTS.iter().any(|list| list.eq_ignore_ascii_case(name));
                let is_empty_list = is_list && value.as_array().is_some_and(Vec::is_empty);
                !value.is_null() && !is_empty_list
            });
            members.values_mut().for_each(drop_absent);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

impl fmt::Debug for ServicesData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, btree_set, vec};
    use proptest::prelude::*;

    use super::*;

    /// The meaning of a ConfigMap, apart from its notation.
    #[derive(Clone, Debug, Eq, PartialEq)]
    struct Meaning {
        services: Vec<Service>,
        files: Vec<String>,
        environment: BTreeMap<String, String>,
        watched: BTreeSet<String>,
    }

    #[derive(Clone, Debug, Eq, PartialEq)]
    struct Service {
        path: String,
        priority: u8,
        dependencies: Vec<String>,
        scripts: Vec<Vec<String>>,
    }

    /// Few texts, so that two meanings are often nearly the same.
    fn any_text() -> impl Strategy<Value = String> {
        "[ab]{0,2}"
    }

    fn any_service() -> impl Strategy<Value = Service> {
        let texts = || vec(any_text(), 0..3);
        (any_text(), 0..3_u8, texts(), vec(texts(), 0..3)).prop_map(
            |(path, priority, dependencies, scripts)| Service {
                path,
                priority,
                dependencies,
                scripts,
            },
        )
    }

    prop_compose! {
        fn any_meaning()(
            services in vec(any_service(), 0..3),
            files in vec(any_text(), 0..3),
            environment in btree_map(any_text(), any_text(), 0..3),
            watched in btree_set(any_text(), 0..4),
        ) -> Meaning {
            Meaning { services, files, environment, watched }
        }
    }

    fn text(text: &str) -> String {
        Value::from(text).to_string()
    }

    /// Writes a meaning each time in another equivalent notation.
    struct Writer(Vec<u8>);

    impl Writer {
        fn choose<'a>(&mut self, ways: &[&'a str]) -> &'a str {
            let choice = usize::from(self.0.pop().unwrap_or_default());
            ways[choice % ways.len()]
        }

        fn object(&mut self, mut members: Vec<(&str, String)>) -> String {
            members.retain(|(_, text)| text != "missing");
            if self.choose(&["", "turned"]) == "turned" {
                members.reverse();
            }
            let space = self.choose(&["", " ", "\n\t"]);
            let members: Vec<String> = members
                .iter()
                .map(|(name, text)| format!("{space}\"{name}\":{space}{text}"))
                .collect();
            format!("{{{}{space}}}", members.join(","))
        }

        /// A list that may be left out if it is empty.
        fn list(&mut self, items: &[String]) -> String {
            if items.is_empty() {
                return self.choose(&["missing", "null", "[]", "[ ]"]).to_owned();
            }
            let space = self.choose(&["", " ", "\n"]);
            format!("[{space}{}]", items.join(&format!("{space},")))
        }

        fn service(&mut self, service: &Service) -> String {
            let mut scripts = Vec::new();
            for arguments in &service.scripts {
                let arguments: Vec<String> = arguments.iter().map(|a| text(a)).collect();
                let arguments = self.list(&arguments);
                scripts.push(self.object(vec![("path", "\"p\"".into()), ("NodeArgs", arguments)]));
            }
            let dependencies: Vec<String> =
                service.dependencies.iter().map(|name| text(name)).collect();
            let (dependencies, scripts) = (self.list(&dependencies), self.list(&scripts));
            let unset = self.choose(&["missing", "null"]).to_owned();
            self.object(vec![
                ("path", text(&service.path)),
                ("priority", service.priority.to_string()),
                ("dependencies", dependencies),
                ("powershellPreScripts", scripts),
                ("bootstrap", unset),
            ])
        }

        fn write(&mut self, meaning: &Meaning) -> ServicesData {
            let services: Vec<String> = meaning.services.iter().map(|s| self.service(s)).collect();
            let files: Vec<String> =
                meaning.files.iter().map(|path| self.object(vec![("path", text(path))])).collect();
            let environment = if meaning.environment.is_empty() {
                self.choose(&["missing", "", "null", "{}", "{ }"]).to_owned()
            } else {
                let members = meaning.environment.iter();
                self.object(members.map(|(k, v)| (k.as_str(), text(v))).collect())
            };
            let mut watched: Vec<String> = meaning.watched.iter().map(|n| text(n)).collect();
            if self.choose(&["", "again"]) == "again" {
                watched.extend(watched.clone());
            }
            let first = self.choose(&["", "1", "22"]).len();
            let first = first.checked_rem(watched.len()).unwrap_or_default();
            watched.rotate_left(first);
            let mut data = BTreeMap::from([
                (SERVICES_KEY.to_owned(), self.list(&services).replace("missing", "null")),
                (FILES_KEY.to_owned(), self.list(&files).replace("missing", "null")),
                (ENVIRONMENT_KEY.to_owned(), environment),
                (WATCHED_KEY.to_owned(), self.list(&watched)),
            ]);
            data.retain(|_, text| text != "missing");
            ServicesData(data)
        }
    }

    proptest! {
        /// Data has the same digest if and only if it has the same meaning; otherwise the differing keys are named.
        #[test]
        fn digest_is_of_the_meaning(
            one in any_meaning(),
            other in any_meaning(),
            exchanged in 0..16_u8,
            ways in [vec(any::<u8>(), 64), vec(any::<u8>(), 64)],
        ) {
            let is_exchanged = |bit: u8| exchanged & (1 << bit) != 0;
            let mut changed = one.clone();
            if is_exchanged(0) { changed.services = other.services; }
            if is_exchanged(1) { changed.files = other.files; }
            if is_exchanged(2) { changed.environment = other.environment; }
            if is_exchanged(3) { changed.watched = other.watched; }
            let [way, other_way] = ways;
            let (data, other_data) = (Writer(way).write(&one), Writer(other_way).write(&changed));
            prop_assert_eq!(one == changed, data.digest() == other_data.digest());
            let differ = [
                (ENVIRONMENT_KEY, one.environment != changed.environment),
                (FILES_KEY, one.files != changed.files),
                (SERVICES_KEY, one.services != changed.services),
                (WATCHED_KEY, one.watched != changed.watched),
            ];
            let differ = differ.into_iter().filter(|(_, differs)| *differs);
            let keys: Vec<&str> = differ.map(|(key, _)| key).collect();
            prop_assert_eq!(data.differing_keys(&other_data), keys);
        }
    }

    fn of(key: &str, json: &str) -> Sha256 {
        ServicesData([(key.to_owned(), json.to_owned())].into()).digest()
    }

    #[test]
    fn a_required_key_is_not_the_same_when_it_is_missing() {
        let none = ServicesData::default().digest();
        for key in [SERVICES_KEY, FILES_KEY] {
            assert_ne!(of(key, "[]"), none);
            assert_ne!(of(key, ""), of(key, "[]"));
        }
        assert_eq!(of(ENVIRONMENT_KEY, "{}"), none);
        assert_eq!(of(WATCHED_KEY, ""), none);
    }

    #[test]
    fn an_empty_value_of_the_wrong_kind_counts() {
        let service = |text: &str| of(SERVICES_KEY, &format!("[{{\"name\":\"a\"{text}}}]"));
        for wrong in [r#","path":[]"#, r#","dependencies":{}"#, r#","dependencies":"""#] {
            assert_ne!(service(""), service(wrong), "{wrong}");
        }
        assert_ne!(of(ENVIRONMENT_KEY, "[]"), of(ENVIRONMENT_KEY, "{}"));
        assert_ne!(of(WATCHED_KEY, "{}"), of(WATCHED_KEY, "[]"));
    }

    #[test]
    fn a_variable_that_is_empty_or_null_is_there() {
        assert_eq!(of(ENVIRONMENT_KEY, r#"{"A":null}"#), of(ENVIRONMENT_KEY, r#"{"A":""}"#));
        assert_ne!(of(ENVIRONMENT_KEY, r#"{"A":null}"#), of(ENVIRONMENT_KEY, "{}"));
    }

    #[test]
    fn text_that_is_no_json_is_no_text_in_json() {
        assert_ne!(of(SERVICES_KEY, "a"), of(SERVICES_KEY, "\"a\""));
        assert_ne!(of(SERVICES_KEY, "[\"a\""), of(SERVICES_KEY, "[\"a\"]"));
    }

    #[test]
    fn an_unknown_key_counts() {
        assert_ne!(of("bogus", "null"), ServicesData::default().digest());
    }
}
