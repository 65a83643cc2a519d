//! What findings repeat of foreign objects is harmless, whatever stands in them.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::{registries, tags, told};
use crate::registries::{misplaced, registry_notices};
use crate::text::steers_terminals;

/// Stands for a password wherever one may be written.
const PLANTED: &str = "hush";

/// Longest finding.
const MOST_BYTES: usize = 2000;

/// Texts that people, or somebody who wants harm, may write anywhere.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => ".{0,9}",
        3 => select(&["m.test", "m.test/p", "a.test/x", "*.test", "NeverContactSource", "docker.io"][..])
            .prop_map(str::to_owned),
        1 => Just("https://bob:hush@x/".to_owned()),
        1 => Just("m.test/bob:hush@x".to_owned()),
        1 => Just("bob:hush@m.test\n/\u{1b}[2J\u{202e}x".to_owned()),
        1 => Just(format!("m.test/{}", "x".repeat(5000))),
        1 => Just("m.test/\u{1b}".repeat(900)),
    ]
}

/// Names of members: right ones, similar ones, others.
fn any_name() -> impl Strategy<Value = String> {
    let names = [
        "source",
        "mirrors",
        "mirrorSourcePolicy",
        "spec",
        "imageTagMirrors",
        "registrySources",
        "blockedRegistries",
        "insecureRegistries",
        "auths",
        "auth",
        "username",
        "passwd",
    ];
    prop_oneof![3 => select(names.to_vec()).prop_map(str::to_owned), 1 => any_text()]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        1 => Just(Value::Null),
        1 => any::<i32>().prop_map(Value::from),
        6 => any_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(any_name(), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// An entry of the pull secret, with a password in it.
fn any_credentials() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => Just(json!({"auth": "Ym9iOmh1c2g="})),
        1 => Just(json!({"username": "bob", "password": PLANTED})),
        1 => Just(json!({"username": "bob", "passwd": PLANTED})),
        1 => Just(json!({"auth": "hush"})),
        1 => Just(json!(PLANTED)),
        1 => Just(json!({"identitytoken": PLANTED, "https://bob:hush@x": 1})),
    ]
}

/// Keys below, above and beside the mirror of the test.
fn any_key() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => any_text(),
        1 => any_text().prop_map(|text| format!("m.test/p/t/{text}")),
        1 => any_text().prop_map(|text| format!("m.test:443/p/{text}")),
    ]
}

/// At which level of its object a value stands in for what belongs there.
const LEVELS: usize = 5;

fn set_of(level: usize, value: Value) -> Value {
    let spec = match level {
        0 => value,
        1 => json!({"imageTagMirrors": value}),
        2 => json!({"imageTagMirrors": [value]}),
        3 => json!({"imageTagMirrors": [{"source": "a.test/t", "mirrors": [value]}]}),
        _ => {
            let entry =
                json!({"source": value, "mirrors": ["m.test/p/t"], "mirrorSourcePolicy": value});
            json!({"imageTagMirrors": [entry]})
        }
    };
    json!({"kind": "ImageTagMirrorSet", "metadata": {"name": "wrong"}, "spec": spec})
}

fn config_of(level: usize, value: Value) -> Value {
    let spec = match level {
        0 => value,
        1 => json!({"registrySources": value}),
        2 => json!({"registrySources": {"blockedRegistries": value}}),
        3 => json!({"registrySources": {"blockedRegistries": [value]}}),
        _ => json!({"registrySources": {"insecureRegistries": [value, "m.test"]}}),
    };
    json!({"kind": "Image", "spec": spec})
}

#[track_caller]
fn check(line: &str) {
    assert!(!line.contains(steers_terminals), "{line:?}");
    assert!(!line.contains(PLANTED), "{line}");
    assert!(line.len() <= MOST_BYTES, "{} bytes: {line:.300}", line.len());
}

proptest! {
    #[test]
    fn findings_are_printable_short_and_without_passwords(
        sets in vec((0..LEVELS, any_json()), 1..4),
        config in (0..LEVELS, any_json()),
        auths in btree_map(any_key(), any_credentials(), 0..5),
        name in any_text(),
        version in any_text(),
    ) {
        let auths = Value::Object(auths.into_iter().collect());
        let mut named = tags(&name, "a.test/t", &["m.test/p/t", "m.test:443/p/t"]);
        let mut objects: Vec<Value> =
            sets.into_iter().map(|(level, value)| set_of(level, value)).collect();
        objects.extend([named.clone(), config_of(config.0, config.1), json!({"auths": auths})]);
        let found = registries(&objects);
        named["apiVersion"] = version.into();
        let elsewhere = misplaced(&named);
        for finding in found.findings().iter().chain(&elsewhere) {
            check(&finding.to_string());
            check(&finding.object.name);
            check(&finding.field);
        }
        for notice in registry_notices(found.findings()) {
            check(&notice.text);
        }
        for line in found.explain(&"a.test/t/x:1".parse().unwrap()).to_string().lines() {
            check(line);
        }
        prop_assert_eq!(told(&found).lines().count(), found.findings().len());
    }
}
