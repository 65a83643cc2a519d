//! The answer to each situation in which the Go operator decides in a way of its own: one case for each, and
//! the rule of `docs/contract/certificate-requests.md`, CSR10 to CSR40, that decides it here.

use rcgen::{CertificateParams, DnType, SanType};
use wmco_csr::Kind::{self, KubeletClient, KubeletServing, Wicd};

use crate::fixture::{IPV4, NODE, World, node, strings};

struct Case {
    kind: Kind,
    given: fn(&mut World),
    verdict: &'static str,
    /// The rule that decides; empty for an approval.
    rule: &'static str,
}

const fn case(
    kind: Kind,
    given: fn(&mut World),
    verdict: &'static str,
    rule: &'static str,
) -> Case {
    Case { kind, given, verdict, rule }
}

fn rename(params: &mut CertificateParams, kind: DnType, name: &str) {
    params.distinguished_name.push(kind, name);
}

fn ask(world: &mut World, change: impl FnOnce(&mut CertificateParams)) {
    change(&mut world.params);
    world.ask();
}

const KUBELETS: &[Case] = &[
    case(KubeletClient, |w| w.condition("Approved"), "ignore", "undecided"),
    case(KubeletServing, |w| w.condition("Denied"), "ignore", "undecided"),
    case(KubeletClient, |w| w.csr.spec.request.0.clear(), "refuse", "pem"),
    case(KubeletClient, |w| w.csr.spec.request.0 = b"hello".to_vec(), "refuse", "pem"),
    case(KubeletServing, |w| w.set_der(b"hello"), "refuse", "pkcs10"),
    case(KubeletClient, break_signature, "refuse", "signature"),
    case(
        KubeletClient,
        |w| ask(w, |p| rename(p, DnType::CommonName, "system:wicd-node:win-7")),
        "ignore",
        "common-name",
    ),
    case(
        KubeletClient,
        |w| ask(w, |p| rename(p, DnType::CommonName, "system:node:")),
        "ignore",
        "common-name",
    ),
    case(KubeletClient, |_| {}, "approve", ""),
    case(KubeletServing, |_| {}, "approve", ""),
    case(KubeletClient, |w| w.instances.clear(), "ignore", "instance"),
    case(KubeletServing, |w| w.instances.clear(), "ignore", "instance"),
    case(KubeletClient, add_unknown_instance, "approve", ""),
    case(KubeletClient, only_reverse_dns, "approve", ""),
    case(KubeletClient, substring_of_an_instance, "wait", "instance"),
    case(KubeletClient, |w| w.facts.hostnames.clear(), "approve", ""),
    case(KubeletClient, unnamed_instances_only, "wait", "instance"),
    case(KubeletClient, names_of_others, "ignore", "instance"),
    case(
        KubeletClient,
        |w| ask(w, |p| rename(p, DnType::CommonName, "system:node:WIN-7")),
        "refuse",
        "node-name",
    ),
    case(KubeletClient, |w| w.nodes.push(node(NODE, "windows", IPV4)), "ignore", "node-absent"),
    case(
        KubeletClient,
        |w| w.csr.spec.usages = Some(strings(&["client auth"])),
        "refuse",
        "usages",
    ),
    case(KubeletClient, |w| w.csr.spec.username = Some("jane".to_owned()), "refuse", "requester"),
    case(KubeletClient, |w| w.csr.spec.groups = None, "refuse", "groups"),
    case(KubeletClient, |w| w.csr.spec.signer_name.push('2'), "ignore", "signer"),
    case(
        KubeletServing,
        |w| ask(w, |p| rename(p, DnType::CustomDnType(vec![2, 5, 4, 10]), "system:masters")),
        "refuse",
        "organization",
    ),
    case(
        KubeletServing,
        |w| ask(w, |p| rename(p, DnType::OrganizationName, "system:masters")),
        "refuse",
        "organization",
    ),
    case(KubeletServing, |w| w.csr.spec.groups = None, "refuse", "groups"),
    case(
        KubeletServing,
        |w| w.csr.spec.usages = Some(strings(&["digital signature", "client auth"])),
        "refuse",
        "usages",
    ),
    case(KubeletServing, |w| w.nodes.clear(), "wait", "node"),
    case(
        KubeletServing,
        |w| ask(w, |p| p.subject_alt_names.push(dns("api.example.net"))),
        "refuse",
        "addresses",
    ),
    case(
        KubeletServing,
        |w| w.csr.spec.username = Some("system:node:win-8".to_owned()),
        "refuse",
        "requester",
    ),
];

