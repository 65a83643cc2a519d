//! The private key is exchanged for the next one while both are in the Secret.

use std::collections::BTreeSet;
use std::sync::Arc;

use bin_operator::demo::Stage;
use bin_operator::progress::Progress;
use jiff::SignedDuration;
use wmco_core::names::{self, events, host, objects};
use wmco_services::fake::Snapshot;
use wmco_sim::host::SimHost;

use super::key::all_shown;
use super::observer::{Observer, has_line, public_key};
use super::scenery::{
    Key, annotation, cloud, hosts, machines, name, names, node_of, until_finished,
};
use crate::live::scenery::{addresses, listed, nodes, notes, until};

/// The two plans that exchange keys are shorter, in bytes. Nothing else comes onto a host.
const PLANS: u64 = 1000;

/// Which of `keys` a host lets in, by the file that its server reads.
fn lets_in(host: &SimHost, keys: [&Key; 2]) -> [bool; 2] {
    keys.map(|key| has_line(host, &public_key(key.pem.as_bytes()).unwrap()))
}

/// Whether every host lets the second key in and not the first.
fn is_exchanged(stage: &Stage, keys: [&Key; 2]) -> bool {
    let of_machines = hosts(stage);
    let mut all =
        stage.hosts.iter().map(|(_, host)| host).chain(of_machines.iter().map(|(_, host)| &**host));
    all.all(|host| lets_in(host, keys) == [false, true])
}

/// Of how many hosts it is on record that the next key was proven.
fn proven(stage: &Stage) -> usize {
    let map = objects::HOST_KEYS_CONFIG_MAP;
    let map = stage.cluster.object("", "configmaps", stage.namespace(), map).unwrap();
    let records = map["data"].as_object().unwrap().values();
    records.filter(|record| record.as_str().unwrap().contains("acceptedKey")).count()
}

fn told(stage: &Stage) -> Vec<String> {
    for event in stage.cluster.objects("events.k8s.io", "events", "") {
        let is_good = event["reason"] == events::KEY_EXCHANGED;
        assert!(!is_good || event["type"] == "Normal", "{event}");
    }
    notes(stage, events::KEY_EXCHANGED)
}

/// A host as it is but for the keys that it lets in and for what agents read their plans from.
fn without_keys(host: &SimHost) -> Snapshot {
    let [keys, staging] = [host::AUTHORIZED_KEYS, host::STAGING].map(|it| it.parse().unwrap());
    host.model().snapshot().without(&keys).without(&staging)
}

#[tokio::test(flavor = "multi_thread")]
async fn both_kinds_of_hosts_get_the_next_key_and_lose_the_one_before() {
    let stage = cloud(6, 4).await;
    let observer = Observer::start(&stage, 1).await;
    let running = stage.operate(Progress::new()).unwrap();
    until_finished(&stage, 6, 4).await;
    let (old, new) = (Key::first(&stage), Key::random());
    let of_machines = hosts(&stage);
    let all =
        || stage.hosts.iter().map(|(_, host)| host).chain(of_machines.iter().map(|(_, h)| &**h));
    let (before, shown) = (names(&machines(&stage)), all_shown(&stage));
    let models: Vec<Snapshot> = all().map(without_keys).collect();
    // The line of somebody else stays.
    let other = Key::random();
    for host in all() {
        host.authorize_only([other.public.clone(), old.public.clone()]);
    }
    all().for_each(SimHost::reset_counts);
    stage.give_keys(old.pem.as_bytes(), new.pem.as_bytes()).unwrap();
    until(|| told(&stage).first().cloned()).await;
    assert!(is_exchanged(&stage, [&old, &new]));
    assert!(all().all(|host| lets_in(host, [&other, &new]) == [true; 2]));
    // The Event asks people to do this; the key of every user name on record is the new one by then.
    stage.give_key(new.pem.as_bytes()).unwrap();
    until(|| nodes(&stage).iter().all(|node| new.is_noted_on(node)).then_some(())).await;
    running.stop().await.unwrap();
    let sealed: BTreeSet<String> =
        nodes(&stage).iter().map(|it| annotation(it, names::USERNAME_ANNOTATION).into()).collect();
    let again = stage.operate(Progress::new()).unwrap();
    until_finished(&stage, 6, 4).await;
    until(|| all().all(|host| host.counts().authentications > 0).then_some(())).await;
    again.stop().await.unwrap();
    let after = nodes(&stage);
    assert!(after.iter().all(|it| sealed.contains(annotation(it, names::USERNAME_ANNOTATION))));
    assert_eq!((names(&machines(&stage)), all_shown(&stage)), (before, shown));
    for (host, model) in all().zip(models) {
        let counts = host.counts();
        // That the key before is gone is tried once.
        assert_eq!((counts.restarts, counts.refusals), (0, 1));
        assert!(counts.bytes_uploaded < PLANS, "{}", counts.bytes_uploaded);
        assert_eq!(without_keys(host), model);
    }
    let findings = observer.finish(&stage).await;
    assert_eq!((findings.deleted, findings.most_disrupted), (Vec::new(), 0));
    stage.shutdown().await;
}

