//! Hosts that belong to this cluster, to another one, or to none.

use super::*;
use crate::login_keys::KeyExchange;
use crate::login_keys::tests::rotation;
use crate::preflight::Requirement;
use crate::protocol::HostStep;

const LEFT: &str = "await a host that is fit to become a node";

/// This cluster is `ours`, and the host's state file names that one.
fn belongs_to(case: Case, cluster: Option<&str>) -> Case {
    case.with(|c| {
        c.probe().state.get_or_insert_default().cluster = cluster.map(str::to_owned);
    })
}

fn allowed(case: &mut Case) {
    case.release().cluster.takes_hosts_of = ["theirs".to_owned()].into();
}

#[test]
fn a_host_of_another_cluster_is_left_with_and_without_a_node() {
    for case in [Case::new, Case::vacant, || Case::unlisted().emptied()] {
        let case = belongs_to(case(), Some("theirs"));
        case.gives(LEFT);
        let HostSeen::Probed(probe) = &case.observed.host else { unreachable!() };
        let findings = unfit(&case.desired, None, probe);
        assert_eq!(findings[0].requirement, Requirement::OtherCluster);
        // Nobody waits for it in vain.
        assert_eq!(claims_slot(&case.desired, &case.observed, NOW), Some(false));
    }
}

#[test]
fn it_gets_no_key_of_ours() {
    let case = belongs_to(Case::new(), Some("theirs")).with(|c| {
        c.desired.exchange = Some(KeyExchange { add: rotation().to, remove: None });
    });
    case.gives(LEFT);
}

#[test]
fn a_host_of_ours_is_kept_and_one_of_nobody_joins() {
    belongs_to(Case::new(), Some("ours")).gives("settled");
    belongs_to(Case::new(), None).gives("apply +join-cluster");
    let fresh = belongs_to(Case::vacant(), None).with(|c| make_bare(c.probe()));
    assert!(fresh.verbs().contains("apply +join-cluster +install-agent"), "{}", fresh.verbs());
}

#[test]
fn a_host_that_may_be_taken_joins_before_anything_else() {
    belongs_to(Case::new(), Some("theirs")).with(allowed).gives("apply +join-cluster");
    let outdated = belongs_to(Case::vacant(), Some("theirs")).with(allowed).with(|c| {
        c.observed.node_sought = true;
        c.probe().services.clear();
        c.probe().files.clear();
    });
    let plan = outdated.plan();
    let work = plan.steps.iter().find_map(|step| match &step.action {
        Action::Apply { work, .. } => Some(work.plan().steps.clone()),
        _ => None,
    });
    let joins = HostStep::JoinCluster { id: "ours".to_owned() };
    assert_eq!(work.unwrap().first(), Some(&joins), "{plan}");
}

/// Two clusters that may take each other's hosts do not take this one in turns.
#[test]
fn a_host_that_was_taken_from_us_is_not_taken_back() {
    let case = belongs_to(Case::new(), Some("theirs")).with(allowed).with(|c| {
        c.probe().state.get_or_insert_default().taken_from = ["ours".to_owned()].into();
    });
    case.gives(LEFT);
    let HostSeen::Probed(probe) = &case.observed.host else { unreachable!() };
    let finding = unfit(&case.desired, None, probe)[0].to_string();
    assert!(finding.contains("which took it from this one"), "{finding}");
    assert!(!finding.contains("annotate"), "{finding}");
}

/// Its image may be of a node of another cluster.
#[test]
fn the_host_of_a_machine_is_taken() {
    let case = belongs_to(Case::new(), Some("theirs")).with(|c| c.desired.is_made_for_us = true);
    case.gives("apply +join-cluster");
}

/// The command in the advice is made of letters, digits and hyphens, or there is none.
#[test]
fn a_host_puts_nothing_into_a_command() {
    for hostile in ["$(reboot)", "a`b`", "a;b", "a\nb", &"a".repeat(65)] {
        let case = belongs_to(Case::new(), Some(hostile));
        let HostSeen::Probed(probe) = &case.observed.host else { unreachable!() };
        let finding = unfit(&case.desired, None, probe)[0].to_string();
        assert!(!finding.contains("annotate") && !finding.contains('\n'), "{finding}");
    }
    let HostSeen::Probed(probe) = belongs_to(Case::new(), Some("theirs")).observed.host else {
        unreachable!()
    };
    let finding = unfit(&belongs_to(Case::new(), None).desired, None, &probe)[0].to_string();
    let command = format!(
        "`kubectl annotate --overwrite configmap windows-instances {}=theirs`",
        names::TAKE_OVER_ANNOTATION
    );
    assert!(finding.contains(&command), "{finding}");
}

/// What is told names what there is: an entry here, or a Node and keys; and a cordon that nobody takes off.
#[test]
fn the_next_step_fits_a_host_that_is_no_longer_listed() {
    let told = |case: Case| {
        let case = belongs_to(case, Some("theirs"));
        let HostSeen::Probed(probe) = &case.observed.host else { unreachable!() };
        unfit(&case.desired, case.observed.node.as_ref(), probe)[0].to_string()
    };
    let (listed, left) = (told(Case::new()), told(Case::unlisted().emptied()));
    assert!(listed.contains("or the one here") && !listed.contains("cordoned"), "{listed}");
    assert!(!left.contains("the one here"), "{left}");
    assert!(left.contains("its two keys in ConfigMap windows-ssh-host-keys"), "{left}");
    assert!(
        left.ends_with("until then node win-1 stays cordoned and keeps its disruption slot"),
        "{left}"
    );
}
