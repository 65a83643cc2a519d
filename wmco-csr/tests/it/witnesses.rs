//! What ties a name or an address to a host besides its own word, and what never does.
//! Source: `docs/contract/certificate-requests.md`, CSR43, CSR49 to CSR51.

use std::net::{IpAddr, Ipv4Addr};

use rcgen::SanType;
use wmco_csr::Kind::{KubeletClient, KubeletServing};
use wmco_csr::{MachineFacts, NodeNames, Reference, Verdict};

use crate::fixture::{INSTANCE, IPV4, NODE, World, node};

const PUBLIC: &str = "203.0.113.7";
const PUBLIC_NAME: &str = "pub-7.cloud.example";
const OTHER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 50);

/// The Node has `names` besides, and its kubelet asks for them.
pub(crate) fn asking_for(names: &[&str]) -> World {
    let mut world = World::new(KubeletServing);
    for name in names {
        let (kind, san) = match name.parse::<IpAddr>() {
            Ok(ip) => ("ExternalIP", SanType::IpAddress(ip)),
            Err(_) => ("ExternalDNS", SanType::DnsName((*name).try_into().unwrap())),
        };
        let address = serde_json::json!({"type": kind, "address": name});
        let addresses = world.nodes[0].status.as_mut().unwrap().addresses.as_mut().unwrap();
        addresses.push(serde_json::from_value(address).unwrap());
        world.params_change(|params| params.subject_alt_names.push(san));
    }
    world
}

pub(crate) fn leads(world: &mut World, name: &str, to: &[&str]) {
    let to = to.iter().map(|address| address.parse().unwrap()).collect();
    world.facts.dns.forward.insert(name.to_owned(), to);
}

pub(crate) fn points(world: &mut World, address: &str, to: &str) {
    world.facts.dns.reverse.insert(address.parse().unwrap(), vec![to.to_owned()]);
}

pub(crate) fn reports(world: &mut World, address: &str) {
    let address: IpAddr = address.parse().unwrap();
    world.facts.addresses.as_mut().unwrap().values_mut().for_each(|list| list.push(address));
}

/// W-34: a person says it.
#[test]
fn what_the_entry_says_is_the_hosts() {
    let mut world = asking_for(&[PUBLIC, PUBLIC_NAME]);
    world.check("refuse", "belongs");
    world.also = vec![(INSTANCE.to_owned(), "203.0.113.7, Pub-7.cloud.example.")];
    world.check("approve", "");
    // W-40: the DNS says nothing against a person.
    leads(&mut world, PUBLIC_NAME, &["198.51.100.1"]);
    world.check("approve", "");
}

/// Neither has what two entries say, and an entry has its own key.
#[test]
fn what_another_entry_has_too_is_refused() {
    for (other, names) in
        [("b.example", PUBLIC_NAME), ("b.example", PUBLIC), (PUBLIC_NAME, "x.example")]
    {
        let mut world = asking_for(&[PUBLIC, PUBLIC_NAME]);
        world.also = vec![(INSTANCE.to_owned(), "203.0.113.7, pub-7.cloud.example")];
        world.instances.push((other.to_owned(), Some(OTHER)));
        world.also.push((other.to_owned(), names));
        world.check("refuse", "belongs");
    }
}

/// A person cannot give away what the cluster, a Node or a Machine has.
#[test]
fn an_entry_gives_away_nothing_of_the_cluster() {
    let mut world = asking_for(&["172.30.0.1"]);
    world.also = vec![(INSTANCE.to_owned(), "172.30.0.1")];
    world.check("refuse", "belongs");
    let mut world = asking_for(&["api-int.cluster.example.net"]);
    world.also = vec![(INSTANCE.to_owned(), "api-int.cluster.example.net")];
    world.check("refuse", "belongs");
    let mut world = asking_for(&["cp-1"]);
    world.also = vec![(INSTANCE.to_owned(), "cp-1")];
    world.nodes.push(node("cp-1", "linux", OTHER));
    world.check("refuse", "belongs");
}

