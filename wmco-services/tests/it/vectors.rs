//! Inputs with the answers that the original operator gives, see `tests/vectors`.
//!
//! A case that the file itself marks as debatable may be answered otherwise; those that we do are
//! listed here, each with its reason, so that none changes its answer unnoticed.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;
use wmco_core::protocol::ServicesData;
use wmco_services::jsonpath::NodePath;
use wmco_services::manifest::{Manifest, Service};

#[derive(Deserialize)]
struct Case<I, E> {
    name: String,
    input: I,
    expect: E,
}

/// Checks every case and that `ours` are exactly those that differ where a difference is as good.
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
            let answer = Manifest::parse(&ServicesData(input.data.clone()));
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
