//! Reports for people and programs: text, JSON, Events, conditions; and a view kept up to date.

use jiff::SignedDuration;
use wmco_csr::{Facts, Kind, Policy, Request, Verdict, View, decide};

use crate::fixture::{INSTANCE, IPV4, NODE, World, node, strings};

/// With a key whose signatures all have the same size.
fn fixed(kind: Kind) -> World {
    let mut world = World::new(kind);
    world.key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    world.ask();
    world
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

#[test]
fn approval_as_text() {
    insta::assert_snapshot!(fixed(Kind::KubeletServing).decide());
}

#[test]
fn refusal_as_text() {
    let mut world = fixed(Kind::Wicd);
    world.csr.spec.username = Some("jane\n[approve]".to_owned());
    world.csr.spec.usages = Some(strings(&["any"; 20]));
    insta::assert_snapshot!(world.decide());
}

#[test]
fn wait_as_json() {
    let mut world = fixed(Kind::KubeletServing);
    world.nodes.clear();
    insta::assert_snapshot!(json(&world.decide()));
}

#[test]
fn foreign_signer_as_json() {
    let mut world = fixed(Kind::KubeletServing);
    world.csr.spec.signer_name = "example.com/signer".to_owned();
    insta::assert_snapshot!(json(&world.decide()));
}

#[test]
fn schemas() {
    insta::assert_snapshot!(
        "schema_decision",
        json(&schemars::schema_for!(wmco_csr::Decision<'_>))
    );
    insta::assert_snapshot!("schema_facts", json(&schemars::schema_for!(Facts)));
}

#[test]
fn facts_are_read_as_they_are_written_by_hand() {
    let text = r#"{
        "dns": {
            "forward": {"win-7.plant.example.net": "192.0.2.7"},
            "reverse": {"192.0.2.7": ["win-7.plant.example.net."]}
        },
        "hostnames": {"win-7.plant.example.net": "WIN-7"}
    }"#;
    let facts: Facts = serde_json::from_str(text).unwrap();
    assert_eq!(facts.leads_to(INSTANCE), [std::net::IpAddr::from(IPV4)]);
    assert_eq!(facts.dns.reverse[&IPV4.into()], ["win-7.plant.example.net."]);
    assert_eq!(facts.hostnames[INSTANCE], "WIN-7");
    assert_eq!(serde_json::from_str::<Facts>("{}").unwrap(), Facts::default());
    let again = serde_json::to_string(&facts).unwrap();
    assert_eq!(serde_json::from_str::<Facts>(&again).unwrap(), facts);
    assert!(serde_json::from_str::<Facts>(r#"{"hostname": {}}"#).is_err());
}

#[test]
fn warnings_name_the_rule() {
    let mut world = World::new(Kind::KubeletClient);
    assert_eq!(world.decide().warning(), None);
    world.csr.spec.expiration_seconds = Some(1);
    let warning = world.decide().warning().unwrap();
    assert_eq!(warning.reason, "CertificateRefused");
    assert_eq!(warning.message, "lifetime: 1 s, not 600 s to 31536000 s");
    assert_eq!(warning.node, None);

    world.params.distinguished_name.push(rcgen::DnType::CommonName, "system:node:WIN-7");
    world.ask();
    let warning = world.decide().warning().unwrap();
    assert_eq!(warning.reason, "NodeNameValidationFailed");

    let mut world = World::new(Kind::KubeletClient);
    world.nodes.push(node(NODE, "windows", IPV4));
    let warning = world.decide().warning().unwrap();
    assert_eq!(warning.reason, "CertificateNodeExists");
    assert_eq!(warning.message, "node-absent: node win-7 exists, delete it if it is stale");
    assert_eq!(warning.node.as_deref(), Some(NODE));

    world.instances.clear();
    assert_eq!(world.decide().warning(), None, "not ours");
}

#[test]
fn refused_is_denied_only_if_the_policy_says_so() {
    let mut world = World::new(Kind::Wicd);
    world.csr.spec.usages = None;
    assert!(matches!(world.decide().into_verdict(), Verdict::Refuse(None)));
    world.policy.deny = true;
    let Verdict::Refuse(Some(denial)) = world.decide().into_verdict() else {
        panic!("not refused, or no denial")
    };
    assert_eq!((denial.name(), denial.resource_version()), ("csr-1", Some("17")));
    let condition = denial.condition(jiff::Timestamp::UNIX_EPOCH);
    assert_eq!((condition.type_.as_str(), condition.status.as_str()), ("Denied", "True"));
    assert_eq!(condition.message.as_deref(), Some("This CSR breaks the rule usages."));
}

#[test]
fn deadline_ends_the_wait() {
    let mut world = World::new(Kind::KubeletServing);
    world.nodes.clear();
    let Verdict::Wait { deadline } = world.decide().into_verdict() else { panic!("no wait") };
    let policy = Policy::new("windows-operator");
    let view = world.view();
    let decide_at = |now| decide(&Request::from(&world.csr), &policy, &view, now);
    let before = deadline - SignedDuration::from_nanos(1);
    assert_eq!(decide_at(before).verdict().name(), "wait");
    assert_eq!(decide_at(deadline).verdict().name(), "refuse");
}

#[test]
fn without_a_creation_time_nothing_is_waited_for() {
    let mut world = World::new(Kind::KubeletServing);
    world.nodes.clear();
    world.csr.metadata.creation_timestamp = None;
    world.check("refuse", "node");
}

#[test]
fn view_forgets_what_is_gone() {
    let mut world = World::new(Kind::KubeletServing);
    let mut view = world.view();
    let now = world.csr.metadata.creation_timestamp.as_ref().unwrap().0;
    let policy = Policy::new("windows-operator");
    let verdict = |world: &World, view: &View| {
        decide(&Request::from(&world.csr), &policy, view, now).verdict().name()
    };
    world.also_pending("csr-2", SignedDuration::from_secs(1));
    view.set_request(&world.pending[0]);
    assert_eq!(verdict(&world, &view), "ignore");
    view.remove_request("csr-2");
    assert_eq!(verdict(&world, &view), "approve");

    for (condition, expected) in
        [("Approved", "ignore"), ("Denied", "approve"), ("Failed", "approve")]
    {
        view.set_request(&world.pending[0]);
        assert_eq!(verdict(&world, &view), "ignore");
        let mut decided = world.pending[0].clone();
        let status = serde_json::json!({"conditions": [{"type": condition, "status": "True"}]});
        decided.status = Some(serde_json::from_value(status).unwrap());
        view.set_request(&decided);
        assert_eq!(verdict(&world, &view), expected, "the newer one is {condition}");
        view.remove_request("csr-2");
    }

    view.remove_node(NODE);
    assert_eq!(verdict(&world, &view), "wait");
    view.set_node(&world.nodes[0]);
    assert_eq!(verdict(&world, &view), "approve");
    view.set_instances([], &Facts::default());
    assert_eq!(verdict(&world, &view), "ignore");
}
