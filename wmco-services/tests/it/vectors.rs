//! Inputs with the original operator's answers, see `tests/vectors`.
//!
//! The answer to a case that its file marks as debatable may differ; those that do are listed here, each with its
//! reason, so that no answer changes unnoticed.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;
use wmco_core::protocol::ServicesData;
use wmco_core::proxy::ProxySettings;
use wmco_services::generate::{KubeletArguments, LogSettings, ManifestInputs, manifest};
use wmco_services::jsonpath::NodePath;
use wmco_services::manifest::{Manifest, Service, review};

#[derive(Deserialize)]
struct Case<I, E> {
    name: String,
    input: I,
    expect: E,
}

/// Checks every case, and that exactly the cases in `ours` differ, where a difference is permitted.
fn replay<I, E>(text: &str, ours: &[(&str, &str)], agrees: impl Fn(&I, &E) -> Agreement)
where
    Vec<Case<I, E>>: for<'de> Deserialize<'de>,
{
    let cases: Vec<Case<I, E>> = serde_json::from_str(text).expect("the vectors are JSON");
    assert!(cases.len() > 5, "the vectors are there");
    let mut differing = BTreeSet::new();
    for case in &cases {
        match agrees(&case.input, &case.expect) {
            Agreement::Same => {}
            Agreement::OtherAsGood => {
                differing.insert(case.name.as_str());
            }
            Agreement::Wrong(why) => panic!("{}: {why}", case.name),
        }
    }
    let listed: BTreeSet<&str> = ours.iter().map(|(name, _)| *name).collect();
    assert_eq!(differing, listed);
}

enum Agreement {
    Same,
    OtherAsGood,
    Wrong(String),
}

fn judge(same: bool, debatable: bool, why: impl Into<String>) -> Agreement {
    match (same, debatable) {
        (true, _) => Agreement::Same,
        (false, true) => Agreement::OtherAsGood,
        (false, false) => Agreement::Wrong(why.into()),
    }
}

#[derive(Deserialize)]
struct ValidateInput {
    data: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct ValidateExpect {
    ok: bool,
    correct_ok: Option<bool>,
    debatable: bool,
    bootstrap_services: Option<Vec<String>>,
    service_order: Option<Vec<String>>,
}

#[test]
fn services_config_maps_are_accepted_or_refused() {
    let ours = [
        ("unknown key as fourth", "an unknown key is a mistake whatever the number of keys"),
        ("services holds a null", "a service that is null has no name"),
        ("bootstrap with node arguments in a pre-script", "there is no node to ask yet"),
        ("two controllers with the same name", "one would overwrite the other"),
    ];
    replay(
        include_str!("../vectors/services_validate.json"),
        &ours,
        |input: &ValidateInput, expect: &ValidateExpect| {
            let data = ServicesData(input.data.clone());
            let (answer, review) = (Manifest::parse(&data), review(&data));
            assert_eq!(review.manifest.as_ref(), answer.as_ref().ok());
            assert_eq!(review.problems.is_empty(), answer.is_ok());
            let right = expect.correct_ok.unwrap_or(expect.ok);
            let (Ok(manifest), true) = (&answer, right) else {
                let why = format!("{:?}", answer.as_ref().err());
                return judge(answer.is_ok() == right, expect.debatable, why);
            };
            let names = |services: Vec<&Service>| -> Vec<String> {
                services.into_iter().map(|service| service.name.to_string()).collect()
            };
            let order = names(manifest.services().iter().collect());
            let bootstrap = names(manifest.bootstrap().collect());
            let same = expect.service_order.as_ref().is_none_or(|expected| *expected == order)
                && expect.bootstrap_services.as_ref().is_none_or(|expected| *expected == bootstrap);
            judge(same, expect.debatable, format!("order {order:?}, bootstrap {bootstrap:?}"))
        },
    );
}

#[derive(Deserialize)]
struct PathInput {
    jsonpath: String,
    node: Value,
}

#[derive(Deserialize)]
struct PathExpect {
    ok: bool,
    value: Option<String>,
    debatable: bool,
}

#[test]
fn node_paths_give_values() {
    let unset = "the API leaves empty fields out, so nothing tells an unset one from a wrong name";
    let case = "names of the API have one spelling, another one is a mistake";
    let ours = [
        ("name in brackets with double quotes", "both kinds of quotes are understood"),
        ("label with a blank in brackets", "a quoted name may hold anything"),
        ("unset optional field", unset),
        ("bare node: provider id unset", unset),
        ("field by Go name", case),
        ("wrong case", case),
        ("single-quoted text in braces", "a constant is written without braces"),
    ];
    replay(
        include_str!("../vectors/jsonpath.json"),
        &ours,
        |input: &PathInput, expect: &PathExpect| {
            let answer = input.jsonpath.parse::<NodePath>().and_then(|path| path.text(&input.node));
            let same = answer.is_ok() == expect.ok
                && answer.as_ref().ok() == expect.value.as_ref().filter(|_| expect.ok);
            judge(same, expect.debatable, format!("{answer:?}"))
        },
    );
}

#[derive(Deserialize)]
struct GenerateInput {
    platform: String,
    debug: bool,
    vxlan_port: String,
    ignition_args: BTreeMap<String, String>,
    env: BTreeMap<String, String>,
    api_server_endpoint: String,
}

#[derive(Deserialize)]
struct GenerateExpect {
    data: Option<Value>,
}

/// Drops members that are null or empty lists: within a service they mean the same as a missing member.
fn without_nothing(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .map(|(name, value)| (name, without_nothing(value)))
            .filter(|(_, value)| !value.is_null() && value.as_array().is_none_or(|l| !l.is_empty()))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_nothing).collect(),
        other => other,
    }
}

#[test]
fn manifests_are_generated() {
    replay(
        include_str!("../vectors/services.json"),
        &[],
        |input: &GenerateInput, expect: &GenerateExpect| {
            let variable = |name: &str| input.env.get(name).cloned();
            let answer = LogSettings::from_environment(variable).ok().map(|logs| {
                let inputs = ManifestInputs {
                    platform: input.platform.clone(),
                    containerd_log_level: None,
                    debug: input.debug,
                    vxlan_port: input.vxlan_port.parse().ok(),
                    kubelet: KubeletArguments {
                        cloud_provider: input.ignition_args.get("cloud-provider").cloned(),
                        cloud_config: input.ignition_args.get("cloud-config").cloned(),
                        no_credential_provider: false,
                    },
                    logs,
                    proxy: ProxySettings::from_environment(variable),
                    api_server: input.api_server_endpoint.clone(),
                };
                let data = manifest(&inputs).expect("the inputs fit").render();
                let parse =
                    |text: &String| -> Value { serde_json::from_str(text).expect("data is JSON") };
                let data = data.0.iter().map(|(key, text)| (key.clone(), parse(text))).collect();
                without_nothing(data)
            });
            let expected = expect.data.clone().map(without_nothing);
            judge(answer == expected, false, format!("{answer:#?} is not {expected:#?}"))
        },
    );
}
