//! Which situations are reported, and which are not.

use super::*;

/// Two Nodes at the address of the only entry, and nothing tells which one is its own.
fn contested() -> Case {
    let mut nodes = vec![node(1), node(2)];
    for node in &mut nodes {
        node.annotations.clear();
        node.addresses = vec!["10.0.0.1".into()];
    }
    Case { listed: vec![entry(1)], nodes, ..Case::default() }
}

rows! { told:
    node_that_only_says_it_comes_from_anothers_entry: Case::three().with(|c| {
        c.nodes[0].annotations.insert(names::INSTANCE_ANNOTATION.into(), "10.0.0.2".into());
        c.host_keys = vec![("10.0.0.1_host", r#"{"node": "win-1"}"#)];
    }) => &format!(
        "node win-1 claims entry 10.0.0.2 by its addresses or its annotation {}, but node win-2 \
         stands for that entry; correct node win-1, or delete the one of both whose host is gone",
        names::INSTANCE_ANNOTATION
    );
    machine_that_is_listed: Case { listed: vec![entry(1)], nodes: vec![node(1)], ..Case::default() }
        .with(|c| behind_machine(&mut c.nodes[0]))
        => "10.0.0.1 is left alone, because a machine is behind its node; remove the entry that leads there, if there is one, or delete \
            node win-1 if its host is gone";
    nodes_that_nothing_tells_apart_are_named: contested()
        => "10.0.0.1 is left alone, because nodes win-1 and win-2 claim to stand for it; delete those \
            whose host is gone or that show a wrong address";
    node_of_the_go_operator_whose_address_another_shows: Case {
        nodes: vec![node(1), node(2)], ..Case::default()
    }.with(from_go).with(|c| {
        foreign(&mut c.nodes[1]);
        c.nodes[1].addresses.push("10.0.0.1".into());
    }) => "10.0.0.1 is left alone, because it is not listed, but its address is that of node win-2, too; \
           delete node win-1 or win-2, whichever has no host any more";
    host_that_is_listed_twice: Case {
        listed: vec![Listed { address: "win-1.example".into(), ..entry(1) }, entry(1)],
        nodes: vec![node(1)],
        ..Case::default()
    } => "win-1.example is left alone, because entry 10.0.0.1 stands for the same host; remove one of \
          both entries";
    node_that_is_called_as_a_listed_host_with_another_node: Case {
        listed: vec![entry(2)],
        nodes: vec![node(1), node(2)],
        host_names: vec![("10.0.0.2", "win-1")],
        ..Case::default()
    } => &format!(
        "10.0.0.1 is left alone, because it is not listed, but may be the node of entry 10.0.0.2; correct \
         what both have in common, a name or an address, or annotation {} of node win-1; if its host is gone, delete node \
         win-1 and take what there is of it out of ConfigMap windows-ssh-host-keys",
        names::INSTANCE_ANNOTATION
    );
    // The entry's own error says what to do.
    node_that_a_broken_entry_may_mean: Case {
        listed: vec![broken("new.example")], nodes: vec![node(1)], ..Case::default()
    } => "";
    absent_list_of_hosts_without_nodes: Case {
        host_keys: vec![TOUCHED], list_absent: true, ..Case::default()
    } => "ConfigMap windows-instances is absent, so all hosts are left as they are; create it again, \
          without entries if all hosts are to be removed";
}
