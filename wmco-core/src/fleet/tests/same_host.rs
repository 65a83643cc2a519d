//! One host at several addresses, and records that nobody can read.

use super::*;

/// On record of a host that is a node, by the address that it had before.
const BEFORE: (&str, &str) = (
    "10.0.0.1_host",
    r#"{"ipv4": "10.0.0.1", "node": "win-1", "hostName": "WIN-1", "username": "sealed", "pinned": "x"}"#,
);
/// On record of the same host by its new address.
const NOW: (&str, &str) =
    ("10.0.0.9_host", r#"{"ipv4": "10.0.0.9", "hostName": "win-1.corp.example", "pinned": "x"}"#);
/// What is on record at its new address before it has told its name.
const NAMELESS: (&str, &str) = ("10.0.0.9_host", r#"{"ipv4": "10.0.0.9", "pinned": "x"}"#);
/// Another machine made from the same image.
const TWIN: (&str, &str) =
    ("10.0.0.9_host", r#"{"ipv4": "10.0.0.9", "hostName": "WIN-9", "pinned": "x"}"#);

/// A node whose host is listed by another address now.
fn elsewhere(now: &[(&'static str, &'static str)]) -> Case {
    Case {
        listed: vec![entry(9)],
        nodes: vec![node(1)],
        host_keys: [&[BEFORE], now].concat(),
        ..Case::default()
    }
}

/// Listed by both addresses.
fn twice(now: &[(&'static str, &'static str)]) -> Case {
    elsewhere(now).with(|c| c.listed.push(entry(1)))
}

rows! { lines:
    host_at_another_address_goes_on_with_its_node: elsewhere(&[NOW])
        => "10.0.0.9: configure (node win-1), because it is listed";
    host_that_has_not_told_its_name_may_be_the_one_that_left: elsewhere(&[NAMELESS])
        => "10.0.0.1: leave (node win-1), because it is not listed, but entry 10.0.0.9 may be its host until a look at \
            that is on record\n\
            10.0.0.9: configure, because it is listed";
    host_that_nobody_has_tried_may_be_the_one_that_left: elsewhere(&[])
        .with(|c| c.never_contacted = vec!["10.0.0.9"])
        => "10.0.0.1: leave (node win-1), because it is not listed, but entry 10.0.0.9 may be its host until a look at \
            that is on record\n\
            10.0.0.9: configure, because it is listed";
    host_that_a_node_of_a_machine_calls_its_origin_is_looked_at: elsewhere(&[])
        .with(|c| {
            c.never_contacted = vec!["10.0.0.9"];
            c.nodes.push(node(2));
            behind_machine(&mut c.nodes[1]);
            c.nodes[1].annotations.insert(names::INSTANCE_ANNOTATION.into(), "10.0.0.9".into());
        })
        => "10.0.0.1: leave (node win-1), because it is not listed, but entry 10.0.0.9 may be its host until a look at \
            that is on record\n\
            10.0.0.9: configure, because it is listed";
    host_whose_record_is_damaged_may_be_the_one_that_left: elsewhere(&[("10.0.0.9_host", "{")])
        .with(|c| c.never_contacted = vec!["10.0.0.9"])
        => "10.0.0.1: leave (node win-1), because it is not listed, but entry 10.0.0.9 may be its host until a look at \
            that is on record\n\
            10.0.0.9: leave, because the record of 10.0.0.9 may be its own and cannot be read";
    host_that_two_nodes_claim_may_be_the_one_that_left: elsewhere(&[])
        .with(|c| {
            c.never_contacted = vec!["10.0.0.9"];
            c.nodes.extend([node(8), node(9)]);
            c.nodes[1].annotations = node(9).annotations;
            c.nodes[1].addresses = node(9).addresses;
        })
        => "10.0.0.1: leave (node win-1), because it is not listed, but entry 10.0.0.9 may be its host until a look at \
            that is on record\n\
            10.0.0.9: leave, because nodes win-8 and win-9 claim to stand for it\n\
            10.0.0.9: leave (node win-8), because it is not listed, but may be the node of entry 10.0.0.9\n\
            10.0.0.9: leave (node win-9), because it is not listed, but may be the node of entry 10.0.0.9";
    linux_node_that_is_listed_keeps_nobody: elsewhere(&[])
        .with(|c| {
            c.never_contacted = vec!["10.0.0.9"];
            c.nodes.push(node(9));
            c.nodes[1].labels.insert(names::OS_LABEL.into(), "linux".into());
        })
        => "10.0.0.1: remove (node win-1), because it is no longer listed\n\
            10.0.0.9: leave (node win-9), because its node is no windows node";
    host_that_did_not_answer_holds_nobody_up: elsewhere(&[])
        => "10.0.0.1: remove (node win-1), because it is no longer listed\n\
            10.0.0.9: configure, because it is listed";
    host_that_was_seen_before_needs_no_look: elsewhere(&[TWIN])
        .with(|c| c.never_contacted = vec!["10.0.0.9"])
        => "10.0.0.1: remove (node win-1), because it is no longer listed\n\
            10.0.0.9: configure, because it is listed";
    twins_are_two_hosts: elsewhere(&[TWIN])
        => "10.0.0.1: remove (node win-1), because it is no longer listed\n\
            10.0.0.9: configure, because it is listed";
    nodes_tell_twins_apart: elsewhere(&[(
        NOW.0,
        r#"{"ipv4": "10.0.0.9", "node": "win-9", "hostName": "win-1", "pinned": "x"}"#,
    )]) => "10.0.0.1: remove (node win-1), because it is no longer listed\n\
            10.0.0.9: configure, because it is listed";
    host_listed_by_two_of_its_addresses: twice(&[NOW])
        => "10.0.0.1: configure (node win-1), because it is listed\n\
            10.0.0.9: look, because entry 10.0.0.1 stands for the same host";
    twins_that_are_listed: twice(&[TWIN])
        => "10.0.0.1: configure (node win-1), because it is listed\n\
            10.0.0.9: configure, because it is listed";
    host_that_leaves_with_a_record_for_each_address: elsewhere(&[NOW]).with(|c| c.listed.clear())
        => "10.0.0.1: remove (node win-1), because it is no longer listed";
    host_that_was_logged_in_to_once_at_its_other_address: elsewhere(&[NAMELESS])
        .with(|c| c.listed.clear())
        => "10.0.0.1: remove (node win-1), because it is no longer listed";
    host_at_a_new_address_that_its_node_shows_is_looked_at: elsewhere(&[])
        .with(|c| c.nodes[0].addresses = vec!["10.0.0.9".into()])
        => "10.0.0.1: leave (node win-1), because it is not listed, but may be the node of entry 10.0.0.9\n\
            10.0.0.9: configure, because it is listed";
    node_that_waits_for_its_finalizers: Case { nodes: vec![node(1)], ..Case::default() }
        .with(|c| c.nodes[0].is_deleted = true)
        => "10.0.0.1: leave (node win-1), because its node is deleted, and waits for its finalizers";
    node_of_the_go_operator_that_is_deleted_is_not_adopted: Case {
        nodes: vec![node(1)], ..Case::default()
    }.with(from_go).with(|c| c.nodes[0].is_deleted = true)
        => "10.0.0.1: leave (node win-1), because its node is deleted, and waits for its finalizers";
    deleted_node_of_a_host_on_record_is_removed: Case {
        nodes: vec![node(1)], host_keys: vec![BEFORE], ..Case::default()
    }.with(|c| c.nodes[0].is_deleted = true)
        => "10.0.0.1: remove (node win-1), because it is no longer listed";
    host_whose_record_is_damaged: Case {
        listed: vec![entry(1)],
        nodes: vec![node(1)],
        host_keys: vec![("10.0.0.1_host", "{"), ("10.0.0.1", "key")],
        ..Case::default()
    } => "10.0.0.1: leave (node win-1), because the record of 10.0.0.1 may be its own and cannot be read";
    host_that_may_have_had_a_damaged_record_under_another_name: Case {
        listed: vec![entry(1), entry(2)],
        host_keys: vec![("win-1.example_host", "{"), ("10.0.0.2", "key")],
        ..Case::default()
    } => "10.0.0.1: leave, because the record of win-1.example may be its own and cannot be read\n\
          10.0.0.2: configure, because it is listed";
    damaged_record_of_another_address: Case {
        listed: vec![entry(1)], host_keys: vec![("10.0.0.2_host", "{")], ..Case::default()
    } => "10.0.0.1: configure, because it is listed";
    node_whose_record_is_damaged: Case {
        nodes: vec![node(1)], host_keys: vec![("10.0.0.1_host", "{")], ..Case::default()
    } => "10.0.0.1: leave (node win-1), because the record of 10.0.0.1 may be its own and cannot be read";
    node_of_the_go_operator_whose_record_is_damaged: Case {
        nodes: vec![node(1)], host_keys: vec![("10.0.0.1_host", "{")], ..Case::default()
    }.with(from_go)
        => "10.0.0.1: leave (node win-1), because the record of 10.0.0.1 may be its own and cannot be read";
}

rows! { lines:
    node_of_the_go_operator_at_the_address_of_a_host_on_record: Case {
        nodes: vec![node(1)], host_keys: vec![TOUCHED], ..Case::default()
    }.with(from_go) => "10.0.0.1: remove, because it is no longer listed\n\
        10.0.0.1: leave (node win-1), because host 10.0.0.1, which is on record and not listed, may be its own";
}

rows! { lines:
    node_without_an_address_that_is_called_as_a_listed_host: Case {
        listed: vec![entry(1)],
        nodes: vec![node(1)],
        host_names: vec![("10.0.0.1", "WIN-1.corp.example")],
        ..Case::default()
    }.with(|c| {
        c.nodes[0].annotations.clear();
        c.nodes[0].addresses = vec!["win-1".into()];
    }) => "10.0.0.1: configure, because it is listed\n\
           win-1: leave (node win-1), because it is not listed, but may be the node of entry 10.0.0.1";
    node_of_the_go_operator_that_is_called_as_a_listed_host: Case {
        listed: vec![entry(9)],
        nodes: vec![node(1)],
        host_names: vec![("10.0.0.9", "win-1")],
        ..Case::default()
    }.with(from_go)
        => "10.0.0.1: leave (node win-1), because it is not listed, but may be the node of entry 10.0.0.9\n\
            10.0.0.9: configure, because it is listed";
    node_on_record_that_shows_no_address_and_is_called_as_a_listed_host: elsewhere(&[TWIN])
        .with(|c| {
            c.host_names = vec![("10.0.0.9", "win-1")];
            c.nodes[0].addresses.clear();
        })
        => "10.0.0.1: leave (node win-1), because it is not listed, but may be the node of entry 10.0.0.9\n\
            10.0.0.9: configure, because it is listed";
    what_a_listed_host_calls_itself_keeps_no_node_at_its_own_address: elsewhere(&[TWIN])
        .with(|c| c.host_names = vec![("10.0.0.9", "win-1")])
        => "10.0.0.1: remove (node win-1), because it is no longer listed\n\
            10.0.0.9: configure, because it is listed";
    what_people_call_a_listed_host_does: elsewhere(&[])
        .with(|c| c.listed[0].address = "win-1.example".into())
        => "10.0.0.1: leave (node win-1), because it is not listed, but may be the node of entry win-1.example\n\
            win-1.example: configure, because it is listed";
}

rows! { changes:
    of_no_host_whose_record_is_damaged: Case {
        nodes: vec![node(1)], host_keys: vec![("10.0.0.1_host", "{")], ..Case::default()
    }.with(from_go) => "";
    of_a_host_that_is_listed_again: Case {
        listed: vec![broken("10.0.0.1")],
        host_keys: vec![("10.0.0.1_host", r#"{"pinned": "x", "removalConfirmed": true}"#)],
        ..Case::default()
    } => "10.0.0.1";
}

rows! { permits:
    deleted_node_whose_host_was_given_up_holds_no_slot: Case::three().with(|c| {
        c.listed.remove(0);
        held(&mut c.nodes[0]);
        c.nodes[0].is_deleted = true;
    }) => "win-2";
    deleted_node_whose_host_is_still_cleaned_holds_its_slot: Case::three().with(|c| {
        c.listed.remove(0);
        held(&mut c.nodes[0]);
        c.nodes[0].is_deleted = true;
        c.host_keys = vec![BEFORE];
    }) => "win-1";
    new_node_of_a_host_that_leaves_holds_its_slot: Case::three().with(|c| {
        c.listed.remove(0);
        held(&mut c.nodes[0]);
        c.nodes[0].labels.remove(names::BYOH_LABEL);
        c.host_keys = vec![BEFORE];
    }) => "win-1";
}

#[test]
fn a_confirmed_removal_is_confirmed_anew_when_its_host_was_listed_again() {
    let case = Case {
        listed: vec![broken("10.0.0.1")],
        host_keys: vec![("10.0.0.1_host", r#"{"pinned": "x", "removalConfirmed": true}"#)],
        ..Case::default()
    };
    let changes = case.look(|out| out.changes);
    assert_eq!(changes["10.0.0.1"], RecordChange::RemovalConfirmed(false));
}

#[test]
fn nothing_of_a_damaged_record_is_forgotten() {
    let case =
        Case { host_keys: vec![("10.0.0.1_host", "{"), ("10.0.0.1", "key")], ..Case::default() };
    assert_eq!(case.look(|out| out.forgotten_keys), [].into());
}

#[test]
fn a_former_record_goes_when_the_new_one_has_its_node_and_its_pin() {
    let forgotten = |now| {
        let case = elsewhere(&[("10.0.0.1", "key"), ("10.0.0.9", "key"), now]);
        case.look(|out| out.forgotten_keys.into_iter().collect::<Vec<_>>().join(" "))
    };
    assert_eq!(forgotten(NOW), "", "its node would be lost");
    let with_node = r#"{"ipv4": "10.0.0.9", "node": "win-1", "hostName": "win-1", "pinned": "x"}"#;
    assert_eq!(forgotten((NOW.0, with_node)), "10.0.0.1 10.0.0.1_host");
}

/// Its address belongs to another listed host for a while, which has shown another key.
#[test]
fn a_host_that_waits_to_be_cleaned_is_not_forgotten_for_who_has_its_address_now() {
    let other = r#"{"ipv4": "10.0.0.2", "node": "win-2", "pinned": "y"}"#;
    let case = Case {
        listed: vec![Listed { address: "b.example".into(), ..entry(1) }],
        host_keys: vec![
            BEFORE,
            ("10.0.0.1", "key"),
            ("b.example_host", other),
            ("b.example", "other key"),
        ],
        ..Case::default()
    };
    case.look(|out| {
        assert_eq!(out.forgotten_keys, [].into());
        assert!(out.instances.iter().all(|instance| instance.formerly.is_empty()));
    });
}

#[test]
fn a_confirmation_is_not_used_up_while_hosts_wait_for_something_else() {
    let case = two_removals().with(|c| {
        c.guard.confirmed = Some(2);
        c.listed.push(entry(9));
        c.never_contacted = vec!["10.0.0.9"];
    });
    assert!(!case.look(|out| out.confirmation_used));
}

#[test]
fn a_list_is_no_record() {
    for text in ["[]", r#"["10.0.0.1"]"#, "null", "1"] {
        let known = KnownHosts::read([("10.0.0.1_host", text)]);
        assert!(known.is_damaged("10.0.0.1"), "{text}");
    }
}

rows! { lines:
    host_that_takes_anothers_name_once_it_has_a_node: Case {
        listed: vec![entry(1), entry(9)],
        nodes: vec![node(1)],
        host_keys: vec![
            ("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "node": "win-1", "hostName": "WIN-9", "pinned": "x"}"#),
            TWIN,
        ],
        ..Case::default()
    } => "10.0.0.1: configure (node win-1), because it is listed\n\
          10.0.0.9: configure, because it is listed";
    hosts_without_a_first_label_are_not_one: Case {
        listed: vec![entry(1), entry(9)],
        host_keys: vec![
            ("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "hostName": ".evil", "pinned": "x"}"#),
            ("10.0.0.9_host", r#"{"ipv4": "10.0.0.9", "hostName": ".evil", "pinned": "x"}"#),
        ],
        ..Case::default()
    } => "10.0.0.1: configure, because it is listed\n\
          10.0.0.9: configure, because it is listed";
    twin_whose_root_was_closed_is_cleaned: Case {
        listed: vec![entry(1)],
        host_keys: vec![
            ("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "hostName": "WIN-1", "pinned": "x"}"#),
            ("10.0.0.9_host", r#"{"ipv4": "10.0.0.9", "pinned": "x", "rootClosedWithHostKey": "x"}"#),
        ],
        ..Case::default()
    } => "10.0.0.1: configure, because it is listed\n\
          10.0.0.9: remove, because it is no longer listed";
}

rows! { permits:
    held_node_without_our_label_keeps_its_slot_while_its_host_waits: Case::three().with(|c| {
        c.listed.remove(0);
        c.listed.push(entry(9));
        c.never_contacted = vec!["10.0.0.9"];
        held(&mut c.nodes[0]);
        c.nodes[0].labels.remove(names::BYOH_LABEL);
        c.host_keys = vec![BEFORE];
        c.claims = vec!["win-2"];
    }) => "";
}

rows! { told:
    node_of_a_host_that_leaves_and_claims_an_entry_without_a_node: elsewhere(&[])
        .with(|c| c.nodes[0].addresses.push("10.0.0.9".into()))
        => &format!(
            "10.0.0.1 is left alone, because it is not listed, but may be the node of entry 10.0.0.9; \
             correct what both have in common, a name or an address, or annotation {} of node win-1; if its host is \
             gone, delete node win-1 and take what there is of it out of ConfigMap windows-ssh-host-keys",
            names::INSTANCE_ANNOTATION
        );
    host_that_waits_for_a_look: elsewhere(&[]).with(|c| c.never_contacted = vec!["10.0.0.9"])
        => "10.0.0.1 is left alone, because it is not listed, but entry 10.0.0.9 may be its host until a look at \
            that is on record; see why entry 10.0.0.9 cannot be looked at, or remove it";
}
