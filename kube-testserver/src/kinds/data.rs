//! ConfigMaps and Secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::call::Call;
use crate::error::{FieldError, Result};
use crate::golang::json;
use crate::meta;
use crate::tokens::secrets;

use super::ages::age;
use super::values::{immutable, invalid_for, or_default, size, text};
use super::{Columns, SelectableField, Strategy, TEXT, same_as_stored};

/// ConfigMaps.
#[derive(Debug)]
pub(super) struct ConfigMaps;

impl Strategy for ConfigMaps {
    fn validate(&self, _call: &Call, object: &Value) -> Result<Vec<FieldError>> {
        Ok(config_map(object))
    }

    fn validate_update(
        &self,
        _call: &Call,
        before: &Value,
        object: &Value,
    ) -> Result<Vec<FieldError>> {
        Ok([config_map(object), immutable_map(before, object)].concat())
    }

    fn columns(&self) -> Columns {
        &[("Name", TEXT, 0), ("Data", TEXT, 0), ("Age", TEXT, 0)]
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let data = size(object, "/data") + size(object, "/binaryData");
        vec![meta::name(object).into(), data.into(), age(object, now)]
    }
}

/// Secrets.
#[derive(Debug)]
pub(super) struct Secrets;

impl Strategy for Secrets {
    fn default(&self, object: &mut Value) {
        default_secret(object);
    }

    fn validate(&self, _call: &Call, object: &Value) -> Result<Vec<FieldError>> {
        Ok(secret(object))
    }

    fn validate_update(
        &self,
        _call: &Call,
        before: &Value,
        object: &Value,
    ) -> Result<Vec<FieldError>> {
        Ok([immutable_secret(before, object), secret(object)].concat())
    }

    fn columns(&self) -> Columns {
        &[("Name", TEXT, 0), ("Type", TEXT, 0), ("Data", TEXT, 0), ("Age", TEXT, 0)]
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let (kind, data) = (text(object, "/type"), size(object, "/data"));
        vec![meta::name(object).into(), kind.into(), data.into(), age(object, now)]
    }

    fn fields(&self) -> Option<Vec<SelectableField>> {
        Some(same_as_stored(&["type"]))
    }
}

/// Largest sum of all values.
const LARGEST: usize = 1024 * 1024;
const LONGEST_KEY: usize = 253;
const KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' \
     (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
     '[-._a-zA-Z0-9]+')";

fn entries<'a>(object: &'a Value, member: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let map = object.get(member).and_then(Value::as_object);
    map.into_iter().flatten().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or("")))
}

fn wrong_key(key: &str) -> Vec<String> {
    let mut wrong = vec![];
    if key.len() > LONGEST_KEY {
        wrong.push(format!("must be no more than {LONGEST_KEY} bytes"));
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    if key.is_empty() || !key.chars().all(fits) {
        wrong.push(KEY.to_owned());
    }
    if key == "." {
        wrong.push("must not be '.'".to_owned());
    } else if key == ".." {
        wrong.push("must not be '..'".to_owned());
    } else if key.starts_with("..") {
        wrong.push("must not start with '..'".to_owned());
    }
    wrong
}

fn keys(object: &Value, member: &str) -> Vec<FieldError> {
    let complain =
        |(key, _): (&str, &str)| invalid_for(&format!("{member}[{key}]"), key, &wrong_key(key));
    entries(object, member).flat_map(complain).collect()
}

/// Number of bytes of a base64 text.
fn decoded(text: &str) -> usize {
    STANDARD.decode(text).map_or(0, |bytes| bytes.len())
}

/// Validation errors of a ConfigMap.
fn config_map(map: &Value) -> Vec<FieldError> {
    let mut errors = keys(map, "data");
    let binary: Vec<&str> = entries(map, "binaryData").map(|(key, _)| key).collect();
    for (key, _) in entries(map, "data").filter(|(key, _)| binary.contains(key)) {
        let why = "duplicate of key present in binaryData";
        errors.push(FieldError::invalid(&format!("data[{key}]"), &key.into(), why));
    }
    errors.extend(keys(map, "binaryData"));
    let size: usize = entries(map, "data").map(|(_, value)| value.len()).sum::<usize>()
        + entries(map, "binaryData").map(|(_, value)| decoded(value)).sum::<usize>();
    if size > LARGEST {
        errors.push(FieldError::too_long("", LARGEST));
    }
    errors
}

/// Validation errors of a change of an immutable ConfigMap.
fn immutable_map(before: &Value, map: &Value) -> Vec<FieldError> {
    frozen(before, map, &["data", "binaryData"])
}

fn frozen(before: &Value, object: &Value, members: &[&str]) -> Vec<FieldError> {
    const WHY: &str = "field is immutable when `immutable` is set";
    if before.get("immutable") != Some(&true.into()) {
        return vec![];
    }
    let mut errors = vec![];
    if object.get("immutable") != Some(&true.into()) {
        errors.push(FieldError::forbidden("immutable", WHY));
    }
    let changed = members.iter().filter(|member| before.get(**member) != object.get(**member));
    errors.extend(changed.map(|member| FieldError::forbidden(member, WHY)));
    errors
}

/// Merges `stringData` into `data` and sets the default type.
fn default_secret(secret: &mut Value) {
    let Some(members) = secret.as_object_mut() else { return };
    if let Some(Value::Object(plain)) = members.remove("stringData") {
        let data = members.entry("data").or_insert_with(|| Map::new().into());
        if let Some(data) = data.as_object_mut() {
            for (key, value) in plain {
                let bytes = value.as_str().unwrap_or("");
                data.insert(key, STANDARD.encode(bytes).into());
            }
        }
    }
    or_default(members, "type", "Opaque");
}

/// Validation errors of a Secret.
fn secret(secret: &Value) -> Vec<FieldError> {
    let mut errors = keys(secret, "data");
    let size: usize = entries(secret, "data").map(|(_, value)| decoded(value)).sum();
    if size > LARGEST {
        errors.push(FieldError::too_long("data", LARGEST));
    }
    let has = |key: &str| entries(secret, "data").any(|(own, _)| own == key);
    let required =
        |key: &str| (!has(key)).then(|| FieldError::required(&format!("data[{key}]"), ""));
    match text(secret, "/type") {
        secrets::TYPE
            if meta::annotation(secret, secrets::ACCOUNT_NAME).is_none_or(str::is_empty) =>
        {
            let field = format!("metadata.annotations[{}]", secrets::ACCOUNT_NAME);
            errors.push(FieldError::required(&field, ""));
        }
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            errors.push(FieldError::required("data[username]", ""));
            errors.push(FieldError::required("data[password]", ""));
        }
        "kubernetes.io/ssh-auth" => {
            let key = entries(secret, "data").find(|(own, _)| *own == "ssh-privatekey");
            if key.is_none_or(|(_, value)| value.is_empty()) {
                errors.push(FieldError::required("data[ssh-privatekey]", ""));
            }
        }
        "kubernetes.io/tls" => {
            errors.extend(required("tls.crt"));
            errors.extend(required("tls.key"));
        }
        "kubernetes.io/dockercfg" => errors.extend(json_at(secret, ".dockercfg")),
        "kubernetes.io/dockerconfigjson" => errors.extend(json_at(secret, ".dockerconfigjson")),
        _ => {}
    }
    errors
}

