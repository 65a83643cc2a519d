//! What a serving certificate may hold: what belongs to this host and to nobody else.

use std::net::{IpAddr, Ipv4Addr};

use rcgen::SanType;
use wmco_csr::Kind::KubeletServing;
use wmco_csr::MachineFacts;

use crate::fixture::{INSTANCE, IPV4, NODE, World, node, strings};

const OTHER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 50);

/// The Node's status says that it has `name`, and its kubelet asks for that, too.
fn forged(name: &str) -> World {
    let mut world = World::new(KubeletServing);
    let (kind, san) = match name.parse::<IpAddr>() {
        Ok(ip) => ("InternalIP", SanType::IpAddress(ip)),
        Err(_) => ("InternalDNS", SanType::DnsName(name.try_into().unwrap())),
    };
    let address = serde_json::json!({"type": kind, "address": name});
    let addresses = world.nodes[0].status.as_mut().unwrap().addresses.as_mut().unwrap();
    addresses.push(serde_json::from_value(address).unwrap());
    world.params_change(|params| params.subject_alt_names.push(san));
    world
}

#[track_caller]
fn refused(name: &str, given: impl Fn(&mut World)) {
    let mut world = forged(name);
    given(&mut world);
    world.check("refuse", "belongs");
}

/// Finding: the requester writes its Node's status, so that alone proves nothing.
#[test]
fn an_address_that_only_the_node_claims_is_refused() {
    refused("192.0.2.50", |_| {});
    refused("2001:db8::7", |_| {});
}

#[test]
fn a_name_that_only_the_node_claims_is_refused() {
    refused("api-int.plant.example.net", |_| {});
    refused("files.corp.example", |_| {});
}

#[test]
fn the_address_of_another_node_is_refused() {
    refused("192.0.2.50", |w| w.nodes.push(node("cp-1", "linux", OTHER)));
}

#[test]
fn the_address_of_another_entry_is_refused() {
    refused("192.0.2.50", |w| w.instances.push(("192.0.2.50".to_owned(), None)));
    refused("192.0.2.50", |w| w.instances.push(("b.example".to_owned(), Some(OTHER))));
}

#[test]
fn the_address_of_a_machine_is_refused() {
    let machine = || MachineFacts {
        names: strings(&["m-1"]),
        addresses: vec![OTHER.into()],
        ..MachineFacts::default()
    };
    refused("192.0.2.50", |w| w.machines.push(machine()));
}

#[test]
fn the_name_of_another_node_is_refused() {
    refused("cp-1", |w| w.nodes.push(node("cp-1", "linux", OTHER)));
}

#[test]
fn the_name_of_another_entry_is_refused() {
    let add = |w: &mut World| w.instances.push(("db.example".to_owned(), Some(OTHER)));
    refused("db.example", add);
    refused("DB.example", add);
    refused("db", add);
}

#[test]
fn the_name_of_a_machine_is_refused() {
    let machine = || MachineFacts { names: strings(&["m-1.cloud"]), ..Default::default() };
    refused("m-1.cloud", |w| w.machines.push(machine()));
}

#[test]
fn names_of_services_are_refused_even_if_the_host_has_them() {
    for name in [
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "Kubernetes.Default.SVC.cluster.local",
        "web.shop.svc",
        "web.shop.svc.cluster.local",
        "web.localhost",
    ] {
        refused(name, |w| {
            w.facts.hostnames.values_mut().for_each(|reported| name.clone_into(reported));
        });
    }
}

#[test]
fn a_wildcard_is_refused_even_if_the_host_has_it() {
    let name = "*.plant.example.net";
    refused(name, |w| w.facts.hostnames.values_mut().for_each(|told| name.clone_into(told)));
}

/// No such address is one host's alone.
#[test]
fn addresses_of_everybody_are_refused_even_if_they_are_listed() {
    for address in ["127.0.0.1", "127.8.9.10", "0.0.0.0", "169.254.3.4", "224.0.0.1"] {
        refused(address, |w| w.instances[0].1 = Some(address.parse().unwrap()));
    }
    for address in ["::1", "::", "fe80::7", "ff02::1", "::ffff:127.0.0.1"] {
        refused(address, |_| {});
    }
}

