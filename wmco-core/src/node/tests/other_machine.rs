//! Copies of a host, which show the key and the name of another machine, which runs the Node; and hosts at addresses
//! that the Machine API shows of other Machines.

use super::*;
use crate::login_keys::KeyExchange;
use crate::login_keys::tests::rotation;
use crate::preflight::Requirement;

const LEFT: &str = "await a host that is fit to become a node";

/// The host has another address than its Node, which is ready.
fn copied(case: Case) -> Case {
    case.with(|c| {
        c.desired.known_as.ipv4 = Some([10, 0, 0, 2].into());
        c.probe().addresses = vec![[10, 0, 0, 2].into()];
    })
}

#[test]
fn a_copy_of_a_host_is_left_whatever_is_asked_for() {
    let outdated =
        || Case::new().emptied().with(|c| c.annotate(names::VERSION_ANNOTATION, "1.0.0"));
    let exchanged = || {
        Case::new().with(|c| {
            c.desired.exchange = Some(KeyExchange { add: rotation().to, remove: None });
        })
    };
    let of_machine = || Case::new().with(|c| c.desired.is_made_for_us = true);
    for case in [Case::new, outdated, exchanged, of_machine, || Case::unlisted().emptied()] {
        let case = copied(case());
        case.gives(LEFT);
        // Nobody waits for it in vain.
        assert_eq!(claims_slot(&case.desired, &case.observed, NOW), Some(false));
    }
}

#[test]
fn it_is_told_with_the_place_of_the_node_and_both_ways_out() {
    let told = |case: Case| {
        let case = copied(case);
        let HostSeen::Probed(probe) = &case.observed.host else { unreachable!() };
        let finding = unfit(&case.desired, case.observed.node.as_ref(), probe).remove(0);
        assert_eq!(finding.requirement, Requirement::OtherMachine);
        finding.to_string()
    };
    let left = told(Case::unlisted());
    for word in ["list 10.0.0.1 again", "delete node win-1: then this host is cleaned"] {
        assert!(left.contains(word), "{word}: {left}");
    }
    let of_machine = told(Case::new().with(|c| c.desired.is_made_for_us = true));
    for word in [
        "not at 10.0.0.1",
        "node win-1 is ready;",
        "its Machine and the node show the same address",
    ] {
        assert!(of_machine.contains(word), "{word}: {of_machine}");
    }
    for word in ["entry", "copy", "hostKey"] {
        assert!(!of_machine.contains(word), "{word}: {of_machine}");
    }
    let holds_slot = told(Case::new().emptied());
    assert!(holds_slot.ends_with("stays cordoned and keeps its disruption slot"), "{holds_slot}");
    let two = told(Case::new().with(|c| c.node().addresses.push("203.0.113.7".into())));
    assert!(two.contains("list 10.0.0.1 or 203.0.113.7 in place"), "{two}");
    let told = told(Case::new());
    for word in ["not at 10.0.0.1", "node win-1 is ready", "list 10.0.0.1", "`hostKey=`"] {
        assert!(told.contains(word), "{word}: {told}");
    }
}

/// The host has the key and another name than the one that registered the Node, ready or not, at whatever address.
fn called_otherwise(case: Case) -> Case {
    case.with(|c| {
        c.desired.name_on_record = Some("WIN-1.example".into());
        c.probe().host_name = "WIN-2".into();
    })
}

#[test]
fn a_host_with_another_name_than_registered_its_node_is_left_whatever_is_asked_for() {
    let outdated =
        || Case::new().emptied().with(|c| c.annotate(names::VERSION_ANNOTATION, "1.0.0"));
    let not_ready = || Case::new().with(|c| c.node().ready = false);
    let pinned = || Case::new().with(|c| c.desired.has_listed_key = true);
    for case in [Case::new, outdated, not_ready, pinned, || Case::unlisted().emptied()] {
        let case = called_otherwise(case());
        case.gives(LEFT);
        assert_eq!(claims_slot(&case.desired, &case.observed, NOW), Some(false));
    }
    let told = |case: Case| {
        let case = called_otherwise(case);
        let HostSeen::Probed(probe) = &case.observed.host else { unreachable!() };
        unfit(&case.desired, case.observed.node.as_ref(), probe).remove(0).to_string()
    };
    let listed = told(Case::new());
    for word in [
        "calls itself `WIN-2`",
        "node win-1",
        "the name `WIN-1.example`",
        "delete node win-1: then this host is configured",
    ] {
        assert!(listed.contains(word), "{word}: {listed}");
    }
    let left = told(Case::unlisted());
    assert!(left.contains("delete node win-1: then this host is cleaned"), "{left}");
}

#[test]
fn a_host_goes_on_whose_name_says_nothing_else() {
    let goes_on = |why: &str, change: fn(&mut Case)| {
        let case = called_otherwise(Case::new()).with(change);
        assert_ne!(case.verbs(), LEFT, "{why}");
    };
    goes_on("it has the name of its node", |c| c.probe().host_name = "win-1.other".into());
    goes_on("its cloud calls it so", |c| c.probe().metadata_name = Some("win-1.internal".into()));
    goes_on("we have renamed it", |c| c.desired.host_name = Some("win-2".into()));
    goes_on("it tells no name", |c| c.probe().host_name.clear());
    goes_on("its name was never on record", |c| c.desired.name_on_record = None);
    goes_on("its node was not registered by that name", |c| c.node().name = "ip-10-0-0-1".into());
    goes_on("it has no node any more", |c| c.observed.node = None);
}

#[track_caller]
fn goes_on(why: &str, change: impl FnOnce(&mut Case)) {
    let case = copied(Case::new()).with(change);
    assert_ne!(case.verbs(), LEFT, "{why}");
}

#[test]
fn a_host_goes_on_when_it_may_be_the_node_itself() {
    goes_on("a person said so", |c| c.desired.has_listed_key = true);
    goes_on("its node is not ready", |c| c.node().ready = false);
    goes_on("its node shows no address", |c| c.node().addresses.clear());
    goes_on("its node shows names and IPv6 alone", |c| {
        c.node().addresses = vec!["win-1".into(), "fd00::1".into()];
    });
    goes_on("it is reached by a translated address", |c| {
        c.desired.known_as.ipv4 = Some([10, 0, 0, 1].into());
    });
    goes_on("it has several network cards", |c| c.probe().addresses.push([10, 0, 0, 1].into()));
}
