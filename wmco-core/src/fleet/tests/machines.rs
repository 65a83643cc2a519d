//! Machines: who is an instance, what contradicts what, and who is made anew.

use super::*;
use crate::facts::{MachineAddress, Reference};

/// A Machine that runs, with a Node that is as it should be.
fn machine(number: u8) -> MachineFacts {
    let address = format!("10.0.128.{number}");
    MachineFacts {
        name: format!("mac-{number}"),
        uid: format!("uid-{number}"),
        is_windows: true,
        phase: Some("Running".into()),
        addresses: vec![MachineAddress { kind: "InternalIP".into(), address }],
        node: Some(Reference { name: format!("node-{number}"), uid: format!("n-{number}") }),
        machine_set: Some(Reference { name: "win".into(), uid: "s-1".into() }),
        ..MachineFacts::default()
    }
}

fn node_of(number: u8) -> NodeFacts {
    NodeFacts {
        name: format!("node-{number}"),
        uid: format!("n-{number}"),
        labels: [(names::OS_LABEL.to_owned(), names::OS_WINDOWS.to_owned())].into(),
        annotations: [(names::VERSION_ANNOTATION.to_owned(), VERSION.to_owned())].into(),
        addresses: vec![format!("10.0.128.{number}")],
        ready: true,
        ..NodeFacts::default()
    }
}

fn set(replicas: usize) -> MachineSetFacts {
    let (name, uid) = ("win".to_owned(), "s-1".to_owned());
    MachineSetFacts { name, uid, replicas, is_deleted: false }
}

/// A MachineSet with so many Machines, all nodes.
fn made(count: u8) -> Case {
    Case {
        machines: (1..=count).map(machine).collect(),
        nodes: (1..=count).map(node_of).collect(),
        sets: vec![set(count.into())],
        budget: 1,
        ..Case::default()
    }
}