#[test]
fn the_entrys_address_is_approved_in_both_forms() {
    World::new(KubeletServing).check("approve", "");
    let mut world = World::new(KubeletServing);
    let mapped = IPV4.to_ipv6_mapped();
    world.params_change(|params| params.subject_alt_names.push(SanType::IpAddress(mapped.into())));
    world.check("approve", "");
}

/// A second adapter, or IPv6: the host itself said so when it was asked.
#[test]
fn what_the_host_reports_is_approved_unless_somebody_else_has_it() {
    for address in ["192.0.2.50", "2001:db8::7"] {
        let ip: IpAddr = address.parse().unwrap();
        let mut world = forged(address);
        world.facts.addresses.as_mut().unwrap().values_mut().for_each(|list| list.push(ip));
        world.check("approve", "");
        // Another host reports the same, so it is neither's.
        world.instances.push(("192.0.2.8".to_owned(), None));
        let all = world.facts.addresses.as_mut().unwrap();
        all.insert("192.0.2.8".to_owned(), vec![ip]);
        world.check("refuse", "belongs");
    }
}

/// Nobody can take the entry's address away by reporting it, nor by writing it into his Node.
#[test]
fn a_report_takes_no_address_from_its_entry() {
    let attack = |w: &mut World| {
        w.instances.push(("192.0.2.8".to_owned(), None));
        w.facts.addresses.as_mut().unwrap().insert("192.0.2.8".to_owned(), vec![IPV4.into()]);
        w.facts.hostnames.insert("192.0.2.8".to_owned(), "win-8".to_owned());
        let mut liar = node("win-8", "windows", [192, 0, 2, 8].into());
        let forged = serde_json::json!({"type": "InternalIP", "address": IPV4});
        let addresses = liar.status.as_mut().unwrap().addresses.as_mut().unwrap();
        addresses.push(serde_json::from_value(forged).unwrap());
        w.nodes.push(liar);
    };
    let mut by_name = World::new(KubeletServing);
    attack(&mut by_name);
    by_name.check("approve", "");
    let mut by_address = World::new(KubeletServing);
    by_address.instances[0].0 = IPV4.to_string();
    by_address.facts.hostnames.insert(IPV4.to_string(), "win-7".to_owned());
    attack(&mut by_address);
    by_address.check("approve", "");
}

/// A name that leads to the address of a Node that nobody listed is no proof.
#[test]
fn dns_that_leads_to_another_node_is_no_proof() {
    let mut world = World::new(KubeletServing);
    world.nodes.push(node("cp-1", "linux", IPV4));
    world.check("refuse", "belongs");
    // Unless a person wrote the address down.
    world.instances[0].0 = IPV4.to_string();
    world.facts.hostnames.insert(IPV4.to_string(), "win-7".to_owned());
    world.check("approve", "");
}

/// The Node `win-7`, which the DNS alone, forth and back, leads to an entry.
fn led_by_the_dns() -> World {
    let mut world = World::new(KubeletServing);
    world.instances = vec![(IPV4.to_string(), None)];
    world.facts = wmco_csr::Facts::default();
    world.facts.dns.reverse.insert(IPV4.into(), strings(&["win-7.plant.example.net"]));
    world.facts.dns.forward.insert("win-7.plant.example.net".to_owned(), vec![IPV4.into()]);
    world.cluster.node_names = wmco_csr::NodeNames::FirstLabel;
    world
}

/// Finding of the truth about generated clusters: a host that forges both gets no address of another entry.
#[test]
fn a_node_of_another_entry_is_not_tied_by_the_dns() {
    let mut world = led_by_the_dns();
    world.check("approve", "");
    let own = serde_json::json!({"type": "InternalIP", "address": OTHER});
    let addresses = world.nodes[0].status.as_mut().unwrap().addresses.as_mut().unwrap();
    addresses.push(serde_json::from_value(own).unwrap());
    world.check("approve", "");
    world.instances.push((OTHER.to_string(), None));
    world.check("wait", "instance");
}

