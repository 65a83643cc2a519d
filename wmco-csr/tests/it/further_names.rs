//! Further names of entries (`names=`): whose they are while something is wrong, and who gets what is another's.
//! Source: `docs/contract/certificate-requests.md`, CSR42, CSR45 and CSR55.

use std::net::{IpAddr, Ipv4Addr};

use wmco_csr::Kind::{KubeletClient, KubeletServing};
use wmco_csr::{MachineFacts, NodeNames, Reference};

use crate::fixture::{INSTANCE, IPV4, NODE, World, node};
use crate::witnesses::{asking_for, leads, points, reports};

const FURTHER: &str = "pub-7.cloud.example";
const OTHER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 50);
const OTHER_ENTRY: &str = "other.plant.example.net";

/// The host is listed by its address, so that its name is its own word.
fn by_address(kind: wmco_csr::Kind) -> World {
    let mut world = World::new(kind);
    list_by_address(&mut world);
    world
}

fn list_by_address(world: &mut World) {
    let address = IPV4.to_string();
    world.facts.hostnames = [(address.clone(), NODE.to_owned())].into();
    world.facts.addresses = Some([(address.clone(), vec![IPV4.into()])].into());
    world.instances = vec![(address, Some(IPV4))];
}

/// A Linux Node at `OTHER` whose status has `also` as a name.
fn neighbour(name: &str, also: &str) -> k8s_openapi::api::core::v1::Node {
    let mut other = node(name, "linux", OTHER);
    let address = serde_json::json!({"type": "InternalDNS", "address": also});
    let addresses = other.status.as_mut().unwrap().addresses.as_mut().unwrap();
    addresses.push(serde_json::from_value(address).unwrap());
    other
}

#[test]
fn a_reported_name_that_another_node_has_is_refused() {
    for kind in [KubeletClient, KubeletServing] {
        let mut world = by_address(kind);
        world.check("approve", "");
        // In its status, and as the first label of its name.
        for other in [neighbour("cp-1", NODE), neighbour("win-7.other.example", "x")] {
            world.nodes.push(other);
            world.check("refuse", "instance");
            assert!(world.decide().reason().contains("that is node"), "{}", world.decide());
            world.nodes.pop();
        }
        // What another Node shows is nobody's by `names=`, where a person may have mistaken it.
        world.nodes.push(neighbour("cp-1", NODE));
        world.also = vec![(IPV4.to_string(), NODE)];
        world.check("refuse", "instance");
        assert!(
            world.decide().reason().contains("list the host by that name"),
            "{}",
            world.decide()
        );
        // By the key a person says whose it is.
        world.also.clear();
        world.instances = vec![(NODE.to_owned(), Some(IPV4))];
        world.check("approve", "");
    }
}

/// A person mistakes an address or a name of a control plane for one of the host.
#[test]
fn what_another_node_shows_is_not_given_by_an_entry() {
    for (asked, shown) in
        [(FURTHER, "InternalDNS"), ("203.0.113.7", "ExternalIP"), ("2001:db8::7", "InternalIP")]
    {
        let mut world = asking_for(&[asked]);
        list_by_address(&mut world);
        world.also = vec![(IPV4.to_string(), asked)];
        world.check("approve", "");
        let showing = |os: &str, at: Ipv4Addr| {
            let mut other = node("other", os, at);
            let address = serde_json::json!({"type": shown, "address": asked});
            let addresses = other.status.as_mut().unwrap().addresses.as_mut().unwrap();
            addresses.push(serde_json::from_value(address).unwrap());
            other
        };
        for other in [showing("linux", OTHER), showing("windows", OTHER), showing("linux", IPV4)] {
            world.nodes.push(other);
            world.check("refuse", "belongs");
            assert!(world.decide().reason().contains("that is node other's"), "{}", world.decide());
            world.nodes.pop();
        }
        // One that the host had before.
        world.nodes.push(showing("windows", IPV4));
        world.check("approve", "");
    }
}

/// Who asks through NAT64, or takes an IPv4-mapped address for what it is, reaches somebody else.
#[test]
fn no_form_of_an_address_hides_whose_it_is() {
    for other in ["10.0.0.2", "172.30.0.1", "127.0.0.1", "192.0.2.50"] {
        let form = format!("64:ff9b::{other}");
        let mut world = asking_for(&[&form]);
        world.cluster.addresses.api = ["10.0.0.2".parse().unwrap()].into();
        world.nodes.push(node("cp-1", "linux", OTHER));
        reports(&mut world, &form);
        world.check("refuse", "belongs");
    }
    let own = format!("64:ff9b::{IPV4}");
    let mut world = asking_for(&[&own]);
    reports(&mut world, &own);
    world.check("approve", "");
}

/// Reverse DNS is no better.
#[test]
fn a_reverse_name_that_another_node_has_is_refused() {
    let mut world = by_address(KubeletClient);
    world.facts.hostnames = [(IPV4.to_string(), "other".to_owned())].into();
    points(&mut world, "192.0.2.7", NODE);
    world.check("approve", "");
    world.nodes.push(neighbour("cp-1", NODE));
    world.check("refuse", "instance");
}

