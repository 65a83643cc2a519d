//! `docs/contract/wicd.md`, WICD35, WICD36 and WICD53: the own Node, and the patches of it.

use std::net::Ipv4Addr;

use serde_json::{Value, json};
use wmco_core::names;
use wmco_services::daemon::{
    Action, Desired, HostIdentity, ManifestState, Next, Observed, Pass, Plan, Step,
    WatchedServices, find_node, reconcile,
};
use wmco_services::services::ScriptResults;

use super::{NOW, manifest_of, ready_node};

fn node(name: &str, kind: &str, address: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {(names::OS_LABEL): names::OS_WINDOWS}},
        "status": {"addresses": [{"type": kind, "address": address}]},
    })
}

fn find(nodes: &[Value], address: [u8; 4]) -> Option<String> {
    let marks =
        HostIdentity { addresses: vec![Ipv4Addr::from(address)], ..HostIdentity::default() };
    find_node(nodes, &marks).unwrap().node
}

#[test]
fn an_address_of_no_node() {
    assert_eq!(find(&[node("a", "InternalIP", "10.0.0.1")], [10, 0, 0, 2]), None);
}

#[test]
fn loopback_is_nobodys_address() {
    assert_eq!(find(&[node("a", "InternalIP", "127.0.0.1")], [127, 0, 0, 1]), None);
}

/// The original tests addresses that are no IP networks; the types here cannot hold those, and the nearest case is an
/// address that every host has.
#[test]
fn a_link_local_address_is_nobodys() {
    assert_eq!(find(&[node("a", "InternalIP", "169.254.3.4")], [169, 254, 3, 4]), None);
}

#[test]
fn the_second_of_two_nodes() {
    let nodes = [node("a", "InternalIP", "10.0.0.1"), node("b", "InternalIP", "10.0.0.2")];
    assert_eq!(find(&nodes, [10, 0, 0, 2]).as_deref(), Some("b"));
}

#[test]
fn no_nodes() {
    assert_eq!(find(&[], [10, 0, 0, 1]), None);
}

/// The text of a name is no address, even when it looks like one.
#[test]
fn an_address_of_another_kind_counts_last() {
    let nodes = [node("a", "InternalDNS", "10.0.0.1"), node("b", "InternalIP", "10.0.0.1")];
    assert_eq!(find(&nodes, [10, 0, 0, 1]).as_deref(), Some("b"));
}

// 22.9. Instead of the original's JSON patches, annotations are merged, which needs no escaping and no existing map.

/// Returns the annotations that a pass writes for this node.
fn written(node: &Value) -> Vec<(String, String)> {
    let manifest = manifest_of(vec![]);
    let desired = Desired { node: Some(node), manifest: ManifestState::Read(&manifest) };
    let plan = reconcile(desired, &Observed::default(), &ScriptResults::new(), NOW);
    let annotations = |step: Step| match step.action {
        Action::AnnotateNode { annotations } => annotations,
        other => panic!("{other:?}"),
    };
    plan.steps.into_iter().flat_map(annotations).collect()
}

#[test]
fn nothing_to_write_is_no_request() {
    assert_eq!(written(&ready_node(&[(names::VERSION_ANNOTATION, "1")])), []);
}

#[test]
fn one_annotation_with_a_slash_is_written_as_it_is() {
    let expected = [(names::VERSION_ANNOTATION.to_owned(), "1".to_owned())];
    assert_eq!(written(&ready_node(&[])), expected);
    assert_eq!(written(&ready_node(&[(names::VERSION_ANNOTATION, "0")])), expected);
}

/// Returns the patch for these annotations.
fn patch(annotations: &[(&str, &str)]) -> Option<Value> {
    let annotations = annotations.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let plan = Plan { steps: Vec::new(), notes: Vec::new(), next: Next::Now };
    let pass =
        Pass { plan, annotations, services: WatchedServices::default(), failures: Vec::new() };
    pass.patch(&json!({"metadata": {"resourceVersion": "7", "labels": {"zone": "east"}}}))
}

#[test]
fn no_annotations_are_no_patch() {
    assert_eq!(patch(&[]), None);
}

#[test]
fn two_annotations_one_with_a_slash_are_one_patch() {
    let annotations = json!({"annotation": "a", "escaped/annotation": "b"});
    let expected = json!({"metadata": {"annotations": annotations, "resourceVersion": "7"}});
    assert_eq!(patch(&[("annotation", "a"), ("escaped/annotation", "b")]), Some(expected));
}

/// The daemon writes no labels, so none of its patches changes the Node's labels.
#[test]
fn no_patch_has_labels() {
    let patch = patch(&[("annotation", "a")]).unwrap();
    assert_eq!(patch.pointer("/metadata/labels"), None);
}
