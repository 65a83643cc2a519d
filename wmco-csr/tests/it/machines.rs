//! Windows Machines: their hosts get the certificates for what the Machine API says is theirs.

use std::net::{IpAddr, Ipv4Addr};

use rcgen::{DnType, SanType};
use serde_json::json;
use wmco_core::machines::key;
use wmco_csr::Kind::{self, KubeletClient, KubeletServing};
use wmco_csr::{MachineFacts, NodeNames, Policy, Reference, Request, Rule, decide};

use crate::fixture::{IPV4, NODE, World, node, strings};

const MACHINE: &str = "winworker-x7k2p";
const OTHER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 50);

/// A Machine object, ready for its host.
fn object(name: &str, labels: &serde_json::Value, addresses: &[(&str, &str)]) -> serde_json::Value {
    let addresses: Vec<_> =
        addresses.iter().map(|(kind, text)| json!({"type": kind, "address": text})).collect();
    json!({
        "metadata": {"name": name, "uid": "m-1", "labels": labels},
        "status": {"phase": "Provisioned", "addresses": addresses},
    })
}

fn facts(object: serde_json::Value) -> MachineFacts {
    serde_json::from_value(object).unwrap()
}

fn labels() -> serde_json::Value {
    json!({"machine.openshift.io/os-id": "Windows"})
}

fn ignored() -> serde_json::Value {
    let mut labels = labels();
    labels[wmco_core::names::IGNORE_LABEL] = json!("true");
    labels
}

/// A Windows Machine with an address and names.
fn machine(name: &str, address: Ipv4Addr, names: &[&str]) -> MachineFacts {
    let address = address.to_string();
    let names = names.iter().map(|name| ("InternalDNS", *name));
    let all: Vec<_> = [("InternalIP", address.as_str())].into_iter().chain(names).collect();
    facts(object(name, &labels(), &all))
}

fn refer(machine: &mut MachineFacts, name: &str, uid: &str) {
    machine.node = Some(Reference { name: name.to_owned(), uid: uid.to_owned() });
}

/// The world of the fixture, in which the host is that of a Machine instead of an entry. It is approved.
fn world(kind: Kind) -> World {
    let mut world = World::new(kind);
    world.instances.clear();
    world.facts.hostnames = [(key(MACHINE), "WIN-7".to_owned())].into();
    world.facts.addresses = Some([(key(MACHINE), vec![IPV4.into()])].into());
    let mut machine = machine(MACHINE, IPV4, &["WIN-7.plant.example.net"]);
    if kind == KubeletServing {
        refer(&mut machine, NODE, "node-uid");
        world.nodes[0].metadata.uid = Some("node-uid".to_owned());
    }
    world.machines.push(machine);
    world
}

#[track_caller]
fn check(kinds: &[Kind], given: impl Fn(&mut World), verdict: &str, rule: &str) {
    for kind in kinds {
        let mut world = world(*kind);
        given(&mut world);
        world.check(verdict, rule);
    }
}

const KUBELETS: [Kind; 2] = [KubeletClient, KubeletServing];

fn ask_for(world: &mut World, name: &str) {
    let common_name = format!("system:node:{name}");
    world.params_change(|params| params.distinguished_name.push(DnType::CommonName, common_name));
}

#[test]
fn a_windows_machine_gets_its_certificates_whoever_approves_for_others() {
    check(&KUBELETS, |_| {}, "approve", "");
    check(&KUBELETS, |w| w.policy.machine_approver = false, "approve", "");
    let of_another_system = |w: &mut World| {
        w.machines[0].host = None;
        w.machines[0].names.push("Win-7.".to_owned());
    };
    check(&KUBELETS, of_another_system, "ignore", "machine");
}

/// As with entries: nothing but who vouches for the name is another.
#[test]
fn the_rules_for_a_request_are_those_for_entries() {
    check(&KUBELETS, |w| w.csr.spec.username = Some("jane".to_owned()), "refuse", "requester");
    check(&KUBELETS, |w| drop(w.csr.spec.groups.as_mut().unwrap().pop()), "refuse", "groups");
    check(&KUBELETS, |w| w.csr.spec.usages = Some(strings(&["any"])), "refuse", "usages");
    let masters = |w: &mut World| {
        w.params_change(|p| p.distinguished_name.push(DnType::OrganizationName, "system:masters"));
    };
    check(&KUBELETS, masters, "refuse", "organization");
    let forge = |w: &mut World| {
        let mut der = w.der();
        *der.last_mut().unwrap() ^= 1;
        w.set_der(&der);
    };
    check(&KUBELETS, forge, "refuse", "signature");
}

