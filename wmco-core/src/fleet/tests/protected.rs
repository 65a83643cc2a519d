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
                                     10.0.0.3: leave, because entry 10.0.0.2 stands for the same host";
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
    ]) => "10.0.0.1: leave (node win-1), because it is not listed, but entry 10.0.0.2 may be its host and is \
               looked at first\n\
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

#[test]
fn a_pin_whose_name_a_node_shows_in_other_letters_is_not_left_over() {
    let case = known(vec![entry(5)], &[("c.example", "key"), ("d.example", "key")])
        .with(|c| c.nodes[0].addresses.push("C.Example".into()));
    assert_eq!(forgotten(&case), "d.example");
}
