//! Several managers of one object.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::call::WriteOptions;
use crate::identity::User;
use crate::registry::Registry;

fn call(manager: &str) -> Call {
    call_of(manager, "", "configmaps")
}

fn call_of(manager: &str, group: &str, plural: &str) -> Call {
    Call {
        user: User::anonymous(),
        resource: Arc::clone(Registry::builtin().find(group, "v1", plural).unwrap()),
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

fn deployment(container: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
        "spec": {"template": {"spec": {"containers": [container]}}}})
}

#[test]
fn a_field_goes_with_the_last_owner_of_a_part_of_it() {
    let call = call_of("one", "apps", "deployments");
    let limited = deployment(&json!({"name": "c", "resources": {"limits": {"cpu": "1"}}}));
    let mut live = apply(&call, None, &limited).unwrap();
    // A default, which nobody owns.
    live["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] =
        json!({"cpu": "1"});
    let left = apply(&call, Some(&live), &deployment(&json!({"name": "c"}))).unwrap();
    let containers = &left["spec"]["template"]["spec"]["containers"];
    assert_eq!(containers, &json!([{"name": "c"}]));
    assert_eq!(left["metadata"]["name"], "a");
}

#[test]
fn an_item_goes_with_its_owner_whoever_owns_parts_of_it() {
    let first = call_of("one", "apps", "deployments");
    let second = call_of("two", "apps", "deployments");
    let two = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
        "spec": {"template": {"spec": {"containers": [{"name": "c"}, {"name": "d"}]}}}});
    let one = apply(&first, None, &two).unwrap();
    let mut changed = one.clone();
    changed["spec"]["template"]["spec"]["containers"][1]["image"] = "i:2".into();
    track(&second, Some(&one), &mut changed);
    let left = apply(&first, Some(&changed), &deployment(&json!({"name": "c"}))).unwrap();
    assert_eq!(left["spec"]["template"]["spec"]["containers"], json!([{"name": "c"}]));
}

#[test]
fn a_key_with_a_default_names_the_same_item() {
    let call = call_of("one", "", "services");
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"},
        "spec": {"ports": [{"port": 80}]}});
    let mut live = apply(&call, None, &service).unwrap();
    live["spec"]["ports"][0]["protocol"] = "TCP".into();
    let again = apply(&call, Some(&live), &service).unwrap();
    assert_eq!(again["spec"]["ports"], json!([{"port": 80, "protocol": "TCP"}]));
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
