//! Which records are of one host, and which Node is whose, when they do not agree.

use super::*;

/// Entries by the last numbers of their addresses, Nodes, and records of hosts.
fn known(listed: &[u8], nodes: Vec<NodeFacts>, host_keys: &[(&'static str, &'static str)]) -> Case {
    let listed = listed.iter().map(|number| entry(*number)).collect();
    Case { listed, nodes, host_keys: host_keys.to_vec(), ..Case::default() }
}

/// A Node that shows these addresses.
fn at(number: u8, addresses: &[&str]) -> NodeFacts {
    let addresses = addresses.iter().map(|it| (*it).to_owned()).collect();
    NodeFacts { addresses, ..node(number) }
}

/// A Node that shows these addresses and says that it was made from 10.0.0.1.
fn made_from_1(number: u8, addresses: &[&str]) -> NodeFacts {
    NodeFacts { annotations: node(1).annotations, ..at(number, addresses) }
}

/// A Node that shows these addresses and does not say what it was made from.
fn made_from_nobody(number: u8, addresses: &[&str]) -> NodeFacts {
    NodeFacts { annotations: [].into(), ..at(number, addresses) }
}

/// On record of a host that is listed by name.
fn by_name(record: &'static str) -> Case {
    let listed = vec![Listed { address: "c.example".into(), ..entry(1) }];
    let records = [
        ("10.0.0.1_host", record),
        (
            "10.0.0.9_host",
            r#"{"ipv4": "10.0.0.9", "node": "win-1", "hostName": "WIN-1", "pinned": "x"}"#,
        ),
    ];
    Case { listed, ..known(&[], vec![made_from_nobody(1, &[])], &records) }
}

