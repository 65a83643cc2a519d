//! A docket says what to look at after each change, tells news once, and forgets what is gone.

use std::collections::HashSet;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use rcgen::SanType;
use wmco_core::cluster_addresses::ClusterAddresses;
use wmco_core::instances::{self, Resolutions};
use wmco_csr::{
    ClusterFacts, Docket, Facts, Kind, MachineFacts, NodeNames, Policy, Reference, Request, Unfit,
};

use crate::fixture::{INSTANCE, IPV4, NAMESPACE, NODE, World, bare_metal, node, strings};

use Kind::{KubeletClient, KubeletServing};

fn now() -> Timestamp {
    "2026-05-04T03:02:02Z".parse().unwrap()
}

fn list(docket: &mut Docket, host_name: Option<&str>) -> Vec<String> {
    let mut answers = Resolutions::default();
    answers.insert(INSTANCE, Ok(IPV4));
    let entries = instances::parse([(INSTANCE, "username=core")], &answers);
    let hostnames = host_name.map(|name| (INSTANCE.to_owned(), name.to_owned()));
    let addresses = Some([(INSTANCE.to_owned(), vec![IPV4.into()])].into());
    let hostnames = hostnames.into_iter().collect();
    docket.set_entries(&entries, &Facts { hostnames, addresses, ..Facts::default() })
}

/// A docket for a cluster without Nodes.
fn empty() -> Docket {
    let mut docket = Docket::new();
    docket.set_cluster(bare_metal());
    docket
}

/// A docket for the cluster of [`World`], without requests.
fn docket(world: &World) -> Docket {
    let mut docket = empty();
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
    let mut docket = empty();
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
    let mut docket = empty();
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

/// A Node that claims an address of another stands in the way until it gives it back.
#[test]
fn a_node_in_the_way_answers_anew_when_it_changes() {
    let world = World::new(KubeletServing);
    let mut docket = docket(&world);
    docket.see(&world.csr);
    docket.set_node(&node("cp-1", "linux", IPV4));
    check(&mut docket, &world.csr, "refuse belongs", true);
    assert!(docket.set_node(&node("cp-2", "linux", [192, 0, 2, 77].into())).is_empty());
    assert_eq!(docket.set_node(&node("cp-1", "linux", [192, 0, 2, 66].into())), ["csr-1"]);
    check(&mut docket, &world.csr, "approve ", true);
    docket.set_node(&node("cp-1", "linux", IPV4));
    check(&mut docket, &world.csr, "refuse belongs", true);
    assert_eq!(docket.remove_node("cp-1"), ["csr-1"]);
    check(&mut docket, &world.csr, "approve ", true);
    // A request that is over leaves nothing behind.
    docket.set_node(&node("cp-1", "linux", IPV4));
    check(&mut docket, &world.csr, "refuse belongs", true);
    docket.forget("csr-1");
    assert!(docket.remove_node("cp-1").is_empty());
}

#[test]
fn a_node_that_a_name_leads_to_answers_anew_when_it_changes() {
    let mut world = World::new(KubeletClient);
    world.params.distinguished_name.push(rcgen::DnType::CommonName, "system:node:web");
    world.ask();
    let mut docket = empty();
    docket.set_node(&node("cp-1", "linux", [192, 0, 2, 66].into()));
    docket.see(&world.csr);
    let entries = instances::parse([("192.0.2.7", "username=core")], &Resolutions::default());
    let mut facts = Facts::default();
    facts.hostnames.insert("192.0.2.7".to_owned(), "web".to_owned());
    facts.dns.forward.insert("web".to_owned(), vec![[192, 0, 2, 66].into()]);
    docket.set_entries(&entries, &facts);
    check(&mut docket, &world.csr, "refuse instance", true);
    assert_eq!(docket.remove_node("cp-1"), ["csr-1"]);
    check(&mut docket, &world.csr, "approve ", true);
    // The DNS leads elsewhere now.
    docket.set_node(&node("cp-1", "linux", [192, 0, 2, 66].into()));
    check(&mut docket, &world.csr, "refuse instance", true);
    facts.dns.forward.insert("web".to_owned(), vec![IPV4.into()]);
    assert_eq!(docket.set_entries(&entries, &facts), ["csr-1"]);
    check(&mut docket, &world.csr, "approve ", true);
}

/// Requests of the node for these names, each with a name of its own.
fn requests_for(names: &[Vec<String>]) -> Vec<CertificateSigningRequest> {
    let mut world = World::new(KubeletServing);
    let mut all = Vec::new();
    for (number, names) in names.iter().enumerate() {
        let names = names.iter().map(|name| match name.parse() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => SanType::DnsName(name.as_str().try_into().unwrap()),
        });
        world.params.subject_alt_names = names.collect();
        world.ask();
        let mut csr = world.csr.clone();
        csr.metadata.name = Some(format!("csr-{number}"));
        csr.metadata.uid = Some(format!("uid-{number}"));
        all.push(csr);
    }
    all
}

