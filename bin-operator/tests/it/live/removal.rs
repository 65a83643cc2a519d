//! An entry that goes takes its node along and gives the host back.

use std::collections::BTreeMap;
use std::time::Duration;

use bin_operator::demo::Stage;
use bin_operator::progress::{Progress, ProgressKind, Stage as Rest};
use serde_json::json;
use wmco_core::host_record::HostRecord;
use wmco_core::names::{events, host};
use wmco_services::fake::Snapshot;
use wmco_sim::host::{Fault, SimHostBuilder};

use super::scenery::{
    addresses, change_node, is_finished, kept_keys, listed, nodes, notes, operate_until_settled,
    settled, stage, until, wait,
};

/// The host without its logs.
fn without_logs(mut snapshot: Snapshot) -> Snapshot {
    let logs = host::LOGS.parse().unwrap();
    let above = r"C:\var".parse().unwrap();
    snapshot.files.retain(|path, _| !path.is_within(&logs) && *path != above);
    snapshot
}

#[tokio::test(flavor = "multi_thread")]
async fn removing_an_entry_drains_cleans_and_deletes() {
    let all = addresses(2);
    let stage = stage(2).await;
    let before: Vec<Snapshot> =
        stage.hosts.iter().map(|(_, h)| without_logs(h.model().snapshot())).collect();
    let progress = Progress::new();
    let joined = settled(&progress, &all);
    let running = stage.operate(progress.clone()).unwrap();
    joined.await;

    // A pod of somebody's, which has to leave first.
    let node = nodes(&stage).remove(0);
    let name = node["metadata"]["name"].as_str().unwrap().to_owned();
    stage
        .cluster
        .put(&json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": "web", "namespace": "default" },
            "spec": {
                "nodeName": name, "terminationGracePeriodSeconds": 0,
                "containers": [{ "name": "web", "image": "web:1" }],
            },
        }))
        .unwrap();

    let gone = wait(&progress, |h| matches!(h.kind, ProgressKind::Stage(Rest::Gone)));
    stage.list(&listed(&all[1..])).unwrap();
    gone.await;
    until(|| (nodes(&stage).len() == 1).then_some(())).await;
    assert!(stage.cluster.count("create", "pods/eviction") >= 1);
    assert_eq!(stage.cluster.object("", "pods", "default", "web"), None);
    let (_, removed) = stage.hosts.iter().next().unwrap();
    assert_eq!(without_logs(removed.model().snapshot()), before[0]);
    assert!(nodes(&stage).iter().all(|node| is_finished(node)));
    until(|| (notes(&stage, "InstanceTeardown").len() == 1).then_some(())).await;

    // Its address can be used again: nothing of it is kept.
    until(|| kept_keys(&stage).keys().all(|key| !key.starts_with(&all[0])).then_some(())).await;
    assert_eq!(kept_keys(&stage).len(), 2, "key and record of the other host stay");
    removed.change_host_keys().unwrap();
    let again = settled(&progress, &all[..1]);
    stage.list(&listed(&all)).unwrap();
    again.await;
    until(|| {
        let finished = nodes(&stage).iter().filter(|node| is_finished(node)).count();
        (finished == 2).then_some(())
    })
    .await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_list_removes_every_node() {
    let all = addresses(2);
    let stage = stage(2).await;
    let running = operate_until_settled(&stage, &all).await;
    stage.list(&BTreeMap::new()).unwrap();
    until(|| nodes(&stage).is_empty().then_some(())).await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}

/// Its Node stays, marked as deleted, until the finalizer of somebody else goes.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_a_finalizer_holds_has_its_host_cleaned_once() {
    let (all, stage) = (addresses(1), stage(1).await);
    let (_, host) = stage.hosts.iter().next().unwrap();
    let before = without_logs(host.model().snapshot());
    let running = operate_until_settled(&stage, &all).await;
    let name = nodes(&stage)[0]["metadata"]["name"].as_str().unwrap().to_owned();
    change_node(&stage, &name, |node| {
        node["metadata"]["finalizers"] = json!(["example.test/hold"]);
    });
    stage.list(&listed(&[])).unwrap();
    until(|| nodes(&stage)[0]["metadata"]["deletionTimestamp"].is_string().then_some(())).await;
    until(|| kept_keys(&stage).is_empty().then_some(())).await;
    assert_eq!(without_logs(host.model().snapshot()), before);
    host.reset_counts();
    // Longer than a pass and the first attempts of a worker take.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(nodes(&stage).len(), 1, "it is still held");
    change_node(&stage, &name, |node| node["metadata"]["finalizers"] = json!([]));
    until(|| nodes(&stage).is_empty().then_some(())).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    running.stop().await.unwrap();
    let counts = host.counts();
    assert_eq!((counts.authentications, counts.executions), (0, Vec::new()), "nobody came back");
    assert_eq!(without_logs(host.model().snapshot()), before);
    assert_eq!(kept_keys(&stage), BTreeMap::new());
    let failed = notes(&stage, events::INSTANCE_SETUP_FAILURE);
    assert_eq!(failed, Vec::<String>::new(), "nobody has to do anything");
    for (reason, told) in [(events::HOST_KEY_PINNED, 1), (events::INSTANCE_TEARDOWN, 1)] {
        assert_eq!(notes(&stage, reason).len(), told, "{reason}");
    }
    stage.shutdown().await;
}

/// It was on record before anybody connected to it, and there is nothing to clean.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_never_answered_is_forgotten_with_its_entry() {
    let all = addresses(1);
    let silent = |_, host: SimHostBuilder| host.fault(Fault::RefuseAuthentication);
    let stage = Stage::start(&listed(&all), silent).await.unwrap();
    let running = stage.operate(Progress::new()).unwrap();
    until(|| notes(&stage, events::INSTANCE_SETUP_FAILURE).into_iter().next()).await;
    assert!(kept_keys(&stage).contains_key(&HostRecord::key_name(&all[0])));
    stage.list(&listed(&[])).unwrap();
    until(|| kept_keys(&stage).is_empty().then_some(())).await;
    running.stop().await.unwrap();
    assert_eq!(notes(&stage, events::INSTANCE_TEARDOWN), Vec::<String>::new());
    stage.shutdown().await;
}