/// The Node that the host had before is not another's.
#[test]
fn the_hosts_own_former_node_takes_no_name_from_it() {
    let mut world = by_address(KubeletClient);
    let mut former = node("former", "windows", IPV4);
    former.status.as_mut().unwrap().addresses.as_mut().unwrap()[1].address = NODE.to_owned();
    world.nodes.push(former);
    world.check("approve", "");
}

/// A mistake in an entry leaves its further names to nobody else.
#[test]
fn an_entry_with_a_mistake_keeps_its_further_names() {
    for (key, names) in [
        (OTHER_ENTRY, "pub-7.cloud.example\nport=x"),
        (OTHER_ENTRY, "[::1],pub-7.cloud.example"),
        (OTHER_ENTRY, "other.example\nnames=pub-7.cloud.example"),
        ("no_host", "pub-7.cloud.example"),
    ] {
        let mut world = asking_for(&[FURTHER]);
        leads(&mut world, FURTHER, &["192.0.2.7"]);
        world.also = vec![(INSTANCE.to_owned(), "mine.example")];
        world.check("approve", "");
        world.instances.push((key.to_owned(), Some(OTHER)));
        world.also.push((key.to_owned(), names));
        world.check("refuse", "belongs");
    }
}

#[test]
fn an_entry_with_a_wrong_key_gives_no_certificate() {
    let mut world = by_address(KubeletClient);
    world.facts.hostnames.clear();
    world.instances.push(("no_host".to_owned(), None));
    world.also = vec![("no_host".to_owned(), NODE)];
    world.check("wait", "instance");
    world.later = jiff::SignedDuration::from_mins(11);
    world.check("refuse", "instance");
    // Neither is the key a name of a node, though Kubernetes would take it.
    let mut world = by_address(KubeletClient);
    let key = "10.0.0.256";
    world.params_change(|params| {
        params.distinguished_name.push(rcgen::DnType::CommonName, format!("system:node:{key}"));
    });
    world.instances.push((key.to_owned(), None));
    world.also = vec![(key.to_owned(), "x.example")];
    world.later = jiff::SignedDuration::from_mins(11);
    world.check("ignore", "instance");
}

/// The DNS leads the entry to one host, and the Node of another shows an address from `names=`.
#[test]
fn a_further_address_alone_ties_no_node_to_the_host() {
    let mut world = World::new(KubeletServing);
    world.params_change(|params| params.subject_alt_names.truncate(1));
    world.instances = vec![(NODE.to_owned(), Some(OTHER))];
    world.facts.hostnames = [(NODE.to_owned(), "other".to_owned())].into();
    world.facts.addresses = Some([(NODE.to_owned(), vec![OTHER.into()])].into());
    world.also = vec![(NODE.to_owned(), "192.0.2.7")];
    world.check("refuse", "node-address");
    // With NAT in front of it.
    world.facts.addresses = Some([(NODE.to_owned(), vec![IPV4.into()])].into());
    world.check("approve", "");
}

/// Whoever has the DNS leads the key of another entry to this host, which calls itself as it is listed.
fn led_here(names: &'static str, asked: &str) -> World {
    let mut world = asking_for(&[asked]);
    world.facts.hostnames.insert(INSTANCE.to_owned(), INSTANCE.to_owned());
    leads(&mut world, FURTHER, &["192.0.2.7"]);
    reports(&mut world, "203.0.113.7");
    world.also = vec![(OTHER_ENTRY.to_owned(), names)];
    world
}

#[test]
fn the_dns_gives_no_further_names_of_another_entry() {
    for asked in [FURTHER, "203.0.113.7"] {
        let mut world = led_here("pub-7.cloud.example,203.0.113.7", asked);
        world.check("approve", "");
        world.instances.push((OTHER_ENTRY.to_owned(), Some(IPV4)));
        world.check("refuse", "belongs");
    }
}

/// The node is called by the key of the entry, which the DNS leads to it; the operator has not been there.
#[test]
fn further_names_count_only_where_the_operator_was() {
    for (asked, names) in [(FURTHER, FURTHER), ("203.0.113.7", "203.0.113.7")] {
        let mut world = asking_for(&[asked]);
        world.also = vec![(INSTANCE.to_owned(), names)];
        world.check("approve", "");
        world.facts.addresses = Some([].into());
        world.check("wait", "belongs");
        assert!(world.decide().reason().contains("has not been on the host"), "{}", world.decide());
        world.later = jiff::SignedDuration::from_mins(11);
        world.check("refuse", "belongs");
        // The DNS does not answer, so nobody knows where the entry leads.
        let mut world = asking_for(&[asked]);
        world.also = vec![(INSTANCE.to_owned(), names)];
        world.instances[0].1 = None;
        world.check("wait", "belongs");
    }
}

