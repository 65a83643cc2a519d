//! What a Node is sought by.

use super::*;

fn names(host_name: &str) -> Vec<String> {
    let mut case = Case::vacant();
    case.probe().host_name = host_name.to_owned();
    let known_as = KnownAs { names: ["win-9".to_owned()].into(), ipv4: None };
    NodeSearch::of(&known_as, case.probe()).names.into_iter().collect()
}

#[test]
fn a_kubelet_may_register_either_form_of_its_hosts_name() {
    assert_eq!(names("WIN-1.corp.example"), ["win-1", "win-1.corp.example", "win-9"]);
}

#[test]
fn a_host_name_that_leads_elsewhere_is_not_asked_for() {
    assert_eq!(names("../secrets"), ["win-9"]);
    assert_eq!(names(""), ["win-9"]);
}