/// The names and addresses that the DNS is asked for after decisions about `requests`.
fn questions(requests: &[CertificateSigningRequest], names: &[Vec<String>]) -> (usize, usize) {
    let mut world = World::new(KubeletServing);
    let addresses = world.nodes[0].status.as_mut().unwrap().addresses.as_mut().unwrap();
    for name in names.iter().flatten() {
        let kind = name.parse::<std::net::IpAddr>().map_or("ExternalDNS", |_| "ExternalIP");
        let address = serde_json::json!({"type": kind, "address": name});
        addresses.push(serde_json::from_value(address).unwrap());
    }
    let mut docket = docket(&world);
    let mut policy = Policy::new(NAMESPACE);
    policy.asks_dns = true;
    policy.limits.pending_per_node = 1000;
    for request in requests {
        docket.see(request);
    }
    for request in requests {
        let answer = docket.decide(&Request::from(request), &policy, now()).unwrap();
        assert_ne!(answer.decision.verdict().name(), "approve");
    }
    let questions = docket.questions();
    (questions.names.len(), questions.addresses.len())
}

fn names_of(number: usize, count: usize) -> Vec<String> {
    (0..count).map(|name| format!("n{name}.r{number}.example")).collect()
}

fn addresses_of(number: usize, count: usize) -> Vec<String> {
    (0..count).map(|last| format!("198.51.{number}.{}", last + 1)).collect()
}

/// Whoever may make requests decides what the operator asks the DNS for, so it has a bound.
#[test]
fn few_questions_are_asked_for_a_request_and_for_all_together() {
    let asked = |names: &[Vec<String>]| questions(&requests_for(names), names);
    assert_eq!(asked(&[names_of(0, 16)]), (16, 0));
    assert_eq!(asked(&[names_of(0, 17)]), (16, 0));
    assert_eq!(asked(&[addresses_of(0, 17)]), (0, 16));
    let many: Vec<_> = (0..16).map(|number| names_of(number, 16)).collect();
    assert_eq!(asked(&many), (256, 0));
    let more: Vec<_> = (0..17).map(|number| names_of(number, 16)).collect();
    assert_eq!(asked(&more), (256, 0));
    let more: Vec<_> = (0..17).map(|number| addresses_of(number, 16)).collect();
    assert_eq!(asked(&more), (0, 256));
}

/// Source: `docs/contract/certificate-requests.md`, CSR9.
#[test]
fn a_wait_that_lasts_is_told_once() {
    let mut world = World::new(KubeletServing);
    world.facts.addresses = Some([].into());
    let further = "203.0.113.7";
    let address = serde_json::json!({"type": "ExternalIP", "address": further});
    let addresses = world.nodes[0].status.as_mut().unwrap().addresses.as_mut().unwrap();
    addresses.push(serde_json::from_value(address).unwrap());
    world.params.subject_alt_names.push(SanType::IpAddress(further.parse().unwrap()));
    world.ask();
    let mut docket = docket(&world);
    let mut policy = Policy::new(NAMESPACE);
    policy.asks_dns = true;
    docket.see(&world.csr);
    let created = world.csr.metadata.creation_timestamp.clone().unwrap().0;
    let mut at = |minutes: i64| {
        let now = created + SignedDuration::from_mins(minutes);
        let request = Request::from(&world.csr);
        let answer = docket.decide(&request, &policy, now).unwrap();
        let again = answer.decision.again().map(|again| (again - created).get_seconds() / 60);
        (answer.is_news, answer.decision.warning().map(|warning| warning.message), again)
    };
    assert_eq!(at(0), (true, None, Some(2)));
    let (is_news, message, again) = at(2);
    assert_eq!((is_news, again), (true, Some(10)));
    let message = message.unwrap();
    for part in ["203.0.113.7: the DNS was not asked", "it waits until 2026-05-04T03:12:01Z: wait"]
    {
        assert!(message.contains(part), "{message}");
    }
    assert!(!at(3).0, "people have been told");
    assert_eq!(at(10).2, None, "it is refused");
}

#[test]
fn nothing_is_asked_for_a_request_that_breaks_another_rule() {
    let names = [names_of(0, 1)];
    let mut requests = requests_for(&names);
    assert_eq!(questions(&requests, &names), (1, 0));
    requests[0].spec.usages = Some(strings(&["digital signature", "client auth"]));
    assert_eq!(questions(&requests, &names), (0, 0));
}