#[test]
fn the_names_of_its_addresses_are_its_names_in_any_spelling() {
    for (kind, name) in [
        ("Hostname", "win-7"),
        ("InternalDNS", "WIN-7."),
        ("ExternalDNS", " Win-7.plant.example.net. "),
        ("Hostname", "win-7.plant.example.net"),
    ] {
        let given = |w: &mut World| {
            w.facts.hostnames.clear();
            let addresses = [("InternalIP", "192.0.2.7"), (kind, name)];
            let mut machine = facts(object(MACHINE, &labels(), &addresses));
            machine.node = w.machines[0].node.clone();
            w.machines = vec![machine];
        };
        check(&KUBELETS, given, "approve", "");
    }
    // A name of another kind, an address where a name should be, letters that only look alike.
    for (kind, name) in [
        ("Other", "win-7"),
        ("InternalIP", "win-7"),
        ("Hostname", ""),
        ("Hostname", "192.0.2.7"),
        ("Hostname", "w\u{456}n-7"),
        ("Hostname", "win-70"),
        ("Hostname", "xwin-7"),
        ("Hostname", "in-7"),
    ] {
        let given = |w: &mut World| {
            w.facts.hostnames.values_mut().for_each(|name| *name = "other".to_owned());
            let addresses = [("InternalIP", "192.0.2.7"), (kind, name)];
            w.machines = vec![facts(object(MACHINE, &labels(), &addresses))];
        };
        check(&[KubeletClient], given, "ignore", "instance");
    }
}

/// The full name where the platform takes that, its first label where the platform takes that.
#[test]
fn a_first_label_counts_only_where_nodes_have_it() {
    for (names, expected) in [
        (NodeNames::FirstLabel, ("approve", "")),
        (NodeNames::Full, ("ignore", "machine")),
        (NodeNames::Unknown, ("ignore", "machine")),
    ] {
        let given = |w: &mut World| {
            w.facts.hostnames.values_mut().for_each(|name| *name = "other".to_owned());
            w.cluster.node_names = names;
        };
        check(&[KubeletClient], given, expected.0, expected.1);
        let full = |w: &mut World| {
            given(w);
            ask_for(w, "win-7.plant.example.net");
        };
        check(&[KubeletClient], full, "approve", "");
    }
}

#[test]
fn the_name_of_the_machine_is_its_hosts_only_where_the_platform_says_so() {
    let given = |w: &mut World| {
        w.machines[0].names.clear();
        w.facts.hostnames.clear();
        ask_for(w, MACHINE);
    };
    check(&[KubeletClient], given, "wait", "instance");
    let otherwise = |w: &mut World| {
        given(w);
        w.facts.hostnames.insert(key(MACHINE), "other".to_owned());
    };
    check(&[KubeletClient], otherwise, "ignore", "machine");
    let named = |w: &mut World| {
        given(w);
        w.cluster.hosts_named_as_machines = true;
    };
    check(&[KubeletClient], named, "approve", "");
    // Wherever: the host itself says so.
    let told = |w: &mut World| {
        given(w);
        w.facts.hostnames.insert(key(MACHINE), MACHINE.to_uppercase());
    };
    check(&[KubeletClient], told, "approve", "");
}

