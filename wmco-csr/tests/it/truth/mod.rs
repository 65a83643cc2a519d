//! Whatever hosts, Nodes and the DNS say: no certificate for what is somebody else's.
//!
//! `WMCO_CLUSTERS=10000` looks at as many clusters.

mod model;

use std::net::IpAddr;

use proptest::prelude::*;
use proptest::test_runner::Config;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use wmco_csr::{NodeNames, Policy, Request, Rule, Verdict, View, decide};

use model::{Dns, Listing, Sort, Standing, World, any_worlds, honest_worlds};

/// As many are quick in a debug build.
const FEW: u32 = 256;

fn clusters() -> Config {
    let count = std::env::var("WMCO_CLUSTERS").map_or(FEW, |count| count.parse().unwrap());
    Config { cases: count, ..Config::default() }
}

/// The only secret that matters here.
fn key() -> &'static KeyPair {
    static KEY: std::sync::OnceLock<KeyPair> = std::sync::OnceLock::new();
    KEY.get_or_init(|| KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap())
}

/// The instance that a certificate was approved for; `None` if it was not.
fn approved(view: &View, node: &str, names: Option<&[String]>) -> Result<String, String> {
    let policy = Policy::new("windows-operator");
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
    let common_name = format!("system:node:{node}");
    params.distinguished_name.push(DnType::CommonName, common_name.as_str());
    params.subject_alt_names = names
        .unwrap_or_default()
        .iter()
        .map(|name| match name.parse::<IpAddr>() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => SanType::DnsName(name.as_str().try_into().unwrap()),
        })
        .collect();
    let pem = params.serialize_request(key()).unwrap().pem().unwrap();
    let (signer, username, groups, usage) = match names {
        None => (
            "kubernetes.io/kube-apiserver-client-kubelet",
            policy.bootstrapper.username.clone(),
            policy.bootstrapper.groups.clone(),
            "client auth",
        ),
        Some(_) => (
            "kubernetes.io/kubelet-serving",
            common_name,
            ["system:nodes", "system:authenticated"].map(str::to_owned).to_vec(),
            "server auth",
        ),
    };
    let usages = ["digital signature", usage].map(str::to_owned);
    let request = Request {
        name: "csr-1",
        signer,
        username: &username,
        groups: &groups,
        usages: &usages,
        pem: pem.as_bytes(),
        ..Request::default()
    };
    let decision = decide(&request, &policy, view, jiff::Timestamp::UNIX_EPOCH);
    let instance = decision.detail(Rule::Instance).unwrap_or_default();
    match decision.verdict() {
        Verdict::Approve(_) => Ok(instance.split(',').next().unwrap().to_owned()),
        Verdict::Ignore | Verdict::Refuse(_) | Verdict::Wait { .. } => Err(decision.to_string()),
    }
}

/// Who else a name or an address belongs to, seen from the machine at `place`.
fn stranger(world: &World, place: usize, name: &str) -> Option<String> {
    if World::is_reserved(name) {
        return Some("nobody's".to_owned());
    }
    if let Ok(address) = name.parse() {
        let owner = world.owner_of_address(address).filter(|owner| *owner != place)?;
        // A host that calls itself by the name of another may give its own addresses away.
        let is_open = world.has_false_name(owner)
            || world.is_led_to(place, owner)
            || world.stands_in(place, owner);
        return (!is_open).then(|| format!("machine {owner}'s"));
    }
    let owners = world.owners_of_name(&name.to_ascii_lowercase());
    let is_open = owners.iter().any(|owner| *owner == place || world.is_led_to(place, *owner));
    let is_others = !owners.is_empty() && !is_open;
    is_others.then(|| format!("one of {owners:?}"))
}