#[test]
fn what_the_cluster_says_of_itself_answers_anew() {
    let world = World::new(KubeletServing);
    let mut docket = docket(&world);
    let networks = |text: &str| ClusterFacts {
        addresses: ClusterAddresses {
            services: Some(vec![text.parse().unwrap()]),
            ..ClusterAddresses::default()
        },
        ..bare_metal()
    };
    docket.see(&world.csr);
    let unknown = ClusterAddresses::default();
    docket.set_cluster(ClusterFacts { addresses: unknown, ..bare_metal() });
    check(&mut docket, &world.csr, "wait belongs", true);
    assert_eq!(docket.set_cluster(networks("192.0.2.0/24")), ["csr-1"]);
    check(&mut docket, &world.csr, "refuse belongs", true);
    assert!(docket.set_cluster(networks("192.0.2.0/24")).is_empty(), "nothing changed");
    assert_eq!(docket.set_cluster(networks("172.30.0.0/16")), ["csr-1"]);
    check(&mut docket, &world.csr, "approve ", true);
    // The platform says how Nodes are named.
    assert!(
        docket
            .set_cluster(ClusterFacts { node_names: NodeNames::Unknown, ..bare_metal() })
            .is_empty()
    );
    list(&mut docket, Some("WIN-7.plant.example.net"));
    check(&mut docket, &world.csr, "ignore instance", true);
    assert_eq!(docket.set_cluster(bare_metal()), ["csr-1"]);
    check(&mut docket, &world.csr, "approve ", true);
}

#[test]
fn addresses_that_are_learned_answer_who_waited_for_them() {
    let mut world = World::new(KubeletServing);
    let second: std::net::IpAddr = [192, 0, 2, 50].into();
    let address = serde_json::json!({"type": "InternalIP", "address": second});
    let addresses = world.nodes[0].status.as_mut().unwrap().addresses.as_mut().unwrap();
    addresses.push(serde_json::from_value(address).unwrap());
    world.params_change(|params| params.subject_alt_names.push(SanType::IpAddress(second)));
    let mut docket = docket(&world);
    docket.see(&world.csr);
    check(&mut docket, &world.csr, "refuse belongs", true);
    let mut answers = Resolutions::default();
    answers.insert(INSTANCE, Ok(IPV4));
    let entries = instances::parse([(INSTANCE, "username=core")], &answers);
    let addresses = Some([(INSTANCE.to_owned(), vec![IPV4.into(), second])].into());
    let facts = Facts { hostnames: world.facts.hostnames.clone(), addresses, ..Facts::default() };
    assert_eq!(docket.set_entries(&entries, &facts), ["csr-1"]);
    check(&mut docket, &world.csr, "approve ", true);
}

/// The Machine comes, its host reports its name, its Node is gone: each answers anew.
#[test]
fn what_is_known_of_a_machine_answers_anew() {
    let world = World::new(KubeletClient);
    let mut docket = empty();
    docket.see(&world.csr);
    check(&mut docket, &world.csr, "ignore instance", true);
    let mut machine = MachineFacts {
        name: "m-1".to_owned(),
        addresses: vec![IPV4.into()],
        host: Some(Err(Unfit::NoPhase)),
        ..MachineFacts::default()
    };
    machine.names = strings(&[NODE]);
    assert_eq!(docket.set_machines([machine.clone()]), ["csr-1"]);
    check(&mut docket, &world.csr, "ignore machine", true);
    machine.host = Some(Ok(IPV4));
    machine.names.clear();
    assert_eq!(docket.set_machines([machine.clone()]), ["csr-1"]);
    check(&mut docket, &world.csr, "wait instance", true);
    let mut facts = Facts::default();
    facts.hostnames.insert("m-1_machine".to_owned(), "WIN-7".to_owned());
    assert_eq!(docket.set_entries(&instances::Entries::default(), &facts), ["csr-1"]);
    check(&mut docket, &world.csr, "approve ", true);
    docket.set_node(&node("former", "windows", [192, 0, 2, 77].into()));
    machine.node = Some(Reference { name: "former".to_owned(), uid: String::new() });
    docket.set_machines([machine.clone()]);
    check(&mut docket, &world.csr, "ignore machine-node", true);
    assert_eq!(docket.set_machines([machine]), ["csr-1"], "it may have another Node now");
    assert_eq!(docket.remove_node("former"), ["csr-1"]);
    check(&mut docket, &world.csr, "approve ", true);
}
