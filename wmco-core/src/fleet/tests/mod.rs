//! Who gets what, and why: one named line per rule.

use std::net::Ipv4Addr;

use super::memory::UserData;
use super::*;
use crate::facts::{MachineFacts, MachineSetFacts};
use crate::instances::{Resolutions, Unresolved, parse};
use crate::limits;
use crate::login_keys::LoginKeys;
use crate::machines::{Machines, key};
use crate::names::{self, platforms};

mod case;

use case::Case;

const VERSION: &str = "2.0.0";

/// One entry: its key, and where it leads unless it is broken.
#[derive(Clone)]
struct Listed {
    address: String,
    ipv4: Option<Ipv4Addr>,
}

fn lines<T: fmt::Display>(things: impl IntoIterator<Item = T>) -> String {
    things.into_iter().map(|thing| thing.to_string()).collect::<Vec<_>>().join("\n")
}

pub(super) fn assignment(address: &str, intent: Intent, because: Because) -> Assignment<'static> {
    Assignment {
        address: address.to_owned(),
        formerly: Vec::new(),
        instance: None,
        node: None,
        confirmed: false,
        intent,
        because,
    }
}

fn entry(number: u8) -> Listed {
    let ip = Ipv4Addr::new(10, 0, 0, number);
    Listed { address: ip.to_string(), ipv4: Some(ip) }
}

fn broken(address: &str) -> Listed {
    Listed { address: address.to_owned(), ipv4: None }
}

fn node(number: u8) -> NodeFacts {
    let address = format!("10.0.0.{number}");
    let mark = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    NodeFacts {
        name: format!("win-{number}"),
        uid: number.to_string(),
        labels: [mark(names::OS_LABEL, names::OS_WINDOWS), mark(names::BYOH_LABEL, names::TRUE)]
            .into(),
        annotations: [mark(names::INSTANCE_ANNOTATION, &address)].into(),
        addresses: vec![address],
        resource_version: 1,
        unschedulable: false,
        ready: true,
        is_deleted: false,
        host_key_mismatch: None,
        drain_notice: None,
        drain_blocked_since: None,
    }
}

fn labelled(node: &mut NodeFacts) {
    node.labels.insert(names::UPGRADING_LABEL.into(), names::TRUE.into());
}

/// In the middle of our work.
fn held(node: &mut NodeFacts) {
    labelled(node);
    node.unschedulable = true;
    node.annotations.insert(names::CORDONED_ANNOTATION.into(), names::CORDONED_BY_US.into());
}

fn foreign(node: &mut NodeFacts) {
    node.labels.remove(names::BYOH_LABEL);
    node.annotations.clear();
}

fn behind_machine(node: &mut NodeFacts) {
    foreign(node);
    node.annotations.insert(names::MACHINE_ANNOTATION.into(), "openshift-machine-api/m".into());
}

