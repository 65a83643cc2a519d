//! `spec/wicd.md`, section 23.2, row 17: by what a host knows its Node.

use std::net::Ipv4Addr;

use proptest::collection::vec;
use proptest::prelude::*;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};
use wmco_core::names::{self, host};
use wmco_core::winpath::WindowsPath;
use wmco_services::daemon::{
    Marks, NodeClaim, NodeSearchError, Search, find_node, marks, names_to_ask, settles,
};
use wmco_services::fake::{Call, FakeWindows, Fault};
use wmco_services::windows::{Interface, Machine as _};

fn node(name: &str, os: &str, addresses: &[(&str, u8)]) -> Value {
    let addresses = addresses
        .iter()
        .map(|(kind, last)| json!({"type": kind, "address": format!("10.0.0.{last}")}));
    json!({
        "metadata": {"name": name, "labels": {(names::OS_LABEL): os}},
        "status": {"addresses": addresses.collect::<Vec<_>>()},
    })
}

fn windows(name: &str, last: u8) -> Value {
    node(name, names::OS_WINDOWS, &[("InternalIP", last)])
}

/// The answer for a host at `10.0.0.1` with these names in its certificates.
fn search(nodes: &[Value], names: &[&str]) -> Result<Search, NodeSearchError> {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    find_node(nodes, &Marks { addresses: vec![[10, 0, 0, 1].into()], names, ..Marks::default() })
}

/// The Node that is found, and in how many ways that is doubtful.
#[track_caller]
fn found(nodes: &[Value], names: &[&str]) -> (Option<String>, usize) {
    let search = search(nodes, names).unwrap();
    (search.node, search.doubts.len())
}

fn is(name: &str, doubts: usize) -> (Option<String>, usize) {
    (Some(name.to_owned()), doubts)
}

#[test]
fn row_17_the_name_of_the_kubelet_decides_between_nodes_with_the_same_address() {
    let twice = [windows("before", 1), windows("now", 1)];
    assert_eq!(found(&twice, &["now"]), is("now", 0));
    assert_eq!(found(&twice, &["now", "before"]), is("now", 1));
    assert_eq!(search(&twice, &[]).unwrap_err().names, ["before", "now"]);
    assert_eq!(search(&twice, &["gone"]).unwrap_err().names.len(), 2);
}

#[test]
fn row_17_a_name_is_believed_where_no_node_has_an_address() {
    assert_eq!(found(&[windows("a", 2), windows("b", 3)], &["b"]), is("b", 0));
    assert_eq!(found(&[windows("a", 2), windows("b", 3)], &["gone", "b"]), is("b", 1));
    assert_eq!(found(&[windows("a", 2)], &["gone"]), (None, 0));
}

#[test]
fn row_17_a_certificate_of_a_former_name_locks_nobody_out_and_is_told() {
    let renamed = [windows("before", 9), windows("now", 1)];
    let search = search(&renamed, &["before"]).unwrap();
    assert_eq!(search.node.as_deref(), Some("now"));
    insta::assert_snapshot!(search.doubts.join("\n"), @"a certificate on this host is one of node before, but the host is node now; delete the certificate if the host was renamed or copied");
    assert_eq!(found(&renamed[1..], &["before"]), is("now", 1));
    // One that fits is believed before one that does not.
    assert_eq!(found(&renamed, &["before", "now"]), is("now", 1));
}

#[test]
fn row_17_a_name_of_a_linux_node_is_no_name() {
    let linux = node("a", "linux", &[("InternalIP", 1)]);
    assert_eq!(found(std::slice::from_ref(&linux), &["a"]), (None, 0));
    assert_eq!(found(&[linux, windows("b", 1)], &["a"]), is("b", 1));
}

#[test]
fn row_17_internal_addresses_count_first_and_a_name_before_them() {
    let outside = node("outside", names::OS_WINDOWS, &[("ExternalIP", 1)]);
    let both = [outside, windows("inside", 1)];
    assert_eq!(found(&both, &[]), is("inside", 0));
    assert_eq!(found(&both, &["outside"]), is("outside", 0));
}

/// The answer when the cluster is asked for one Node after the other by name, and for all of them only
/// when none settles it; and whether all were asked for.
fn step_by_step(nodes: &[Value], marks: &Marks) -> (Result<Search, NodeSearchError>, bool) {
    let all = || nodes.iter().map(NodeClaim::from);
    let asked = names_to_ask(marks).filter_map(|name| all().find(|node| node.name() == name));
    let settled = asked.into_iter().find_map(|node| settles(&node, marks));
    let listed = settled.is_none();
    (settled.map_or_else(|| find_node(all(), marks), Ok), listed)
}