/// The same where the host of that entry is a node already.
#[test]
fn the_dns_ties_no_node_to_the_address_of_another() {
    let mut world = led_by_the_dns();
    world.nodes.push(node("win-8", "windows", IPV4));
    world.check("refuse", "instance");
    let reason = world.decide().reason();
    assert!(reason.contains("leads it to 192.0.2.7, and that is node win-8's"), "{reason}");
}

/// Two hosts behind one address, told apart by their ports: the address is neither's.
#[test]
fn an_address_that_two_entries_share_is_refused() {
    refused("192.0.2.50", |w| w.instances.push(("b.example".to_owned(), Some(OTHER))));
    let mut answers = wmco_core::instances::Resolutions::default();
    answers.insert("win-7.example", Ok(IPV4));
    answers.insert("win-8.example", Ok(IPV4));
    let data = [("win-7.example", "username=a"), ("win-8.example", "username=a\nport=2222")];
    let entries = wmco_core::instances::parse(data, &answers);
    let world = World::new(KubeletServing);
    let mut view = world.view();
    view.set_entries(&entries, &world.facts);
    let now = world.csr.metadata.creation_timestamp.as_ref().unwrap().0;
    let request = wmco_csr::Request::from(&world.csr);
    let decision = wmco_csr::decide(&request, &world.policy, &view, now);
    assert_eq!(decision.reason(), "belongs: 192.0.2.7: that is entry win-8.example's");
}

#[test]
fn addresses_of_services_are_refused_even_if_the_host_has_them() {
    for address in ["172.30.0.1", "::ffff:172.30.0.1", "fd02::a"] {
        let ip: IpAddr = address.parse().unwrap();
        refused(address, |w| {
            let all = w.facts.addresses.as_mut().unwrap();
            for list in all.values_mut() {
                list.push(ip);
            }
        });
    }
}

#[test]
fn an_address_waits_for_the_service_network_and_a_name_does_not() {
    let mut world = World::new(KubeletServing);
    world.cluster.addresses.services = None;
    world.check("wait", "belongs");
    world.later = world.policy.limits.name_wait;
    world.check("refuse", "belongs");
    world.params_change(|params| {
        params.subject_alt_names.retain(|name| matches!(name, SanType::DnsName(_)));
    });
    world.check("approve", "");
}

/// After a restart of the operator no host was asked yet.
#[test]
fn a_second_address_waits_until_the_host_was_asked() {
    let mut world = forged("192.0.2.50");
    world.facts.addresses = Some(std::collections::BTreeMap::new());
    world.check("wait", "belongs");
    world.later = world.policy.limits.name_wait;
    world.check("refuse", "belongs");
}

/// Without a host to ask, as in files, the Node may speak for itself, but for nobody else.
#[test]
fn a_node_is_believed_only_where_the_policy_says_so_and_about_itself() {
    for name in ["192.0.2.50", "2001:db8::7", "win-7.pub.example.com"] {
        let mut world = forged(name);
        world.policy.believe_nodes = true;
        world.check("approve", "");
        world.policy.believe_nodes = false;
        world.check("refuse", "belongs");
    }
    let mut world = forged("192.0.2.50");
    world.policy.believe_nodes = true;
    world.nodes.push(node("cp-1", "linux", OTHER));
    world.check("refuse", "belongs");
}

#[test]
fn the_names_of_the_host_are_approved() {
    // The listed name, the reported one and that of reverse DNS, in any case.
    for name in ["win-7.plant.example.net", "WIN-7.Plant.Example.Net"] {
        forged(name).check("approve", "");
    }
    let mut reported = forged("win-7.corp.example");
    reported.facts.hostnames.values_mut().for_each(|name| *name = "Win-7.Corp.Example".to_owned());
    reported.check("approve", "");
    let mut pointer = forged("win-7.cloud.example");
    pointer.instances[0].0 = IPV4.to_string();
    pointer.facts.hostnames.insert(IPV4.to_string(), "win-7".to_owned());
    pointer.facts.dns.reverse.insert(IPV4.into(), strings(&["win-7.cloud.example."]));
    pointer.check("approve", "");
    pointer.facts.dns.forward.insert("win-7.cloud.example".to_owned(), vec![OTHER.into()]);
    pointer.check("refuse", "belongs");
}