const DAEMON: &[Case] = &[
    case(Wicd, |w| w.csr.spec.username = Some("jane".to_owned()), "refuse", "requester"),
    case(Wicd, |w| w.condition("Approved"), "ignore", "undecided"),
    case(Wicd, |w| w.csr.spec.signer_name.push('2'), "ignore", "signer"),
    case(Wicd, |w| w.csr.spec.request.0.clear(), "refuse", "pem"),
    case(Wicd, |w| ask(w, |p| rename(p, DnType::CommonName, "win-7")), "ignore", "common-name"),
    case(
        Wicd,
        |w| ask(w, |p| rename(p, DnType::CustomDnType(vec![2, 5, 4, 10]), "system:masters")),
        "refuse",
        "organization",
    ),
    case(
        Wicd,
        |w| ask(w, |p| rename(p, DnType::OrganizationName, "system:nodes")),
        "refuse",
        "organization",
    ),
    case(Wicd, |w| ask(w, |p| p.subject_alt_names.push(dns(NODE))), "refuse", "name-kinds"),
    case(Wicd, ask_for_an_email, "refuse", "name-kinds"),
    case(Wicd, |w| w.csr.spec.usages = Some(strings(&["client auth"])), "refuse", "usages"),
    case(Wicd, |w| w.nodes.clear(), "wait", "node"),
    case(Wicd, |w| w.nodes = vec![node(NODE, "linux", IPV4)], "refuse", "node-os"),
    case(
        Wicd,
        |w| w.csr.spec.username = Some("system:wicd-node:win-8".to_owned()),
        "refuse",
        "requester",
    ),
    case(Wicd, |_| {}, "approve", ""),
];

fn dns(name: &str) -> SanType {
    SanType::DnsName(name.try_into().unwrap())
}

fn ask_for_an_email(world: &mut World) {
    let name = SanType::Rfc822Name("a@b.example".try_into().unwrap());
    ask(world, |params| params.subject_alt_names.push(name));
}

fn break_signature(world: &mut World) {
    let mut der = world.der();
    let last = der.len() - 1;
    der[last] ^= 1;
    world.set_der(&der);
}

fn add_unknown_instance(world: &mut World) {
    world.instances.insert(0, ("lost.example.net".to_owned(), None));
}

/// The first address has no reverse record, which says nothing about the second.
fn only_reverse_dns(world: &mut World) {
    world.instances = strings(&["192.0.2.6", "192.0.2.7"]).into_iter().map(|a| (a, None)).collect();
    world.facts.hostnames.clear();
    world.facts.dns.reverse.insert(IPV4.into(), strings(&["Win-7.Plant.Example.Net."]));
}

/// Not a match, and nobody knows yet whether the host itself has that name.
fn substring_of_an_instance(world: &mut World) {
    only_reverse_dns(world);
    ask(world, |params| rename(params, DnType::CommonName, "system:node:plant"));
}

fn unnamed_instances_only(world: &mut World) {
    world.instances = vec![("192.0.2.7".to_owned(), None)];
    world.facts.hostnames.clear();
}

fn names_of_others(world: &mut World) {
    world.instances = vec![("192.0.2.7".to_owned(), None)];
    world.facts.hostnames.insert("192.0.2.7".to_owned(), "win-70".to_owned());
}

#[track_caller]
fn check(cases: &[Case]) {
    for (place, Case { kind, given, verdict, rule }) in cases.iter().enumerate() {
        let mut world = World::new(*kind);
        given(&mut world);
        let decision = world.decide();
        let found = (decision.verdict().name(), decision.rule().map_or("", wmco_csr::Rule::name));
        assert_eq!(found, (*verdict, *rule), "case {place}: {decision}");
    }
}

#[test]
fn kubelet_requests() {
    check(KUBELETS);
}

#[test]
fn daemon_requests() {
    check(DAEMON);
}

/// Reverse DNS alone is evidence, unless forward DNS says otherwise.
#[test]
fn forward_dns_may_contradict_reverse_dns() {
    let mut world = World::new(KubeletClient);
    only_reverse_dns(&mut world);
    world
        .facts
        .dns
        .forward
        .insert("win-7.plant.example.net".to_owned(), vec![[192, 0, 2, 99].into()]);
    world.check("wait", "instance");
    world.facts.dns.forward.insert("win-7.plant.example.net".to_owned(), vec![IPV4.into()]);
    world.check("approve", "");
}

/// The owner of reverse DNS cannot take a name away from the instance that reported it.
#[test]
fn reverse_dns_is_no_veto() {
    let mut world = World::new(KubeletClient);
    world.instances.push(("192.0.2.8".to_owned(), None));
    world.facts.dns.reverse.insert([192, 0, 2, 8].into(), strings(&["win-7."]));
    world.check("approve", "");
}

/// Where Nodes have full names, the first label of another host's name is no claim.
#[test]
fn a_first_label_is_a_claim_where_the_cluster_says_so() {
    let mut world = World::new(KubeletClient);
    world.facts.hostnames.clear();
    world.instances = strings(&["192.0.2.8", "192.0.2.7"]).into_iter().map(|a| (a, None)).collect();
    world.facts.dns.reverse.insert([192, 0, 2, 8].into(), strings(&["win-7.lab.example.net."]));
    world.facts.dns.reverse.insert(IPV4.into(), strings(&["win-7."]));
    world.check("refuse", "instance");
    world.cluster.node_names = wmco_csr::NodeNames::Full;
    world.check("approve", "");
    let decision = world.decide();
    let instance = decision.checks().find(|check| check.rule == wmco_csr::Rule::Instance).unwrap();
    assert_eq!(instance.detail, "192.0.2.7, by reverse DNS");
}