#[test]
fn row_17_what_is_no_name_is_not_asked_for() {
    let names = ["", "a/../b", "A", "-a", "a b", "a?x=1", &"a".repeat(254), "n-1.example", "7"];
    let marks = Marks { names: names.map(str::to_owned).to_vec(), ..Marks::default() };
    assert_eq!(names_to_ask(&marks).collect::<Vec<_>>(), ["n-1.example", "7"]);
}

#[test]
fn row_17_a_node_settles_it_by_name_and_address_only() {
    let marks = Marks {
        addresses: vec![[10, 0, 0, 1].into()],
        names: vec!["a".to_owned(), "b".to_owned()],
        problems: vec!["p".to_owned()],
    };
    let settled = |node: Value| settles(&NodeClaim::from(&node), &marks);
    let found = settled(windows("b", 1)).unwrap();
    assert_eq!((found.node.as_deref(), found.doubts.len()), (Some("b"), 2));
    assert_eq!(found, find_node(&[windows("b", 1), windows("c", 1)], &marks).unwrap());
    assert_eq!(settled(windows("a", 2)), None);
    assert_eq!(settled(windows("c", 1)), None);
    assert_eq!(settled(node("a", "linux", &[("InternalIP", 1)])), None);
    assert_eq!(settled(json!({"metadata": {"name": "a"}})), None);
}

fn certificates() -> WindowsPath {
    host::WICD_CERTIFICATES.parse().unwrap()
}

fn certificate(user: &str) -> String {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, user);
    params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
}

#[test]
fn row_17_names_come_from_the_certificates_of_kubelet_and_daemon() {
    let windows = FakeWindows::new("winhost");
    let read = || marks(&windows, &certificates()).unwrap();
    assert_eq!(read().names, [""; 0]);
    let put = |path: &str, text: &str| windows.put_file(&path.parse().unwrap(), text);
    put(host::WICD_CURRENT_CERTIFICATE, &certificate("system:wicd-node:before"));
    put(host::KUBELET_CLIENT_CERTIFICATE, &certificate("system:node:now"));
    assert_eq!(read().names, ["now", "before"]);
    put(host::WICD_CURRENT_CERTIFICATE, &certificate("system:wicd-node:now"));
    assert_eq!(read().names, ["now"]);
    // What speaks for nobody gives no name.
    put(host::KUBELET_CLIENT_CERTIFICATE, &certificate("system:node:"));
    put(host::WICD_CURRENT_CERTIFICATE, &certificate("system:node:other"));
    assert_eq!((read().names, read().problems), (Vec::new(), Vec::new()));
}