/// An entry by address means what has that address.
#[test]
fn further_names_of_an_entry_by_address_need_no_login() {
    let mut world = by_address(KubeletClient);
    world.facts.hostnames.clear();
    world.facts.addresses = Some([].into());
    world.also = vec![(IPV4.to_string(), NODE)];
    world.check("approve", "");
}

/// In every way in which a host gets a name.
#[test]
fn a_name_of_the_cluster_is_nobodys() {
    for name in [
        "kubernetes",
        "x.cluster.local",
        "web.shop.svc",
        "api-int",
        "api-int.cluster.example.net",
        "console.apps.cluster.example.net",
    ] {
        let asking = || {
            let mut world = by_address(KubeletClient);
            world.cluster.node_names = NodeNames::Full;
            world.facts.hostnames.clear();
            let subject = format!("system:node:{name}");
            world.params_change(|params| {
                params.distinguished_name.push(rcgen::DnType::CommonName, subject);
            });
            world
        };
        let refused = |world: World, how: &str| {
            let decision = world.decide();
            assert_eq!(decision.verdict().name(), "refuse", "{name} {how}: {decision}");
        };
        let mut world = asking();
        world.facts.hostnames = [(IPV4.to_string(), name.to_owned())].into();
        refused(world, "by its word");
        let mut world = asking();
        points(&mut world, "192.0.2.7", name);
        refused(world, "by reverse DNS");
        let mut world = asking();
        world.instances = vec![(name.to_owned(), Some(IPV4))];
        refused(world, "by its key");
        let mut world = asking();
        world.instances.clear();
        world.machines = vec![MachineFacts {
            name: "m-1".to_owned(),
            names: vec![name.to_owned()],
            addresses: vec![IPV4.into()],
            host: Some(Ok(IPV4)),
            ..MachineFacts::default()
        }];
        refused(world, "by the Machine API");
        let mut world = asking();
        world.also = vec![(IPV4.to_string(), name)];
        let decision = world.decide();
        assert_ne!(decision.verdict().name(), "approve", "{name} by names=: {decision}");
    }
}

/// It may become a node of its own name, whatever names its cloud gave it.
#[test]
fn the_own_name_of_a_linux_machine_without_a_node_is_its_own() {
    let mut world = by_address(KubeletClient);
    let mut machine = MachineFacts {
        name: NODE.to_owned(),
        names: vec!["ip-192-0-2-50.compute.internal".to_owned()],
        addresses: vec![OTHER.into()],
        ..MachineFacts::default()
    };
    world.machines = vec![machine.clone()];
    world.check("ignore", "machine");
    // A person says whose it is.
    world.also = vec![(IPV4.to_string(), NODE)];
    world.check("approve", "");
    world.also.clear();
    machine.node = Some(Reference { name: "ip-192-0-2-50".to_owned(), uid: String::new() });
    world.machines = vec![machine];
    world.check("approve", "");
}

/// An entry has the address of a Linux node, by its key or `names=`: what leads there is not the entry's.
#[test]
fn a_name_that_leads_to_a_linux_node_is_not_the_entrys() {
    let mut world = asking_for(&[FURTHER]);
    leads(&mut world, FURTHER, &["192.0.2.50"]);
    world.also = vec![(INSTANCE.to_owned(), "192.0.2.50")];
    world.check("approve", "");
    world.nodes.push(node("cp-1", "linux", OTHER));
    world.check("refuse", "belongs");
}

/// W-39: as kubelets do.
#[test]
fn an_address_under_a_type_of_names_is_asked_for_as_a_name() {
    let own: IpAddr = IPV4.into();
    let mut world = World::new(KubeletServing);
    let name = own.to_string().try_into().unwrap();
    world.params_change(|params| params.subject_alt_names.push(rcgen::SanType::DnsName(name)));
    world.check("refuse", "addresses");
    let internal = serde_json::json!({"type": "InternalDNS", "address": own});
    let addresses = world.nodes[0].status.as_mut().unwrap().addresses.as_mut().unwrap();
    addresses.push(serde_json::from_value(internal).unwrap());
    world.check("approve", "");
    let name = format!("{own}.").try_into().unwrap();
    world.params_change(|params| params.subject_alt_names.push(rcgen::SanType::DnsName(name)));
    world.check("approve", "");
    // It is still an address, and may be another's.
    let mut world = asking_for(&[]);
    let other = neighbour("cp-1", "x");
    for kind in ["InternalDNS", "Hostname"] {
        let address = serde_json::json!({"type": kind, "address": format!("{OTHER}.")});
        let addresses = world.nodes[0].status.as_mut().unwrap().addresses.as_mut().unwrap();
        addresses.push(serde_json::from_value(address).unwrap());
    }
    let name = OTHER.to_string().try_into().unwrap();
    world.params_change(|params| params.subject_alt_names.push(rcgen::SanType::DnsName(name)));
    world.also = vec![(INSTANCE.to_owned(), "192.0.2.50")];
    world.check("approve", "");
    world.also.clear();
    world.check("refuse", "belongs");
    world.nodes.push(other);
    world.check("refuse", "belongs");
}