rows! { lines:
    hosts_whose_nodes_differ_behind_the_first_label: known(&[9], vec![], &[
        ("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "node": "win-1.a.example", "pinned": "x"}"#),
        ("10.0.0.9_host", r#"{"ipv4": "10.0.0.9", "node": "win-1.b.example", "pinned": "x"}"#),
    ]) => "10.0.0.1: remove, because it is no longer listed\n\
           10.0.0.9: configure, because it is listed";
    host_that_leaves_with_two_names_at_one_address: known(&[], vec![], &[
        ("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "hostName": "WIN-1", "pinned": "x"}"#),
        ("c.example_host", r#"{"ipv4": "10.0.0.1", "hostName": "WIN-2", "pinned": "x"}"#),
    ]) => "10.0.0.1: remove, because it is no longer listed";
    hosts_that_leave_and_had_one_address_in_turn: known(&[], vec![], &[
        ("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "hostName": "WIN-1", "pinned": "x"}"#),
        ("c.example_host", r#"{"ipv4": "10.0.0.1", "hostName": "WIN-2", "pinned": "y"}"#),
    ]) => "10.0.0.1: remove, because it is no longer listed\n\
           c.example: remove, because it is no longer listed";
    host_that_leaves_and_was_never_logged_in_to: known(&[], vec![], &[
        ("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "node": "win-1"}"#),
        ("c.example_host", r#"{"ipv4": "10.0.0.1", "hostName": "WIN-2", "pinned": "y"}"#),
    ]) => "10.0.0.1: remove, because it is no longer listed\n\
           c.example: remove, because it is no longer listed";
    hosts_of_which_two_had_an_address_after_another_one: known(&[], vec![], &[
        ("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "node": "win-1", "pinned": "x"}"#),
        ("b.example_host", r#"{"ipv4": "10.0.0.1", "hostName": "WIN-2", "pinned": "y"}"#),
        ("c.example_host", r#"{"ipv4": "10.0.0.1", "hostName": "WIN-3", "pinned": "y"}"#),
        ("d.example_host", r#"{"ipv4": "10.0.0.4", "node": "win-4", "pinned": "x"}"#),
    ]) => "10.0.0.1: remove, because it is no longer listed\n\
           b.example: remove, because it is no longer listed\n\
           d.example: remove, because it is no longer listed";
    host_that_leaves_and_told_no_name_at_one_address: known(&[], vec![], &[
        ("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "pinned": "x"}"#),
        ("10.0.0.9_host", r#"{"ipv4": "10.0.0.9", "hostName": "WIN-1", "pinned": "x"}"#),
    ]) => "10.0.0.9: remove, because it is no longer listed";
    host_that_leaves_has_the_node_of_either_record: known(&[], vec![made_from_nobody(1, &[])], &[
        ("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "hostName": "WIN-1", "pinned": "x"}"#),
        ("10.0.0.9_host", r#"{"ipv4": "10.0.0.9", "node": "win-1", "pinned": "x"}"#),
    ]) => "10.0.0.9: remove (node win-1), because it is no longer listed";
    host_of_a_broken_entry_is_where_it_was: Case {
        listed: vec![broken("c.example")],
        ..known(&[], vec![node(1)], &[
            ("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "node": "win-1", "pinned": "x"}"#),
            ("c.example_host", r#"{"ipv4": "10.0.0.1", "pinned": "x"}"#),
        ])
    } => "c.example: leave (node win-1), because its entry is broken";
    host_without_a_record_is_the_one_that_was_at_its_address:
        by_name(r#"{"ipv4": "10.0.0.1", "hostName": "WIN-1", "pinned": "x"}"#)
        => "c.example: configure (node win-1), because it is listed";
    host_without_a_record_is_not_one_that_was_elsewhere:
        by_name(r#"{"ipv4": "10.0.0.1", "hostName": "WIN-1", "pinned": "y"}"#)
        => "10.0.0.9: remove (node win-1), because it is no longer listed\n\
            c.example: configure, because it is listed";
    host_that_was_not_reached_yet_is_the_one_that_was_at_its_address:
        by_name(r#"{"ipv4": "10.0.0.1", "hostName": "WIN-1", "pinned": "x"}"#)
        .with(|c| c.host_keys.push(("c.example_host", r#"{"ipv4": "10.0.0.1"}"#)))
        => "c.example: configure (node win-1), because it is listed";
    host_of_a_broken_entry_whose_address_nobody_knows: Case {
        listed: vec![broken("c.example")],
        ..known(&[], vec![node(1)], &[
            ("10.0.0.1_host", r#"{"node": "win-1", "pinned": "x"}"#),
            ("c.example_host", r#"{"hostName": "WIN-1", "pinned": "x"}"#),
        ])
    } => "c.example: leave (node win-1), because its entry is broken";
    record_with_a_pin_counts_before_one_without: Case {
        listed: vec![Listed { address: "c.example".into(), ..entry(1) }],
        ..known(&[], vec![made_from_nobody(1, &["10.0.0.1"]), made_from_nobody(2, &["10.0.0.1"])], &[
            ("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "node": "win-2", "pinned": "x"}"#),
            ("d.example", "key"),
            ("d.example_host", r#"{"ipv4": "10.0.0.1", "node": "win-1", "pinned": "x"}"#),
        ])
    } => "10.0.0.1: leave (node win-2), because it is not listed, but may be the node of entry c.example\n\
          c.example: configure (node win-1), because it is listed";
    record_of_a_login_counts_before_one_without: Case {
        listed: vec![Listed { address: "c.example".into(), ..entry(1) }],
        ..known(&[], vec![made_from_nobody(1, &["10.0.0.1"]), made_from_nobody(2, &["10.0.0.1"])], &[
            ("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "node": "win-2"}"#),
            ("d.example_host", r#"{"ipv4": "10.0.0.1", "node": "win-1", "pinned": "x"}"#),
        ])
    } => "10.0.0.1: leave (node win-2), because it is not listed, but may be the node of entry c.example\n\
          c.example: configure (node win-1), because it is listed";
}

rows! { lines:
    node_that_is_on_record_of_another_host: known(
        &[1, 2],
        vec![at(1, &["10.0.0.1", "10.0.0.2"])],
        &[("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "node": "win-1", "pinned": "x"}"#)],
    ).with(|c| c.host_names = vec![("10.0.0.2", "win-1")])
        => "10.0.0.1: configure (node win-1), because it is listed\n\
            10.0.0.2: leave, because entry 10.0.0.1 stands for the same host";
    of_two_nodes_made_from_a_host_the_one_there_alone: known(
        &[1, 3],
        vec![made_from_1(1, &["10.0.0.1"]), made_from_1(2, &["10.0.0.1", "10.0.0.3"])],
        &[],
    ) => "10.0.0.1: configure (node win-1), because it is listed\n\
          10.0.0.1: leave (node win-2), because it is not listed, but may be the node of entry 10.0.0.1\n\
          10.0.0.3: configure, because it is listed";
    of_two_nodes_made_from_a_host_the_one_there: known(
        &[1, 3],
        vec![made_from_1(1, &["10.0.0.77"]), made_from_1(2, &["10.0.0.1", "10.0.0.3"])],
        &[],
    ) => "10.0.0.1: configure (node win-2), because it is listed\n\
          10.0.0.3: leave, because entry 10.0.0.1 stands for the same host\n\
          10.0.0.77: leave (node win-1), because it is not listed, but may be the node of entry 10.0.0.1";
    node_made_from_a_host_and_called_as_another: known(
        &[1, 2], vec![made_from_1(2, &["10.0.0.1"])], &[],
    ).with(|c| c.host_names = vec![("10.0.0.2", "win-2")])
        => "10.0.0.1: configure, because it is listed\n\
            10.0.0.1: leave (node win-2), because it is not listed, but may be the node of entry 10.0.0.1\n\
            10.0.0.2: configure, because it is listed";
    node_at_the_addresses_of_two_hosts: known(
        &[1, 3], vec![made_from_nobody(7, &["10.0.0.1", "10.0.0.3"])], &[],
    ) => "10.0.0.1: configure, because it is listed\n\
          10.0.0.1: leave (node win-7), because it is not listed, but may be the node of entry 10.0.0.1\n\
          10.0.0.3: configure, because it is listed";
    node_that_shows_its_address_twice: known(
        &[1], vec![made_from_nobody(1, &["10.0.0.1", "10.0.0.1"])], &[],
    ) => "10.0.0.1: configure (node win-1), because it is listed";
}

#[test]
fn a_record_of_two_entries_goes_when_the_first_has_its_data() {
    let record = r#"{"ipv4": "10.0.0.1", "node": "win-1", "pinned": "x"}"#;
    let forgotten = |of: &'static str| {
        let listed =
            ["b.example", "c.example"].map(|it| Listed { address: it.into(), ..entry(1) }).to_vec();
        let records =
            [("10.0.0.1_host", record), (of, record), ("b.example", "key"), ("c.example", "key")];
        let case = Case { listed, ..known(&[], vec![node(1)], &records) };
        case.look(|out| out.forgotten_keys.into_iter().collect::<Vec<_>>().join(" "))
    };
    assert_eq!(forgotten("b.example_host"), "10.0.0.1_host");
    assert_eq!(forgotten("c.example_host"), "");
}

/// It may say that it was made from any entry, so its name is put on no record.
#[test]
fn a_node_that_is_not_there_is_not_confirmed_by_its_name() {
    let case = known(&[1], vec![made_from_1(1, &["10.0.0.77"])], &[])
        .with(|c| c.host_names = vec![("10.0.0.1", "win-1")]);
    case.look(|out| {
        let found = &out.instances[0];
        assert_eq!((found.node_name(), found.confirmed), (Some("win-1"), false));
    });
}

#[test]
fn a_record_with_two_reasons_is_one_former_record() {
    let records = [
        ("10.0.0.1_host", r#"{"ipv4": "10.0.0.1", "hostName": "WIN-1", "pinned": "x"}"#),
        ("c.example_host", r#"{"ipv4": "10.0.0.1", "hostName": "WIN-1", "pinned": "x"}"#),
    ];
    let listed = vec![Listed { address: "c.example".into(), ..entry(1) }];
    let case = Case { listed, ..known(&[], vec![], &records) };
    case.look(|out| assert_eq!(out.instances[0].formerly, ["10.0.0.1"]));
}

/// The entry leads to where this key was pinned, and has not taken it over.
#[test]
fn a_pin_stays_that_an_entry_at_its_address_has_not_taken_over() {
    let case = Case {
        listed: vec![Listed { address: "b.example".into(), ..entry(2) }, entry(3)],
        host_keys: vec![
            ("10.0.0.2_host", r#"{"ipv4": "10.0.0.2", "pinned": "x"}"#),
            ("10.0.0.2", "x"),
            ("10.0.0.3_host", r#"{"ipv4": "10.0.0.3", "pinned": "x"}"#),
            ("10.0.0.3", "x"),
        ],
        ..Case::default()
    };
    // The entry that sorts first takes it as its former one.
    let swapped = case.clone().with(|c| c.listed[0].address = "a.example".into());
    // The other one has, and lacks its own pin.
    let other = case.clone().with(|c| {
        c.host_keys.pop();
        c.host_keys.push(("b.example_host", r#"{"ipv4": "10.0.0.2", "pinned": "x"}"#));
        c.host_keys.push(("b.example", "x"));
    });
    for case in [case, swapped, other] {
        case.look(|out| {
            let formerly: Vec<_> =
                out.instances.iter().map(|it| (&it.address, &it.formerly)).collect();
            assert_eq!(out.forgotten_keys, BTreeSet::new(), "{formerly:?}");
        });
    }
}