fn json_at(secret: &Value, key: &str) -> Option<FieldError> {
    let field = format!("data[{key}]");
    let Some((_, value)) = entries(secret, "data").find(|(own, _)| *own == key) else {
        return Some(FieldError::required(&field, ""));
    };
    let bytes = STANDARD.decode(value).unwrap_or_default();
    let why = json::syntax_error(&bytes).or_else(|| {
        let read = serde_json::from_slice::<Value>(&bytes).unwrap_or_default();
        let found = json::type_name(&read);
        (!read.is_object() && !read.is_null()).then(|| {
            format!(
                "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            )
        })
    })?;
    Some(FieldError::invalid_text(&field, "\"<secret contents redacted>\"", &why))
}

/// Validation errors of a change of a Secret's type or of an immutable Secret.
fn immutable_secret(before: &Value, secret: &Value) -> Vec<FieldError> {
    let mut errors: Vec<_> = immutable(before, secret, "/type", "type").into_iter().collect();
    errors.extend(frozen(before, secret, &["data"]));
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::values::texts;
    use super::*;

    #[test]
    fn keys_are_names() {
        let errors = config_map(&json!({"data": {"bad key": "", "ok.key_-": ""}}));
        assert_eq!(errors.len(), 1);
        assert_eq!(errors[0].field, "data[bad key]");
    }

    #[test]
    fn keys_stand_in_one_map_only() {
        let map = json!({"data": {"k": "v"}, "binaryData": {"k": "AAEC"}});
        let expected = ["data[k]: Invalid value: \"k\": duplicate of key present in binaryData"];
        assert_eq!(texts(&config_map(&map)), expected);
    }

    #[test]
    fn string_data_wins() {
        let mut secret = json!({"data": {"p": "cHc=", "q": "cQ=="}, "stringData": {"p": "new"}});
        default_secret(&mut secret);
        assert_eq!(secret, json!({"data": {"p": "bmV3", "q": "cQ=="}, "type": "Opaque"}));
    }

    #[test]
    fn types_demand_keys_and_stay() {
        let before = json!({"type": "Opaque"});
        let tls = json!({"type": "kubernetes.io/tls"});
        assert_eq!(
            texts(&secret(&tls)),
            ["data[tls.crt]: Required value", "data[tls.key]: Required value"]
        );
        assert_eq!(
            texts(&immutable_secret(&before, &tls)),
            ["type: Invalid value: \"kubernetes.io/tls\": field is immutable"]
        );
    }

    #[test]
    fn a_docker_config_is_a_json_object() {
        let with = |config: &str| {
            let config = STANDARD.encode(config);
            let data = json!({".dockerconfigjson": config});
            texts(&secret(&json!({"type": "kubernetes.io/dockerconfigjson", "data": data})))
        };
        let invalid = |why: &str| {
            let at = r#"data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": "#;
            vec![format!("{at}{why}")]
        };
        assert_eq!(with("{}"), Vec::<String>::new());
        assert_eq!(with("{"), invalid("unexpected end of JSON input"));
        let array = "json: cannot unmarshal array into Go value of type map[string]interface {}";
        assert_eq!(with("[]"), invalid(array));
    }

    #[test]
    fn what_is_immutable_stays() {
        let before = json!({"immutable": true, "data": {"a": "1"}});
        let after = json!({"immutable": true, "data": {"a": "2"}});
        let expected = ["data: Forbidden: field is immutable when `immutable` is set"];
        assert_eq!(texts(&immutable_map(&before, &after)), expected);
        assert!(immutable_map(&before, &before).is_empty());
    }
}
