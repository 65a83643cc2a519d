//! Hosts of which little is known, and what it protects.

use super::*;

/// A node that left.
const LEFT: (&str, &str) = (
    "10.0.0.1_host",
    r#"{"ipv4": "10.0.0.1", "node": "win-1", "hostName": "WIN-1", "pinned": "x"}"#,
);

fn known(listed: Vec<Listed>, host_keys: &[(&'static str, &'static str)]) -> Case {
    Case { listed, nodes: vec![node(1)], host_keys: host_keys.to_vec(), ..Case::default() }
}

fn named(name: &str, number: u8) -> Listed {
    Listed { address: name.into(), ..entry(number) }
}

rows! { lines:
    two_hosts_without_a_key_after_one_with_a_key: known(vec![], &[
        LEFT,
        ("10.0.0.9_host", r#"{"ipv4": "10.0.0.9", "node": "win-9", "pinned": "x"}"#),
        ("b.example_host", r#"{"ipv4": "10.0.0.1", "node": "win-2"}"#),
        ("c.example_host", r#"{"ipv4": "10.0.0.1", "node": "win-2"}"#),
    ]) => "10.0.0.1: remove (node win-1), because it is no longer listed\n\
           10.0.0.9: remove, because it is no longer listed\n\
           b.example: remove, because it is no longer listed";
    third_record_with_the_key_and_the_name: known(vec![], &[
        ("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "node": "win-1.a.example", "pinned": "x"}"#),
        ("10.0.0.2_host", r#"{"ipv4": "10.0.0.2", "node": "win-1.b.example", "pinned": "x"}"#),
        ("10.0.0.3_host", r#"{"ipv4": "10.0.0.3", "node": "win-1.b.example", "pinned": "x"}"#),
    ]).with(|c| c.nodes.clear()) => "10.0.0.1: remove, because it is no longer listed\n\
                                     10.0.0.2: remove, because it is no longer listed";
    third_entry_with_the_key_and_the_name: known(vec![entry(1), entry(2), entry(3)], &[
        ("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "node": "win-1.a.example", "pinned": "x"}"#),
        ("10.0.0.2_host", r#"{"ipv4": "10.0.0.2", "node": "win-1.b.example", "pinned": "x"}"#),
        ("10.0.0.3_host", r#"{"ipv4": "10.0.0.3", "node": "win-1.b.example", "pinned": "x"}"#),
    ]).with(|c| c.nodes.clear()) => "10.0.0.1: configure, because it is listed\n\
                                     10.0.0.2: configure, because it is listed\n\
                                     10.0.0.3: look, because entry 10.0.0.2 stands for the same host";
    record_without_a_key_hides_none_with_one: known(vec![named("c.example", 9)], &[
        ("10.0.0.9_host", r#"{"ipv4": "10.0.0.9"}"#),
        ("b.example_host", r#"{"ipv4": "10.0.0.9", "hostName": "WIN-1", "pinned": "x"}"#),
        LEFT,
    ]) => "c.example: configure (node win-1), because it is listed";
    broken_entry_whose_host_nobody_has_reached: known(vec![broken("c.example")], &[
        LEFT,
        ("c.example_host", r#"{"ipv4": "10.0.0.2", "username": "sealed"}"#),
    ]) => "10.0.0.1: leave (node win-1), because it is not listed, but may be the node of entry c.example\n\
           c.example: leave, because its entry is broken";
    broken_entry_with_an_empty_record: known(vec![broken("c.example")], &[
        LEFT,
        ("c.example_host", "{}"),
    ]) => "10.0.0.1: leave (node win-1), because it is not listed, but may be the node of entry c.example\n\
           c.example: leave, because its entry is broken";
    broken_entry_whose_host_has_been_reached: known(vec![broken("c.example")], &[
        LEFT,
        ("c.example_host", r#"{"ipv4": "10.0.0.2", "hostName": "WIN-2", "pinned": "x"}"#),
    ]) => "10.0.0.1: remove (node win-1), because it is no longer listed\n\
           c.example: leave, because its entry is broken";
    host_that_was_contacted_and_whose_record_is_damaged: known(vec![entry(2)], &[
        LEFT,
        ("10.0.0.2_host", "{"),
        ("10.0.0.2", "key"),
    ]) => "10.0.0.1: leave (node win-1), because it is not listed, but entry 10.0.0.2 may be its host until a look at \
               that is on record\n\
           10.0.0.2: leave, because the record of 10.0.0.2 may be its own and cannot be read";
    node_that_shows_the_name_of_an_entry_in_other_letters: known(vec![named("C.example", 5)], &[])
        .with(|c| {
            c.nodes[0].annotations.clear();
            c.nodes[0].addresses = vec!["10.0.0.77".into(), "c.EXAMPLE.".into()];
        }) => "10.0.0.77: leave (node win-1), because it is not listed, but may be the node of entry C.example\n\
               C.example: configure, because it is listed";
    node_that_was_made_from_a_former_entry_in_other_letters: known(vec![named("c.example", 9)], &[
        ("d.example_host", r#"{"ipv4": "10.0.0.9", "hostName": "WIN-9", "pinned": "x"}"#),
    ]).with(|c| {
        c.nodes[0].annotations = [(names::INSTANCE_ANNOTATION.into(), "D.example".into())].into();
    }) => "10.0.0.1: leave (node win-1), because it is not listed, but may be the node of entry c.example\n\
           c.example: configure, because it is listed";
}

/// Of a Node of the Go operator: there was no login yet.
const ADOPTED: (&str, &str) =
    ("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "node": "win-1", "username": "sealed"}"#);

rows! { lines:
    host_without_a_key_that_an_entry_calls_itself: known(vec![entry(9)], &[ADOPTED])
        .with(|c| c.host_names = vec![("10.0.0.9", "WIN-1")])
        => "10.0.0.1: leave (node win-1), because it is not listed, but may be the node of entry 10.0.0.9\n\
            10.0.0.9: configure, because it is listed";
    host_without_a_key_and_node_that_an_entry_calls_itself: known(vec![entry(9)], &[ADOPTED]).with(|c| {
        c.host_names = vec![("10.0.0.9", "WIN-1")];
        c.nodes.clear();
    }) => "10.0.0.1: leave, because it is not listed, but may be the node of entry 10.0.0.9\n\
           10.0.0.9: configure, because it is listed";
    host_without_a_key_and_an_entry_that_has_told_no_name: known(vec![entry(9)], &[ADOPTED,
        ("10.0.0.9_host", r#"{"ipv4": "10.0.0.9", "pinned": "y"}"#),
    ]) => "10.0.0.1: leave (node win-1), because it is not listed, but entry 10.0.0.9 may be its host until a look at that \
               is on record\n\
           10.0.0.9: configure, because it is listed";
    node_that_shows_the_first_label_of_an_entry_in_another_domain: known(vec![named("win-1.b.example", 9)], &[
        ("win-1.a.example_host", r#"{"ipv4": "10.0.0.1", "node": "win-1.a.example", "hostName": "WIN-1", "pinned": "x"}"#),
        ("win-1.b.example_host", r#"{"ipv4": "10.0.0.9", "node": "win-1.b.example", "hostName": "WIN-1", "pinned": "y"}"#),
    ]).with(|c| {
        c.nodes[0].name = "win-1.a.example".into();
        c.nodes[0].annotations = [(names::INSTANCE_ANNOTATION.into(), "win-1.a.example".into())].into();
        c.nodes[0].addresses.push("win-1".into());
    }) => "win-1.a.example: remove (node win-1.a.example), because it is no longer listed\n\
           win-1.b.example: configure, because it is listed";
    host_that_was_listed_as_the_first_label_of_an_entry: known(vec![named("win-1.b.example", 9)], &[
        ("win-1_host", r#"{"ipv4": "10.0.0.1", "node": "ip-10-0-0-1", "hostName": "EC2", "pinned": "x"}"#),
        ("win-1.b.example_host", r#"{"ipv4": "10.0.0.9", "node": "node-9", "hostName": "EC9", "pinned": "y"}"#),
    ]).with(|c| {
        c.nodes[0].name = "ip-10-0-0-1".into();
        c.nodes[0].annotations = [(names::INSTANCE_ANNOTATION.into(), "win-1".into())].into();
    }) => "win-1: remove (node ip-10-0-0-1), because it is no longer listed\n\
           win-1.b.example: configure, because it is listed";
    // Its name on record is the one that the entry calls itself; that another Node stands for it now changes nothing.
    host_without_a_key_with_another_node_than_on_record: known(vec![entry(9)], &[ADOPTED]).with(|c| {
        c.host_names = vec![("10.0.0.9", "WIN-1")];
        c.nodes[0].name = "win-7".into();
    }) => "10.0.0.1: leave (node win-7), because it is not listed, but may be the node of entry 10.0.0.9\n\
           10.0.0.9: configure, because it is listed";
    // The host of the entry, by its former record, calls itself so.
    host_without_a_key_and_the_name_on_a_former_record_of_an_entry: known(vec![named("b.example", 9)], &[ADOPTED,
        ("a.example_host", r#"{"ipv4": "10.0.0.9", "hostName": "WIN-1", "pinned": "y"}"#), ("a.example", "y"),
    ]).with(|c| c.host_names = vec![("a.example", "WIN-1"), ("b.example", "b.example")])
        => "10.0.0.1: leave (node win-1), because it is not listed, but may be the node of entry b.example\n\
            b.example: configure, because it is listed";
    host_with_a_key_that_an_entry_calls_itself: known(vec![entry(9)], &[LEFT])
        .with(|c| c.host_names = vec![("10.0.0.9", "WIN-1")])
        => "10.0.0.1: remove (node win-1), because it is no longer listed\n\
            10.0.0.9: configure, because it is listed";
    record_without_a_key_of_the_node_of_one_with_a_key: known(vec![], &[LEFT,
        ("b.example_host", r#"{"ipv4": "10.0.0.1", "node": "win-1", "username": "sealed"}"#),
    ]) => "10.0.0.1: remove (node win-1), because it is no longer listed";
    record_without_a_key_at_the_address_of_one_with_a_key: known(vec![], &[
        ("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "hostName": "WIN-1", "pinned": "x"}"#),
        ("b.example_host", r#"{"ipv4": "10.0.0.1", "node": "win-2", "username": "sealed"}"#),
    ]).with(|c| c.nodes.clear()) => "10.0.0.1: remove, because it is no longer listed\n\
                                     b.example: remove, because it is no longer listed";
}

rows! { lines:
    node_that_is_gone_is_called_so_by_names: known(vec![named("c.example", 9)], &[LEFT]).with(|c| {
        c.also = vec![("c.example", "win-1")];
        c.nodes.clear();
    }) => "10.0.0.1: leave, because it is not listed, but may be the node of entry c.example\n\
           c.example: configure, because it is listed";
    host_that_an_entry_says_it_was_listed_as: known(vec![named("c.example", 9)], &[
        ("old.example_host", r#"{"ipv4": "10.0.0.1", "hostName": "WIN-1", "pinned": "x"}"#),
    ]).with(|c| {
        c.also = vec![("c.example", "old.example")];
        c.nodes.clear();
    }) => "c.example: configure, because it is listed\n\
           old.example: leave, because it is not listed, but may be the node of entry c.example";
    node_that_is_gone_is_on_record_of_an_entry: known(vec![entry(9)], &[LEFT,
        ("10.0.0.9_host", r#"{"ipv4": "10.0.0.9", "node": "win-1", "pinned": "y"}"#),
    ]).with(|c| c.nodes.clear())
        => "10.0.0.1: leave, because it is not listed, but may be the node of entry 10.0.0.9\n\
            10.0.0.9: configure, because it is listed";
    node_with_a_name_that_begins_an_address: known(vec![entry(9)], &[
        ("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "node": "10", "pinned": "x"}"#),
    ]).with(|c| c.nodes[0].name = "10".into())
        => "10.0.0.1: remove (node 10), because it is no longer listed\n\
            10.0.0.9: configure, because it is listed";
    node_that_is_gone_is_called_so_by_an_entry: known(vec![named("win-1.example", 9)], &[LEFT])
        .with(|c| c.nodes.clear())
        => "10.0.0.1: leave, because it is not listed, but may be the node of entry win-1.example\n\
            win-1.example: configure, because it is listed";
    host_that_never_was_a_node_is_called_so_by_an_entry: known(vec![named("win-1.example", 9)], &[
        ("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "hostName": "WIN-1", "pinned": "x"}"#),
    ]).with(|c| c.nodes.clear())
        => "10.0.0.1: leave, because it is not listed, but may be the node of entry win-1.example\n\
            win-1.example: configure, because it is listed";
    host_that_told_a_name_with_a_domain: known(vec![named("win-1.example", 9)], &[
        ("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "hostName": "WIN-1.corp.example", "pinned": "x"}"#),
    ]).with(|c| c.nodes.clear())
        => "10.0.0.1: leave, because it is not listed, but may be the node of entry win-1.example\n\
            win-1.example: configure, because it is listed";
    entry_with_a_dot_at_the_end: known(vec![named("win-1.example.", 9)], &[
        ("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "node": "win-1.example", "pinned": "x"}"#),
    ]).with(|c| c.nodes[0].name = "win-1.example".into())
        => "10.0.0.1: leave (node win-1.example), because it is not listed, but may be the node of entry win-1.example.\n\
            win-1.example.: configure, because it is listed";
    host_at_the_address_of_an_entry_for_another_one: known(vec![named("b.example", 1)], &[
        LEFT, ("b.example_host", r#"{"ipv4": "10.0.0.2", "node": "win-2", "pinned": "y"}"#),
    ]).with(|c| c.nodes.clear())
        => "10.0.0.1: leave, because it is not listed, but may be the node of entry b.example\n\
            b.example: configure, because it is listed";
    host_where_one_with_a_broken_entry_was: known(vec![broken("c.example")], &[
        LEFT, ("c.example_host", r#"{"ipv4": "10.0.0.1", "pinned": "y", "hostName": "WIN-2"}"#),
    ]).with(|c| c.nodes.clear())
        => "10.0.0.1: leave, because it is not listed, but may be the node of entry c.example\n\
            c.example: leave, because its entry is broken";
    entry_with_a_mistake_protects_as_one_without: known(vec![entry(9), entry(8)], &[LEFT]).with(|c| {
        c.never_contacted = vec!["10.0.0.9"];
        c.also = vec![("10.0.0.9", "win-9"), ("10.0.0.8", "win-9")];
    }) => "10.0.0.1: leave (node win-1), because it is not listed, but may be the node of entry 10.0.0.8\n\
           10.0.0.8: leave, because its entry is broken\n\
           10.0.0.9: leave, because its entry is broken";
    twins_that_had_one_address_in_turn: known(vec![], &[
        ("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "node": "win-1", "pinned": "x"}"#),
        ("b.example_host", r#"{"ipv4": "10.0.0.1", "node": "win-2", "pinned": "x"}"#),
    ]) => "10.0.0.1: remove (node win-1), because it is no longer listed\n\
           b.example: remove, because it is no longer listed";
    record_that_the_first_entry_is_not_of: known(vec![entry(8), entry(9)], &[
        ("10.0.0.8_host", r#"{"ipv4": "10.0.0.8", "node": "win-1.a.example", "pinned": "x"}"#),
        ("10.0.0.9_host", r#"{"ipv4": "10.0.0.9", "node": "win-1.b.example", "pinned": "x"}"#),
        ("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "node": "win-1.b.example", "pinned": "x"}"#),
    ]).with(|c| c.nodes.clear())
        => "10.0.0.8: configure, because it is listed\n10.0.0.9: configure, because it is listed";
    entry_that_the_node_of_another_shows: known(vec![entry(2), entry(9)], &[LEFT]).with(|c| {
        c.never_contacted = vec!["10.0.0.9"];
        c.nodes.push(node(2));
        c.nodes[1].addresses.push("10.0.0.9".into());
    }) => "10.0.0.1: leave (node win-1), because it is not listed, but entry 10.0.0.9 may be its host until a look at \
               that is on record\n\
           10.0.0.2: configure (node win-2), because it is listed\n\
           10.0.0.9: leave, because entry 10.0.0.2 stands for the same host";
    second_entry_at_one_address_keeps_nobody: known(vec![entry(2), named("b.example", 2)], &[LEFT])
        .with(|c| c.never_contacted = vec!["b.example"])
        => "10.0.0.1: remove (node win-1), because it is no longer listed\n\
            10.0.0.2: configure, because it is listed\n\
            b.example: leave, because entry 10.0.0.2 stands for the same host";
}

rows! { lines:
    node_of_the_go_operator_where_a_host_is_cleaned: known(vec![], &[
        ("b.example_host", r#"{"ipv4": "10.0.0.1", "hostName": "OTHER", "pinned": "x"}"#),
    ]).with(from_go)
        => "10.0.0.1: leave (node win-1), because host b.example, which is on record and not listed, may be its own\n\
            b.example: remove, because it is no longer listed";
    node_that_a_removal_waits_for_is_looked_at: known(vec![entry(2)], &[LEFT]).with(|c| {
        c.blocked = true;
        c.nodes.push(node(2));
        c.never_contacted = vec!["10.0.0.2"];
    }) => "10.0.0.1: leave (node win-1), because it is not listed, but entry 10.0.0.2 may be its host until a look at that is on \
               record\n\
           10.0.0.2: look (node win-2), because it is listed";
}

rows! { told:
    host_without_a_node_that_an_entry_keeps: known(vec![named("c.example", 9)], &[LEFT]).with(|c| {
        c.also = vec![("c.example", "10.0.0.1")];
        c.nodes.clear();
    }) => "10.0.0.1 is left alone, because it is not listed, but may be the node of entry c.example; correct what \
           both have in common, a name or an address; if its host is gone, take what there is of it out of ConfigMap \
           windows-ssh-host-keys";
    node_that_waits_for_finalizers: known(vec![], &[]).with(|c| c.nodes[0].is_deleted = true)
        => "10.0.0.1 is left alone, because its node is deleted, and waits for its finalizers; see what the finalizers \
            of node win-1 wait for, and take them off if that is over";
}

/// The host that is cleaned there goes by itself.
#[test]
fn a_node_that_waits_for_a_record_at_its_address_is_told_after_a_while() {
    let cleaned = ("b.example_host", r#"{"ipv4": "10.0.0.1", "hostName": "OTHER", "pinned": "x"}"#);
    known(vec![], &[cleaned]).with(from_go).look(|out| {
        let patience: Vec<_> = out.notices.iter().map(Notice::patience).collect();
        assert_eq!(patience, [limits::LOOK_PATIENCE]);
    });
}

/// Whatever its Node shows while the host is cleaned.
#[test]
fn the_node_of_a_host_that_left_before_it_was_on_record_is_put_there() {
    const JUST_JOINED: &str = r#"{"ipv4": "10.0.0.1", "hostName": "WIN-1", "pinned": "x"}"#;
    let changes = |change: fn(&mut Case)| {
        let case = known(vec![], &[("10.0.0.1_host", JUST_JOINED)]);
        let case = case.with(|c| c.host_names = vec![("10.0.0.1", "WIN-1")]).with(change);
        case.look(|out| out.changes)
    };
    let joined = RecordChange::Joined { node: "win-1".to_owned() };
    assert_eq!(changes(|_| ()), [("10.0.0.1".to_owned(), joined)].into());
    // It is there already, is known by its claim alone, or the host stays.
    assert!(changes(|c| c.host_keys = vec![LEFT]).is_empty());
    assert!(changes(|c| c.host_names = vec![]).is_empty());
    assert!(changes(|c| c.listed = vec![broken("new.example")]).is_empty());
}

/// The number of a confirmation is of hosts that left.
#[test]
fn a_confirmation_is_used_up_whatever_listed_hosts_wait_for() {
    let case = Case {
        guard: RemovalGuard { most: Some(1), confirmed: Some(2) },
        listed: vec![entry(1)],
        nodes: vec![node(1), node(2)],
        host_keys: vec![TOUCHED],
        ..Case::default()
    };
    let case = case.with(|c| c.nodes[1].addresses = vec!["10.0.0.1".into()]);
    assert!(case.look(|out| out.confirmation_used));
}

fn forgotten(case: &Case) -> String {
    case.look(|out| out.forgotten_keys.into_iter().collect::<Vec<_>>().join(" "))
}

/// A person may have written the pin for another host.
#[test]
fn a_former_record_stays_until_a_login_has_shown_its_key() {
    let of = |now: &'static str| {
        let record = r#"{"ipv4": "10.0.0.1", "hostName": "WIN-1", "pinned": "x"}"#;
        let case = known(
            vec![named("b.example", 1)],
            &[
                ("10.0.0.1_host", record),
                ("10.0.0.1", "key"),
                ("b.example", "other key"),
                ("b.example_host", now),
            ],
        );
        forgotten(&case.with(|c| c.nodes.clear()))
    };
    assert_eq!(of(r#"{"ipv4": "10.0.0.1", "username": "sealed"}"#), "");
    assert_eq!(of(r#"{"ipv4": "10.0.0.1", "pinned": "x"}"#), "10.0.0.1 10.0.0.1_host");
}

/// There is no key to trust or to take over.
#[test]
fn a_former_record_without_a_key_goes_once_its_node_is_on_record() {
    let of = |before: &'static str, now: &'static str, pin: Option<&'static str>| {
        let records = [("10.0.0.1_host", before), ("b.example_host", now)];
        let mut case = known(vec![named("b.example", 1)], &records);
        case.host_keys.extend(pin.map(|pin| ("b.example", pin)));
        case.nodes.clear();
        forgotten(&case)
    };
    let (nothing, with_node) =
        (r#"{"ipv4": "10.0.0.1"}"#, r#"{"ipv4": "10.0.0.1", "node": "win-1"}"#);
    assert_eq!(of(with_node, nothing, Some("key")), "");
    assert_eq!(of(with_node, with_node, None), "");
    assert_eq!(of(with_node, with_node, Some("key")), "10.0.0.1_host");
    assert_eq!(of(nothing, nothing, None), "10.0.0.1_host");
}

#[test]
fn a_pin_whose_name_a_node_shows_in_other_letters_is_not_left_over() {
    let case = known(vec![entry(5)], &[("c.example", "key"), ("d.example", "key")])
        .with(|c| c.nodes[0].addresses.push("C.Example".into()));
    assert_eq!(forgotten(&case), "d.example");
}

/// The host of the entry calls itself WIN-1 on record; its DNS name leads elsewhere since.
#[test]
fn a_host_without_a_key_may_be_that_of_an_entry_which_led_elsewhere() {
    let record = r#"{"ipv4": "10.0.0.5", "hostName": "WIN-1", "pinned": "y"}"#;
    let case = known(vec![named("b.example", 9)], &[ADOPTED, ("b.example_host", record)]);
    // What the operator knows as names of hosts then.
    let known_names = host_names(
        &case.entries(),
        &Resolutions::default(),
        &BTreeMap::new(),
        &KnownHosts::read(case.host_keys.iter().copied()),
    );
    assert_eq!(known_names.get("b.example"), Some(&["b.example".to_owned()].into()));
    let case = case.with(|c| c.host_names = vec![("b.example", "b.example")]);
    assert_eq!(
        case.lines(),
        "10.0.0.1: leave (node win-1), because it is not listed, but may be the node of entry b.example\n\
                              b.example: configure, because it is listed"
    );
}

rows! { lines:
    node_at_the_name_of_an_unreadable_record: known(vec![], &[("old.example_host", "{")])
        .with(|c| drop(c.nodes[0].annotations.insert(names::INSTANCE_ANNOTATION.into(), "old.example".into())))
        => "10.0.0.1: leave (node win-1), because the record of old.example may be its own and cannot be read";
    node_at_the_address_of_an_unreadable_record: known(vec![], &[("10.0.0.1_host", "{")]).with(|c| {
        c.nodes[0].addresses = vec!["win-1.example".into(), "10.0.0.1".into()];
        c.nodes[0].annotations.insert(names::INSTANCE_ANNOTATION.into(), "other.example".into());
    }) => "win-1.example: leave (node win-1), because the record of 10.0.0.1 may be its own and cannot be read";
    node_without_an_address_and_an_unreadable_record_of_its_name: known(vec![], &[("win-1_host", "{")]).with(|c| {
        c.nodes[0].addresses.clear();
        c.nodes[0].annotations.insert(names::INSTANCE_ANNOTATION.into(), "other.example".into());
    }) => "win-1: leave (node win-1), because the record of win-1 may be its own and cannot be read";
    node_of_the_go_operator_at_the_address_of_another_one_that_left: known(vec![], &[
        ("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "node": "win-9", "pinned": "x"}"#),
    ]).with(from_go)
        => "10.0.0.1: remove, because it is no longer listed\n\
            10.0.0.1: leave (node win-1), because host 10.0.0.1, which is on record and not listed, may be its own";
    node_of_the_go_operator_at_the_address_of_another_one_that_left_and_is_elsewhere: known(vec![], &[
        ("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "node": "win-2", "pinned": "x"}"#),
    ]).with(from_go).with(|c| c.nodes.push(node(2)))
        => "10.0.0.1: leave (node win-1), because it is not listed, but its address is that of node win-2, too\n\
            10.0.0.1: remove (node win-2), because it is no longer listed";
    node_that_says_as_another_one_that_it_was_made_from_one_that_left: known(vec![], &[
        ("10.0.0.9_host", r#"{"ipv4": "10.0.0.9", "hostName": "other", "pinned": "x"}"#),
    ]).with(|c| {
        c.nodes.push(node(2));
        let origin = |node: &mut NodeFacts| {
            node.annotations.insert(names::INSTANCE_ANNOTATION.into(), "10.0.0.9".into());
        };
        c.nodes.iter_mut().for_each(origin);
    }) => "10.0.0.1: leave (node win-1), because host 10.0.0.9, which is on record and not listed, may be its own\n\
           10.0.0.2: leave (node win-2), because host 10.0.0.9, which is on record and not listed, may be its own\n\
           10.0.0.9: leave, because nodes win-1 and win-2 claim to stand for it";
    node_at_the_address_of_another_one_that_left: known(vec![], &[
        ("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "node": "win-9", "pinned": "x"}"#),
    ]).with(|c| c.nodes[0].annotations.clear())
        => "10.0.0.1: remove, because it is no longer listed\n\
            10.0.0.1: leave (node win-1), because host 10.0.0.1, which is on record and not listed, may be its own";
    // Nobody knows where its Machine is.
    host_that_leaves_beside_an_entry_with_the_node_of_a_machine: known(vec![entry(2)], &[
        ("10.0.0.9_host", r#"{"ipv4": "10.0.0.9", "hostName": "WIN-9", "pinned": "x"}"#),
    ]).with(|c| {
        c.nodes = vec![node(2)];
        c.nodes[0].labels.remove(names::BYOH_LABEL);
        c.nodes[0].annotations.insert(names::MACHINE_ANNOTATION.into(), "openshift-machine-api/mac-2".into());
        c.never_contacted = vec!["10.0.0.2"];
    }) => "10.0.0.2: leave (node win-2), because a machine is behind its node\n\
           10.0.0.9: remove, because it is no longer listed";
}