/// A writer of the Node's status could write the listed name into it.
#[test]
fn a_node_that_only_has_the_listed_name_is_not_its_host() {
    let moved = |w: &mut World| {
        w.nodes = vec![node("win-7", "windows", OTHER)];
        let name = serde_json::json!({"type": "InternalDNS", "address": "win-7.plant.example.net"});
        let addresses = w.nodes[0].status.as_mut().unwrap().addresses.as_mut().unwrap();
        addresses.push(serde_json::from_value(name).unwrap());
        w.params_change(|params| {
            params.subject_alt_names.retain(|name| matches!(name, SanType::DnsName(_)));
        });
    };
    let mut world = World::new(KubeletServing);
    moved(&mut world);
    world.check("refuse", "node-address");
    // Behind an address of the network's, it is the host that knows its own.
    let all = world.facts.addresses.as_mut().unwrap();
    for list in all.values_mut() {
        list.push(OTHER.into());
    }
    world.check("approve", "");
}

/// An administrator of a host adds the address to its interface, and the kubelet writes it into the Node.
#[test]
fn an_address_of_the_cluster_is_nobodys_whoever_shows_it() {
    for address in ["192.0.2.100", "192.0.2.101", "172.30.0.1", "10.128.0.1"] {
        let mut world = World::new(KubeletServing);
        let address: IpAddr = address.parse().unwrap();
        world.cluster.addresses.api.insert("192.0.2.100".parse().unwrap());
        world.cluster.addresses.ingress.insert("192.0.2.101".parse().unwrap());
        world.cluster.addresses.pods.push("10.128.0.0/14".parse().unwrap());
        world.facts.addresses.as_mut().unwrap().get_mut(INSTANCE).unwrap().push(address);
        world.nodes.clear();
        world.nodes.push(
            serde_json::from_value(serde_json::json!({
                "metadata": {"name": NODE, "labels": {"kubernetes.io/os": "windows"}},
                "status": {"addresses": [
                    {"type": "InternalIP", "address": IPV4},
                    {"type": "InternalIP", "address": address},
                    {"type": "Hostname", "address": NODE},
                ]},
            }))
            .unwrap(),
        );
        world.check("approve", "");
        world.params_change(|params| params.subject_alt_names.push(SanType::IpAddress(address)));
        world.check("refuse", "belongs");
        // The Machine API says so, or a list.
        let of_machine = MachineFacts {
            name: "m-1".into(),
            names: vec![NODE.into()],
            addresses: vec![IPV4.into(), address],
            host: Some(Ok(IPV4)),
            node: Some(wmco_csr::Reference { name: NODE.into(), uid: String::new() }),
        };
        world.instances.clear();
        world.machines = vec![of_machine];
        world.check("refuse", "belongs");
    }
}

/// The Node has `name` of type `kind`, and its kubelet asks for what the Node has.
fn with_address(kind: &str, name: &str, asked: SanType) -> World {
    let mut world = World::new(KubeletServing);
    let address = serde_json::json!({"type": kind, "address": name});
    let addresses = world.nodes[0].status.as_mut().unwrap().addresses.as_mut().unwrap();
    addresses.push(serde_json::from_value(address).unwrap());
    world.params_change(|params| params.subject_alt_names.push(asked));
    world
}

#[test]
fn last_dots_mean_nothing() {
    let dns = |name: &str| SanType::DnsName(name.try_into().unwrap());
    let listed = format!("{INSTANCE}.");
    with_address("InternalDNS", &listed, dns(&listed)).check("approve", "");
    with_address("InternalDNS", INSTANCE, dns(&listed)).check("approve", "");
    for reserved in ["kubernetes..", "x.cluster.local.", "."] {
        let mut world = with_address("InternalDNS", reserved, dns(reserved));
        world.facts.hostnames.insert(INSTANCE.to_owned(), reserved.to_owned());
        world.check("refuse", "belongs");
    }
}

#[test]
fn an_address_under_hostname_is_an_address() {
    let address: IpAddr = "192.0.2.8".parse().unwrap();
    let mut world = with_address("Hostname", "192.0.2.8", SanType::IpAddress(address));
    world.facts.addresses.as_mut().unwrap().get_mut(INSTANCE).unwrap().push(address);
    world.check("approve", "");
}
