//! Cleanup: `docs/contract/wicd.md`, WICD80 to WICD83.

use std::collections::BTreeSet;

use wmco_core::protocol::ServiceRunState;
use wmco_services::fake::FakeWindows;
use wmco_services::lifecycle;
use wmco_services::manifest::Manifest;
use wmco_services::windows::{Environment as _, ServiceConfig, ServiceManager as _, ServiceName};

use super::{manifest_of, name, other, service, tagged};

/// Returns which of these services are left after a cleanup with the named ConfigMaps. A service is its name, whether
/// it is tagged, and its dependencies.
fn left(existing: &[(&str, bool, &[&str])], manifests: &[&[&str]]) -> Vec<String> {
    let config = |(service, ours, needs): &(&str, bool, &[&str])| {
        let description = if *ours { tagged(service) } else { "somebody's".to_owned() };
        (name(service), other("x", &description, needs))
    };
    left_of(existing.iter().map(config).collect(), manifests)
}

/// The same for partly created services, which only a ConfigMap distinguishes from foreign ones.
fn left_of_half_made(existing: &[(&str, &[&str])], manifests: &[&[&str]]) -> Vec<String> {
    let config = |(service, needs): &(&str, &[&str])| (name(service), other("", "", needs));
    left_of(existing.iter().map(config).collect(), manifests)
}

fn left_of(existing: Vec<(ServiceName, ServiceConfig)>, manifests: &[&[&str]]) -> Vec<String> {
    let host = FakeWindows::new("winhost");
    let before: BTreeSet<String> =
        host.list().unwrap().iter().map(|service| service.name.to_string()).collect();
    for (service, config) in existing {
        host.add_service(&service, &config, ServiceRunState::Running);
    }
    let named = |names: &&[&str]| manifest_of(names.iter().map(|n| service(n, &[])).collect());
    let manifests: Vec<Manifest> = manifests.iter().map(named).collect();
    lifecycle::cleanup(&host, &manifests).unwrap();
    let all = host.list().unwrap().into_iter().map(|service| service.name.to_string());
    all.filter(|service| !before.contains(service)).collect()
}

const NONE: [&str; 0] = [];

#[test]
fn nothing_and_nothing() {
    assert_eq!(left(&[], &[&[]]), NONE);
}

#[test]
fn a_service_of_the_config_map_that_is_gone_already() {
    assert_eq!(left(&[], &[&["test1"]]), NONE);
}

#[test]
fn one_tagged_service() {
    assert_eq!(left(&[("test1", true, &[])], &[&["test1"]]), NONE);
}

#[test]
fn two_tagged_and_one_of_somebody_else() {
    let existing = [("test1", true, &[][..]), ("test2", true, &[]), ("test3", false, &[])];
    assert_eq!(left(&existing, &[&["test1", "test2"]]), ["test3"]);
}

const FIVE: [(&str, bool, &[&str]); 5] = [
    ("test1", true, &[]),
    ("test2", false, &[]),
    ("test3", true, &[]),
    ("test4", true, &["test3"]),
    ("test5", true, &["test1", "test3"]),
];

#[test]
fn services_that_need_each_other() {
    assert_eq!(left(&FIVE, &[&["test1", "test3", "test4", "test5"]]), ["test2"]);
}

#[test]
fn a_leftover_that_no_config_map_names() {
    let existing = [&FIVE[..], &[("leftover", true, &[])]].concat();
    assert_eq!(left(&existing, &[&["test1", "test3", "test4", "test5"]]), ["test2"]);
}

// Manifests are not merged: all are applied as they are, so none can override another.

#[test]
fn no_config_map_at_all() {
    assert_eq!(left(&[("test1", true, &[])], &[]), NONE);
}

#[test]
fn two_config_maps_of_which_one_is_empty() {
    let existing = [("a", &[][..]), ("b", &[])];
    assert_eq!(left_of_half_made(&existing, &[&["a"], &[]]), ["b"]);
    assert_eq!(left_of_half_made(&existing, &[&[], &["a"]]), ["b"]);
}

#[test]
fn two_config_maps_that_are_empty() {
    assert_eq!(left_of_half_made(&[("b", &[])], &[&[], &[]]), ["b"]);
}

#[test]
fn two_config_maps_with_different_services() {
    let existing = [("a", &[][..]), ("b", &["a"]), ("c", &[])];
    assert_eq!(left_of_half_made(&existing, &[&["a"], &["b"]]), ["c"]);
}

#[test]
fn two_config_maps_that_share_a_service() {
    let existing = [("a", &[][..]), ("b", &["a"]), ("c", &[])];
    assert_eq!(left_of_half_made(&existing, &[&["a", "b"], &["b"]]), ["c"]);
    assert_eq!(left_of_half_made(&existing, &[&["b"], &["a", "b"]]), ["c"]);
}

/// Returns which of the variables `A`, `B`, `C` and a foreign one are left after a cleanup with ConfigMaps that watch
/// those names.
fn variables_left(watched: &[&[&str]]) -> String {
    let host = FakeWindows::new("winhost");
    for variable in ["A", "B", "C", "OTHER"] {
        host.set(variable, "1").unwrap();
    }
    let watching = |names: &&[&str]| {
        let watched = names.iter().map(|name| (*name).to_owned()).collect();
        let parts = wmco_services::manifest::Parts { watched, ..Default::default() };
        Manifest::new(parts).unwrap()
    };
    let manifests: Vec<Manifest> = watched.iter().map(watching).collect();
    host.clear_changes();
    lifecycle::cleanup(&host, &manifests).unwrap();
    let removals: Vec<_> = host.changes().into_iter().map(|(_, object)| object).collect();
    let once: BTreeSet<&String> = removals.iter().collect();
    assert_eq!(once.len(), removals.len(), "{removals:?}");
    host.snapshot().environment.into_keys().collect::<Vec<_>>().join(" ")
}

#[test]
fn names_of_two_config_maps_without_any() {
    assert_eq!(variables_left(&[&[], &[]]), "A B C OTHER");
}

#[test]
fn names_of_two_config_maps_of_which_one_has_none() {
    assert_eq!(variables_left(&[&["A", "B"], &[]]), "C OTHER");
    assert_eq!(variables_left(&[&[], &["A", "B"]]), "C OTHER");
}

#[test]
fn names_of_two_config_maps_of_which_one_has_some_of_the_other() {
    assert_eq!(variables_left(&[&["A", "B"], &["B"]]), "C OTHER");
    assert_eq!(variables_left(&[&["B"], &["A", "B"]]), "C OTHER");
}

#[test]
fn names_of_two_config_maps_that_overlap() {
    assert_eq!(variables_left(&[&["A", "B"], &["B", "C"]]), "OTHER");
}
