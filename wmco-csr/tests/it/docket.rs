//! A docket says what to look at after each change, tells news once, and forgets what is gone.

use std::collections::HashSet;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use wmco_core::instances::{self, Resolutions};
use wmco_csr::{Docket, Facts, Kind, MachineFacts, Policy, Request};

use crate::fixture::{INSTANCE, IPV4, NAMESPACE, NODE, World, node, strings};

use Kind::{KubeletClient, KubeletServing};

fn now() -> Timestamp {
    "2026-05-04T03:02:02Z".parse().unwrap()
}

fn list(docket: &mut Docket, host_name: Option<&str>) -> Vec<String> {
    let mut answers = Resolutions::default();
    answers.insert(INSTANCE, Ok(IPV4));
    let entries = instances::parse([(INSTANCE, "username=core")], &answers);
    let hostnames = host_name.map(|name| (INSTANCE.to_owned(), name.to_owned()));
    docket.set_entries(
        &entries,
        &Facts { hostnames: hostnames.into_iter().collect(), ..Facts::default() },
    )
}

/// A docket for the cluster of [`World`], without requests.
fn docket(world: &World) -> Docket {
    let mut docket = Docket::new();
    list(&mut docket, Some("WIN-7"));
    for node in &world.nodes {
        docket.set_node(node);
    }
    docket
}

/// Verdict and rule, and whether they are news.
fn answer(docket: &mut Docket, csr: &CertificateSigningRequest) -> Option<(String, bool)> {
    let answer = docket.decide(&Request::from(csr), &Policy::new(NAMESPACE), now())?;
    let rule = answer.decision.rule().map_or("", wmco_csr::Rule::name);
    Some((format!("{} {rule}", answer.decision.verdict().name()), answer.is_news))
}

#[track_caller]
fn check(docket: &mut Docket, csr: &CertificateSigningRequest, expected: &str, is_news: bool) {
    assert_eq!(answer(docket, csr), Some((expected.to_owned(), is_news)));
}

fn decided(csr: &CertificateSigningRequest, condition: &str) -> CertificateSigningRequest {
    let status = serde_json::json!({"conditions": [{"type": condition, "status": "True"}]});
    CertificateSigningRequest {
        status: Some(serde_json::from_value(status).unwrap()),
        ..csr.clone()
    }
}

/// The request of `world` by another name and UID, made `seconds` later.
fn later(world: &mut World, name: &str, seconds: i64) -> CertificateSigningRequest {
    world.also_pending(name, SignedDuration::from_secs(seconds));
    let mut other = world.pending.pop().unwrap();
    other.metadata.uid = Some(format!("uid of {name}"));
    other
}

#[test]
fn an_answer_is_news_once() {
    let world = World::new(KubeletServing);
    let mut docket = Docket::new();
    list(&mut docket, Some("WIN-7"));
    assert_eq!(docket.see(&world.csr), ["csr-1"]);
    check(&mut docket, &world.csr, "wait node", true);
    check(&mut docket, &world.csr, "wait node", false);
    docket.see(&world.csr);
    check(&mut docket, &world.csr, "wait node", false);
    assert_eq!(docket.set_node(&world.nodes[0]), ["csr-1"]);
    check(&mut docket, &world.csr, "approve ", true);
    // A namesake is another one.
    let mut namesake = world.csr.clone();
    namesake.metadata.uid = Some("uid-2".to_owned());
    assert_eq!(answer(&mut docket, &namesake), None, "not seen yet");
    docket.see(&namesake);
    check(&mut docket, &namesake, "approve ", true);
    assert_eq!(answer(&mut docket, &world.csr), None, "gone");
}

#[test]
fn decided_and_deleted_requests_leave_nothing_behind() {
    let mut world = World::new(KubeletServing);
    let mut docket = docket(&world);
    for number in 0..100 {
        let csr = later(&mut world, &format!("csr-{number}"), number);
        docket.see(&csr);
        check(&mut docket, &csr, "approve ", true);
        assert_eq!(docket.len(), 1);
        assert!(docket.see(&decided(&csr, "Approved")).is_empty());
        assert_eq!(answer(&mut docket, &csr), None);
        docket.forget(&format!("csr-{number}"));
    }
    assert!(docket.is_empty());
    let empty = format!("{docket:?}");
    assert!(!empty.contains("csr-"), "{empty}");
}

