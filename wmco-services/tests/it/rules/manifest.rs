//! Accepted and refused manifests: `docs/contract/services.md`, SVC5 to SVC25.

use std::collections::BTreeMap;

use wmco_core::digest::Sha256;
use wmco_core::protocol::ServicesData;
use wmco_services::manifest::{FileInfo, Manifest, Parts, Service};

use super::{bootstrap, script, service, variable};

// Keys of the data: SVC5, SVC11 and SVC13.

const SERVICES: (&str, &str) = ("services", "[]");
const FILES: (&str, &str) = ("files", "[]");
const VARIABLES: (&str, &str) = ("environmentVars", "{}");
const WATCHED: (&str, &str) = ("watchedEnvironmentVars", "[]");
const FOREIGN: (&str, &str) = ("other", "[]");

fn parse(data: &[(&str, &str)]) -> Result<Manifest, String> {
    let pairs = data.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
    Manifest::parse(&ServicesData(pairs.collect())).map_err(|error| error.to_string())
}

#[test]
fn parse_all_four_keys() {
    let read = parse(&[SERVICES, FILES, VARIABLES, WATCHED]).unwrap();
    assert!(read.services().is_empty() && read.environment().is_empty());
}

#[test]
fn parse_null_variables_are_absent() {
    let read = parse(&[SERVICES, FILES, ("environmentVars", "null"), WATCHED]).unwrap();
    assert!(read.environment().is_empty());
}