#[test]
fn row_17_a_certificate_that_cannot_be_read_is_told_and_locks_nobody_out() {
    let windows_host = FakeWindows::new("winhost");
    windows_host.put_file(&host::KUBELET_CLIENT_CERTIFICATE.parse().unwrap(), "half");
    windows_host.put_file(&host::WICD_CURRENT_CERTIFICATE.parse().unwrap(), "x");
    windows_host.fail(Call::FilesOpen, "wicd-client", 1, Fault::Locked);
    let marks = marks(&windows_host, &certificates()).unwrap();
    insta::assert_snapshot!(marks.problems.join("\n"), @r"
    the kubelet's certificate tells no node: the text holds no readable certificate, ask for a new one
    the daemon's certificate tells no node: C:\k\wicd-certs\wicd-client-current.pem is in use by a running program, stop that program and try again
    ");
    let search = find_node(&[windows("a", 10)], &marks).unwrap();
    assert_eq!((search.node.as_deref(), search.doubts), (Some("a"), marks.problems));
}

/// Addresses by which a host counts that has this interface beside its own.
fn counted(name: &str, description: &str, address: [u8; 4], leads_out: bool) -> Vec<Ipv4Addr> {
    let windows = FakeWindows::new("winhost");
    windows.add_interface(Interface {
        name: name.to_owned(),
        description: description.to_owned(),
        addresses: vec![address.into()],
        leads_out,
    });
    assert_eq!(windows.addresses().unwrap().len(), 2 - usize::from(address[0] == 127));
    let mut counted = marks(&windows, &certificates()).unwrap().addresses;
    assert_eq!(counted.remove(0), Ipv4Addr::new(10, 0, 0, 10));
    counted
}

#[test]
fn row_17_addresses_of_container_networks_do_not_count() {
    let nat = [172, 20, 0, 1];
    assert_eq!(counted("vEthernet (nat)", "", nat, false), [Ipv4Addr::UNSPECIFIED; 0]);
    let renamed = "Hyper-V Virtual Ethernet Adapter #2";
    assert_eq!(counted("Renamed", renamed, nat, false), [Ipv4Addr::UNSPECIFIED; 0]);
}

/// An overlay takes over the adapter of the host, with its address.
#[test]
fn row_17_the_way_out_counts_though_it_is_virtual() {
    let name = "vEthernet (Ethernet 2)";
    let kind = "Hyper-V Virtual Ethernet Adapter";
    assert_eq!(counted(name, kind, [10, 0, 0, 11], true), [Ipv4Addr::new(10, 0, 0, 11)]);
    // And a second network card counts without a way out.
    let kind = "Microsoft Hyper-V Network Adapter #2";
    assert_eq!(counted("Ethernet 3", kind, [10, 1, 0, 1], false), [Ipv4Addr::new(10, 1, 0, 1)]);
}

#[test]
fn row_17_addresses_that_every_host_has_do_not_count() {
    for address in [[127, 0, 0, 1], [169, 254, 7, 7], [0, 0, 0, 0]] {
        assert_eq!(counted("Ethernet 2", "", address, true), [Ipv4Addr::UNSPECIFIED; 0]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    /// Whatever Nodes and certificates there are: what is found is a Windows Node that the host has a claim
    /// to, no name of a certificate hides the only Node with its address, and each name that is not
    /// believed is told.
    #[test]
    fn row_17_nobody_is_taken_for_another_or_locked_out(
        drawn in vec((any::<bool>(), any::<bool>(), 1..4_u8), 0..5),
        names in prop::sample::subsequence(vec!["n0", "n1", "n2", "gone"], 0..=2),
    ) {
        let label = |place: usize| format!("n{place}");
        let nodes: Vec<Value> = drawn
            .iter()
            .enumerate()
            .map(|(place, (is_windows, internal, last))| {
                let os = if *is_windows { names::OS_WINDOWS } else { "linux" };
                let kind = if *internal { "InternalIP" } else { "ExternalIP" };
                node(&label(place), os, &[(kind, *last)])
            })
            .collect();
        let is_windows = |place: usize| drawn[place].0;
        let here: Vec<usize> =
            (0..drawn.len()).filter(|place| is_windows(*place) && drawn[*place].2 == 1).collect();
        let named = |place: usize| names.contains(&label(place).as_str());
        match search(&nodes, &names) {
            Ok(Search { node: Some(found), doubts }) => {
                let place = (0..drawn.len()).find(|place| label(*place) == found).unwrap();
                prop_assert!(is_windows(place));
                prop_assert!(here.contains(&place) || (here.is_empty() && named(place)));
                let believed = usize::from(named(place));
                prop_assert_eq!(doubts.len(), names.len() - believed);
                if here.iter().any(|place| named(*place)) {
                    prop_assert!(named(place));
                }
            }
            Ok(Search { node: None, .. }) => {
                prop_assert!(here.is_empty());
                prop_assert!(!(0..drawn.len()).any(|place| is_windows(place) && named(place)));
            }
            Err(error) => {
                prop_assert!(error.names.len() > 1 && here.len() > 1);
                prop_assert!(!here.iter().any(|place| named(*place)));
            }
        }
    }

    /// Whatever Nodes say: who is asked for by name first and for all Nodes later finds the same as who
    /// sees all of them, so a Node that lies gains nothing. All are asked for only where no named Node
    /// has an address of the host.
    #[test]
    fn row_17_asking_by_name_first_finds_the_same(
        drawn in vec((any::<bool>(), vec((any::<bool>(), 1..4_u8), 0..3)), 0..5),
        names in prop::sample::subsequence(vec!["n0", "n1", "n2", "gone"], 0..=3).prop_shuffle(),
    ) {
        let nodes: Vec<Value> = drawn
            .iter()
            .enumerate()
            .map(|(place, (is_windows, addresses))| {
                let os = if *is_windows { names::OS_WINDOWS } else { "linux" };
                let kind = |internal| if internal { "InternalIP" } else { "ExternalIP" };
                let addresses: Vec<_> =
                    addresses.iter().map(|(internal, last)| (kind(*internal), *last)).collect();
                node(&format!("n{place}"), os, &addresses)
            })
            .collect();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let named_here = drawn.iter().enumerate().any(|(place, (is_windows, addresses))| {
            let here = addresses.iter().any(|(_, last)| *last == 1);
            *is_windows && here && names.contains(&format!("n{place}"))
        });
        let marks = Marks { addresses: vec![[10, 0, 0, 1].into()], names, ..Marks::default() };
        let (found, listed) = step_by_step(&nodes, &marks);
        prop_assert_eq!(found, find_node(&nodes, &marks));
        prop_assert_eq!(listed, !named_here);
    }
}