/// The key before stays everywhere until the last host is back, so that the rotation can be taken back.
#[tokio::test(flavor = "multi_thread")]
async fn no_host_loses_the_key_while_one_is_away() {
    let stage = cloud(1, 2).await;
    let observer = Observer::start(&stage, 1).await;
    let running = stage.operate(Progress::new()).unwrap();
    until_finished(&stage, 1, 2).await;
    let (old, new) = (Key::first(&stage), Key::random());
    let of_entries: Vec<&SimHost> = stage.hosts.iter().map(|(_, host)| host).collect();
    let machine = hosts(&stage).remove(0).1;
    let (away, reached) = (of_entries[0], [of_entries[1], &*machine]);
    away.power_off();
    stage.give_keys(old.pem.as_bytes(), new.pem.as_bytes()).unwrap();
    until(|| reached.iter().all(|host| lets_in(host, [&old, &new]) == [true; 2]).then_some(()))
        .await;
    until(|| (proven(&stage) == 2).then_some(())).await;
    // Its Node and its user name keep to the key before, so that this can be taken back.
    assert!(nodes(&stage).iter().all(|node| old.is_noted_on(node)));
    assert!(reached.iter().all(|host| lets_in(host, [&old, &new]) == [true; 2]));
    assert_eq!(lets_in(away, [&old, &new]), [true, false]);
    // Another process continues where this one was ended.
    running.kill();
    stage.let_lease_run_out().unwrap();
    let again = stage.operate(Progress::new()).unwrap();
    away.power_on().await;
    until(|| told(&stage).first().cloned()).await;
    assert!(is_exchanged(&stage, [&old, &new]));
    again.stop().await.unwrap();
    let findings = observer.finish(&stage).await;
    assert_eq!((findings.deleted, findings.most_disrupted), (Vec::new(), 0));
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_cannot_be_reached_is_replaced_and_the_rotation_ends() {
    let mut stage = cloud(2, 2).await;
    stage.reconfigure(|config| config.unanswered_after = SignedDuration::from_millis(1500));
    stage.list(&listed(&addresses(1))).unwrap();
    let observer = Observer::start(&stage, 1).await;
    let running = stage.operate(Progress::new()).unwrap();
    until_finished(&stage, 2, 1).await;
    let (old, new) = (Key::first(&stage), Key::random());
    let mut of_machines: Vec<(String, Arc<SimHost>)> = hosts(&stage);
    let (stranded, host) = of_machines.remove(0);
    let kept = of_machines.remove(0).0;
    let uid = node_of(&stage, &kept).map(|node| node["metadata"]["uid"].clone());
    host.power_off();
    stage.give_keys(old.pem.as_bytes(), new.pem.as_bytes()).unwrap();
    until(|| (proven(&stage) == 2).then_some(())).await;
    // Another host joins, so the operator is not cut off itself.
    stage.list(&listed(&addresses(2))).unwrap();
    until(|| machines(&stage).iter().all(|machine| name(machine) != stranded).then_some(())).await;
    until_finished(&stage, 2, 2).await;
    until(|| told(&stage).first().cloned()).await;
    assert!(is_exchanged(&stage, [&old, &new]));
    assert_eq!(node_of(&stage, &kept).map(|node| node["metadata"]["uid"].clone()), uid);
    running.stop().await.unwrap();
    assert_eq!(observer.finish(&stage).await.deleted, [stranded]);
    stage.shutdown().await;
}

/// The file of the next key is cut when hosts have lost the one before, or somebody takes it out.
#[tokio::test(flavor = "multi_thread")]
async fn no_machine_is_replaced_for_a_next_key_that_is_lost() {
    let stage = cloud(2, 0).await;
    let observer = Observer::start(&stage, 1).await;
    let running = stage.operate(Progress::new()).unwrap();
    until_finished(&stage, 2, 0).await;
    let (old, new) = (Key::first(&stage), Key::random());
    let before = names(&machines(&stage));
    stage.give_keys(old.pem.as_bytes(), new.pem.as_bytes()).unwrap();
    until(|| told(&stage).first().cloned()).await;
    stage.give_key(old.pem.as_bytes()).unwrap();
    let held = || notes(&stage, events::MACHINE_DELETION_RESTRICTED);
    until(|| held().iter().any(|note| note.contains("write that key")).then_some(())).await;
    assert_eq!(names(&machines(&stage)), before);
    stage.give_key(new.pem.as_bytes()).unwrap();
    until(|| nodes(&stage).iter().all(|node| new.is_noted_on(node)).then_some(())).await;
    running.stop().await.unwrap();
    assert_eq!(observer.finish(&stage).await.deleted, [""; 0]);
    stage.shutdown().await;
}
