//! What a Node is released for, by the annotations that are patched, and what it gets before.

use super::rows::{other_roots, other_services, tampered};
use super::*;

/// The annotations that the first step writes, `None` where it takes one off.
#[track_caller]
fn writes(case: &Case, expected: &[(&str, Option<String>)]) {
    let expected: BTreeMap<String, Option<String>> =
        expected.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    assert_eq!(case.patch().annotations, expected);
}

fn roots(case: &Case) -> String {
    case.desired.release.roots.to_string()
}

fn services(case: &Case) -> String {
    case.desired.release.manifest.digest().to_string()
}

#[test]
fn emptied_node_is_released_for_other_roots_and_loses_its_mark() {
    let case = Case::new().with(other_roots).emptied();
    let expected =
        [(names::ROOTS_ANNOTATION, Some(roots(&case))), (names::VERSION_ANNOTATION, None)];
    writes(&case, &expected);
}

#[test]
fn emptied_node_is_released_for_roots_and_services_at_once() {
    let case = Case::new().with(other_roots).with(other_services).emptied();
    let expected = [
        (names::ROOTS_ANNOTATION, Some(roots(&case))),
        (names::SERVICES_ANNOTATION, Some(services(&case))),
        (names::VERSION_ANNOTATION, None),
    ];
    writes(&case, &expected);
}

#[test]
fn node_without_a_mark_of_roots_gets_one_and_keeps_its_version() {
    let case = Case::new().with(other_roots).with(|c| {
        c.node().annotations.remove(names::ROOTS_ANNOTATION);
    });
    writes(&case, &[(names::ROOTS_ANNOTATION, Some(roots(&case)))]);
}

#[test]
fn node_without_a_mark_of_services_gets_one_and_keeps_its_version() {
    let case = Case::new().with(other_services).with(|c| {
        c.node().annotations.remove(names::SERVICES_ANNOTATION);
    });
    writes(&case, &[(names::SERVICES_ANNOTATION, Some(services(&case)))]);
}

#[test]
fn node_that_waits_for_a_slot_gets_what_is_noticed() {
    let case = Case::new().with(tampered).with(|c| {
        c.probe().files.remove(&path(names::host::KUBELET_CA));
    });
    case.gives("upload apply +place-file");
}
