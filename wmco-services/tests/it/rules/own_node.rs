//! Tests the search for a host's own Node: `docs/contract/wicd.md`, WICD35 to WICD37.

use std::net::Ipv4Addr;

use proptest::collection::vec;
use proptest::prelude::*;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};
use wmco_core::names::{self, host};
use wmco_core::winpath::WindowsPath;
use wmco_services::daemon::{
    HostIdentity, NodeClaim, NodeSearchError, Search, find_node, host_identity, names_to_ask,
    search_result_of,
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

/// Returns the search result of a host at `10.0.0.1` with these names in its certificates.
fn search(nodes: &[Value], names: &[&str]) -> Result<Search, NodeSearchError> {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    find_node(
        nodes,
        &HostIdentity { addresses: vec![[10, 0, 0, 1].into()], names, ..HostIdentity::default() },
    )
}

/// Returns the own Node and the number of warnings.
#[track_caller]
fn found(nodes: &[Value], names: &[&str]) -> (Option<String>, usize) {
    let search = search(nodes, names).unwrap();
    (search.node, search.warnings.len())
}

fn is(name: &str, warnings: usize) -> (Option<String>, usize) {
    (Some(name.to_owned()), warnings)
}

#[test]
fn the_name_of_the_kubelet_decides_between_nodes_with_the_same_address() {
    let twice = [windows("before", 1), windows("now", 1)];
    assert_eq!(found(&twice, &["now"]), is("now", 0));
    assert_eq!(found(&twice, &["now", "before"]), is("now", 1));
    assert_eq!(search(&twice, &[]).unwrap_err().names, ["before", "now"]);
    assert_eq!(search(&twice, &["gone"]).unwrap_err().names.len(), 2);
}

#[test]
fn a_name_is_believed_where_no_node_has_an_address() {
    assert_eq!(found(&[windows("a", 2), windows("b", 3)], &["b"]), is("b", 0));
    assert_eq!(found(&[windows("a", 2), windows("b", 3)], &["gone", "b"]), is("b", 1));
    assert_eq!(found(&[windows("a", 2)], &["gone"]), (None, 0));
}

#[test]
fn a_certificate_of_a_former_name_locks_nobody_out_and_is_reported() {
    let renamed = [windows("before", 9), windows("now", 1)];
    let search = search(&renamed, &["before"]).unwrap();
    assert_eq!(search.node.as_deref(), Some("now"));
    insta::assert_snapshot!(search.warnings.join("\n"), @"a certificate on this host is one of node before, but the host is node now; delete the certificate if the host was renamed or copied");
    assert_eq!(found(&renamed[1..], &["before"]), is("now", 1));
    // A matching certificate outweighs one that does not match.
    assert_eq!(found(&renamed, &["before", "now"]), is("now", 1));
}

#[test]
fn a_name_of_a_linux_node_is_no_name() {
    let linux = node("a", "linux", &[("InternalIP", 1)]);
    assert_eq!(found(std::slice::from_ref(&linux), &["a"]), (None, 0));
    assert_eq!(found(&[linux, windows("b", 1)], &["a"]), is("b", 1));
}

#[test]
fn internal_addresses_count_first_and_a_name_before_them() {
    let outside = node("outside", names::OS_WINDOWS, &[("ExternalIP", 1)]);
    let both = [outside, windows("inside", 1)];
    assert_eq!(found(&both, &[]), is("inside", 0));
    assert_eq!(found(&both, &["outside"]), is("outside", 0));
}

/// Returns the result of requesting Nodes by name, and all Nodes only if none search_result_of the search; and whether all were
/// listed.
fn step_by_step(nodes: &[Value], marks: &HostIdentity) -> (Result<Search, NodeSearchError>, bool) {
    let all = || nodes.iter().map(NodeClaim::from);
    let asked = names_to_ask(marks).filter_map(|name| all().find(|node| node.name() == name));
    let settled = asked.into_iter().find_map(|node| search_result_of(&node, marks));
    let listed = settled.is_none();
    (settled.map_or_else(|| find_node(all(), marks), Ok), listed)
}

#[test]
fn what_is_no_name_is_not_asked_for() {
    let names = ["", "a/../b", "A", "-a", "a b", "a?x=1", &"a".repeat(254), "n-1.example", "7"];
    let marks =
        HostIdentity { names: names.map(str::to_owned).to_vec(), ..HostIdentity::default() };
    assert_eq!(names_to_ask(&marks).collect::<Vec<_>>(), ["n-1.example", "7"]);
}

#[test]
fn a_node_settles_it_by_name_and_address_only() {
    let marks = HostIdentity {
        addresses: vec![[10, 0, 0, 1].into()],
        names: vec!["a".to_owned(), "b".to_owned()],
        problems: vec!["p".to_owned()],
    };
    let settled = |node: Value| search_result_of(&NodeClaim::from(&node), &marks);
    let found = settled(windows("b", 1)).unwrap();
    assert_eq!((found.node.as_deref(), found.warnings.len()), (Some("b"), 2));
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
fn names_come_from_the_certificates_of_kubelet_and_daemon() {
    let windows = FakeWindows::new("winhost");
    let read = || host_identity(&windows, &certificates()).unwrap();
    assert_eq!(read().names, [""; 0]);
    let put = |path: &str, text: &str| windows.put_file(&path.parse().unwrap(), text);
    put(host::WICD_CURRENT_CERTIFICATE, &certificate("system:wicd-node:before"));
    put(host::KUBELET_CLIENT_CERTIFICATE, &certificate("system:node:now"));
    assert_eq!(read().names, ["now", "before"]);
    put(host::WICD_CURRENT_CERTIFICATE, &certificate("system:wicd-node:now"));
    assert_eq!(read().names, ["now"]);
    // A certificate of no node gives no name.
    put(host::KUBELET_CLIENT_CERTIFICATE, &certificate("system:node:"));
    put(host::WICD_CURRENT_CERTIFICATE, &certificate("system:node:other"));
    assert_eq!((read().names, read().problems), (Vec::new(), Vec::new()));
}

#[test]
fn a_certificate_that_cannot_be_read_is_reported_and_locks_nobody_out() {
    let windows_host = FakeWindows::new("winhost");
    windows_host.put_file(&host::KUBELET_CLIENT_CERTIFICATE.parse().unwrap(), "half");
    windows_host.put_file(&host::WICD_CURRENT_CERTIFICATE.parse().unwrap(), "x");
    windows_host.fail(Call::FilesOpen, "wicd-client", 1, Fault::Locked);
    let marks = host_identity(&windows_host, &certificates()).unwrap();
    insta::assert_snapshot!(marks.problems.join("\n"), @r"
    the kubelet's certificate tells no node: the text holds no readable certificate, ask for a new one
    the daemon's certificate tells no node: C:\k\wicd-certs\wicd-client-current.pem is in use by a running program, stop that program and try again
    ");
    let search = find_node(&[windows("a", 10)], &marks).unwrap();
    assert_eq!((search.node.as_deref(), search.warnings), (Some("a"), marks.problems));
}

/// Returns the addresses of a host that has this interface besides its own.
fn counted(name: &str, description: &str, address: [u8; 4], leads_out: bool) -> Vec<Ipv4Addr> {
    let windows = FakeWindows::new("winhost");
    windows.add_interface(Interface {
        name: name.to_owned(),
        description: description.to_owned(),
        addresses: vec![address.into()],
        ipv6: Vec::new(),
        leads_out,
    });
    assert_eq!(windows.addresses().unwrap().len(), 2 - usize::from(address[0] == 127));
    let mut counted = host_identity(&windows, &certificates()).unwrap().addresses;
    assert_eq!(counted.remove(0), Ipv4Addr::new(10, 0, 0, 10));
    counted
}

#[test]
fn addresses_of_container_networks_do_not_count() {
    let nat = [172, 20, 0, 1];
    assert_eq!(counted("vEthernet (nat)", "", nat, false), [Ipv4Addr::UNSPECIFIED; 0]);
    let renamed = "Hyper-V Virtual Ethernet Adapter #2";
    assert_eq!(counted("Renamed", renamed, nat, false), [Ipv4Addr::UNSPECIFIED; 0]);
}

/// An overlay takes over the adapter of the host, with its address.
#[test]
fn the_way_out_counts_though_it_is_virtual() {
    let name = "vEthernet (Ethernet 2)";
    let kind = "Hyper-V Virtual Ethernet Adapter";
    assert_eq!(counted(name, kind, [10, 0, 0, 11], true), [Ipv4Addr::new(10, 0, 0, 11)]);
    // A second network card counts without a default route.
    let kind = "Microsoft Hyper-V Network Adapter #2";
    assert_eq!(counted("Ethernet 3", kind, [10, 1, 0, 1], false), [Ipv4Addr::new(10, 1, 0, 1)]);
}

#[test]
fn addresses_that_every_host_has_do_not_count() {
    for address in [[127, 0, 0, 1], [169, 254, 7, 7], [0, 0, 0, 0]] {
        assert_eq!(counted("Ethernet 2", "", address, true), [Ipv4Addr::UNSPECIFIED; 0]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    /// Whatever Nodes and certificates there are: the result is a Windows Node that the host has a claim to, no
    /// certificate name hides the only Node with its address, and each name that is not used is reported.
    #[test]
    fn nobody_is_taken_for_another_or_locked_out(
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
            Ok(Search { node: Some(found), warnings }) => {
                let place = (0..drawn.len()).find(|place| label(*place) == found).unwrap();
                prop_assert!(is_windows(place));
                prop_assert!(here.contains(&place) || (here.is_empty() && named(place)));
                let believed = usize::from(named(place));
                prop_assert_eq!(warnings.len(), names.len() - believed);
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

    /// Whatever Nodes claim: requesting Nodes by name first has the same result as listing all, so a lying Node gains
    /// nothing. All are listed only if no named Node has an address of the host.
    #[test]
    fn asking_by_name_first_finds_the_same(
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
        let marks = HostIdentity { addresses: vec![[10, 0, 0, 1].into()], names, ..HostIdentity::default() };
        let (found, listed) = step_by_step(&nodes, &marks);
        prop_assert_eq!(found, find_node(&nodes, &marks));
        prop_assert_eq!(listed, !named_here);
    }
}
