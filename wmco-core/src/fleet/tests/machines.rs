//! Machines: who is an instance, what contradicts what, and who is made anew.

mod gone;
mod replacing;
mod rotation;
mod succession;

use super::*;
use crate::facts::{MachineAddress, Reference, UserDataRef};
use crate::names::objects::USER_DATA_SECRET;

/// Some time, later for a higher number.
fn created(number: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(number).unwrap()
}

/// A Machine that runs, with a Node that is as it should be.
fn machine(number: u8) -> MachineFacts {
    MachineFacts {
        name: format!("mac-{number}"),
        uid: format!("uid-{number}"),
        created: Some(created(1)),
        is_windows: true,
        phase: Some("Running".into()),
        addresses: vec![address(&format!("10.0.128.{number}"))],
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
    let user_data = UserDataRef { name: USER_DATA_SECRET.into(), ..UserDataRef::default() };
    let os = Some(names::OS_ID_WINDOWS.to_owned());
    MachineSetFacts { name, uid, replicas, os, user_data, ..MachineSetFacts::default() }
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
    record(number, &format!(r#", "replacementMachineSet": "win"{}"#, of_three()))
}

/// The Machines of the MachineSet when one of three was to go.
fn of_three() -> String {
    format!(r#", "machinesBefore": {{"count": 3, "newest": "{}"}}"#, created(1))
}

fn address(text: &str) -> MachineAddress {
    MachineAddress { kind: "InternalIP".into(), address: text.into() }
}

/// People look after the first Machine, and list it by its further address.
fn ignored_with_a_further_address(case: &mut Case) {
    case.machines[0].is_ignored = true;
    case.machines[0].addresses.push(address("10.0.0.9"));
    case.listed = vec![entry(9)];
}

macro_rules! rows {
    ($($name:ident: $case:expr => $expected:expr;)*) => { $(
        #[test]
        fn $name() {
            let case: Case = $case;
            check(&case, &$expected);
        }
    )* };
}

#[track_caller]
fn check(case: &Case, expected: &[&str]) {
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
    an_entry_at_a_further_address_of_a_machine: made(1).with(|c| {
        c.machines[0].phase = Some("Provisioned".into());
        c.machines[0].node = None;
        c.machines[0].addresses.push(address("10.0.0.9"));
        c.nodes.clear();
        c.listed = vec![entry(9)];
    }) => [
        "10.0.0.9: leave, because machine mac-1 has its address",
        "machine mac-1: leave, because entry 10.0.0.9 leads to its address",
    ];
    a_further_address_that_is_the_first_of_another: made(2).with(|c| {
        c.machines[0].addresses.push(address("10.0.128.2"));
    }) => [
        "machine mac-1: leave (node node-1), because machine mac-2 has its address",
        "machine mac-2: leave (node node-2), because machine mac-1 has its address",
    ];
    a_record_at_the_address_of_a_machine_that_nobody_can_read: made(1).with(|c| {
        c.host_keys = vec![("10.0.128.1_host", "{")];
    }) => [
        "machine mac-1: leave (node node-1), because the record of 10.0.128.1 may be its own and cannot be read",
    ];
    a_host_to_clean_behind_one_that_nobody_reached: made(1).with(|c| {
        c.host_keys = vec![
            ("b.example_host", r#"{"ipv4": "10.0.128.1", "username": "sealed"}"#),
            ("c.example_host", r#"{"ipv4": "10.0.128.1", "pinned": "x", "hostName": "WIN-7"}"#),
        ];
    }) => [
        "c.example: leave, because machine mac-1 has its address",
        "machine mac-1: leave (node node-1), because host c.example, which is on record and not listed, may be its own",
    ];
    a_further_address_of_two_machines: made(2).with(|c| {
        for machine in &mut c.machines {
            machine.addresses.push(address("10.0.0.9"));
        }
        c.listed = vec![entry(8)];
    }) => [
        "10.0.0.8: configure, because it is listed",
        JOINED,
        "machine mac-2: configure (node node-2), because its machine is provisioned",
    ];
    two_machines_at_one_address_are_left: made(2).with(|c| {
        c.machines[1].addresses = c.machines[0].addresses.clone();
    }) => [
        "machine mac-1: leave (node node-1), because machine mac-2 has its address",
        "machine mac-2: leave (node node-2), because machine mac-1 has its address",
    ];
    the_host_of_an_ignored_machine_is_not_anothers: made(2).with(|c| {
        c.machines[0].addresses = c.machines[1].addresses.clone();
        c.machines[1].is_ignored = true;
    }) => ["machine mac-1: leave (node node-1), because machine mac-2 has its address"];
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
    a_node_to_which_another_machine_refers_in_vain_is_left: made(2).with(|c| {
        c.machines[1].node = c.machines[0].node.clone();
        c.machines[0].node.as_mut().unwrap().uid = "gone".into();
    }) => [
        "machine mac-1: leave, because its machine refers to the node of machine mac-2, too",
        "machine mac-2: leave (node node-1), because its machine refers to the node of machine mac-1, too",
    ];
    a_reference_in_vain_of_a_machine_that_is_deleted_is_nobodys: made(2).with(|c| {
        c.machines[1].node = c.machines[0].node.clone();
        c.machines[0].node.as_mut().unwrap().uid = "gone".into();
        c.machines[0].is_deleted = true;
        c.nodes[0].addresses = c.nodes[1].addresses.clone();
    }) => [
        "machine mac-1: leave, because it is being deleted",
        "machine mac-2: configure (node node-1), because its machine is provisioned",
    ];
    a_node_at_the_address_of_another_machine_is_left: made(2).with(|c| {
        c.machines[1].node = c.machines[0].node.take();
    }) => [
        "machine mac-1: leave, because its machine runs and refers to no node",
        "machine mac-2: leave (node node-1), because its machine refers to the node of machine mac-1, too",
    ];
    a_node_at_the_address_of_an_entry_is_left: made(1).with(|c| {
        c.listed = vec![entry(1)];
        c.nodes[0].addresses = vec!["10.0.0.1".into()];
    }) => [
        "10.0.0.1: leave (node node-1), because a machine is behind its node",
        "machine mac-1: leave (node node-1), because its machine refers to the node of 10.0.0.1, too",
    ];
    a_node_that_is_called_as_a_listed_host_is_left: made(1).with(|c| {
        c.listed = vec![entry(1)];
        c.host_names = vec![("10.0.0.1", "node-1")];
        c.nodes[0].addresses.clear();
    }) => [
        "10.0.0.1: configure, because it is listed",
        "machine mac-1: leave (node node-1), because its machine refers to the node of 10.0.0.1, too",
    ];
    what_a_listed_host_calls_itself_takes_no_node_of_a_machine: made(1).with(|c| {
        c.listed = vec![entry(1)];
        c.host_names = vec![("10.0.0.1", "node-1")];
    }) => ["10.0.0.1: configure, because it is listed", JOINED];
    what_a_node_shows_beside_its_own_address_keeps_no_machine: made(2).with(|c| {
        c.nodes[0].addresses.push("10.0.128.2".into());
    }) => [JOINED, "machine mac-2: configure (node node-2), because its machine is provisioned"];
    a_node_without_addresses_is_still_its_machines: made(1).with(|c| c.nodes[0].addresses.clear())
        => [JOINED];
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
    the_node_of_an_ignored_machine_is_no_entrys_that_it_names: made(1).with(|c| {
        c.machines[0].is_ignored = true;
        c.listed = vec![entry(1)];
        c.nodes[0].labels.insert(names::BYOH_LABEL.into(), names::TRUE.into());
        c.nodes[0].annotations.insert(names::INSTANCE_ANNOTATION.into(), "10.0.0.1".into());
        c.nodes[0].addresses.push("10.0.0.1".into());
    }) => [
        "10.0.0.1: configure, because it is listed",
        "10.0.128.1: leave (node node-1), because it is not listed, but may be the node of entry 10.0.0.1",
    ];
    the_node_of_a_machine_is_no_entrys_that_it_names: made(1).with(|c| {
        c.listed = vec![entry(1)];
        c.nodes[0].annotations.insert(names::INSTANCE_ANNOTATION.into(), "10.0.0.1".into());
    }) => ["10.0.0.1: configure, because it is listed", JOINED];
    the_node_on_record_of_a_host_is_no_machines_though_nobody_lists_it: made(1).with(|c| {
        c.host_keys = vec![("10.0.0.9_host", r#"{"ipv4": "10.0.0.9", "node": "node-1", "pinned": "a"}"#)];
    }) => [
        "10.0.0.9: leave (node node-1), because a machine is behind its node",
        "machine mac-1: leave (node node-1), because its machine refers to the node of 10.0.0.9, too",
    ];
    the_host_of_an_ignored_machine_may_be_listed: made(1).with(|c| {
        c.machines[0].is_ignored = true;
        let machine = "openshift-machine-api/mac-1".to_owned();
        c.nodes[0].annotations.insert(names::MACHINE_ANNOTATION.into(), machine);
        c.listed = vec![entry_at("10.0.128.1")];
    }) => ["10.0.128.1: configure (node node-1), because it is listed"];
    a_further_address_of_an_ignored_machine_may_be_listed: made(1).with(|c| {
        ignored_with_a_further_address(c);
        c.nodes[0].addresses.push("10.0.0.9".into());
    }) => ["10.0.0.9: configure (node node-1), because it is listed"];
    a_further_address_of_an_ignored_machine_keeps_no_machine: made(2).with(|c| {
        ignored_with_a_further_address(c);
        c.listed.clear();
        c.machines[1].addresses = vec![address("10.0.0.9")];
    }) => ["machine mac-2: configure (node node-2), because its machine is provisioned"];
    the_node_of_an_ignored_machine_without_an_address_may_be_listed: made(1).with(|c| {
        c.machines[0].is_ignored = true;
        c.machines[0].addresses.clear();
        c.listed = vec![entry_at("10.0.128.1")];
    }) => ["10.0.128.1: configure (node node-1), because it is listed"];
    a_host_on_record_is_not_cleaned_at_the_address_of_a_machine: made(1).with(|c| {
        c.host_keys = vec![("old_host", r#"{"ipv4": "10.0.128.1", "pinned": "SHA256:a", "node": "old"}"#)];
    }) => [
        "machine mac-1: leave (node node-1), because host old, which is on record and not listed, may be its own",
        "old: leave, because machine mac-1 has its address",
    ];
    a_record_of_a_host_that_we_never_saw_keeps_no_machine: made(1).with(|c| {
        c.host_keys = vec![("old_host", r#"{"ipv4": "10.0.128.1"}"#)];
    }) => [JOINED];
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
        "machine mac-1: configure (node node-1), because its host does not let us in, and its machine is not \
         replaced now: it is put on record first"
    ];
    then_the_machine_is_replaced_though_it_is_the_only_one: made(1).with(|c| {
        c.refused = vec!["mac-1"];
        c.host_keys = vec![going(1)];
    }) => ["machine mac-1: replace (node node-1), because its host does not let us in"];
    a_machine_that_works_comes_after_one_that_does_not: made(2).with(|c| {
        c.refused = vec!["mac-1", "mac-2"];
        c.nodes[1].ready = false;
        c.host_keys = vec![going(1), going(2)];
    }) => [
        "machine mac-1: configure (node node-1), because its host does not let us in, and its machine is not \
         replaced now: machine mac-2 of its machineset is replaced first",
        "machine mac-2: replace (node node-2), because its host does not let us in",
    ];
    a_permit_counts_before_the_deletion_is_seen: made(2).with(|c| {
        c.refused = vec!["mac-1", "mac-2"];
        c.replaced = vec!["mac-2"];
        c.host_keys = vec![going(1), going(2)];
    }) => [
        "machine mac-1: configure (node node-1), because its host does not let us in, and its machine is not \
         replaced now: machine mac-2 of its machineset is replaced first",
        "machine mac-2: replace (node node-2), because its host does not let us in",
    ];
}

/// The Node of a Machine shows the address of an entry that nobody has tried, beside its own.
fn listed_where_a_machines_node_shows_itself() -> Case {
    made(1).with(|c| {
        c.listed = vec![entry(9)];
        c.never_contacted = vec!["10.0.0.9"];
        c.nodes[0].addresses.push("10.0.0.9".into());
        let left = r#"{"ipv4": "10.0.0.1", "hostName": "WIN-1", "pinned": "x"}"#;
        c.host_keys = vec![("10.0.0.1_host", left)];
    })
}

#[test]
fn a_host_that_somebody_has_looked_at_is_none_that_left() {
    assert_eq!(
        listed_where_a_machines_node_shows_itself().with(|c| c.never_contacted.clear()).lines(),
        "10.0.0.1: remove, because it is no longer listed\n\
         10.0.0.9: leave (node node-1), because a machine is behind its node\n\
         machine mac-1: configure (node node-1), because its machine is provisioned"
    );
}

#[test]
fn a_host_that_nobody_may_look_at_may_be_one_that_left() {
    assert_eq!(
        listed_where_a_machines_node_shows_itself().lines(),
        "10.0.0.1: leave, because it is not listed, but entry 10.0.0.9 may be its host until a look at that is on record\n\
         10.0.0.9: leave (node node-1), because a machine is behind its node\n\
         machine mac-1: configure (node node-1), because its machine is provisioned"
    );
}

#[test]
fn an_entry_for_the_address_of_a_machine_and_the_machine_are_left() {
    check(
        &made(1).with(|c| {
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
        &made(1).with(|c| {
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
        &made(3).with(|c| {
            c.refused = vec!["mac-1", "mac-2", "mac-3"];
            c.host_keys = vec![going(1), going(2), going(3)];
        }),
        &[
            "machine mac-1: replace (node node-1), because its host does not let us in",
            "machine mac-2: configure (node node-2), because its host does not let us in, and its machine is not \
         replaced now: machine mac-1 of its machineset is replaced first",
            "machine mac-3: configure (node node-3), because its host does not let us in, and its machine is not \
         replaced now: machine mac-1 of its machineset is replaced first",
        ],
    );
}

#[test]
fn the_node_of_an_ignored_machine_is_no_others() {
    let shared = |c: &mut Case| {
        c.machines[1].is_ignored = true;
        c.machines[0].node = c.machines[1].node.clone();
    };
    let left = "machine mac-1: leave (node node-2), because its machine refers to the node of machine mac-2, too";
    made(2).with(shared).look(|out| assert_eq!(lines(&out.instances), left));
}

#[test]
fn a_node_that_keeps_its_slot_while_its_machines_are_left_is_told() {
    let shared = |c: &mut Case| c.machines[1].node = c.machines[0].node.clone();
    let told = |case: Case| {
        case.look(|out| {
            let notices = out.notices.iter().map(ToString::to_string);
            notices.filter(|it| it.contains("node node-1 keeps its disruption slot")).count()
        })
    };
    assert_eq!(told(made(2).with(shared)), 0);
    let marked = || made(2).with(shared).with(|c| held(&mut c.nodes[0]));
    assert_eq!(told(marked()), 2);
    // A node of another system is none that we disrupt.
    let linux =
        |c: &mut Case| drop(c.nodes[0].labels.insert(names::OS_LABEL.into(), "linux".into()));
    assert_eq!(told(marked().with(linux)), 0);
}

/// Its annotations are lost, and its Machine refers to a deleted Node.
#[test]
fn a_node_that_a_machine_refers_to_by_name_keeps_its_slot() {
    let waits = |uid: &str| {
        let case = made(1).with(|c| {
            c.nodes[0].uid = uid.to_owned();
            c.nodes[0].annotations.clear();
            held(&mut c.nodes[0]);
            c.listed = vec![entry(1)];
            c.nodes.push(node(1));
            c.claims = vec!["win-1"];
        });
        case.permits()
    };
    assert_eq!(waits("n-1"), "");
    assert_eq!(waits("n-9"), "");
}

/// Otherwise a reference that was wrong once would be in the way of the right Node for ever.
#[test]
fn the_node_of_a_machine_is_put_on_no_record() {
    made(1).look(|out| assert_eq!(out.instances[0].confirmed_node(), None));
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

/// Nothing on record says that it was listed, and a kubelet may write our label and any address.
#[test]
fn a_node_that_calls_itself_listed_is_left_while_it_may_be_a_machines() {
    let lies = |c: &mut Case| {
        c.nodes[0].labels.insert(names::BYOH_LABEL.into(), names::TRUE.into());
        c.nodes[0].annotations.insert(names::USERNAME_ANNOTATION.into(), "sealed".into());
        c.nodes[0].addresses = vec!["10.0.128.9".into()];
        c.machines[0].node = None;
    };
    let by_reference = |c: &mut Case| {
        let (name, uid) = ("node-1".to_owned(), "gone".to_owned());
        c.machines[0].node = Some(Reference { name, uid });
    };
    let by_word = |c: &mut Case| {
        let machine = "openshift-machine-api/mac-1".to_owned();
        c.nodes[0].annotations.insert(names::MACHINE_ANNOTATION.into(), machine);
    };
    let by_name = |c: &mut Case| c.host_names = vec![("mac-1_machine", "NODE-1")];
    let left = "10.0.128.9: leave (node node-1), because a machine is behind its node";
    for may_be in [by_reference, by_word, by_name] {
        made(1).with(lies).with(may_be).look(|out| {
            assert_eq!(out.instances[0].to_string(), left);
            assert_eq!(out.changes, BTreeMap::new());
        });
    }
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

/// An entry's host keeps its slot while there is no list, also when somebody takes the label off by which its Node is known.
#[test]
fn a_machine_waits_for_the_node_of_an_entry_while_there_is_no_list() {
    let permits = |change: fn(&mut NodeFacts)| {
        let case = made(1).with(|c| {
            let mut entrys = node(1);
            held(&mut entrys);
            change(&mut entrys);
            c.nodes.push(entrys);
            (c.claims, c.list_absent) = (vec!["node-1"], true);
            c.host_keys =
                vec![("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "pinned": "x", "node": "win-1"}"#)];
        });
        case.permits()
    };
    assert_eq!(permits(|_| ()), "");
    assert_eq!(permits(|node| drop(node.labels.remove(names::BYOH_LABEL))), "");
    assert_eq!(permits(|node| drop(node.labels.remove(names::UPGRADING_LABEL))), "node-1");
}