/// The record of a Machine's host.
fn record(number: u8, fields: &str) -> (&'static str, &'static str) {
    let name = format!("mac-{number}_machine_host");
    let text = format!(r#"{{"machine": "uid-{number}"{fields}}}"#);
    (name.leak(), text.leak())
}

/// The same of one whose replacement is on record.
fn going(number: u8) -> (&'static str, &'static str) {
    record(number, r#", "replacedIn": "win""#)
}

macro_rules! rows {
    ($($name:ident: $case:expr => $expected:expr;)*) => { $(
        #[test]
        fn $name() {
            let case: Case = $case;
            check(case, &$expected);
        }
    )* };
}

#[track_caller]
fn check(case: Case, expected: &[&str]) {
    assert_eq!(case.look(|out| lines(&out.instances)), expected.join("\n"));
}

const JOINED: &str = "machine mac-1: configure (node node-1), because its machine is provisioned";

rows! {
    a_machine_that_runs_is_configured_with_its_node: made(1) => [JOINED];
    a_machine_that_is_provisioned_has_no_node_yet: made(1).with(|c| {
        c.machines[0].phase = Some("Provisioned".into());
        c.machines[0].node = None;
        c.nodes.clear();
    }) => ["machine mac-1: configure, because its machine is provisioned"];
    no_list_of_entries_is_needed: made(1).with(|c| c.list_absent = true) => [JOINED];
    a_machine_that_is_ignored_is_nobodys: made(1).with(|c| c.machines[0].is_ignored = true)
        => [] as [&str; 0];
    a_machine_that_is_deleted_is_left: made(1).with(|c| c.machines[0].is_deleted = true)
        => ["machine mac-1: leave (node node-1), because it is being deleted"];
    a_node_deleted_by_hand_is_registered_again: made(1).with(|c| c.nodes.clear())
        => ["machine mac-1: configure, because its machine is provisioned"];
    a_node_with_the_name_and_another_uid_is_left: made(1).with(|c| c.nodes[0].uid = "n-9".into()) => [
        "machine mac-1: leave, because its machine refers to a node node-1 that is gone, and there is another one"
    ];
    a_machine_that_runs_without_a_node_is_left: made(1).with(|c| c.machines[0].node = None)
        => ["machine mac-1: leave, because its machine runs and refers to no node"];
    a_node_of_another_system_is_left: made(1).with(|c| {
        c.nodes[0].labels.insert(names::OS_LABEL.into(), "linux".into());
    }) => ["machine mac-1: leave (node node-1), because its node is no windows node"];
    two_machines_at_one_address_are_left: made(2).with(|c| {
        c.machines[1].addresses = c.machines[0].addresses.clone();
    }) => [
        "machine mac-1: leave (node node-1), because machine mac-2 has its address",
        "machine mac-2: leave (node node-2), because machine mac-1 has its address",
    ];
    a_machine_that_is_deleted_has_given_its_address_back: made(2).with(|c| {
        c.machines[1].addresses = c.machines[0].addresses.clone();
        c.machines[1].is_deleted = true;
    }) => [JOINED, "machine mac-2: leave (node node-2), because it is being deleted"];
    two_machines_with_one_node_are_left: made(2).with(|c| {
        c.machines[1].node = c.machines[0].node.clone();
    }) => [
        "machine mac-1: leave (node node-1), because its machine refers to the node of machine mac-2, too",
        "machine mac-2: leave (node node-1), because its machine refers to the node of machine mac-1, too",
    ];
    an_entry_that_does_not_resolve_keeps_its_last_address: made(1).with(|c| {
        c.listed = vec![broken("win.test")];
        c.host_keys = vec![("win.test_host", r#"{"ipv4": "10.0.128.1"}"#)];
    }) => [
        "machine mac-1: leave (node node-1), because entry win.test leads to its address",
        "win.test: leave, because its entry is broken",
    ];
    the_node_of_an_entry_is_not_a_machines_as_well: made(1).with(|c| {
        c.listed = vec![entry(1)];
        c.host_keys = vec![("10.0.0.1_host", r#"{"node": "node-1"}"#)];
    }) => [
        "10.0.0.1: leave (node node-1), because a machine is behind its node",
        "machine mac-1: leave (node node-1), because its machine refers to the node of 10.0.0.1, too",
    ];
    a_kubelet_that_calls_itself_listed_is_still_the_machines: made(1).with(|c| {
        c.nodes[0].labels.insert(names::BYOH_LABEL.into(), names::TRUE.into());
        c.nodes[0].annotations.insert(names::USERNAME_ANNOTATION.into(), "sealed".into());
    }) => [JOINED];
    the_host_of_an_ignored_machine_may_be_listed: made(1).with(|c| {
        c.machines[0].is_ignored = true;
        let machine = "openshift-machine-api/mac-1".to_owned();
        c.nodes[0].annotations.insert(names::MACHINE_ANNOTATION.into(), machine);
        c.listed = vec![entry_at("10.0.128.1")];
    }) => ["10.0.128.1: configure (node node-1), because it is listed"];
    a_host_on_record_is_not_cleaned_at_the_address_of_a_machine: made(1).with(|c| {
        c.host_keys = vec![("old_host", r#"{"ipv4": "10.0.128.1", "pinned": "SHA256:a", "node": "old"}"#)];
    }) => [JOINED, "old: leave, because machine mac-1 has its address"];
    a_node_of_the_go_operator_is_not_cleaned_at_the_address_of_a_machine: made(1).with(|c| {
        c.machines[0].node = None;
        c.machines[0].phase = Some("Provisioned".into());
        c.nodes[0].labels.insert(names::BYOH_LABEL.into(), names::TRUE.into());
        c.nodes[0].annotations.insert(names::USERNAME_ANNOTATION.into(), "sealed".into());
    }) => [
        "10.0.128.1: leave (node node-1), because machine mac-1 has its address",
        "machine mac-1: configure, because its machine is provisioned",
    ];
    a_damaged_record_is_of_one_machine: made(2).with(|c| {
        c.host_keys = vec![("mac-1_machine_host", "{")];
        c.listed = vec![entry(1)];
    }) => [
        "10.0.0.1: configure, because it is listed",
        "machine mac-1: leave (node node-1), because the record of mac-1_machine may be its own and cannot be read",
        "machine mac-2: configure (node node-2), because its machine is provisioned",
    ];
    one_budget_for_entries_and_machines: made(1).with(|c| {
        c.listed = vec![entry(1)];
        c.nodes.push(node(1));
        c.claims = vec!["win-1", "node-1"];
    }) => [
        "10.0.0.1: configure with a disruption permit (node win-1), because it is listed",
        JOINED,
    ];
    a_refusal_is_answered_by_a_note_first: made(1).with(|c| {
        c.refused = vec!["mac-1"];
        c.host_keys = vec![record(1, "")];
    }) => [
        "machine mac-1: configure (node node-1), because its host refuses our key, and its machine is not \
         replaced now: it is put on record first"
    ];
    then_the_machine_is_replaced_though_it_is_the_only_one: made(1).with(|c| {
        c.refused = vec!["mac-1"];
        c.host_keys = vec![going(1)];
    }) => ["machine mac-1: replace (node node-1), because its host refuses our key"];
    a_machine_that_works_comes_after_one_that_does_not: made(2).with(|c| {
        c.refused = vec!["mac-1", "mac-2"];
        c.nodes[1].ready = false;
        c.host_keys = vec![going(1), going(2)];
    }) => [
        "machine mac-1: configure (node node-1), because its host refuses our key, and its machine is not \
         replaced now: machine mac-2 is not ready with the operator's version",
        "machine mac-2: replace (node node-2), because its host refuses our key",
    ];
    a_permit_counts_before_the_deletion_is_seen: made(2).with(|c| {
        c.refused = vec!["mac-1", "mac-2"];
        c.replaced = vec!["mac-2"];
        c.host_keys = vec![going(1), going(2)];
    }) => [
        "machine mac-1: configure (node node-1), because its host refuses our key, and its machine is not \
         replaced now: machine mac-2 is not ready with the operator's version",
        "machine mac-2: replace (node node-2), because its host refuses our key",
    ];
}

#[test]
fn an_entry_for_the_address_of_a_machine_and_the_machine_are_left() {
    check(
        made(1).with(|c| {
            c.listed = vec![entry_at("10.0.128.1")];
        }),
        &[
            "10.0.128.1: leave (node node-1), because machine mac-1 has its address",
            "machine mac-1: leave (node node-1), because entry 10.0.128.1 leads to its address",
        ],
    );
}

#[test]
fn a_machine_that_moves_to_a_listed_address_takes_nothing() {
    check(
        made(1).with(|c| {
            c.listed = vec![entry(1)];
            c.nodes.push(node(1));
            c.machines[0].addresses[0].address = "10.0.0.1".into();
        }),
        &[
            "10.0.0.1: leave (node win-1), because machine mac-1 has its address",
            "machine mac-1: leave (node node-1), because entry 10.0.0.1 leads to its address",
        ],
    );
}

#[test]
fn one_after_another() {
    check(
        made(3).with(|c| {
            c.refused = vec!["mac-1", "mac-2", "mac-3"];
            c.host_keys = vec![going(1), going(2), going(3)];
        }),
        &[
            "machine mac-1: replace (node node-1), because its host refuses our key",
            "machine mac-2: configure (node node-2), because its host refuses our key, and its machine is not \
         replaced now: machine mac-1 is not ready with the operator's version",
            "machine mac-3: configure (node node-3), because its host refuses our key, and its machine is not \
         replaced now: machine mac-1 is not ready with the operator's version",
        ],
    );
}

/// Whether `mac-1`, which refuses our key, is replaced; otherwise why not.
#[track_caller]
fn gate(case: Case, expected: Result<(), Held>) {
    let case = case.with(|c| {
        c.refused.push("mac-1");
        c.host_keys.push(going(1));
    });
    case.look(|out| {
        let mut found = out.instances.iter().filter(|it| it.address == key("mac-1"));
        let found = found.next().unwrap();
        match expected {
            Ok(()) => assert!(matches!(found.intent, Intent::Replace(_)), "{found}"),
            Err(held) => assert_eq!(found.because, Because::ReplacementHeld(held)),
        }
    });
}

fn unhealthy(first: &str) -> Result<(), Held> {
    Err(Held::Unhealthy { first: first.to_owned() })
}

#[test]
fn a_machine_that_nobody_makes_anew_is_kept() {
    for change in [
        |c: &mut Case| c.machines[0].machine_set = None,
        |c: &mut Case| c.sets.clear(),
        |c: &mut Case| c.sets[0].uid = "s-2".into(),
        |c: &mut Case| c.sets[0].is_deleted = true,
        |c: &mut Case| c.sets[0].replicas = 0,
    ] {
        gate(made(1).with(change), Err(Held::NobodyMakesAnother));
    }
}

#[test]
fn the_rest_of_the_machineset_is_whole_and_healthy() {
    gate(made(3), Ok(()));
    gate(made(3).with(|c| c.user_data_due = true), Err(Held::UserDataDue));
    gate(made(3).with(|c| c.sets[0].replicas = 4), Err(Held::TooFew));
    gate(made(3).with(|c| c.machines[2].is_deleted = true), Err(Held::TooFew));
    gate(made(3).with(|c| c.sets[0].replicas = 2), Err(Held::TooMany));
    gate(made(3).with(|c| c.nodes[2].ready = false), unhealthy("mac-3_machine"));
    gate(made(3).with(|c| drop(c.nodes.remove(2))), unhealthy("mac-3_machine"));
    gate(made(3).with(|c| c.nodes[2].annotations.clear()), unhealthy("mac-3_machine"));
    let other = |c: &mut Case| {
        c.nodes[2].annotations.insert(names::VERSION_ANNOTATION.into(), "1.0.0".into());
    };
    gate(made(3).with(other), unhealthy("mac-3_machine"));
    gate(made(3).with(|c| c.machines[2].phase = Some("Failed".into())), unhealthy("mac-3_machine"));
    gate(made(3).with(|c| c.machines[2].is_ignored = true), Ok(()));
}

#[test]
fn nodes_elsewhere_that_do_not_work_use_the_budget() {
    let elsewhere = |budget: usize| {
        made(1).with(|c| {
            c.budget = budget;
            c.listed = vec![entry(1)];
            c.nodes.push(node(1));
        })
    };
    gate(elsewhere(1), unhealthy("10.0.0.1"));
    gate(elsewhere(2), Ok(()));
    let healthy = |c: &mut Case| {
        c.nodes[1].ready = true;
        c.nodes[1].annotations.insert(names::VERSION_ANNOTATION.into(), VERSION.into());
    };
    gate(elsewhere(1).with(healthy), Ok(()));
    let marked = |c: &mut Case| {
        healthy(c);
        held(&mut c.nodes[1]);
    };
    gate(elsewhere(1).with(marked), Err(Held::Budget));
    let never_joined = |c: &mut Case| drop(c.nodes.pop());
    gate(elsewhere(1).with(never_joined), Ok(()));
}

/// The Machine is gone, and its successor is on the way.
fn succeeded() -> Case {
    made(2).with(|c| {
        c.machines[1].uid = "uid-9".into();
        c.machines[1].name = "mac-9".into();
        c.nodes[1].ready = false;
        c.host_keys = vec![going(2), ("mac-2_machine", "AAAA")];
        c.claims = vec!["node-1"];
    })
}

#[test]
fn a_replacement_holds_its_slot_until_the_machineset_is_healthy() {
    let forgotten =
        ["mac-2_machine", "mac-2_machine_host"].map(str::to_owned).into_iter().collect();
    type Change = fn(&mut Case);
    let cases: [(Change, bool); 5] = [
        (|_| {}, true),
        (|c| c.machines.truncate(1), true),
        (|c| c.nodes[1].ready = true, false),
        (|c| c.sets[0].replicas = 1, false),
        (|c| c.sets.clear(), false),
    ];
    for (number, (change, holds)) in cases.into_iter().enumerate() {
        succeeded().with(change).look(|out| {
            let permitted = out.instances.iter().any(|it| it.intent.permit().is_some());
            assert_eq!(permitted, !holds, "case {number}");
            let expected = if holds { BTreeSet::new() } else { BTreeSet::clone(&forgotten) };
            assert_eq!(out.forgotten_keys, expected, "case {number}");
        });
    }
}

/// The same when the only thing that is not as it should be is what `change` says.
#[track_caller]
fn slot_is_free(change: fn(&mut Case), expected: bool) {
    let case = succeeded().with(|c| c.nodes[1].ready = true).with(change);
    case.look(|out| {
        let permitted = out.instances.iter().any(|it| it.intent.permit().is_some());
        assert_eq!(permitted, expected);
    });
}

#[test]
fn the_slot_of_a_replacement_does_not_wait_for_what_is_ignored() {
    slot_is_free(|c| c.machines[1].is_ignored = true, true);
    slot_is_free(|c| (c.machines[1].is_ignored, c.nodes[1].ready) = (true, false), true);
}

#[test]
fn the_slot_of_a_replacement_does_not_wait_for_upgrades_which_wait_for_it() {
    let other = |c: &mut Case| {
        c.nodes[0].annotations.insert(names::VERSION_ANNOTATION.into(), "1.0.0".into());
    };
    slot_is_free(other, true);
    slot_is_free(|c| c.nodes[0].annotations.clear(), true);
    slot_is_free(|c| c.nodes[1].annotations.clear(), false);
}

#[test]
fn the_slot_of_a_replacement_is_lent_to_one_node_that_it_waits_for() {
    succeeded().with(|c| c.claims = vec!["node-1", "node-2"]).look(|out| {
        let permitted = |it: &&Assignment<'_>| it.intent.permit().is_some();
        let permitted: Vec<_> = out.instances.iter().filter(permitted).collect();
        assert_eq!(permitted.iter().map(|it| it.node_name()).collect::<Vec<_>>(), [Some("node-2")]);
    });
    let two = succeeded().with(|c| {
        c.nodes[0].ready = false;
        c.claims = vec!["node-1", "node-2"];
    });
    two.look(|out| {
        let permitted = out.instances.iter().filter(|it| it.intent.permit().is_some());
        assert_eq!(permitted.count(), 1);
    });
}

/// One of three is being replaced, and the host of another refuses our key, too.
fn refusing_meanwhile() -> Case {
    made(3).with(|c| {
        c.machines[1].uid = "uid-9".into();
        c.machines[1].name = "mac-9".into();
        c.host_keys = vec![going(2)];
    })
}

#[test]
fn a_machine_that_its_machineset_waits_for_goes_in_its_slot() {
    let broken = |c: &mut Case| c.nodes[0].ready = false;
    gate(refusing_meanwhile().with(broken), Ok(()));
    gate(refusing_meanwhile().with(broken).with(|c| c.nodes[2].ready = false), Ok(()));
    let joins = |c: &mut Case| c.nodes[1].ready = false;
    gate(refusing_meanwhile().with(joins), unhealthy("mac-9_machine"));
    // One after another, all the same.
    let other = |c: &mut Case| {
        c.nodes[2].ready = false;
        c.refused = vec!["mac-3"];
        c.replaced = vec!["mac-3"];
        c.host_keys.push(going(3));
    };
    gate(refusing_meanwhile().with(broken).with(other), unhealthy("mac-3_machine"));
}

#[test]
fn a_machine_whose_node_holds_a_slot_waits_for_no_other() {
    let out = |c: &mut Case| held(&mut c.nodes[0]);
    gate(made(2).with(out), Ok(()));
    gate(made(2).with(out).with(|c| c.nodes[1].annotations.clear()), Ok(()));
    let elsewhere = |c: &mut Case| {
        c.listed = vec![entry(1)];
        c.nodes.push(node(1));
    };
    gate(made(2).with(out).with(elsewhere), Ok(()));
    // A mark that was left over takes a slot like any other.
    let marked = |c: &mut Case| {
        c.nodes[0].labels.insert(names::UPGRADING_LABEL.into(), names::TRUE.into());
    };
    gate(made(2).with(marked), Ok(()));
    gate(made(2).with(marked).with(|c| c.budget = 0), Err(Held::Budget));
}

#[test]
fn an_ignored_machine_is_not_removed_when_its_kubelet_calls_itself_listed() {
    let lies = |c: &mut Case| {
        c.machines[0].is_ignored = true;
        c.nodes[0].labels.insert(names::BYOH_LABEL.into(), names::TRUE.into());
        c.nodes[0].annotations.insert(names::USERNAME_ANNOTATION.into(), "sealed".into());
    };
    let left = "10.0.128.1: leave (node node-1), because a machine is behind its node";
    made(1).with(lies).look(|out| {
        assert_eq!(lines(&out.instances), left);
        assert_eq!(out.changes, BTreeMap::new());
    });
}

#[test]
fn a_host_that_lets_us_in_again_is_not_replaced() {
    made(1).with(|c| c.host_keys = vec![going(1)]).look(|out| {
        assert_eq!(lines(&out.instances), JOINED);
        assert_eq!(out.changes[&key("mac-1")], RecordChange::ReplacedIn(None));
    });
}

#[test]
fn only_what_is_kept_of_machines_that_are_gone_is_forgotten() {
    let kept = |c: &mut Case| {
        c.host_keys = vec![record(1, ""), ("mac-1_machine", "AAAA"), ("bastion_22", "AAAA")];
    };
    let keys = |case: Case| case.with(kept).look(|out| out.forgotten_keys.clone());
    assert_eq!(keys(made(1)), BTreeSet::new());
    assert_eq!(keys(made(1).with(|c| c.machines[0].is_ignored = true)), BTreeSet::new());
    let both = BTreeSet::from(["mac-1_machine", "mac-1_machine_host"].map(str::to_owned));
    assert_eq!(keys(made(0)), both);
}

#[test]
fn a_key_that_the_go_operator_pinned_is_taken_over() {
    let case = made(1).with(|c| {
        c.machines[0].node = None;
        c.machines[0].phase = Some("Provisioned".into());
        c.nodes.clear();
        c.host_keys = vec![("10.0.128.1", "AAAA")];
    });
    case.look(|out| {
        assert_eq!(out.instances[0].formerly, ["10.0.128.1"]);
        assert_eq!(out.forgotten_keys, BTreeSet::new());
    });
    case.with(|c| c.host_keys.push(("mac-1_machine", "BBBB"))).look(|out| {
        assert_eq!(out.instances[0].formerly, [""; 0]);
        assert_eq!(out.forgotten_keys, ["10.0.128.1".to_owned()].into());
    });
}

/// An entry by its address.
fn entry_at(address: &str) -> Listed {
    Listed { address: address.to_owned(), ipv4: address.parse().ok() }
}