#[test]
fn only_what_may_have_another_answer_is_looked_at_again() {
    let mut world = World::new(KubeletServing);
    let mut docket = docket(&world);
    let good = world.csr.clone();
    world.csr.spec.usages = None;
    let wrong = later(&mut world, "wrong", -5);
    world.csr.spec.signer_name = "example.com/signer".to_owned();
    let foreign = later(&mut world, "foreign", -6);
    let mut stranger = World::new(KubeletServing);
    stranger.params.distinguished_name.push(rcgen::DnType::CommonName, "system:node:linux-1");
    stranger.ask();
    let stranger = later(&mut stranger, "stranger", 0);
    for (csr, expected) in [
        (&good, "approve "),
        (&wrong, "refuse usages"),
        (&foreign, "ignore signer"),
        (&stranger, "ignore instance"),
    ] {
        docket.see(csr);
        check(&mut docket, csr, expected, true);
    }
    let none: [&str; 0] = [];
    assert_eq!(docket.set_node(&world.nodes[0]), none, "the node did not change");
    assert_eq!(docket.set_node(&node("linux-2", "linux", IPV4)), none, "nobody asks for it");
    assert_eq!(docket.set_node(&node("linux-1", "linux", IPV4)), ["stranger"]);
    check(&mut docket, &stranger, "ignore node-os", true);
    assert_eq!(docket.set_node(&node("linux-1", "linux", IPV4)), none, "it is as it was");
    assert_eq!(list(&mut docket, Some("WIN-7")), ["stranger"]);
    assert_eq!(docket.remove_node("linux-1"), ["stranger"]);
    let machine = MachineFacts { names: strings(&["linux-1"]), ..MachineFacts::default() };
    assert_eq!(docket.set_machines([machine]), ["stranger"]);
    check(&mut docket, &stranger, "ignore machine", true);
}

#[test]
fn a_host_name_that_is_learned_answers_who_waited_for_it() {
    let mut world = World::new(KubeletClient);
    world.params.distinguished_name.push(rcgen::DnType::CommonName, "system:node:other-7");
    world.ask();
    let mut docket = Docket::new();
    list(&mut docket, None);
    docket.see(&world.csr);
    check(&mut docket, &world.csr, "wait instance", true);
    assert_eq!(list(&mut docket, Some("OTHER-7")), ["csr-1"]);
    check(&mut docket, &world.csr, "approve ", true);
}

/// The request of `world`, a newer one for the same, and a docket that knows of both.
fn older_and_newer(world: &mut World) -> (Docket, CertificateSigningRequest) {
    let mut docket = docket(world);
    let newer = later(world, "csr-2", 1);
    docket.see(&world.csr);
    docket.see(&newer);
    check(&mut docket, &world.csr, "ignore duplicate", true);
    (docket, newer)
}

#[test]
fn of_several_requests_for_the_same_one_is_approved() {
    let mut world = World::new(KubeletClient);
    let (mut docket, newer) = older_and_newer(&mut world);
    let older = world.csr;
    check(&mut docket, &newer, "approve ", true);
    assert_eq!(docket.see(&decided(&newer, "Approved")), ["csr-1"]);
    check(&mut docket, &older, "ignore duplicate", false);
    // Once the newer one is gone, nothing speaks against the older one any more.
    assert_eq!(docket.forget("csr-2"), ["csr-1"]);
    check(&mut docket, &older, "approve ", true);
}

#[test]
fn a_denied_request_makes_room_for_older_ones() {
    let mut world = World::new(KubeletClient);
    let (mut docket, newer) = older_and_newer(&mut world);
    assert_eq!(docket.see(&decided(&newer, "Denied")), ["csr-1"]);
    check(&mut docket, &world.csr, "approve ", true);
}

#[test]
fn a_new_list_forgets_what_is_not_in_it() {
    let mut world = World::new(KubeletClient);
    let (mut docket, _) = older_and_newer(&mut world);
    let left: HashSet<String> = HashSet::from(["csr-1".to_owned()]);
    assert_eq!(docket.retain(&left), ["csr-1"]);
    assert_eq!(docket.names().collect::<Vec<_>>(), ["csr-1"]);
    check(&mut docket, &world.csr, "approve ", true);
}

/// The caches of an operator hold Windows nodes only.
#[test]
fn a_node_that_was_just_read_counts_once() {
    let world = World::new(KubeletClient);
    let mut docket = docket(&world);
    docket.see(&world.csr);
    check(&mut docket, &world.csr, "approve ", true);
    let linux = node(NODE, "linux", [192, 0, 2, 99].into());
    let (request, policy) = (Request::from(&world.csr), Policy::new(NAMESPACE));
    let answer = docket.decide_beside(&linux, &request, &policy, now()).unwrap();
    assert_eq!(answer.decision.rule(), Some(wmco_csr::Rule::NodeOs));
    assert!(answer.is_news);
    check(&mut docket, &world.csr, "approve ", true);
}