/// W-34: the DNS leads the name to the host and nowhere else.
#[test]
fn a_name_that_the_dns_leads_to_the_host_is_its_own() {
    let mut world = asking_for(&[PUBLIC_NAME]);
    leads(&mut world, PUBLIC_NAME, &["192.0.2.7"]);
    world.check("approve", "");
    leads(&mut world, PUBLIC_NAME, &["192.0.2.7", "198.51.100.1"]);
    world.check("refuse", "belongs");
    // An address of the host's other family may be its own word.
    leads(&mut world, PUBLIC_NAME, &["192.0.2.7", "2001:db8::7"]);
    world.check("refuse", "belongs");
    reports(&mut world, "2001:db8::7");
    world.check("approve", "");
}

/// Otherwise a host gets the names of any machine outside of the cluster by reporting its address.
#[test]
fn a_name_that_leads_to_what_only_the_host_reports_is_refused() {
    let mut world = asking_for(&["files.corp.example"]);
    leads(&mut world, "files.corp.example", &["198.51.100.1"]);
    reports(&mut world, "198.51.100.1");
    world.check("refuse", "belongs");
}

/// Whatever way another host has the address: listed, by `names=`, by its report, or by its Machine.
#[test]
fn a_name_that_leads_to_what_another_host_has_is_refused() {
    let led = || {
        let mut world = asking_for(&[PUBLIC_NAME]);
        reports(&mut world, "192.0.2.50");
        leads(&mut world, PUBLIC_NAME, &["192.0.2.7", "192.0.2.50"]);
        world
    };
    led().check("approve", "");
    let mut world = led();
    world.instances.push(("b.example".to_owned(), Some(OTHER)));
    world.check("refuse", "belongs");
    let mut world = led();
    world.instances.push(("b.example".to_owned(), Some(Ipv4Addr::new(192, 0, 2, 51))));
    world.also = vec![("b.example".to_owned(), "192.0.2.50")];
    world.check("refuse", "belongs");
    let mut world = led();
    world.instances.push(("b.example".to_owned(), Some(Ipv4Addr::new(192, 0, 2, 51))));
    let reported = world.facts.addresses.as_mut().unwrap();
    reported.insert("b.example".to_owned(), vec![OTHER.into()]);
    world.check("refuse", "belongs");
    let mut world = led();
    world.machines =
        vec![MachineFacts { addresses: vec![OTHER.into()], ..MachineFacts::default() }];
    world.check("refuse", "belongs");
    let mut world = led();
    world.nodes.push(node("cp-1", "linux", OTHER));
    world.check("refuse", "belongs");
}

/// The same for an address that the entry has in `names=`, too.
#[test]
fn a_name_that_leads_to_what_another_has_besides_the_entry_is_refused() {
    let led = || {
        let mut world = asking_for(&[PUBLIC_NAME]);
        world.also = vec![(INSTANCE.to_owned(), "192.0.2.50")];
        leads(&mut world, PUBLIC_NAME, &["192.0.2.50"]);
        world
    };
    led().check("approve", "");
    let mut world = led();
    world.machines =
        vec![MachineFacts { addresses: vec![OTHER.into()], ..MachineFacts::default() }];
    world.check("refuse", "belongs");
    let mut world = led();
    world.instances.push(("b.example".to_owned(), Some(OTHER)));
    world.check("refuse", "belongs");
    let mut world = led();
    world.instances.push(("b.example".to_owned(), Some(Ipv4Addr::new(192, 0, 2, 51))));
    world.also.push(("b.example".to_owned(), "192.0.2.50"));
    world.check("refuse", "belongs");
}