/// On record of a host that was logged in to.
const TOUCHED: (&str, &str) =
    ("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "username": "sealed", "pinned": "SHA256:x"}"#);

/// A Node that the Go operator made: it tells the user, and nothing else of its host.
fn from_go(case: &mut Case) {
    case.nodes[0].annotations = [(names::USERNAME_ANNOTATION.into(), "sealed".into())].into();
}

/// Two hosts that nobody lists, where one at once needs no confirmation.
fn two_removals() -> Case {
    let other = ("10.0.0.2_host", r#"{"ipv4": "10.0.0.2", "pinned": "SHA256:y"}"#);
    Case {
        host_keys: vec![TOUCHED, other],
        guard: RemovalGuard { most: Some(1), confirmed: None },
        ..Case::default()
    }
}

macro_rules! rows {
    ($method:ident: $($name:ident: $case:expr => $expected:expr;)*) => {
        $(#[test]
        fn $name() {
            let case: Case = $case;
            assert_eq!(case.$method(), *$expected);
        })*
    };
}

// After the macro that they use.
mod also;
mod blocked;
mod guard;
mod identity;
mod machines;
mod notices;
mod protected;
mod records;
mod same_host;
mod slots;

/// Its drain was given up so often.
fn given_up(node: &mut NodeFacts, times: u32) {
    let turns = format!("{times} 1970-01-01T00:00:00Z");
    node.annotations.insert(names::DRAIN_GIVEN_UP_ANNOTATION.into(), turns);
}

rows! { permits:
    one_that_had_its_turn_comes_last: Case::three().with(|c| given_up(&mut c.nodes[0], 1)) => "win-2";
    who_had_fewer_turns_comes_first: Case::three().with(|c| {
        given_up(&mut c.nodes[0], 3);
        given_up(&mut c.nodes[1], 2);
        c.claims = vec!["win-1", "win-2"];
    }) => "win-2";
    one_that_had_its_turn_goes_on_once_it_holds_a_slot: Case::three().with(|c| {
        given_up(&mut c.nodes[2], 1);
        held(&mut c.nodes[2]);
    }) => "win-3";
    one_slot: Case::three() => "win-1";
    two_slots: Case::three().with(|c| c.budget = 2) => "win-1 win-2";
    no_slot: Case::three().with(|c| c.budget = 0) => "";
    nobody_claims: Case::three().with(|c| c.claims.clear()) => "";
    unreachable_hosts_hold_nobody_up: Case::three().with(|c| c.claims = vec!["win-3"]) => "win-3";
    holder_goes_on: Case::three().with(|c| held(&mut c.nodes[2])) => "win-3";
    holder_without_a_claim_keeps_its_slot: Case::three().with(|c| {
        held(&mut c.nodes[2]);
        c.claims = vec!["win-1", "win-2"];
    }) => "";
    holder_goes_on_though_the_budget_shrank: Case::three().with(|c| {
        held(&mut c.nodes[1]);
        held(&mut c.nodes[2]);
    }) => "win-2 win-3";
    holder_goes_on_after_a_person_uncordoned_it: Case::three().with(|c| {
        held(&mut c.nodes[2]);
        c.nodes[2].unschedulable = false;
    }) => "win-3";
    one_that_a_person_uncordoned_serves_and_waits_for_a_holder: Case::three().with(|c| {
        held(&mut c.nodes[0]);
        c.nodes[0].unschedulable = false;
        held(&mut c.nodes[2]);
    }) => "win-3";
    one_that_a_person_uncordoned_begins_nothing_while_the_cluster_is_not_fit: Case::three().with(|c| {
        held(&mut c.nodes[0]);
        c.nodes[0].unschedulable = false;
        c.blocked = true;
    }) => "";
    one_that_a_person_uncordoned_while_its_kubelet_was_down_goes_on: Case::three().with(|c| {
        held(&mut c.nodes[0]);
        c.nodes[0].unschedulable = false;
        c.nodes[0].ready = false;
        held(&mut c.nodes[2]);
    }) => "win-1 win-3";
    what_we_began_keeps_its_slot_from_leftover_marks: Case::three().with(|c| {
        held(&mut c.nodes[1]);
        c.nodes[1].unschedulable = false;
        labelled(&mut c.nodes[0]);
        c.claims = vec!["win-1"];
    }) => "";
    what_we_began_goes_on_before_leftover_marks: Case::three().with(|c| {
        held(&mut c.nodes[1]);
        c.nodes[1].unschedulable = false;
        labelled(&mut c.nodes[0]);
        c.budget = 2;
    }) => "win-1 win-2";
    of_two_that_we_began_one_goes_on: Case::three().with(|c| {
        for node in &mut c.nodes[..2] {
            held(node);
            node.unschedulable = false;
        }
        labelled(&mut c.nodes[2]);
    }) => "win-1";
    granted_counts_before_its_mark_is_seen: Case::three().with(|c| {
        c.granted = vec!["win-2"];
        c.claims = vec!["win-1", "win-3"];
    }) => "";
    granted_goes_on: Case::three().with(|c| c.granted = vec!["win-2"]) => "win-2";
    granted_beyond_the_budget_waits: Case::three().with(|c| c.granted = vec!["win-2", "win-3"]) => "win-2";
    granted_beside_a_mark_that_was_left_over: Case::three().with(|c| {
        labelled(&mut c.nodes[0]);
        c.granted = vec!["win-2"];
    }) => "win-2";
    granted_beside_a_holder_beyond_the_budget_waits: Case::three().with(|c| {
        held(&mut c.nodes[2]);
        c.granted = vec!["win-2"];
        c.claims = vec!["win-1", "win-2"];
    }) => "";
    granted_beside_what_people_uncordoned_waits: Case::three().with(|c| {
        held(&mut c.nodes[2]);
        c.nodes[2].unschedulable = false;
        c.granted = vec!["win-2"];
        c.claims = vec!["win-1", "win-2"];
    }) => "";
    of_two_with_permits_the_one_goes_on_that_people_uncordoned: Case::three().with(|c| {
        held(&mut c.nodes[2]);
        c.nodes[2].unschedulable = false;
        c.granted = vec!["win-2", "win-3"];
    }) => "win-3";
    of_two_that_people_uncordoned_the_one_with_a_permit_goes_on: Case::three().with(|c| {
        for node in &mut c.nodes[..2] {
            held(node);
            node.unschedulable = false;
        }
        (c.granted, c.claims) = (vec!["win-2"], vec!["win-1", "win-2"]);
    }) => "win-2";
    beside_one_that_is_out_the_one_with_a_permit_goes_on: Case::three().with(|c| {
        c.nodes.iter_mut().for_each(held);
        c.nodes[0].unschedulable = false;
        c.nodes[1].unschedulable = false;
        (c.granted, c.claims, c.budget) = (vec!["win-2"], vec!["win-1", "win-2"], 2);
    }) => "win-2";
    granted_and_marked_counts_once: Case::three().with(|c| {
        held(&mut c.nodes[1]);
        c.granted = vec!["win-2"];
        c.budget = 2;
    }) => "win-1 win-2";
    granted_to_a_node_that_is_gone: Case::three().with(|c| c.granted = vec!["win-9"]) => "win-1";
    leftover_mark_keeps_others_waiting: Case::three().with(|c| {
        labelled(&mut c.nodes[2]);
        c.claims = vec!["win-1"];
    }) => "";
    leftover_marks_take_turns: Case::three().with(|c| {
        labelled(&mut c.nodes[1]);
        labelled(&mut c.nodes[2]);
    }) => "win-2";
    mark_that_is_admitted_counts_once: Case::three().with(|c| {
        c.budget = 2;
        labelled(&mut c.nodes[1]);
    }) => "win-1 win-2";
    mark_of_a_node_whose_record_is_about_to_go_counts: Case::three().with(|c| {
        c.listed.remove(0);
        labelled(&mut c.nodes[0]);
        c.host_keys = vec![("10.0.0.1_host", r#"{"ipv4": "10.0.0.1"}"#)];
        c.host_names = vec![("10.0.0.1", "win-1")];
        c.claims = vec!["win-2"];
    }) => "";
    leftover_mark_waits_for_a_holder: Case::three().with(|c| {
        labelled(&mut c.nodes[0]);
        held(&mut c.nodes[2]);
    }) => "win-3";
    mark_of_a_machine_node_counts: Case::three().with(|c| {
        let mut machine = node(9);
        behind_machine(&mut machine);
        labelled(&mut machine);
        c.nodes.push(machine);
    }) => "";
    mark_on_a_linux_node_does_not_count: Case::three().with(|c| {
        let mut linux = node(9);
        labelled(&mut linux);
        linux.labels.remove(names::OS_LABEL);
        c.nodes.push(linux);
    }) => "win-1";
    mark_on_a_node_that_nobody_manages: Case::three().with(|c| {
        let mut other = node(9);
        foreign(&mut other);
        labelled(&mut other);
        c.nodes.push(other);
    }) => "win-1";
    removal_takes_a_slot: Case::three().with(|c| {
        c.listed.remove(0);
    }) => "win-1";
    a_claim_of_a_left_node_is_not_heard: Case::three().with(|c| {
        behind_machine(&mut c.nodes[0]);
    }) => "win-2";
}

rows! { lines:
    new_instance: Case { listed: vec![entry(1)], ..Case::default() }
        => "10.0.0.1: configure, because it is listed";
    listed_node: Case { listed: vec![entry(1)], nodes: vec![node(1)], ..Case::default() }
        => "10.0.0.1: configure (node win-1), because it is listed";
    unlisted_node: Case { nodes: vec![node(1)], ..Case::default() }
        => "10.0.0.1: remove (node win-1), because it is no longer listed";
    permit_is_shown: Case {
        nodes: vec![node(1)], claims: vec!["win-1"], budget: 1, ..Case::default()
    } => "10.0.0.1: remove with a disruption permit (node win-1), because it is no longer listed";
    foreign_windows_node: Case { nodes: vec![node(1)], ..Case::default() }
        .with(|c| foreign(&mut c.nodes[0])) => "";
    machine_node: Case { nodes: vec![node(1)], ..Case::default() }
        .with(|c| behind_machine(&mut c.nodes[0])) => "";
    linux_node_with_our_label: Case { nodes: vec![node(1)], ..Case::default() }.with(|c| {
        c.nodes[0].labels.insert(names::OS_LABEL.into(), "linux".into());
    }) => "";
    listed_machine_node: Case { listed: vec![entry(1)], nodes: vec![node(1)], ..Case::default() }
        .with(|c| behind_machine(&mut c.nodes[0]))
        => "10.0.0.1: leave (node win-1), because a machine is behind its node";
    listed_linux_node: Case { listed: vec![entry(1)], nodes: vec![node(1)], ..Case::default() }
        .with(|c| {
            c.nodes[0].labels.insert(names::OS_LABEL.into(), "linux".into());
        }) => "10.0.0.1: leave (node win-1), because its node is no windows node";
    entry_that_became_broken: Case {
        listed: vec![broken("10.0.0.1")], nodes: vec![node(1)], ..Case::default()
    } => "10.0.0.1: leave (node win-1), because its entry is broken";
    address_that_became_broken_of_a_node_without_origin: Case {
        listed: vec![broken("10.0.0.1")], nodes: vec![node(1)], ..Case::default()
    }.with(|c| c.nodes[0].annotations.clear())
        => "10.0.0.1: leave, because its entry is broken\n\
            10.0.0.1: leave (node win-1), because it is not listed, but may be the node of entry 10.0.0.1";
    name_that_no_longer_resolves: Case {
        listed: vec![broken("win-1.example")], nodes: vec![node(1)], ..Case::default()
    }.with(|c| {
        c.nodes[0].annotations.insert(names::INSTANCE_ANNOTATION.into(), "win-1.example".into());
    }) => "win-1.example: leave (node win-1), because its entry is broken";
    name_that_never_resolved_may_mean_any_node: Case {
        listed: vec![broken("new.example")], nodes: vec![node(1)], ..Case::default()
    } => "10.0.0.1: leave (node win-1), because it is not listed, but may be the node of entry new.example\n\
          new.example: leave, because its entry is broken";
    name_of_one_node_does_not_mean_another: Case {
        listed: vec![broken("win-1.example")], nodes: vec![node(1), node(2)], ..Case::default()
    }.with(|c| {
        c.nodes[0].annotations.insert(names::INSTANCE_ANNOTATION.into(), "win-1.example".into());
    }) => "10.0.0.2: leave (node win-2), because it is not listed, but may be the node of entry win-1.example\n\
           win-1.example: leave (node win-1), because its entry is broken";
    name_on_record_of_one_node_does_not_mean_another: Case {
        listed: vec![broken("win-1.example")],
        nodes: vec![node(1), node(2)],
        host_keys: vec![("win-1.example_host", r#"{"node": "win-1"}"#)],
        ..Case::default()
    } => "10.0.0.2: remove (node win-2), because it is no longer listed\n\
          win-1.example: leave (node win-1), because its entry is broken";
    node_of_a_broken_name_by_the_address_on_record: Case {
        listed: vec![broken("a.example")],
        nodes: vec![node(1)],
        host_keys: vec![("a.example_host", r#"{"ipv4": "10.0.0.1"}"#)],
        ..Case::default()
    } => "10.0.0.1: leave (node win-1), because it is not listed, but may be the node of entry a.example\n\
          a.example: leave, because its entry is broken";
    node_that_is_named_as_an_entry: Case {
        listed: vec![Listed { address: "win-9".into(), ..entry(9) }],
        nodes: vec![node(9)],
        ..Case::default()
    }.with(|c| {
        c.nodes[0].addresses.clear();
        c.nodes[0].annotations.clear();
    }) => "win-9: configure, because it is listed\n\
           win-9: leave (node win-9), because it is not listed, but may be the node of entry win-9";
    node_at_the_address_of_a_host_that_leaves: Case {
        nodes: vec![node(1)], host_keys: vec![TOUCHED], ..Case::default()
    }.with(|c| c.nodes[0].annotations.clear())
        => "10.0.0.1: remove, because it is no longer listed\n\
            10.0.0.1: leave (node win-1), because host 10.0.0.1, which is on record and not listed, may be its own";
    broken_address_that_may_be_another_one_of_a_node: Case {
        listed: vec![broken("10.0.0.9")], nodes: vec![node(1)], ..Case::default()
    } => "10.0.0.1: leave (node win-1), because it is not listed, but may be the node of entry 10.0.0.9\n\
          10.0.0.9: leave, because its entry is broken";
    broken_address_of_a_host_without_a_node: Case {
        listed: vec![broken("10.0.0.9")], host_keys: vec![TOUCHED], ..Case::default()
    } => "10.0.0.1: leave, because it is not listed, but may be the node of entry 10.0.0.9\n\
          10.0.0.9: leave, because its entry is broken";
    same_node_twice: Case {
        listed: vec![Listed { address: "win-1.example".into(), ..entry(1) }, entry(1)],
        nodes: vec![node(1)],
        ..Case::default()
    } => "10.0.0.1: configure (node win-1), because it is listed\n\
          win-1.example: leave, because entry 10.0.0.1 stands for the same host";
    same_host_twice_before_it_has_a_node: Case {
        listed: vec![Listed { address: "win-1.example".into(), ..entry(1) }, entry(1)],
        ..Case::default()
    } => "10.0.0.1: configure, because it is listed\n\
          win-1.example: leave, because entry 10.0.0.1 stands for the same host";
    two_addresses_of_one_node: Case {
        listed: vec![entry(1), entry(2)], nodes: vec![node(1)], ..Case::default()
    }.with(|c| c.nodes[0].addresses.push("10.0.0.2".into()))
        => "10.0.0.1: configure (node win-1), because it is listed\n\
            10.0.0.2: leave, because entry 10.0.0.1 stands for the same host";
    address_of_a_host_that_calls_itself_otherwise: Case {
        listed: vec![entry(1), entry(2)],
        nodes: vec![node(1)],
        host_names: vec![("10.0.0.2", "WIN-2")],
        ..Case::default()
    }.with(|c| c.nodes[0].addresses.push("10.0.0.2".into()))
        => "10.0.0.1: configure (node win-1), because it is listed\n\
            10.0.0.2: configure, because it is listed";
    old_node_of_a_renamed_host: Case {
        listed: vec![entry(1)], nodes: vec![node(1), node(2)], ..Case::default()
    }.with(|c| {
        c.nodes[0].ready = false;
        c.nodes[1].addresses = vec!["10.0.0.1".into()];
    }) => "10.0.0.1: configure (node win-1), because it is listed\n\
           10.0.0.1: leave (node win-2), because it is not listed, but may be the node of entry 10.0.0.1";
    name_by_which_a_host_calls_itself_decides: Case {
        listed: vec![entry(1)],
        nodes: vec![node(1), node(2)],
        host_names: vec![("10.0.0.1", "WIN-2.corp.example")],
        ..Case::default()
    }.with(|c| c.nodes[1].addresses = vec!["10.0.0.1".into()])
        => "10.0.0.1: leave (node win-1), because it is not listed, but may be the node of entry 10.0.0.1\n\
            10.0.0.1: configure (node win-2), because it is listed";
    name_on_record_outranks_what_everybody_says: Case {
        listed: vec![entry(1)],
        nodes: vec![node(1), node(2)],
        host_names: vec![("10.0.0.1", "win-2")],
        host_keys: vec![("10.0.0.1_host", r#"{"node": "win-1"}"#)],
        ..Case::default()
    }.with(|c| {
        c.nodes[0].addresses.clear();
        c.nodes[0].annotations.clear();
        c.nodes[1].addresses = vec!["10.0.0.1".into()];
        c.nodes[1].annotations.insert(names::INSTANCE_ANNOTATION.into(), "10.0.0.1".into());
    }) => "10.0.0.1: configure (node win-1), because it is listed\n\
           10.0.0.1: leave (node win-2), because it is not listed, but may be the node of entry 10.0.0.1";
    node_of_another_host_by_its_name: Case {
        listed: vec![entry(1), entry(2)],
        nodes: vec![node(1)],
        host_names: vec![("10.0.0.1", "win-1")],
        ..Case::default()
    }.with(|c| {
        c.nodes[0].annotations.clear();
        c.nodes[0].addresses = vec!["10.0.0.2".into()];
    }) => "10.0.0.1: configure, because it is listed\n\
           10.0.0.2: configure, because it is listed\n\
           10.0.0.2: leave (node win-1), because it is not listed, but may be the node of entry 10.0.0.2";
    nodes_that_nothing_tells_apart: Case {
        listed: vec![entry(1)], nodes: vec![node(1), node(2)], ..Case::default()
    }.with(|c| {
        for node in &mut c.nodes {
            node.annotations.clear();
            node.addresses = vec!["10.0.0.1".into()];
        }
    }) => "10.0.0.1: leave, because nodes win-1 and win-2 claim to stand for it\n\
           10.0.0.1: leave (node win-1), because it is not listed, but may be the node of entry 10.0.0.1\n\
           10.0.0.1: leave (node win-2), because it is not listed, but may be the node of entry 10.0.0.1";
    nodes_that_nothing_tells_apart_of_a_host_that_left: Case {
        host_keys: vec![TOUCHED], nodes: vec![node(1), node(2)], ..Case::default()
    }.with(|c| {
        c.nodes[1].annotations = c.nodes[0].annotations.clone();
        c.nodes[1].addresses = vec!["10.0.0.77".into(), "10.0.0.1".into()];
    }) => "10.0.0.1: leave, because nodes win-1 and win-2 claim to stand for it\n\
           10.0.0.1: leave (node win-1), because host 10.0.0.1, which is on record and not listed, may be its own\n\
           10.0.0.77: leave (node win-2), because host 10.0.0.1, which is on record and not listed, may be its own";
    node_of_a_host_whose_address_another_shows: Case {
        listed: vec![entry(1), entry(2)], nodes: vec![node(1), node(2)], ..Case::default()
    }.with(|c| c.nodes[0].addresses.push("10.0.0.2".into()))
        => "10.0.0.1: configure (node win-1), because it is listed\n\
            10.0.0.2: configure (node win-2), because it is listed";
    node_that_shows_an_old_address: Case {
        listed: vec![entry(1), entry(2)], nodes: vec![node(1), node(2)], ..Case::default()
    }.with(|c| c.nodes[1].addresses = vec!["10.0.0.77".into()])
        => "10.0.0.1: configure (node win-1), because it is listed\n\
            10.0.0.2: configure (node win-2), because it is listed";
    node_that_says_it_comes_from_anothers_entry: Case {
        listed: vec![entry(1), entry(2)], nodes: vec![node(1)], ..Case::default()
    }.with(|c| {
        c.nodes[0].annotations.insert(names::INSTANCE_ANNOTATION.into(), "10.0.0.2".into());
    }) => "10.0.0.1: configure, because it is listed\n\
           10.0.0.1: leave (node win-1), because it is not listed, but may be the node of entry 10.0.0.1\n\
           10.0.0.2: configure, because it is listed";
    node_of_the_go_operator_that_nobody_lists_is_put_on_record: Case {
        nodes: vec![node(1)], ..Case::default()
    }.with(from_go) => "10.0.0.1: leave (node win-1), because its removal is put on record first";
    node_that_nobody_lists_and_whose_address_another_shows: Case {
        nodes: vec![node(1), node(2)], ..Case::default()
    }.with(from_go).with(|c| {
        foreign(&mut c.nodes[1]);
        c.nodes[1].addresses.push("10.0.0.1".into());
    }) => "10.0.0.1: leave (node win-1), because it is not listed, but its address is that of node win-2, too";
    absent_list: Case { nodes: vec![node(1)], list_absent: true, ..Case::default() }
        => "10.0.0.1: leave (node win-1), because the list of instances is absent";
    host_whose_entry_went_before_its_node_came: Case { host_keys: vec![TOUCHED], ..Case::default() }
        => "10.0.0.1: remove, because it is no longer listed";
    host_that_was_never_logged_in_to: Case {
        host_keys: vec![("10.0.0.1_host", r#"{"ipv4": "10.0.0.1"}"#)], ..Case::default()
    } => "";
    host_that_is_listed_by_a_name_now: Case {
        listed: vec![Listed { address: "win-1.example".into(), ..entry(1) }],
        host_keys: vec![TOUCHED],
        ..Case::default()
    } => "win-1.example: configure, because it is listed";
    host_with_a_record_under_each_of_two_names: Case {
        host_keys: vec![TOUCHED, ("win-1.example_host", TOUCHED.1)], ..Case::default()
    } => "10.0.0.1: remove, because it is no longer listed";
    hosts_of_which_one_has_the_others_old_address: Case {
        host_keys: vec![TOUCHED, ("win-2.example_host", r#"{"ipv4": "10.0.0.1", "pinned": "y"}"#)],
        ..Case::default()
    } => "10.0.0.1: remove, because it is no longer listed\n\
          win-2.example: remove, because it is no longer listed";
    host_that_a_broken_entry_may_mean: Case {
        listed: vec![broken("new.example")], host_keys: vec![TOUCHED], ..Case::default()
    } => "10.0.0.1: leave, because it is not listed, but may be the node of entry new.example\n\
          new.example: leave, because its entry is broken";
    stranger_at_the_address_of_a_host_that_left: Case {
        nodes: vec![node(1)], host_keys: vec![TOUCHED], ..Case::default()
    }.with(|c| foreign(&mut c.nodes[0])) => "10.0.0.1: remove, because it is no longer listed";
    more_removals_than_need_no_confirmation: two_removals()
        => "10.0.0.1: leave, because its removal is not confirmed\n\
            10.0.0.2: leave, because its removal is not confirmed";
    confirmation_of_another_number: two_removals().with(|c| c.guard.confirmed = Some(3))
        => "10.0.0.1: leave, because its removal is not confirmed\n\
            10.0.0.2: leave, because its removal is not confirmed";
    confirmation_of_the_number: two_removals().with(|c| c.guard.confirmed = Some(2))
        => "10.0.0.1: leave, because its removal is put on record first\n\
            10.0.0.2: leave, because its removal is put on record first";
    confirmed_removal_goes_on_beside_new_ones: two_removals().with(|c| {
        c.guard.most = Some(0);
        c.host_keys[0].1 = r#"{"ipv4": "10.0.0.1", "pinned": "x", "removalConfirmed": true}"#;
    }) => "10.0.0.1: remove, because it is no longer listed\n\
           10.0.0.2: leave, because its removal is not confirmed";
    node_that_has_lost_its_addresses: Case {
        listed: vec![entry(1)], nodes: vec![node(1)], ..Case::default()
    }.with(|c| c.nodes[0].addresses.clear())
        => "10.0.0.1: configure (node win-1), because it is listed";
}

rows! { told:
    nothing_to_tell: Case::three() => "";
    two_nodes_at_one_address: Case::three().with(|c| c.nodes[0].addresses.push("10.0.0.2".into()))
        => &format!(
            "node win-1 claims entry 10.0.0.2 by its addresses or its annotation {}, but node win-2 \
             stands for that entry; correct node win-1, or delete the one of both whose host is gone",
            names::INSTANCE_ANNOTATION
        );
    key_that_somebody_wrote_on_a_node: Case::three()
        .with(|c| {
            c.host_keys = vec![("10.0.0.1", "its key"), ("10.0.0.2", "its key")];
            let annotations = &mut c.nodes[0].annotations;
            annotations.insert(names::HOST_KEY_ANNOTATION.into(), "another key".into());
            let annotations = &mut c.nodes[1].annotations;
            annotations.insert(names::HOST_KEY_ANNOTATION.into(), "its key".into());
        }) => &format!(
            "annotation {} of node win-1 is not the key pinned as `10.0.0.1` in ConfigMap \
             windows-ssh-host-keys and is set back; unless you have just pinned another key, find out \
             who may write annotations of that node",
            names::HOST_KEY_ANNOTATION
        );
    absent_list_is_told: Case { nodes: vec![node(1)], list_absent: true, ..Case::default() }
        => "ConfigMap windows-instances is absent, so all hosts are left as they are; create it again, \
            without entries if all hosts are to be removed";
    absent_list_of_a_cluster_without_hosts: Case { list_absent: true, ..Case::default() } => "";
    what_confirms_a_removal: two_removals().with(|c| c.guard.confirmed = Some(3))
        => &format!(
            "2 hosts are no longer listed, and more than 1 at once need a confirmation of their \
             number, which is not 3; list them again, or have them removed by `kubectl annotate \
             configmap windows-instances --overwrite {}=2`",
            names::CONFIRM_REMOVAL_ANNOTATION
        );
    record_that_nobody_can_read: Case { host_keys: vec![("10.0.0.1_host", "{")], ..Case::default() }
        => "`10.0.0.1_host` in ConfigMap windows-ssh-host-keys is no record of a host, so every host that it \
            may be about is left as it is; correct it or remove it";
    linux_node_that_is_listed: Case { listed: vec![entry(1)], nodes: vec![node(1)], ..Case::default() }
        .with(|c| {
            c.nodes[0].labels.insert(names::OS_LABEL.into(), "linux".into());
        }) => "10.0.0.1 is left alone, because its node is no windows node; remove the entry that leads there, if there is one, or delete \
               node win-1 if its host is gone";
}

rows! { changes:
    of_a_node_of_the_go_operator: Case { nodes: vec![node(1)], ..Case::default() }.with(from_go)
        => "10.0.0.1";
    of_confirmed_removals: two_removals().with(|c| c.guard.confirmed = Some(2)) => "10.0.0.1 10.0.0.2";
    not_of_a_node_of_ours_whose_record_is_gone: Case { nodes: vec![node(1)], ..Case::default() }
        .with(|c| {
            c.nodes[0].annotations.insert(names::USERNAME_ANNOTATION.into(), "sealed".into());
        }) => "";
    of_removals_that_need_no_confirmation: two_removals().with(|c| c.guard.most = None) => "";
}

#[test]
fn a_confirmation_is_taken_off_when_it_has_served() {
    let confirmed = two_removals().with(|c| {
        c.guard.confirmed = Some(2);
        c.host_keys = vec![
            ("10.0.0.1_host", r#"{"pinned": "x", "removalConfirmed": true}"#),
            ("10.0.0.2_host", r#"{"pinned": "y", "removalConfirmed": true}"#),
        ];
    });
    assert!(confirmed.look(|out| out.confirmation_used));
    assert!(!confirmed.with(|c| c.guard.confirmed = None).look(|out| out.confirmation_used));
    assert!(
        !two_removals().with(|c| c.guard.confirmed = Some(2)).look(|out| out.confirmation_used)
    );
}

#[test]
fn a_host_listed_by_another_name_is_forgotten_under_its_old_one_when_its_pin_is_taken_over() {
    let renamed = |host_keys: &[(&'static str, &'static str)]| Case {
        listed: vec![Listed { address: "win-1.example".into(), ..entry(1) }],
        nodes: vec![node(1)],
        host_keys: [&[TOUCHED, ("10.0.0.1", "key")], host_keys].concat(),
        ..Case::default()
    };
    let new = [("win-1.example_host", "{}"), ("win-1.example", "key")];
    assert_eq!(renamed(&[]).look(|out| out.forgotten_keys), [].into());
    assert_eq!(renamed(&new[..1]).look(|out| out.forgotten_keys), [].into());
    let all = renamed(&new).look(|out| out.forgotten_keys);
    assert_eq!(all, ["10.0.0.1".to_owned(), "10.0.0.1_host".to_owned()].into());
}

#[test]
fn forgotten_keys() {
    let case = Case {
        listed: vec![entry(1), broken("win-3.example")],
        nodes: vec![node(2)],
        host_keys: ["10.0.0.1", "10.0.0.2", "win-2.example", "win-3.example", "10.0.0.9"]
            .map(|name| (name, "key"))
            .into(),
        ..Case::default()
    };
    let case = case.with(|c| {
        c.nodes[0].annotations.insert(names::INSTANCE_ANNOTATION.into(), "win-2.example".into());
    });
    assert_eq!(case.look(|out| out.forgotten_keys), ["10.0.0.9".to_owned()].into());
    let told = Notice::PinUnused { name: "10.0.0.9".to_owned() };
    assert!(case.look(|out| out.notices.contains(&told)));
    assert!(told.to_string().contains("`hostKey=`"), "{told}");
}

#[test]
fn the_order_of_entries_and_nodes_does_not_matter() {
    let case = Case::three().with(|c| {
        c.listed.push(Listed { address: "win-1.example".into(), ..entry(1) });
        c.listed.push(broken("new.example"));
        c.nodes.push(node(4));
        held(&mut c.nodes[1]);
        labelled(&mut c.nodes[2]);
        c.budget = 2;
    });
    for turn in 1..case.listed.len() {
        let mut turned = case.clone();
        turned.listed.rotate_left(turn);
        turned.nodes.rotate_left(turn % case.nodes.len());
        let is_same = |turned: &Case| case.look(|out| turned.look(|other| other == out));
        assert!(is_same(&turned));
        turned.listed.reverse();
        turned.nodes.reverse();
        assert!(is_same(&turned));
    }
}

#[test]
fn a_worker_goes_on_while_its_removal_is_put_on_record() {
    let of = |intent, because| assignment("10.0.0.1", intent, because);
    assert!(of(Intent::Leave, Because::RecordDue).is_wanted());
    assert!(!of(Intent::Leave, Because::RecordDue).has_work());
    assert!(!of(Intent::Leave, Because::MachineBehind).is_wanted());
    assert!(of(Intent::Remove(None), Because::Unlisted).has_work());
}

#[test]
fn a_name_that_is_being_looked_up_is_not_called_broken() {
    let entries = parse([("win.test", "username=core")], &Resolutions::default());
    let hosts = KnownHosts::default();
    let (desired, observed) = (Desired::new(Some(&entries), VERSION), Observed::new(&[]));
    let assignments = reconcile(&desired, &Observed { hosts: &hosts, ..observed });
    assert_eq!(assignments.instances[0].because, Because::NamePending);
}

#[test]
fn marks_count_where_the_budget_counts_them() {
    let case = Case { listed: vec![entry(1)], nodes: vec![node(1), node(2)], ..Case::default() };
    let case = case.with(|c| {
        c.nodes.iter_mut().for_each(labelled);
        c.nodes[1].labels.insert(names::OS_LABEL.into(), "linux".into());
    });
    case.look(|assignments| assert_eq!(assignments.disrupted, ["win-1"].into()));
}
