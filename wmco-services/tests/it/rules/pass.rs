//! `docs/contract/wicd.md`, WICD51: whole passes for a ready node.

use std::collections::BTreeMap;

use wmco_core::names::{self, host};
use wmco_core::protocol::{ServiceRunState, ServicesData};
use wmco_services::daemon::{
    Desired, ManifestState, Next, NodeIntent, Pass, PassContext, Released, pass,
};
use wmco_services::fake::FakeWindows;
use wmco_services::manifest::{Manifest, Parts, Service};
use wmco_services::services::ScriptResults;
use wmco_services::windows::{Environment as _, Machine as _};

use super::{NOW, command, manifest_of, name, other, ready_node, service, state, tagged, variable};

const RUNNING: Option<ServiceRunState> = Some(ServiceRunState::Running);

/// Returns a host with our folder, which holds the daemon's program.
fn host_of_ours() -> FakeWindows {
    let host = FakeWindows::new("winhost");
    host.with_tree(|tree| tree.make_folders(&host::ROOT.parse().unwrap()));
    host.running_as_service()
}

/// Runs passes until one does not request another at once.
fn passes(host: &FakeWindows, manifest: &Manifest) -> Pass {
    let node = ready_node(&[]);
    let mut results = ScriptResults::new();
    loop {
        let desired = Desired { node: Some(&node), manifest: ManifestState::Read(manifest) };
        let context = PassContext { windows: host, bundle: None, should_continue: &|| true };
        let pass = pass(context, desired, &mut results, NOW).unwrap();
        assert_eq!(pass.failures, Vec::<String>::new());
        if pass.plan.next != Next::Now {
            return pass;
        }
    }
}

#[test]
fn no_services() {
    let pass = passes(&host_of_ours(), &manifest_of(vec![]));
    assert_eq!(pass.annotations.get(names::VERSION_ANNOTATION).unwrap(), "1");
}

#[test]
fn one_service_with_a_node_variable() {
    let host = host_of_ours();
    let mut wanted = service("a", &[]);
    wanted.command = "a NODE".to_owned();
    wanted.node_variables_in_command = vec![variable("NODE", "{.metadata.name}")];
    passes(&host, &manifest_of(vec![wanted]));
    assert_eq!((command(&host, "a").unwrap().as_str(), state(&host, "a")), ("a node", RUNNING));
}

#[test]
fn one_service_with_a_wrong_command() {
    let host = host_of_ours();
    host.add_service(&name("a"), &other("wrong", &tagged("a"), &[]), ServiceRunState::Running);
    passes(&host, &manifest_of(vec![service("a", &[])]));
    assert_eq!((command(&host, "a").unwrap().as_str(), state(&host, "a")), ("a", RUNNING));
}

#[test]
fn one_with_a_wrong_command_and_a_running_dependent() {
    let host = host_of_ours();
    host.add_service(&name("a"), &other("wrong", &tagged("a"), &[]), ServiceRunState::Running);
    host.add_service(&name("b"), &other("b", "somebody's", &["a"]), ServiceRunState::Running);
    passes(&host, &manifest_of(vec![service("a", &[])]));
    assert_eq!(command(&host, "a").unwrap(), "a");
    assert_eq!((state(&host, "a"), state(&host, "b")), (RUNNING, RUNNING));
}

#[test]
fn a_chain_of_three_whose_first_is_wrong() {
    let host = host_of_ours();
    let wanted = vec![service("a", &[]), service("b", &["a"]), service("c", &["b"])];
    let manifest = manifest_of(wanted);
    passes(&host, &manifest);
    let right = host.snapshot();
    host.set_service_state(&name("c"), ServiceRunState::Stopped);
    host.add_service(&name("a"), &other("wrong", &tagged("a"), &[]), ServiceRunState::Running);
    passes(&host, &manifest);
    assert_eq!(host.snapshot(), right);
}

#[test]
fn two_services_that_do_not_exist() {
    let host = host_of_ours();
    passes(&host, &manifest_of(vec![service("a", &[]), service("b", &[])]));
    assert_eq!((state(&host, "a"), state(&host, "b")), (RUNNING, RUNNING));
}

/// Runs a pass on a host where `before` was in force when it started; returns whether it requests a restart.
fn asks_for_restart(before: &[(&str, &str)], wanted: &[(&str, &str)]) -> bool {
    let host = host_of_ours();
    for (name, value) in before {
        host.set(name, value).unwrap();
    }
    host.restart().unwrap();
    let pairs = wanted.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let environment: BTreeMap<String, String> = pairs.collect();
    let watched = ["A", "B", "C"].map(str::to_owned).to_vec();
    let parts = Parts { environment: environment.clone(), watched, ..Parts::default() };
    let pass = passes(&host, &Manifest::new(parts).unwrap());
    assert_eq!(host.snapshot().environment, environment);
    let (asks, marks) = (
        pass.annotations.contains_key(names::REBOOT_ANNOTATION),
        pass.annotations.contains_key(names::VERSION_ANNOTATION),
    );
    assert_ne!(asks, marks);
    asks
}