/// Whoever shows an address of the cluster, nothing that leads there is a host's.
#[test]
fn a_name_that_leads_to_an_address_of_the_cluster_is_refused() {
    for vip in ["10.0.0.2", "172.30.0.1"] {
        let mut world = asking_for(&[PUBLIC_NAME]);
        world.cluster.addresses.ingress = ["10.0.0.2".parse().unwrap()].into();
        world.also = vec![(INSTANCE.to_owned(), vip)];
        leads(&mut world, PUBLIC_NAME, &[vip]);
        world.check("refuse", "belongs");
        // By its own word: it calls itself so, and says that it has the address.
        let mut world = World::new(KubeletClient);
        world.cluster.addresses.ingress = ["10.0.0.2".parse().unwrap()].into();
        world.instances = vec![("192.0.2.7".to_owned(), Some(IPV4))];
        world.facts.hostnames = [("192.0.2.7".to_owned(), NODE.to_owned())].into();
        world.facts.addresses =
            Some([("192.0.2.7".to_owned(), vec![IPV4.into(), vip.parse().unwrap()])].into());
        leads(&mut world, NODE, &["192.0.2.7", vip]);
        world.check("approve", "");
        leads(&mut world, NODE, &[vip]);
        world.check("refuse", "instance");
    }
}

/// Who has the bootstrap token makes one Node of a host, however many names it has.
#[test]
fn a_further_name_of_a_host_that_is_a_node_gives_no_second_one() {
    let mut world = World::new(KubeletClient);
    world.instances = vec![("192.0.2.7".to_owned(), Some(IPV4))];
    world.facts.hostnames = [("192.0.2.7".to_owned(), "other".to_owned())].into();
    world.check("ignore", "instance");
    world.also = vec![("192.0.2.7".to_owned(), NODE)];
    world.check("approve", "");
    world.nodes.push(node("other", "windows", IPV4));
    world.check("ignore", "node-absent");
}

/// What was asked for once is not refused because it is there again.
#[test]
fn names_that_stand_there_again_and_again_wait_together() {
    let full: Vec<String> = (0..10).map(|number| format!("a.n{number}")).collect();
    let mut names = vec!["a"; 100];
    names.extend(full.iter().map(String::as_str));
    let mut world = asking_for(&names);
    world.policy.asks_dns = true;
    world.check("wait", "belongs");
}

#[test]
fn a_name_that_leads_to_the_host_and_that_another_has_is_refused() {
    let led = || {
        let mut world = asking_for(&[PUBLIC_NAME]);
        leads(&mut world, PUBLIC_NAME, &["192.0.2.7"]);
        world
    };
    let mut world = led();
    world.nodes.push(node(PUBLIC_NAME, "linux", OTHER));
    world.check("refuse", "belongs");
    let mut world = led();
    world.instances.push((PUBLIC_NAME.to_owned(), Some(OTHER)));
    world.check("refuse", "belongs");
    let mut world = led();
    world.instances.push(("b.example".to_owned(), Some(OTHER)));
    world.facts.hostnames.insert("b.example".to_owned(), PUBLIC_NAME.to_owned());
    world.check("refuse", "belongs");
}

/// W-34: the reverse answer of an address is a name that is the host's.
#[test]
fn an_address_whose_name_is_the_hosts_is_its_own() {
    let mut world = asking_for(&[PUBLIC]);
    points(&mut world, PUBLIC, "Pub-7.cloud.example.");
    world.check("refuse", "belongs");
    leads(&mut world, PUBLIC_NAME, &["192.0.2.7"]);
    world.check("approve", "");
    // What speaks against the name speaks against the address.
    world.nodes.push(node(PUBLIC_NAME, "linux", OTHER));
    world.check("refuse", "belongs");
    world.nodes.pop();
    world.check("approve", "");
    world.nodes.push(node("cp-1", "linux", PUBLIC.parse().unwrap()));
    world.check("refuse", "belongs");
}

/// A host name is the host's word alone, which gives it no address.
#[test]
fn an_address_whose_name_only_the_host_tells_is_refused() {
    let mut world = asking_for(&["198.51.100.1"]);
    world.facts.hostnames.insert(INSTANCE.to_owned(), "files.corp.example".to_owned());
    points(&mut world, "198.51.100.1", "files.corp.example");
    world.check("refuse", "belongs");
    // It is listed by this name.
    points(&mut world, "198.51.100.1", INSTANCE);
    world.check("approve", "");
}