proptest! {
    #![proptest_config(clusters())]

    /// A first certificate is approved only for an entry or a Machine whose host the name belongs to.
    #[test]
    fn no_name_goes_to_another_host(world in any_worlds()) {
        let view = world.view();
        for name in world.all_names() {
            let Ok(host) = approved(&view, &name, None) else { continue };
            let place = world.hosts().find(|place| world.title(*place) == host);
            let place = place.expect("a host is named");
            let owners = world.owners_of_name(&name);
            let hosts = [Some(place), world.reached(place)];
            prop_assert!(
                owners.is_empty() || hosts.iter().flatten().any(|host| owners.contains(host)),
                "{} for {} goes to {}, but belongs to {:?}", name, place, host, owners
            );
        }
    }

    /// The host of a Machine gets a first certificate only while the Machine is at work and has no Node,
    /// and for no name that a Node has.
    #[test]
    fn a_machine_gets_one_node(world in any_worlds()) {
        let view = world.view();
        for name in world.all_names() {
            let Ok(host) = approved(&view, &name, None) else { continue };
            let Some(place) = world.places(Sort::Windows).find(|p| world.title(*p) == host) else {
                continue;
            };
            let machine = &world.machines[place];
            prop_assert_eq!(machine.standing, Standing::Ready);
            let nodes: Vec<(String, String)> = world.nodes().collect();
            prop_assert!(nodes.iter().all(|(node, _)| *node != name), "{} is a node", name);
            let reference = world.reference(place);
            let lives = reference.is_some_and(|reference| nodes.contains(&reference));
            prop_assert!(!lives, "{} has a node", host);
        }
    }

    /// A serving certificate for the Node of a Machine takes the word of the Machine API that it is that.
    #[test]
    fn a_node_is_that_of_its_machine_only_by_reference(world in any_worlds()) {
        let view = world.view();
        for (place, _) in world.machines.iter().enumerate().filter(|(_, m)| m.has_node()) {
            let names = [world.registered(place), World::address(place).to_string()];
            let Ok(host) = approved(&view, &names[0], Some(&names)) else { continue };
            if let Some(machine) = world.places(Sort::Windows).find(|p| world.title(*p) == host) {
                prop_assert_eq!(world.machines[machine].standing, Standing::Ready);
                let node = (world.registered(place), format!("n-{place}"));
                prop_assert_eq!(world.reference(machine), Some(node));
            }
        }
    }

    /// A serving certificate holds nothing that belongs to another host, Node, Machine or service.
    #[test]
    fn no_serving_certificate_holds_what_is_anothers(world in any_worlds()) {
        let view = world.view();
        for (place, machine) in world.machines.iter().enumerate().filter(|(_, m)| m.has_node()) {
            let node = world.registered(place);
            let status = world.status(place);
            let all: Vec<String> =
                status.names.iter().cloned().chain(status.addresses.iter().map(IpAddr::to_string)).collect();
            let each = all.iter().map(|name| vec![name.clone()]);
            for names in each.chain([all.clone()]) {
                if approved(&view, &node, Some(&names)).is_err() {
                    continue;
                }
                // A host may speak for a Windows node that somebody made by hand, but for no other.
                let may_be_ours = matches!(machine.sort, Sort::Listed | Sort::Stranger | Sort::Windows);
                prop_assert!(may_be_ours, "{} is none of ours", node);
                for name in &names {
                    let found = stranger(&world, place, name);
                    prop_assert_eq!(found, None, "{} of {}", name, place);
                }
            }
        }
    }

    /// Where nobody lies, every host gets what it asks for.
    #[test]
    fn an_honest_host_gets_its_certificates(world in honest_worlds()) {
        let view = world.view();
        for place in world.hosts() {
            let node = world.node_name(place);
            let answer = if world.machines[place].has_node() {
                let status = world.status(place);
                let addresses = status.addresses.iter().map(IpAddr::to_string);
                let names: Vec<String> = status.names.iter().cloned().chain(addresses).collect();
                approved(&view, &node, Some(&names))
            } else {
                approved(&view, &node, None)
            };
            prop_assert_eq!(answer, Ok(world.title(place)));
        }
        prop_assert!(view.disputes().is_empty(), "{:?}", view.disputes());
    }

    /// Whatever others say, a host that is listed by its name gets the certificates for it.
    #[test]
    fn a_listed_name_cannot_be_taken_away(world in any_worlds()) {
        let view = world.view();
        let entries = world.entries();
        let is_worked_on = |place| entries.get(&world.entry(place)).is_some_and(Result::is_ok);
        for place in world.places(Sort::Listed) {
            let machine = &world.machines[place];
            let is_listed = machine.listing == Listing::FullName && machine.dns == Dns::Right;
            if !is_listed || world.lies(place) {
                continue;
            }
            let node = world.node_name(place);
            if !machine.has_node() {
                let answer = approved(&view, &node, None);
                prop_assert_eq!(answer, Ok(world.entry(place)));
            } else if machine.was_asked && is_worked_on(place) && !world.is_claimed(place) {
                let names = [node.clone(), World::address(place).to_string()];
                let answer = approved(&view, &node, Some(&names));
                prop_assert_eq!(answer, Ok(world.entry(place)));
            }
        }
    }
}

/// The worlds are such that the tests above can fail.
#[test]
fn worlds_hold_liars_and_conflicts() {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut lies, mut disputes, mut approvals) = (0, 0, 0);
    for _ in 0..200 {
        let world = any_worlds().new_tree(&mut runner).unwrap().current();
        let view = world.view();
        lies += world.machines.iter().enumerate().filter(|(place, _)| world.lies(*place)).count();
        disputes += view.disputes().len();
        let names = world.all_names();
        approvals += names.iter().filter(|name| approved(&view, name, None).is_ok()).count();
    }
    assert!(lies > 200 && disputes > 20 && approvals > 200, "{lies} {disputes} {approvals}");
    assert_ne!(NodeNames::of_platform("AWS"), NodeNames::of_platform("Azure"));
}
