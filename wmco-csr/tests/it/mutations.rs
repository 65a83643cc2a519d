//! A valid request with one property broken, for every rule there is.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use rcgen::{CustomExtension, DnType, SanType};
use wmco_csr::Kind::{self, KubeletClient, KubeletServing, Wicd};
use wmco_csr::{MachineFacts, Rule};

use crate::fixture::{IPV4, NODE, World, node, strings};

/// The rule, a kind of request that it is for, what breaks it, and the verdict.
type Mutation = (&'static str, Kind, fn(&mut World), &'static str);

const MUTATIONS: &[Mutation] = &[
    ("undecided", Wicd, |w| w.condition("Approved"), "ignore"),
    ("signer", Wicd, |w| w.csr.spec.signer_name.push('2'), "ignore"),
    ("size", Wicd, |w| w.csr.spec.request.0.resize(20_000, b'\n'), "refuse"),
    ("pem", KubeletClient, |w| w.csr.spec.request.0.push(b' '), "refuse"),
    ("pkcs10", KubeletServing, |w| w.set_der(&[0x30, 0]), "refuse"),
    ("common-name", KubeletClient, |w| rename(w, DnType::CommonName, "win-7"), "ignore"),
    ("subject", KubeletServing, |w| rename(w, DnType::LocalityName, "x"), "refuse"),
    ("node-name", KubeletServing, |w| rename(w, DnType::CommonName, "system:node:WIN-7"), "refuse"),
    ("machine", KubeletServing, claim, "ignore"),
    ("renewal", KubeletClient, |w| ask_as(w, "system:node:win-7"), "ignore"),
    ("node-os", Wicd, |w| w.nodes = vec![node(NODE, "linux", IPV4)], "refuse"),
    ("instance", KubeletServing, |w| w.instances.clear(), "ignore"),
    ("node-absent", KubeletClient, |w| w.nodes.push(node(NODE, "windows", IPV4)), "ignore"),
    ("node", Wicd, |w| w.nodes.clear(), "wait"),
    ("machine-node", KubeletServing, be_a_machine_without_a_node, "wait"),
    ("requester", KubeletServing, |w| ask_as(w, "system:node:win-8"), "refuse"),
    ("groups", KubeletClient, |w| drop(w.csr.spec.groups.as_mut().unwrap().pop()), "refuse"),
    ("token-node", Wicd, bind_token, "refuse"),
    ("organization", Wicd, |w| rename(w, DnType::OrganizationName, "system:masters"), "refuse"),
    (
        "usages",
        KubeletServing,
        |w| w.csr.spec.usages.as_mut().unwrap().push("any".into()),
        "refuse",
    ),
    ("name-kinds", KubeletServing, |w| w.params_change(|p| p.subject_alt_names.clear()), "refuse"),
    ("extensions", KubeletClient, extend, "refuse"),
    ("lifetime", Wicd, |w| w.csr.spec.expiration_seconds = Some(3901), "refuse"),
    (
        "node-address",
        KubeletServing,
        |w| w.nodes = vec![node(NODE, "windows", [192, 0, 2, 9].into())],
        "refuse",
    ),
    ("addresses", KubeletServing, ask_for_another, "refuse"),
    ("belongs", KubeletServing, claim_the_apis_name, "refuse"),
    ("duplicate", Wicd, |w| w.also_pending("csr-2", SignedDuration::from_secs(1)), "ignore"),
    ("pending-limit", KubeletClient, |w| w.policy.limits.pending_per_node = 0, "refuse"),
    ("signature", KubeletServing, flip_last_bit, "refuse"),
];

/// Rules whose breach needs other keys than the fixture can make; see `form.rs`.
const ELSEWHERE: &[&str] = &["algorithm", "key"];

fn rename(world: &mut World, kind: DnType, name: &str) {
    world.params_change(|params| params.distinguished_name.push(kind, name));
}

fn ask_as(world: &mut World, username: &str) {
    world.csr.spec.username = Some(username.to_owned());
}

fn claim(world: &mut World) {
    let names = strings(&["WIN-7."]);
    world.machines.push(MachineFacts { names, ..MachineFacts::default() });
}

fn be_a_machine_without_a_node(world: &mut World) {
    let names = strings(&[NODE]);
    let (name, host) = ("m-1".to_owned(), Some(Ok(IPV4)));
    let addresses = vec![IPV4.into()];
    world.machines.push(MachineFacts { name, names, addresses, node: None, host });
    world.instances.clear();
}

fn bind_token(world: &mut World) {
    let claim = "authentication.kubernetes.io/node-name".to_owned();
    world.csr.spec.extra.get_or_insert_default().insert(claim, strings(&["win-8"]));
}

fn extend(world: &mut World) {
    let extension = CustomExtension::from_oid_content(&[2, 5, 29, 19], vec![0x30, 0]);
    world.params_change(|params| params.custom_extensions.push(extension));
}

fn ask_for_another(world: &mut World) {
    let name = SanType::IpAddress([192, 0, 2, 8].into());
    world.params_change(|params| params.subject_alt_names.push(name));
}

fn claim_the_apis_name(world: &mut World) {
    let address = serde_json::json!({"type": "InternalDNS", "address": "kubernetes.default.svc"});
    let addresses = world.nodes[0].status.as_mut().unwrap().addresses.as_mut().unwrap();
    addresses.push(serde_json::from_value(address).unwrap());
    let name = SanType::DnsName("kubernetes.default.svc".try_into().unwrap());
    world.params_change(|params| params.subject_alt_names.push(name));
}

fn flip_last_bit(world: &mut World) {
    let mut der = world.der();
    *der.last_mut().unwrap() ^= 1;
    world.set_der(&der);
}

#[test]
fn each_broken_property_is_found_by_its_own_rule() {
    for (rule, kind, breaks, verdict) in MUTATIONS {
        World::new(*kind).check("approve", "");
        let mut world = World::new(*kind);
        breaks(&mut world);
        world.check(verdict, rule);
    }
}

#[test]
fn no_rule_is_left_out() {
    let schema = serde_json::to_value(schemars::schema_for!(Rule)).unwrap();
    let all =
        schema["oneOf"].as_array().unwrap().iter().map(|rule| rule["const"].as_str().unwrap());
    let broken = MUTATIONS.iter().map(|(rule, ..)| *rule).chain(ELSEWHERE.iter().copied());
    assert_eq!(broken.collect::<BTreeSet<_>>(), all.collect());
}
