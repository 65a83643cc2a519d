//! A host that is listed is not removed: `names=` of its entry lists it, too.

use super::*;

/// The only entry is a name that leads to another address than the one that the Node shows.
fn renamed(also: &'static str) -> Case {
    Case {
        listed: vec![Listed { address: "win-9.example".into(), ..entry(9) }],
        also: vec![("win-9.example", also)],
        nodes: vec![node(1)],
        ..Case::default()
    }
}

fn without_origin(case: &mut Case) {
    case.nodes[0].annotations.clear();
}

const KEPT: &str = "10.0.0.1: leave (node win-1), because it is not listed, but may be the node of entry win-9.example\n\
                    win-9.example: configure, because it is listed";
const GONE: &str = "10.0.0.1: remove (node win-1), because it is no longer listed\n\
                    win-9.example: configure, because it is listed";

rows! { lines:
    a_node_of_another_name_is_removed: renamed("other.example") => GONE;
    a_node_at_a_listed_address_stays: renamed("192.0.2.9, 10.0.0.1").with(without_origin) => KEPT;
    a_node_with_a_listed_ipv6_address_stays: renamed("2001:db8::1").with(|c| {
        without_origin(c);
        c.nodes[0].addresses.push("2001:db8:0::1".into());
    }) => KEPT;
    a_node_that_shows_a_listed_name_stays: renamed("pub.example").with(|c| {
        without_origin(c);
        c.nodes[0].addresses.push("Pub.Example.".into());
    }) => KEPT;
    a_node_with_a_listed_name_stays: renamed("win-1").with(without_origin) => KEPT;
    a_node_with_the_first_label_of_a_listed_name_stays:
        renamed("WIN-1.corp.example").with(without_origin) => KEPT;
    a_node_that_was_made_from_the_former_key_stays: renamed("win-1.old.example").with(|c| {
        let origin = (names::INSTANCE_ANNOTATION.into(), "win-1.old.example".into());
        c.nodes[0].annotations = [origin].into();
        c.nodes[0].name = "other".into();
        c.nodes[0].addresses = vec!["10.0.0.7".into()];
    }) => "10.0.0.7: leave (node other), because it is not listed, but may be the node of entry win-9.example\n\
           win-9.example: configure, because it is listed";
    a_recorded_host_with_the_former_key_stays: renamed("10.0.0.1").with(|c| {
        c.nodes.clear();
        c.host_keys = vec![TOUCHED];
    }) => "10.0.0.1: leave, because it is not listed, but may be the node of entry win-9.example\n\
           win-9.example: configure, because it is listed";
    a_recorded_host_at_a_listed_address_stays: renamed("10.0.0.1").with(|c| {
        c.nodes.clear();
        c.host_keys = vec![("old.example_host", TOUCHED.1)];
    }) => "old.example: leave, because it is not listed, but may be the node of entry win-9.example\n\
           win-9.example: configure, because it is listed";
    an_entry_with_a_mistake_keeps_what_it_names: renamed("10.0.0.1").with(|c| {
        without_origin(c);
        c.listed = vec![broken("win-9.example")];
        // Another entry, so that the broken one is not the only one that nothing is known of.
        c.host_keys = vec![("win-9.example_host", r#"{"ipv4": "10.0.0.9"}"#)];
    }) => "10.0.0.1: leave (node win-1), because it is not listed, but may be the node of entry win-9.example\n\
           win-9.example: leave, because its entry is broken";
}
