//! Several managers of one ConfigMap.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::cluster::call::WriteOptions;
use crate::cluster::identity::User;
use crate::cluster::registry::Registry;

fn call(manager: &str) -> Call {
    Call {
        user: User::anonymous(),
        resource: Arc::clone(Registry::builtin().find("", "v1", "configmaps").unwrap()),
        subresource: String::new(),
        namespace: "n".to_owned(),
        name: "a".to_owned(),
        options: WriteOptions { manager: manager.to_owned(), ..WriteOptions::default() },
        now: Timestamp::UNIX_EPOCH,
    }
}

fn map(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
}

fn owners(object: &Value) -> Vec<(String, Value)> {
    let list = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    list.iter()
        .map(|own| (own["manager"].as_str().unwrap().to_owned(), own["fieldsV1"].clone()))
        .collect()
}

#[test]
fn a_conflict_names_manager_and_field() {
    let one = apply(&call("one"), None, &map(&json!({"k": "v", "l": "v"}))).unwrap();
    let error = apply(&call("two"), Some(&one), &map(&json!({"k": "w"}))).unwrap_err();
    assert_eq!(error.code, 409);
    assert_eq!(error.message, "Apply failed with 1 conflict: conflict with \"one\": .data.k");
    let error = apply(&call("two"), Some(&one), &map(&json!({"k": "w", "l": "w"}))).unwrap_err();
    assert_eq!(
        error.message,
        "Apply failed with 2 conflicts: conflicts with \"one\":\n- .data.k\n- .data.l"
    );
    assert_eq!(error.details.unwrap()["causes"][1]["field"], ".data.l");
}

#[test]
fn force_takes_the_field() {
    let one = apply(&call("one"), None, &map(&json!({"k": "v", "l": "v"}))).unwrap();
    let mut forced = call("two");
    forced.options.force = true;
    let two = apply(&forced, Some(&one), &map(&json!({"k": "w"}))).unwrap();
    assert_eq!(two["data"], json!({"k": "w", "l": "v"}));
    let expected = [
        ("one".to_owned(), json!({"f:data": {"f:l": {}}})),
        ("two".to_owned(), json!({"f:data": {"f:k": {}}})),
    ];
    assert_eq!(owners(&two), expected);
}

#[test]
fn an_update_takes_what_it_changes_and_conflicts_with_an_apply_later() {
    let mut object = apply(&call("one"), None, &map(&json!({"k": "v"}))).unwrap();
    let before = object.clone();
    object["data"]["k"] = "w".into();
    track(&call("putter"), Some(&before), &mut object);
    assert_eq!(owners(&object), [("putter".to_owned(), json!({"f:data": {"f:k": {}}}))]);
    let error = apply(&call("one"), Some(&object), &map(&json!({"k": "v"}))).unwrap_err();
    assert_eq!(
        error.message,
        "Apply failed with 1 conflict: conflict with \"putter\" using v1: .data.k"
    );
}

#[test]
fn the_same_value_is_shared_and_goes_with_its_last_owner() {
    let one = apply(&call("one"), None, &map(&json!({"k": "v"}))).unwrap();
    let both = apply(&call("two"), Some(&one), &map(&json!({"k": "v"}))).unwrap();
    assert_eq!(owners(&both).len(), 2);
    let left = apply(&call("one"), Some(&both), &map(&json!({}))).unwrap();
    assert_eq!(left["data"], json!({"k": "v"}));
    let none = apply(&call("two"), Some(&left), &map(&json!({}))).unwrap();
    assert_eq!(none["data"], json!({}));
}

#[test]
fn what_was_there_before_the_first_apply_has_an_owner() {
    let mut object = map(&json!({"k": "v"}));
    object["metadata"]["uid"] = "u".into();
    let applied = apply(&call("one"), Some(&object), &map(&json!({"l": "w"}))).unwrap();
    assert!(owners(&applied).iter().any(|(manager, _)| manager == BEFORE_APPLY));
}

#[test]
fn unknown_fields_are_refused() {
    let mut configuration = map(&json!({}));
    configuration["dta"] = json!({});
    let error = apply(&call("one"), None, &configuration).unwrap_err();
    assert_eq!(
        error.message,
        "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .dta: field not declared \
         in schema"
    );
}