#[test]
fn a_name_that_the_host_reports_is_its_name_as_far_as_it_is_nobody_elses() {
    let report = |w: &mut World| {
        w.machines[0].names.clear();
    };
    check(&KUBELETS, report, "approve", "");
    let asked_later = |w: &mut World| {
        report(w);
        w.facts.hostnames.clear();
    };
    check(&KUBELETS, asked_later, "wait", "instance");
    let other_key = |w: &mut World| {
        report(w);
        w.facts.hostnames = [("winworker-zzzzz_machine".to_owned(), NODE.to_owned())].into();
    };
    check(&KUBELETS, other_key, "wait", "instance");
    // Somebody has the name: an entry, another host that reports it, the cluster, a Machine of any kind.
    let of_an_entry = |w: &mut World| {
        report(w);
        w.instances.push((NODE.to_owned(), Some(OTHER)));
    };
    let mut owned = world(KubeletClient);
    of_an_entry(&mut owned);
    owned.check("approve", "");
    assert_eq!(owned.decide().detail(Rule::Instance).unwrap(), "win-7, by its address");
    let first_label = |w: &mut World| {
        report(w);
        w.cluster.node_names = NodeNames::Full;
        w.instances.push(("win-7.corp.example".to_owned(), Some(OTHER)));
    };
    check(&[KubeletClient], first_label, "refuse", "instance");
    let of_a_report = |w: &mut World| {
        report(w);
        w.instances.push((OTHER.to_string(), None));
        w.facts.hostnames.insert(OTHER.to_string(), NODE.to_owned());
    };
    check(&[KubeletClient], of_a_report, "refuse", "instance");
    let of_two_machines = |w: &mut World| {
        report(w);
        w.machines.push(machine("winworker-b", OTHER, &[]));
        w.facts.hostnames.insert(key("winworker-b"), NODE.to_owned());
    };
    check(&[KubeletClient], of_two_machines, "refuse", "instance");
    let of_the_cluster = |w: &mut World| {
        report(w);
        w.facts.hostnames.insert(key(MACHINE), "kubernetes".to_owned());
        ask_for(w, "kubernetes");
    };
    check(&[KubeletClient], of_the_cluster, "refuse", "instance");
    let of_a_machine = |w: &mut World| {
        report(w);
        let names = strings(&[NODE]);
        w.machines.push(MachineFacts { names, ..MachineFacts::default() });
    };
    check(&[KubeletClient], of_a_machine, "ignore", "machine");
}

/// The host of a Machine reports the name of another Machine: that one keeps it, in any state.
#[test]
fn a_report_takes_no_name_from_another_machine() {
    for own in ["win-7", "WIN-7.lab.example"] {
        for deleted in [false, true] {
            let mut world = world(KubeletClient);
            world.machines[0].names.clear();
            let mut owner = object(
                "winworker-b",
                &labels(),
                &[("InternalIP", "192.0.2.50"), ("Hostname", own)],
            );
            if deleted {
                owner["metadata"]["deletionTimestamp"] = json!("2026-05-04T03:00:00Z");
            }
            world.machines.push(facts(owner));
            if deleted {
                world.check("ignore", "machine");
            } else {
                world.check("approve", "");
                let instance = world.decide().detail(Rule::Instance).unwrap().into_owned();
                assert_eq!(instance, "Machine winworker-b, by the Machine API");
            }
        }
    }
}