/// W-37: on no platform does it matter how the full name was proven.
#[test]
fn the_first_label_of_a_proven_name_is_the_hosts() {
    let mut world = asking_for(&["pub-7", PUBLIC_NAME]);
    world.check("refuse", "belongs");
    leads(&mut world, PUBLIC_NAME, &["192.0.2.7"]);
    world.check("approve", "");
    let mut world = asking_for(&["pub-7"]);
    world.also = vec![(INSTANCE.to_owned(), PUBLIC_NAME)];
    world.check("approve", "");
    // Here no Node is called by a first label.
    let mut world = asking_for(&["pub-7"]);
    world.cluster.node_names = NodeNames::FullOrShort;
    world.instances[0].0 = "win-7".to_owned();
    world.facts.hostnames.insert("win-7".to_owned(), PUBLIC_NAME.to_owned());
    world.facts.addresses = Some([("win-7".to_owned(), vec![IPV4.into()])].into());
    world.check("approve", "");
}

#[test]
fn a_first_label_that_another_has_is_refused() {
    let labelled = || {
        let mut world = asking_for(&["pub-7", PUBLIC_NAME]);
        leads(&mut world, PUBLIC_NAME, &["192.0.2.7"]);
        world
    };
    let mut world = labelled();
    world.nodes.push(node("pub-7.other.example", "linux", OTHER));
    world.check("refuse", "belongs");
    let mut world = labelled();
    world.instances.push(("b.example".to_owned(), Some(OTHER)));
    world.facts.hostnames.insert("b.example".to_owned(), "pub-7.other.example".to_owned());
    world.check("refuse", "belongs");
    let mut world = labelled();
    world.instances.push(("pub-7.other.example".to_owned(), Some(OTHER)));
    world.check("refuse", "belongs");
}

/// The operator has not asked yet, so nothing is denied.
#[test]
fn what_the_dns_was_not_asked_for_waits() {
    let mut world = asking_for(&["pub-7", PUBLIC, PUBLIC_NAME]);
    world.policy.asks_dns = true;
    world.check("wait", "belongs");
    world.facts.dns.forward.insert(PUBLIC_NAME.to_owned(), Vec::new());
    world.check("refuse", "belongs");
    leads(&mut world, PUBLIC_NAME, &["192.0.2.7"]);
    world.check("wait", "belongs");
    points(&mut world, PUBLIC, PUBLIC_NAME);
    world.check("approve", "");
}

/// Advice names the option, and the entry that lacks it.
#[test]
fn a_refusal_names_the_option() {
    let world = asking_for(&[PUBLIC_NAME]);
    let text = world.decide().to_string();
    assert!(text.contains("`names=` of entry win-7.plant.example.net"), "{text}");
    let mut world = asking_for(&[PUBLIC_NAME]);
    leads(&mut world, PUBLIC_NAME, &["198.51.100.1"]);
    let text = world.decide().to_string();
    for way in ["list the host by that name", "`names=`", "correct the DNS"] {
        assert!(text.contains(way), "{way}: {text}");
    }
}

/// The DNS may say so yet, and a denied request is over.
#[test]
fn what_the_dns_may_still_tell_is_not_denied() {
    let mut world = asking_for(&[PUBLIC_NAME]);
    world.policy.deny = true;
    let denies = |world: &World| matches!(world.decide().verdict(), Verdict::Refuse(Some(_)));
    world.check("refuse", "belongs");
    assert!(!denies(&world));
    world.nodes.push(node(PUBLIC_NAME, "linux", OTHER));
    assert!(denies(&world));
}

#[track_caller]
fn advice_has_no_option(world: &World) {
    let decision = world.decide();
    assert!(!decision.advice().contains("names="), "{decision}");
    assert!(!decision.reason().contains("names="), "{decision}");
}