#[test]
fn parse_one_variable_and_one_watched_name() {
    let set = ("environmentVars", r#"{"A":"1"}"#);
    let read = parse(&[SERVICES, FILES, set, ("watchedEnvironmentVars", r#"["A"]"#)]).unwrap();
    assert_eq!(read.environment(), &BTreeMap::from([("A".to_owned(), "1".to_owned())]));
    assert_eq!(read.watched(), ["A"]);
}

#[test]
fn parse_without_variables() {
    assert!(parse(&[SERVICES, FILES, WATCHED]).is_ok());
}

#[test]
fn parse_refuses_missing_files() {
    assert!(parse(&[SERVICES, VARIABLES]).unwrap_err().contains("files"));
}

#[test]
fn parse_refuses_nothing() {
    assert!(parse(&[]).is_err());
}

#[test]
fn parse_refuses_services_alone() {
    assert!(parse(&[SERVICES]).unwrap_err().contains("files"));
}

#[test]
fn parse_refuses_missing_services_although_the_count_is_right() {
    assert!(parse(&[FILES, FOREIGN, VARIABLES, WATCHED]).is_err());
}

#[test]
fn parse_refuses_a_fifth_key() {
    let refused = parse(&[SERVICES, FILES, VARIABLES, WATCHED, FOREIGN]).unwrap_err();
    assert!(refused.contains("other"), "{refused}");
}

// Rendered data parses to itself: SVC10.

fn full(environment: &[(&str, &str)]) -> Manifest {
    let mut service = service("all", &["other"]);
    "all --node NODE --ip IP".clone_into(&mut service.command);
    service.node_variables_in_command = vec![variable("NODE", "{.metadata.name}")];
    service.powershell_pre_scripts = vec![script("IP", "Get-IP")];
    let pairs = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Manifest::new(Parts {
        services: vec![service],
        files: vec![FileInfo {
            path: r"C:\k\x".to_owned(),
            checksum: Sha256::of(b"x").to_string(),
        }],
        environment: pairs.collect(),
        watched: vec!["A".to_owned()],
    })
    .unwrap()
}

#[test]
fn generated_data_with_three_variables_parses_to_itself() {
    let manifest = full(&[("A", "1"), ("B", "<2>"), ("C", "&3")]);
    let read = Manifest::parse(&manifest.render()).unwrap();
    assert_eq!(read, manifest);
}

#[test]
fn generated_data_without_variables_parses_to_itself() {
    let manifest = full(&[]);
    assert!(!manifest.render().0.contains_key("environmentVars"));
    assert_eq!(Manifest::parse(&manifest.render()).unwrap(), manifest);
}

/// Parses data generated without variables, with `written` under their key.
fn reads_without_variables(written: &str) {
    let manifest = full(&[]);
    let mut data = manifest.render();
    data.0.insert("environmentVars".to_owned(), written.to_owned());
    let read = Manifest::parse(&data).unwrap();
    assert_eq!(data.digest(), manifest.render().digest());
    assert_eq!(read, manifest);
}

#[test]
fn generated_data_with_an_empty_map_of_variables_is_the_same() {
    reads_without_variables("{}");
}

#[test]
fn generated_data_with_a_null_map_of_variables_is_the_same() {
    reads_without_variables("null");
}

#[test]
fn another_value_of_a_variable_is_a_difference() {
    let found = full(&[("NO_PROXY", "localhost")]);
    let wanted = full(&[("NO_PROXY", "localhost, example.com")]);
    assert_eq!(wanted.render().differing_keys(&found.render()), ["environmentVars"]);
}

// Services that start before there is a Node: SVC6.

fn bootstrap_names(services: Vec<Service>) -> Vec<String> {
    let manifest = Manifest::new(Parts { services, ..Parts::default() }).unwrap();
    manifest.bootstrap().map(|service| service.name.to_string()).collect()
}

fn at(name: &str, priority: u64) -> Service {
    Service { priority, ..service(name, &[]) }
}

#[test]
fn bootstrap_filter_none() {
    assert_eq!(bootstrap_names(vec![]), Vec::<String>::new());
}

#[test]
fn bootstrap_filter_two() {
    assert_eq!(bootstrap_names(vec![bootstrap("a", 0), bootstrap("b", 1)]), ["a", "b"]);
}

#[test]
fn bootstrap_filter_two_others() {
    assert_eq!(bootstrap_names(vec![at("a", 1), at("b", 2)]), Vec::<String>::new());
}

#[test]
fn bootstrap_filter_one_in_the_middle() {
    assert_eq!(bootstrap_names(vec![at("a", 1), bootstrap("b", 0), at("c", 2)]), ["b"]);
}

// Dependencies: SVC16 to SVC18.

#[track_caller]
fn refused(services: Vec<Service>, part: &str) {
    let error = Manifest::new(Parts { services, ..Parts::default() }).unwrap_err().to_string();
    assert!(error.contains(part), "{error}");
}

#[track_caller]
fn accepted(services: Vec<Service>) {
    Manifest::new(Parts { services, ..Parts::default() }).unwrap();
}

fn needing(service: Service, needs: &[&str]) -> Service {
    Service { dependencies: needs.iter().map(|need| super::name(need)).collect(), ..service }
}

#[test]
fn no_dependencies_at_all() {
    accepted(vec![]);
}

#[test]
fn a_bootstrap_script_variable_and_a_node_variable() {
    let mut first = bootstrap("first", 0);
    first.command = "first IP".to_owned();
    first.powershell_pre_scripts = vec![script("IP", "Get-IP")];
    let mut second = at("second", 1);
    second.command = "second NODE".to_owned();
    second.node_variables_in_command = vec![variable("NODE", "{.metadata.name}")];
    accepted(vec![first, second]);
}

#[test]
fn a_chain_from_the_controller_to_bootstrap() {
    let a = bootstrap("a", 0);
    accepted(vec![needing(at("c", 2), &["b"]), needing(at("b", 1), &["a"]), a]);
}

#[test]
fn a_bootstrap_service_with_a_node_variable() {
    let mut first = bootstrap("first", 0);
    first.command = "first NODE".to_owned();
    first.node_variables_in_command = vec![variable("NODE", "{.metadata.name}")];
    refused(vec![first], "first");
}

#[test]
fn a_bootstrap_service_that_needs_two_others() {
    let first = needing(bootstrap("first", 0), &["b", "c"]);
    refused(vec![first, at("b", 1), at("c", 1)], "first");
}

#[test]
fn a_bootstrap_service_that_needs_one_and_is_needed_by_another() {
    let first = needing(bootstrap("first", 0), &["b"]);
    refused(vec![first, at("b", 1), needing(at("c", 2), &["first"])], "first");
}

#[test]
fn a_service_that_needs_itself() {
    refused(vec![needing(at("a", 1), &["a"])], "circle");
}

#[test]
fn a_dependency_that_is_not_in_the_manifest() {
    accepted(vec![needing(at("a", 1), &["EventLog"])]);
}

#[test]
fn three_services_in_a_ring() {
    let ring = [("a", "b"), ("b", "c"), ("c", "a")];
    refused(ring.map(|(name, need)| needing(at(name, 1), &[need])).to_vec(), "circle");
}

#[test]
fn one_free_service_and_two_that_need_each_other() {
    let two = [needing(at("b", 1), &["c"]), needing(at("c", 1), &["b"])];
    refused([vec![at("a", 1)], two.to_vec()].concat(), "circle");
}

/// `docs/contract/services.md`, SVC18: lists that the original wrongly takes for a cycle, and a cycle that it misses.
#[test]
fn cycles_do_not_depend_on_the_order_of_the_list() {
    accepted(vec![needing(at("a", 1), &["b"]), at("b", 1), needing(at("c", 1), &["a"])]);
    refused(vec![needing(at("a", 1), &["b", "a"]), at("b", 1)], "circle");
}

// Priorities: SVC19.

#[test]
fn priorities_none() {
    accepted(vec![]);
}

#[test]
fn priorities_bootstrap_before_others() {
    accepted(vec![bootstrap("a", 0), at("b", 2), at("c", 5)]);
}

#[test]
fn priorities_two_bootstrap_alike() {
    accepted(vec![bootstrap("a", 0), bootstrap("b", 0), at("c", 1)]);
}

#[test]
fn priorities_overlap() {
    refused(vec![bootstrap("a", 0), at("b", 0), at("c", 5)], "priority");
}

#[test]
fn priorities_bootstrap_last() {
    refused(vec![bootstrap("a", 2), at("b", 0), at("c", 1)], "priority");
}

#[test]
fn priorities_bootstrap_in_the_middle() {
    refused(vec![bootstrap("a", 1), at("b", 0), at("c", 2)], "priority");
}
