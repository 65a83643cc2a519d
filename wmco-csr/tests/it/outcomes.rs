//! Every row of the outcome tables in `spec/csr.md`, section 9, as this crate answers it.

use std::collections::BTreeSet;

use rcgen::{CertificateParams, DnType, SanType};
use wmco_csr::Kind::{self, KubeletClient, KubeletServing, Wicd};

use crate::fixture::{IPV4, NODE, World, node, strings};

struct Row {
    /// The rows of the table that the case is for.
    rows: &'static [u32],
    kind: Kind,
    given: fn(&mut World),
    verdict: &'static str,
    /// The rule that decides; empty for an approval.
    rule: &'static str,
}

const fn row(
    rows: &'static [u32],
    kind: Kind,
    given: fn(&mut World),
    verdict: &'static str,
    rule: &'static str,
) -> Row {
    Row { rows, kind, given, verdict, rule }
}

fn rename(params: &mut CertificateParams, kind: DnType, name: &str) {
    params.distinguished_name.push(kind, name);
}

fn ask(world: &mut World, change: impl FnOnce(&mut CertificateParams)) {
    change(&mut world.params);
    world.ask();
}

const KUBELETS: &[Row] = &[
    row(&[1, 4], KubeletClient, |w| w.condition("Approved"), "ignore", "undecided"),
    row(&[1, 4], KubeletServing, |w| w.condition("Denied"), "ignore", "undecided"),
    row(&[7], KubeletClient, |w| w.csr.spec.request.0.clear(), "refuse", "pem"),
    row(&[8], KubeletClient, |w| w.csr.spec.request.0 = b"hello".to_vec(), "refuse", "pem"),
    row(&[9], KubeletServing, |w| w.set_der(b"hello"), "refuse", "pkcs10"),
    row(&[10], KubeletClient, break_signature, "refuse", "signature"),
    row(
        &[11],
        KubeletClient,
        |w| ask(w, |p| rename(p, DnType::CommonName, "system:wicd-node:win-7")),
        "ignore",
        "common-name",
    ),
    row(
        &[12],
        KubeletClient,
        |w| ask(w, |p| rename(p, DnType::CommonName, "system:node:")),
        "ignore",
        "common-name",
    ),
    row(&[13, 25], KubeletClient, |_| {}, "approve", ""),
    row(&[14, 25], KubeletServing, |_| {}, "approve", ""),
    row(&[15, 21], KubeletClient, |w| w.instances.clear(), "ignore", "instance"),
    row(&[15, 21], KubeletServing, |w| w.instances.clear(), "ignore", "instance"),
    row(&[18], KubeletClient, add_unknown_instance, "approve", ""),
    row(&[19], KubeletClient, only_reverse_dns, "approve", ""),
    row(&[19], KubeletClient, substring_of_an_instance, "wait", "instance"),
    row(&[20], KubeletClient, |w| w.facts.hostnames.clear(), "approve", ""),
    row(&[22], KubeletClient, unnamed_instances_only, "wait", "instance"),
    row(&[23], KubeletClient, names_of_others, "ignore", "instance"),
    row(
        &[24],
        KubeletClient,
        |w| ask(w, |p| rename(p, DnType::CommonName, "system:node:WIN-7")),
        "refuse",
        "node-name",
    ),
    row(
        &[26],
        KubeletClient,
        |w| w.nodes.push(node(NODE, "windows", IPV4)),
        "ignore",
        "node-absent",
    ),
    row(
        &[28],
        KubeletClient,
        |w| w.csr.spec.usages = Some(strings(&["client auth"])),
        "refuse",
        "usages",
    ),
    row(
        &[29],
        KubeletClient,
        |w| w.csr.spec.username = Some("jane".to_owned()),
        "refuse",
        "requester",
    ),
    row(&[29], KubeletClient, |w| w.csr.spec.groups = None, "refuse", "groups"),
    row(&[29], KubeletClient, |w| w.csr.spec.signer_name.push('2'), "ignore", "signer"),
    row(
        &[30],
        KubeletServing,
        |w| ask(w, |p| rename(p, DnType::CustomDnType(vec![2, 5, 4, 10]), "system:masters")),
        "refuse",
        "organization",
    ),
    row(
        &[31],
        KubeletServing,
        |w| ask(w, |p| rename(p, DnType::OrganizationName, "system:masters")),
        "refuse",
        "organization",
    ),
    row(&[32], KubeletServing, |w| w.csr.spec.groups = None, "refuse", "groups"),
    row(
        &[33],
        KubeletServing,
        |w| w.csr.spec.usages = Some(strings(&["digital signature", "client auth"])),
        "refuse",
        "usages",
    ),
    row(&[34], KubeletServing, |w| w.nodes.clear(), "wait", "node"),
    row(
        &[35],
        KubeletServing,
        |w| ask(w, |p| p.subject_alt_names.push(dns("api.example.net"))),
        "refuse",
        "addresses",
    ),
    row(
        &[35],
        KubeletServing,
        |w| w.csr.spec.username = Some("system:node:win-8".to_owned()),
        "refuse",
        "requester",
    ),
];