/// Each of these worlds either has it there already, or has no use for it.
#[test]
fn the_option_is_not_proposed_where_it_does_not_help() {
    let reserved = "api-int.cluster.example.net";
    let world = asking_for(&[reserved]);
    world.check("refuse", "belongs");
    advice_has_no_option(&world);
    // It is there, and a Node has the name.
    let mut world = asking_for(&["cp-1"]);
    world.also = vec![(INSTANCE.to_owned(), "cp-1")];
    world.nodes.push(node("cp-1", "linux", OTHER));
    world.check("refuse", "belongs");
    advice_has_no_option(&world);
    // A name of its own that the cluster has.
    let mut world = World::new(KubeletClient);
    world.facts.hostnames.insert(INSTANCE.to_owned(), "api-int".to_owned());
    world.params_change(|params| {
        params.distinguished_name.push(rcgen::DnType::CommonName, "system:node:api-int");
    });
    world.check("refuse", "instance");
    advice_has_no_option(&world);
    world.facts.hostnames.clear();
    world.check("ignore", "instance");
    advice_has_no_option(&world);
}

/// A Machine has no entry.
#[test]
fn the_option_is_not_proposed_for_machines() {
    let of_machine = || {
        let mut world = asking_for(&[PUBLIC_NAME]);
        let key = wmco_core::machines::key("m-1");
        world.facts.hostnames = [(key.clone(), NODE.to_owned())].into();
        world.facts.addresses = Some([(key, vec![IPV4.into()])].into());
        world.instances.clear();
        world.machines = vec![MachineFacts {
            name: "m-1".to_owned(),
            names: vec![NODE.to_owned()],
            addresses: vec![IPV4.into()],
            node: Some(Reference { name: NODE.to_owned(), uid: String::new() }),
            host: Some(Ok(IPV4)),
        }];
        world
    };
    let mut world = of_machine();
    world.check("refuse", "belongs");
    advice_has_no_option(&world);
    leads(&mut world, PUBLIC_NAME, &["198.51.100.1"]);
    world.check("refuse", "belongs");
    advice_has_no_option(&world);
}

/// There is a longer name, which is none of a Node on this platform.
#[test]
fn the_option_needs_the_very_name() {
    let mut world = World::new(KubeletClient);
    world.cluster.node_names = NodeNames::Full;
    world.facts.hostnames.insert(INSTANCE.to_owned(), "other".to_owned());
    world.also = vec![(INSTANCE.to_owned(), "win-7.cloud.example")];
    world.check("ignore", "instance");
    assert!(world.decide().advice().contains("write this very name"), "{}", world.decide());
}

/// W-36: from its metadata its kubelet takes its name, and that is its own word like its host name.
#[test]
fn a_name_of_its_metadata_is_one_that_the_host_reports() {
    let mut world = World::new(KubeletClient);
    let key = IPV4.to_string();
    world.instances = vec![(key.clone(), Some(IPV4))];
    world.facts.hostnames = [(key.clone(), "EC2AMAZ-1".to_owned())].into();
    world.check("ignore", "instance");
    world.facts.metadata_names = [(key.clone(), "Win-7.".to_owned())].into();
    world.check("approve", "");
    // Both names are its own in a certificate.
    let mut serving = asking_for(&["ec2amaz-1.corp.example"]);
    serving.instances = vec![(key.clone(), Some(IPV4))];
    serving.facts = world.facts.clone();
    serving.facts.hostnames = [(key.clone(), "EC2AMAZ-1.corp.example".to_owned())].into();
    serving.facts.addresses = Some([(key.clone(), vec![IPV4.into()])].into());
    serving.check("approve", "");
    // Two hosts of one name have it neither, whichever word of theirs it is.
    world.instances.push(("192.0.2.50".to_owned(), Some(OTHER)));
    world.facts.hostnames.insert("192.0.2.50".to_owned(), "WIN-7".to_owned());
    world.check("refuse", "instance");
    world.facts.hostnames.remove("192.0.2.50");
    world.facts.metadata_names.insert("192.0.2.50".to_owned(), "win-7".to_owned());
    world.check("refuse", "instance");
}
