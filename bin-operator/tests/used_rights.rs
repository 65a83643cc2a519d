//! The operator's rights are exactly those that it uses.
//!
//! Runs after the other tests, which leave what their operators asked of the API in the folder of
//! `WMCO_ACCESS_FOLDER`; `make test` does so.

use std::collections::BTreeSet;
use std::env;
use std::fs;

use bin_operator::demo::ACCESS_FOLDER;
use serde::Deserialize;
use wmco_core::manifests::{GRANTS, Grant, Names, Place};
use wmco_core::names::objects::DEFAULT_NAMESPACE;

/// How many stages at least: each test with an operator has one.
const STAGES: usize = 100;

/// What an authorizer was asked.
#[derive(Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
struct Asked {
    group: String,
    resource: String,
    verb: String,
    namespace: String,
    name: String,
    allowed: bool,
}

/// All that was asked, of all stages.
fn asked() -> BTreeSet<Asked> {
    let folder =
        env::var(ACCESS_FOLDER).expect("run `make test`, which sets it for the tests before");
    let files: Vec<_> = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() >= STAGES, "{} stages in {folder}, so tests are missing", files.len());
    let texts = files.iter().map(|file| fs::read_to_string(file).unwrap());
    texts.flat_map(|text| lines(&text)).collect()
}

fn lines(text: &str) -> Vec<Asked> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Whether the grant is for this.
fn covers(grant: &Grant, asked: &Asked) -> bool {
    let place = match grant.place {
        Place::Cluster => true,
        Place::Own => asked.namespace == DEFAULT_NAMESPACE,
        Place::Elsewhere(namespace) => asked.namespace == namespace,
    };
    let name = match grant.names {
        Names::Any => true,
        Names::OwnNamespace => asked.name == DEFAULT_NAMESPACE,
        Names::Only(names) => names.contains(&asked.name.as_str()),
    };
    place
        && name
        && grant.group == asked.group
        && grant.resources.contains(&asked.resource.as_str())
        && grant.verbs.contains(&asked.verb.as_str())
}

/// Each single right of a grant: resource, verb, and name where it is for some only.
fn parts(grant: &Grant) -> Vec<(&'static str, &'static str, Option<&'static str>)> {
    let names: Vec<Option<&'static str>> = match grant.names {
        Names::Any => vec![None],
        Names::OwnNamespace => vec![Some(DEFAULT_NAMESPACE)],
        Names::Only(names) => names.iter().map(|name| Some(*name)).collect(),
    };
    let pairs =
        grant.resources.iter().flat_map(|it| grant.verbs.iter().map(move |verb| (*it, *verb)));
    pairs.flat_map(|(it, verb)| names.iter().map(move |name| (it, verb, *name))).collect()
}

/// Whether others give this right than our manifests: the Operator Lifecycle Manager that to our OperatorCondition,
/// the API server that to ask about oneself.
fn is_given_by_others(asked: &Asked) -> bool {
    let its = match asked.group.as_str() {
        "operators.coreos.com" => asked.resource == "operatorconditions",
        "authorization.k8s.io" => asked.resource == "selfsubjectaccessreviews",
        _ => false,
    };
    its && ["create", "get", "patch"].contains(&asked.verb.as_str())
}

#[test]
fn nothing_was_asked_for_that_is_not_granted() {
    let is_granted = |it: &Asked| GRANTS.iter().any(|grant| covers(grant, it));
    let all = asked().into_iter();
    let wanted: Vec<_> = all.filter(|it| !is_granted(it) && !is_given_by_others(it)).collect();
    assert!(wanted.is_empty(), "the operator lacks rights that it asks for: {wanted:#?}");
}

#[test]
fn every_right_was_used() {
    let asked = asked();
    let mut unused = Vec::new();
    for grant in GRANTS {
        let uses: Vec<_> = asked.iter().filter(|it| it.allowed && covers(grant, it)).collect();
        for (resource, verb, name) in parts(grant) {
            let is_it = |it: &&&Asked| {
                it.resource == resource
                    && it.verb == verb
                    && name.is_none_or(|name| it.name == name)
            };
            if !uses.iter().any(|it| is_it(&it)) {
                unused.push(format!("{:?}: {verb} {resource} {}", grant.place, name.unwrap_or("")));
            }
        }
    }
    assert!(
        unused.is_empty(),
        "no test uses these rights, take them away or test their use: {unused:#?}"
    );
}
