//! The private key is replaced by another one.

use std::collections::BTreeMap;
use std::time::Duration;

use bin_operator::demo::Stage;
use bin_operator::progress::Progress;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use wmco_core::names::{events, objects};
use wmco_services::fake::Snapshot;
use wmco_sim::host::SimHost;

use super::observer::Observer;
use super::scenery::{Key, cloud, hosts, machines, name, names, node_of, until_finished};
use crate::live::scenery::{admin, is_finished, nodes, notes, until};

/// What people would notice of a Node.
fn shown(node: &Value) -> Value {
    serde_json::json!([node["metadata"]["uid"], node["metadata"]["labels"], node["spec"]])
}

pub(super) fn all_shown(stage: &Stage) -> BTreeMap<String, Value> {
    nodes(stage).iter().map(|node| (name(node), shown(node))).collect()
}

fn entries(stage: &Stage) -> Vec<Snapshot> {
    stage.hosts.iter().map(|(_, host)| host.model().snapshot()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_that_let_the_new_key_in_notice_nothing() {
    let stage = cloud(2, 1).await;
    let observer = Observer::start(&stage, 1).await;
    let running = stage.operate(Progress::new()).unwrap();
    until_finished(&stage, 2, 1).await;
    let (old, new) = (Key::first(&stage), Key::random());
    let of_machines = hosts(&stage);
    let all =
        || stage.hosts.iter().map(|(_, host)| host).chain(of_machines.iter().map(|(_, h)| &**h));
    for host in all() {
        host.authorize_only([old.public.clone(), new.public.clone()]);
    }
    let (before, shown) = (names(&machines(&stage)), all_shown(&stage));
    let models: Vec<Snapshot> = all().map(|host| host.model().snapshot()).collect();
    all().for_each(SimHost::reset_counts);
    stage.give_key(new.pem.as_bytes()).unwrap();
    until(|| nodes(&stage).iter().all(|node| new.is_noted_on(node)).then_some(())).await;
    until_finished(&stage, 2, 1).await;
    running.stop().await.unwrap();
    assert_eq!((names(&machines(&stage)), all_shown(&stage)), (before, shown));
    for (host, model) in all().zip(models) {
        let counts = host.counts();
        assert_eq!((counts.bytes_uploaded, counts.restarts, counts.refusals), (0, 0, 0));
        assert_eq!(host.model().snapshot(), model);
    }
    let findings = observer.finish(&stage).await;
    assert_eq!((findings.deleted, findings.most_disrupted), (Vec::new(), 0));
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_that_refuse_the_new_key_are_replaced_one_after_another() {
    let stage = cloud(3, 2).await;
    let observer = Observer::start(&stage, 1).await;
    let running = stage.operate(Progress::new()).unwrap();
    until_finished(&stage, 3, 2).await;
    let (mut before, models) = (names(&machines(&stage)), entries(&stage));
    let of_entries: Vec<Value> = nodes_of_entries(&stage);
    let new = Key::random();
    stage.give_key(new.pem.as_bytes()).unwrap();
    until(|| {
        let now = names(&machines(&stage));
        now.iter().all(|name| !before.contains(name)).then_some(())
    })
    .await;
    until_finished(&stage, 3, 2).await;
    // Events name the problem of each entry, and the hosts are not touched.
    let told = notes(&stage, events::INSTANCE_SETUP_FAILURE);
    for (address, _) in stage.hosts.iter() {
        let is_told = |note: &&String| note.contains(address) && note.contains("private key");
        assert!(told.iter().any(|note| is_told(&note)), "{address}: {told:#?}");
    }
    assert_eq!((entries(&stage), nodes_of_entries(&stage)), (models, of_entries));
    running.stop().await.unwrap();
    let findings = observer.finish(&stage).await;
    let mut deleted = findings.deleted;
    deleted.sort();
    before.sort();
    assert_eq!((deleted, findings.most_disrupted), (before, 1));
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_machines_that_refuse_the_new_key_are_replaced() {
    let stage = cloud(2, 2).await;
    let observer = Observer::start(&stage, 1).await;
    let running = stage.operate(Progress::new()).unwrap();
    until_finished(&stage, 2, 2).await;
    let (old, new) = (Key::first(&stage), Key::random());
    let (_, entry) = stage.hosts.iter().next().unwrap();
    let machine = hosts(&stage).remove(0);
    for host in [entry, &*machine.1] {
        host.authorize_only([old.public.clone(), new.public.clone()]);
    }
    let kept = machine.0;
    let shown_before = node_of(&stage, &kept).map(|node| shown(&node));
    let before = names(&machines(&stage));
    stage.give_key(new.pem.as_bytes()).unwrap();
    until(|| (names(&machines(&stage)) != before).then_some(())).await;
    until_finished(&stage, 2, 2).await;
    until(|| {
        let noted = nodes(&stage).iter().filter(|node| new.is_noted_on(node)).count();
        (noted == 3).then_some(())
    })
    .await;
    assert_eq!(node_of(&stage, &kept).map(|node| shown(&node)), shown_before);
    running.stop().await.unwrap();
    let findings = observer.finish(&stage).await;
    let gone: Vec<String> = before.into_iter().filter(|name| *name != kept).collect();
    assert_eq!(findings.deleted, gone);
    stage.shutdown().await;
}

/// There is no other node of its MachineSet that could do its work meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn the_only_machine_of_a_set_is_replaced_too() {
    let stage = cloud(1, 0).await;
    let observer = Observer::start(&stage, 1).await;
    let running = stage.operate(Progress::new()).unwrap();
    until_finished(&stage, 1, 0).await;
    let before = names(&machines(&stage));
    stage.give_key(Key::random().pem.as_bytes()).unwrap();
    until(|| machines(&stage).iter().all(|machine| name(machine) != before[0]).then_some(())).await;
    until_finished(&stage, 1, 0).await;
    until(|| (notes(&stage, events::MACHINE_DELETED).len() == 1).then_some(())).await;
    running.stop().await.unwrap();
    assert_eq!(observer.finish(&stage).await.deleted, before);
    stage.shutdown().await;
}

fn nodes_of_entries(stage: &Stage) -> Vec<Value> {
    let is_listed = |node: &Value| {
        node["metadata"]["annotations"][wmco_core::names::INSTANCE_ANNOTATION].is_string()
    };
    let all = nodes(stage);
    let listed = all.iter().filter(|node| is_listed(node) && is_finished(node));
    listed.map(|node| serde_json::json!([shown(node), node["metadata"]["annotations"]])).collect()
}

/// What somebody else wants new machines to start with.
const THEIRS: &str = "aGVsbG8=";

/// What a Machine starts with that is made while somebody writes the user data back, nobody can tell.
#[tokio::test(flavor = "multi_thread")]
async fn no_machine_goes_while_somebody_writes_the_user_data_back() {
    let mut stage = cloud(2, 0).await;
    // Far longer than theirs stay away.
    stage.reconfigure(|config| config.refused_after = SignedDuration::from_secs(6));
    let running = stage.operate(Progress::new()).unwrap();
    until_finished(&stage, 2, 0).await;
    let before = names(&machines(&stage));
    let user_data = || {
        let namespace = objects::MACHINE_API_NAMESPACE;
        let secret = stage.cluster.object("", "secrets", namespace, objects::USER_DATA_SECRET);
        secret.map(|secret| secret["data"][objects::USER_DATA_KEY].clone())
    };
    let secrets: Api<Secret> = Api::namespaced(admin(&stage).await, objects::MACHINE_API_NAMESPACE);
    let theirs = Patch::Merge(json!({ "data": { objects::USER_DATA_KEY: THEIRS } }));
    let mut last = user_data();
    stage.give_key(Key::random().pem.as_bytes()).unwrap();
    // They are right for the fourth time after the first pause, when hosts have refused for long.
    for _ in 0..4 {
        until(|| (user_data() != last).then_some(())).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        secrets.patch(objects::USER_DATA_SECRET, &PatchParams::default(), &theirs).await.unwrap();
        last = Some(THEIRS.into());
    }
    assert_eq!(names(&machines(&stage)), before);
    running.stop().await.unwrap();
    stage.shutdown().await;
}