#[test]
fn variables_wanted_and_none_set() {
    assert!(asks_for_restart(&[], &[("A", "1"), ("B", "2")]));
}

#[test]
fn variables_set_to_other_values() {
    assert!(asks_for_restart(&[("A", "0"), ("B", "0")], &[("A", "1"), ("B", "2")]));
}

#[test]
fn variables_set_and_none_wanted() {
    assert!(asks_for_restart(&[("A", "1"), ("B", "2"), ("C", "3")], &[]));
}

#[test]
fn two_variables_set_and_one_wanted() {
    assert!(asks_for_restart(&[("A", "1"), ("B", "2")], &[("A", "1")]));
}

#[test]
fn variables_set_as_wanted() {
    assert!(!asks_for_restart(&[("A", "1"), ("B", "2")], &[("A", "1"), ("B", "2")]));
}

/// `docs/contract/wicd.md`, WICD60.
#[test]
fn a_value_with_blanks_around_it_is_compared_exactly() {
    assert!(!asks_for_restart(&[("A", " 1 ")], &[("A", " 1 ")]));
    assert!(asks_for_restart(&[("A", "1")], &[("A", " 1 ")]));
}

/// `docs/contract/wicd.md`, WICD52: same version, new content.
#[test]
fn other_content_waits_for_its_release() {
    let host = host_of_ours();
    let of = |command: &str| {
        let wanted = vec![Service { command: command.to_owned(), ..service("a", &[]) }];
        let environment = [("HTTP_PROXY".to_owned(), command.to_owned())].into();
        let watched = vec!["HTTP_PROXY".to_owned()];
        Manifest::new(Parts { services: wanted, environment, watched, ..Parts::default() }).unwrap()
    };
    let (old, new) = (of("a --old").render(), of("a --new").render());
    let mut results = ScriptResults::new();
    // Runs passes with a digest on the Node, data in the cluster, and a daemon's memory.
    let mut go = |digest: Option<&str>, data: Option<&ServicesData>, released: &mut Released| {
        let more: Vec<_> = digest.map(|d| (names::SERVICES_ANNOTATION, d)).into_iter().collect();
        let node = ready_node(&more);
        for _ in 0..4 {
            let found = released.choose(NodeIntent::of(&node).released.as_deref(), data.cloned());
            let desired = Desired { node: Some(&node), manifest: found.state() };
            let context = PassContext { windows: &host, bundle: None, should_continue: &|| true };
            let pass = pass(context, desired, &mut results, NOW).unwrap();
            if pass.annotations.contains_key(names::REBOOT_ANNOTATION) {
                host.power_off();
                host.boot();
            }
            if pass.plan.steps.is_empty()
                || pass.annotations.contains_key(names::VERSION_ANNOTATION)
            {
                return (command(&host, "a"), pass.annotations.len());
            }
        }
        panic!("it does not end");
    };
    let is = |command: &str| Some(command.to_owned());
    let (old_digest, new_digest) = (old.digest().to_string(), new.digest().to_string());
    let mut released = Released::default();
    assert_eq!(go(Some(&old_digest), Some(&old), &mut released), (is("a --old"), 1));
    // A new daemon does not know the old content.
    let before = host.snapshot();
    assert_eq!(go(Some(&old_digest), Some(&new), &mut Released::default()), (is("a --old"), 0));
    assert_eq!(host.snapshot(), before);
    // The same daemon reverts changes by others meanwhile.
    host.add_service(&name("a"), &other("wrong", &tagged("a"), &[]), ServiceRunState::Running);
    assert_eq!(go(Some(&old_digest), Some(&new), &mut released).0, is("a --old"));
    assert_eq!(go(Some(&old_digest), None, &mut released).0, is("a --old"));
    assert_eq!(go(Some(&new_digest), Some(&new), &mut released), (is("a --new"), 1));
    // An operator that writes no digest.
    assert_eq!(go(None, Some(&old), &mut released).0, is("a --old"));
}

#[test]
fn a_node_is_marked_as_it_was_seen() {
    let mut node = ready_node(&[]);
    node["metadata"]["resourceVersion"] = "7".into();
    let pass = passes(&host_of_ours(), &manifest_of(vec![]));
    let patch = pass.patch(&node).unwrap();
    assert_eq!(patch["metadata"]["resourceVersion"], "7");
    assert_eq!(patch["metadata"]["annotations"][names::VERSION_ANNOTATION], "1");
    assert_eq!(Pass { annotations: BTreeMap::new(), ..pass }.patch(&node), None);
}