/// Deleted or missing objects, failing reads and failing writes never come to a decision.
const KUBELETS_BY_CALLER: &[u32] = &[2, 3, 5, 6, 16, 17, 27, 36, 37];

const DAEMON: &[Row] = &[
    row(&[1], Wicd, |w| w.csr.spec.username = Some("jane".to_owned()), "refuse", "requester"),
    row(&[2, 4], Wicd, |w| w.condition("Approved"), "ignore", "undecided"),
    row(&[6], Wicd, |w| w.csr.spec.signer_name.push('2'), "ignore", "signer"),
    row(&[7], Wicd, |w| w.csr.spec.request.0.clear(), "refuse", "pem"),
    row(
        &[8],
        Wicd,
        |w| ask(w, |p| rename(p, DnType::CommonName, "win-7")),
        "ignore",
        "common-name",
    ),
    row(
        &[9],
        Wicd,
        |w| ask(w, |p| rename(p, DnType::CustomDnType(vec![2, 5, 4, 10]), "system:masters")),
        "refuse",
        "organization",
    ),
    row(
        &[10],
        Wicd,
        |w| ask(w, |p| rename(p, DnType::OrganizationName, "system:nodes")),
        "refuse",
        "organization",
    ),
    row(&[11], Wicd, |w| ask(w, |p| p.subject_alt_names.push(dns(NODE))), "refuse", "name-kinds"),
    row(&[12], Wicd, ask_for_an_email, "refuse", "name-kinds"),
    row(&[13], Wicd, |w| w.csr.spec.usages = Some(strings(&["client auth"])), "refuse", "usages"),
    row(&[14], Wicd, |w| w.nodes.clear(), "wait", "node"),
    row(&[16], Wicd, |w| w.nodes = vec![node(NODE, "linux", IPV4)], "refuse", "node-os"),
    row(
        &[17],
        Wicd,
        |w| w.csr.spec.username = Some("system:wicd-node:win-8".to_owned()),
        "refuse",
        "requester",
    ),
    row(&[18], Wicd, |_| {}, "approve", ""),
];

/// As [`KUBELETS_BY_CALLER`].
const DAEMON_BY_CALLER: &[u32] = &[3, 5, 15, 19];

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
fn check(rows: &[Row], last: u32, by_caller: &[u32]) {
    for Row { rows, kind, given, verdict, rule } in rows {
        let mut world = World::new(*kind);
        given(&mut world);
        let decision = world.decide();
        let found = (decision.verdict().name(), decision.rule().map_or("", wmco_csr::Rule::name));
        assert_eq!(found, (*verdict, *rule), "rows {rows:?}: {decision}");
    }
    let ours = rows.iter().flat_map(|row| row.rows).chain(by_caller).copied();
    assert_eq!(ours.collect::<BTreeSet<_>>(), (1..=last).collect(), "each row has a case");
}

#[test]
fn kubelet_requests() {
    check(KUBELETS, 37, KUBELETS_BY_CALLER);
}

#[test]
fn daemon_requests() {
    check(DAEMON, 19, DAEMON_BY_CALLER);
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

/// Whoever controls reverse DNS cannot take a name away from the instance that reported it.
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
