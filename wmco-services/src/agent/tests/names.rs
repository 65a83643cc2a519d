//! Addresses and names of the host in a probe.

use std::net::Ipv6Addr;

use super::*;
use crate::windows::{HttpAnswer, Interface};

fn probed_with(change: impl FnOnce(&FakeWindows)) -> Probe {
    let host = fresh();
    change(&host);
    Agent::new(&host, "1.0.0", NOW).probe().unwrap()
}

fn ipv6(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

#[test]
fn addresses_of_both_families_are_told_but_for_those_of_the_link_and_of_everybody() {
    let probe = probed_with(|host| {
        host.set_ipv6(["fe80::1", "fd00::5", "2001:db8::5"].map(ipv6).to_vec());
        host.add_interface(Interface {
            name: "Ethernet 2".to_owned(),
            ipv6: ["::1", "::", "ff02::1", "febf::2", "fd00::6"].map(ipv6).to_vec(),
            ..Interface::default()
        });
    });
    assert_eq!(probe.ipv6, ["fd00::5", "2001:db8::5", "fd00::6"].map(ipv6));
    assert_eq!(probe.addresses, [std::net::Ipv4Addr::new(10, 0, 0, 10)]);
}

/// A host on which whatever is asked over HTTP answers with `status` and a name.
fn of_cloud(firmware: &str, status: u16) -> Option<String> {
    let probe = probed_with(|host| {
        host.set_firmware(firmware);
        host.set_http(move |_| Some(HttpAnswer { status, body: "w-1.corp.example.\n".to_owned() }));
    });
    probe.metadata_name
}

#[test]
fn machines_of_two_clouds_tell_their_names_there() {
    for firmware in ["Amazon EC2", "Xen, 4.11.amazon", "Google, Google"] {
        assert_eq!(of_cloud(firmware, 200).as_deref(), Some("w-1.corp.example"), "{firmware}");
        assert_eq!(of_cloud(firmware, 403), None, "{firmware}");
    }
}

/// Anything may be at that address in the network of another machine.
#[test]
fn other_machines_ask_no_metadata_service() {
    for firmware in ["", "Microsoft Corporation", "VMware, Inc."] {
        let probe = probed_with(|host| {
            host.set_firmware(firmware);
            host.set_http(|request| panic!("{request:?} was asked"));
        });
        assert_eq!(probe.metadata_name, None);
    }
}

#[test]
fn a_host_without_an_answer_is_described_all_the_same() {
    let probe = probed_with(|host| {
        host.set_firmware("Google");
        host.set_http(|_| None);
    });
    assert_eq!(probe.metadata_name, None);
    let failing = probed_with(|host| {
        host.set_firmware("Google");
        host.fail(Call::MachineFacts, "firmware", 1, Fault::Other);
    });
    assert_eq!(failing.metadata_name, None);
}