#[test]
fn a_name_that_two_machines_have_is_neithers_and_told() {
    for other in ["win-7.plant.example.net", "WIN-7.", "win-7"] {
        let twin = |w: &mut World| {
            w.machines[0].names = strings(&["win-7", "win-7.plant.example.net"]);
            w.machines.push(machine("winworker-b", OTHER, &[other]));
        };
        let expected =
            if other.contains("plant") { ("approve", "") } else { ("refuse", "instance") };
        check(&[KubeletClient], twin, expected.0, expected.1);
        let full = |w: &mut World| {
            twin(w);
            ask_for(w, "win-7.plant.example.net");
        };
        let expected =
            if other.contains("plant") { ("refuse", "instance") } else { ("approve", "") };
        check(&[KubeletClient], full, expected.0, expected.1);
    }
    let mut world = world(KubeletClient);
    world.machines.push(machine("winworker-b", OTHER, &["Win-7.plant.example.net"]));
    insta::assert_snapshot!(told(&world), @r"
    win-7: Machine winworker-x7k2p (by the Machine API) and Machine winworker-b (by the Machine API) both claim the name win-7, rename one of the hosts or correct the DNS
    win-7.plant.example.net: Machine winworker-x7k2p (by the Machine API) and Machine winworker-b (by the Machine API) both claim the name win-7.plant.example.net, rename one of the hosts or correct the DNS
    ");
}

fn told(world: &World) -> String {
    let disputes = world.view().disputes();
    let lines: Vec<_> = disputes.iter().map(|d| format!("{}: {}", d.name, d.message)).collect();
    lines.join("\n")
}

#[test]
fn an_address_that_two_machines_have_is_neithers_and_told() {
    let twin = |w: &mut World| w.machines.push(machine("winworker-b", IPV4, &["win-8"]));
    check(&KUBELETS, twin, "ignore", "machine");
    let linux = |w: &mut World| {
        twin(w);
        w.machines[1].host = None;
        w.policy.machine_approver = false;
    };
    check(&KUBELETS, linux, "ignore", "machine");
    let mut world = world(KubeletClient);
    twin(&mut world);
    insta::assert_snapshot!(told(&world), @"192.0.2.7: Machine winworker-x7k2p and Machine winworker-b both have the address 192.0.2.7, delete the Machine that lost it");
}

/// One host, two ways to it: people say whose it is to be.
#[test]
fn a_machine_whose_host_is_listed_gets_nothing_unless_it_is_to_be_ignored() {
    let mut listed = world(KubeletClient);
    listed.instances.push((IPV4.to_string(), None));
    listed.facts.hostnames.insert(IPV4.to_string(), "win-7".to_owned());
    listed.check("ignore", "machine");
    let label = wmco_core::names::IGNORE_LABEL;
    let expected = format!(
        "192.0.2.7: 192.0.2.7 is the host of Machine {MACHINE}, remove the entry or label the Machine \
         {label}=true"
    );
    assert_eq!(told(&listed), expected);
    // Listed by a name that the Machine has as well, nothing is certain either.
    listed.instances = vec![("win-7.corp.example".to_owned(), Some(IPV4))];
    listed.check("refuse", "instance");
    assert!(told(&listed).contains("win-7.corp.example is the host of Machine winworker-x7k2p"));
}

#[test]
fn an_entry_for_the_host_of_an_ignored_machine_is_an_entry() {
    for (entry, resolves) in
        [(IPV4.to_string(), None), ("Win-7.".to_owned(), None), (NODE.to_owned(), Some(IPV4))]
    {
        for kind in KUBELETS {
            let mut world = World::new(kind);
            let addresses = [("InternalIP", "192.0.2.7"), ("Hostname", "WIN-7")];
            world.machines.push(facts(object(MACHINE, &ignored(), &addresses)));
            world.instances = vec![(entry.clone(), resolves)];
            world.facts.hostnames = [(entry.clone(), NODE.to_owned())].into();
            world.facts.addresses = Some([(entry.clone(), vec![IPV4.into()])].into());
            world.check("approve", "");
            assert_eq!(told(&world), "");
        }
    }
    // Not listed: nobody's. Another host does not get its name by a report.
    let leave = |w: &mut World| {
        let addresses = [("InternalIP", "192.0.2.7"), ("Hostname", "WIN-7")];
        w.machines = vec![facts(object(MACHINE, &ignored(), &addresses))];
    };
    check(&KUBELETS, leave, "ignore", "machine");
    let stolen = |w: &mut World| {
        leave(w);
        w.instances.push((OTHER.to_string(), None));
        w.facts.hostnames.insert(OTHER.to_string(), NODE.to_owned());
    };
    check(&[KubeletClient], stolen, "ignore", "machine");
}

/// Not refused, for it may become right a moment later.
#[test]
fn a_machine_without_a_host_waits_and_keeps_its_names() {
    type Change = fn(&mut serde_json::Value);
    let changes: [(Change, &str); 5] = [
        (
            |m| m["metadata"]["deletionTimestamp"] = json!("2026-05-04T03:00:00Z"),
            "it is being deleted",
        ),
        (|m| m["status"]["phase"] = json!("Provisioning"), "it is in phase Provisioning"),
        (|m| m["status"]["phase"] = json!("Failed"), "it is in phase Failed"),
        (|m| drop(m["status"].as_object_mut().unwrap().remove("phase")), "it is in no phase yet"),
        (
            |m| m["status"]["addresses"][0]["type"] = json!("ExternalIP"),
            "it has no internal ipv4 address",
        ),
    ];
    for (change, why) in changes {
        for kind in KUBELETS {
            let mut world = world(kind);
            let addresses = [("InternalIP", "192.0.2.7"), ("Hostname", "win-7")];
            let mut object = object(MACHINE, &labels(), &addresses);
            change(&mut object);
            world.machines = vec![facts(object)];
            world.check("ignore", "machine");
            let reason = world.decide().reason();
            assert_eq!(reason, format!("machine: Machine {MACHINE} has the name win-7, and {why}"));
            assert!(world.decide().warning().is_none());
            // An entry at another address that reports the name does not get it meanwhile.
            world.instances.push((OTHER.to_string(), None));
            world.facts.hostnames.insert(OTHER.to_string(), NODE.to_owned());
            world.check("ignore", "machine");
        }
    }
}

/// A stale Machine of the same name and address, as while its finalizers run.
#[test]
fn a_machine_waits_for_its_predecessor() {
    let stale = |w: &mut World| {
        let addresses = [("InternalIP", "192.0.2.99"), ("Hostname", "win-7")];
        let mut object = object("winworker-old", &labels(), &addresses);
        object["metadata"]["deletionTimestamp"] = json!("2026-05-04T03:00:00Z");
        w.machines[0].names = strings(&["win-7"]);
        w.machines.push(facts(object));
    };
    check(&KUBELETS, stale, "ignore", "machine");
    let gone = |w: &mut World| {
        stale(w);
        w.machines.pop();
    };
    check(&KUBELETS, gone, "approve", "");
}

#[test]
fn a_machine_gets_no_second_client_certificate_while_it_has_a_node() {
    let has = |w: &mut World, name: &str, uid: &str| {
        refer(&mut w.machines[0], name, uid);
        let mut node = node(name, "windows", IPV4);
        node.metadata.uid = Some("u-1".to_owned());
        w.nodes.push(node);
    };
    check(&[KubeletClient], |w| has(w, "other", "u-1"), "ignore", "machine-node");
    check(&[KubeletClient], |w| has(w, "other", ""), "ignore", "machine-node");
    check(&[KubeletClient], |w| has(w, NODE, "u-1"), "ignore", "node-absent");
    // The Node of the reference is gone.
    check(&[KubeletClient], |w| refer(&mut w.machines[0], "other", "u-1"), "approve", "");
    check(&[KubeletClient], |w| refer(&mut w.machines[0], NODE, "u-1"), "approve", "");
    check(&[KubeletClient], |w| has(w, "other", "u-0"), "approve", "");
    // Any Node of that name is in the way.
    let living = |w: &mut World| w.nodes.push(node(NODE, "windows", OTHER));
    check(&[KubeletClient], living, "ignore", "node-absent");
    let linux = |w: &mut World| w.nodes.push(node(NODE, "linux", OTHER));
    check(&[KubeletClient], linux, "ignore", "node-os");
}

#[test]
fn a_serving_certificate_takes_the_word_of_the_machine_api_for_the_node() {
    type Change = fn(&mut World);
    let late = |w: &mut World| w.later = w.policy.limits.name_wait;
    let changes: [Change; 3] = [
        |w| w.machines[0].node = None,
        |w| refer(&mut w.machines[0], NODE, "former"),
        |w| refer(&mut w.machines[0], "gone", ""),
    ];
    for change in changes {
        check(&[KubeletServing], change, "wait", "machine-node");
        let too_late = |w: &mut World| {
            change(w);
            late(w);
        };
        check(&[KubeletServing], too_late, "refuse", "machine-node");
    }
    let foreign = |w: &mut World| {
        w.nodes.push(node("cp-1", "linux", OTHER));
        refer(&mut w.machines[0], "cp-1", "");
    };
    check(&[KubeletServing], foreign, "refuse", "machine-node");
    // It is never denied: the Machine API may be late.
    let mut world = world(KubeletServing);
    foreign(&mut world);
    world.policy.deny = true;
    let wmco_csr::Verdict::Refuse(denial) = world.decide().into_verdict() else {
        panic!("refused")
    };
    assert!(denial.is_none());
    check(&[KubeletServing], |w| refer(&mut w.machines[0], NODE, ""), "approve", "");
    check(&[KubeletServing], |w| w.nodes[0].metadata.uid = None, "approve", "");
    check(&[KubeletServing], |w| w.nodes.clear(), "wait", "node");
}

/// The Machine API finds a Node by what that says of itself, so its word alone gives no name.
#[test]
fn a_reference_alone_gives_no_name() {
    let lured = |w: &mut World| {
        w.machines[0].names = strings(&["win-9"]);
        w.facts.hostnames.insert(key(MACHINE), "win-9".to_owned());
    };
    check(&[KubeletServing], lured, "ignore", "machine");
}

/// The Node's status says that it has `name`, and its kubelet asks for that, too.
fn forge(world: &mut World, name: &str) {
    let (kind, san) = match name.parse::<IpAddr>() {
        Ok(ip) => ("InternalIP", SanType::IpAddress(ip)),
        Err(_) => ("InternalDNS", SanType::DnsName(name.try_into().unwrap())),
    };
    let address = json!({"type": kind, "address": name});
    let addresses = world.nodes[0].status.as_mut().unwrap().addresses.as_mut().unwrap();
    addresses.push(serde_json::from_value(address).unwrap());
    world.params_change(|params| params.subject_alt_names.push(san));
}

#[test]
fn a_serving_certificate_holds_what_the_machine_has() {
    for name in ["192.0.2.60", "2001:db8::7", "Ec2-192-0-2-60.compute.example"] {
        let only_the_node = |w: &mut World| forge(w, name);
        check(&[KubeletServing], only_the_node, "refuse", "belongs");
        let given = |w: &mut World| {
            forge(w, name);
            match name.parse() {
                Ok(ip) => w.machines[0].addresses.push(ip),
                Err(_) => w.machines[0].names.push(name.to_owned()),
            }
        };
        check(&[KubeletServing], given, "approve", "");
        let of_another = |w: &mut World| {
            given(w);
            let mut other = machine("winworker-b", OTHER, &[]);
            match name.parse() {
                Ok(ip) => other.addresses.push(ip),
                Err(_) => other.names.push(name.to_owned()),
            }
            w.machines.push(other);
        };
        check(&[KubeletServing], of_another, "refuse", "belongs");
        // People wrote it down for another host.
        let listed = |w: &mut World| {
            given(w);
            w.instances.push((name.to_owned(), None));
        };
        // An entry is never listed by IPv6.
        check(&[KubeletServing], listed, "refuse", "belongs");
        // What other hosts and Nodes say takes nothing from a Machine.
        let claimed = |w: &mut World| {
            given(w);
            let mut liar = node("liar", "windows", OTHER);
            let kind = if name.parse::<IpAddr>().is_ok() { "InternalIP" } else { "InternalDNS" };
            let address = serde_json::from_value(json!({"type": kind, "address": name})).unwrap();
            liar.status.as_mut().unwrap().addresses.as_mut().unwrap().push(address);
            w.nodes.push(liar);
        };
        check(&[KubeletServing], claimed, "approve", "");
    }
}

#[test]
fn no_serving_certificate_holds_the_address_of_another_machine() {
    let forged = |w: &mut World| {
        w.machines.push(machine("winworker-b", OTHER, &["win-8"]));
        w.facts.addresses.as_mut().unwrap().values_mut().for_each(|all| all.push(OTHER.into()));
        forge(w, "192.0.2.50");
    };
    check(&[KubeletServing], forged, "refuse", "belongs");
    let mut world = world(KubeletServing);
    forged(&mut world);
    let reason = world.decide().reason();
    assert_eq!(reason, "belongs: 192.0.2.50: that is Machine winworker-b's");
    check(
        &[KubeletServing],
        |w| {
            w.machines.push(machine("winworker-b", OTHER, &["win-8"]));
            forge(w, "win-8");
        },
        "refuse",
        "belongs",
    );
}

/// The Node shows no address of the Machine.
#[test]
fn a_node_elsewhere_is_not_the_machines() {
    let moved = |w: &mut World| {
        let mut node = node(NODE, "windows", OTHER);
        node.metadata.uid = Some("node-uid".to_owned());
        w.nodes = vec![node];
        w.params_change(|p| p.subject_alt_names.retain(|n| matches!(n, SanType::DnsName(_))));
    };
    check(&[KubeletServing], moved, "refuse", "node-address");
}

/// An entry whose name the DNS leads to the host of a Machine gets nothing, and takes nothing from it.
#[test]
fn dns_that_leads_an_entry_to_a_machine_is_no_proof() {
    let entry = |w: &mut World| {
        w.instances.push(("db.corp.example".to_owned(), Some(IPV4)));
        w.facts.hostnames.insert("db.corp.example".to_owned(), "win-7".to_owned());
    };
    check(&KUBELETS, entry, "approve", "");
    let asked = |w: &mut World| {
        entry(w);
        ask_for(w, "db");
    };
    check(&[KubeletClient], asked, "ignore", "machine");
}

/// The order in which the facts become known does not matter.
#[test]
fn reports_and_machines_come_in_any_order() {
    let mut world = world(KubeletClient);
    world.machines[0].names.clear();
    let mut view = world.view();
    let instances: [(&str, Option<Ipv4Addr>); 0] = [];
    view.set_machines(world.machines.clone());
    view.set_instances(instances, &world.facts);
    let now = world.csr.metadata.creation_timestamp.as_ref().unwrap().0;
    let policy = Policy::new(crate::fixture::NAMESPACE);
    let late = decide(&Request::from(&world.csr), &policy, &view, now).to_string();
    assert_eq!(late, world.decide().to_string());
    insta::assert_snapshot!(late.lines().next().unwrap(), @"csr-1 (kubelet-client): approve");
}

#[test]
fn an_odd_machine_tells_less() {
    let odd = facts(json!({"metadata": {"name": "m-1"}, "status": {"addresses": "none"}}));
    assert_eq!(odd, MachineFacts { name: "m-1".to_owned(), ..MachineFacts::default() });
}
