//! An entry that goes takes its node along and gives the host back.

use std::collections::BTreeMap;

use bin_operator::progress::{Progress, Stage as Rest, What};
use serde_json::json;
use wmco_core::names::{host, objects};
use wmco_services::fake::Snapshot;

use super::scenery::{addresses, is_finished, listed, nodes, notes, settled, stage, until, wait};

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
        .apply(&json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": "web", "namespace": "default" },
            "spec": {
                "nodeName": name, "terminationGracePeriodSeconds": 0,
                "containers": [{ "name": "web", "image": "web:1" }],
            },
        }))
        .unwrap();

    let gone = wait(&progress, |h| matches!(h.what, What::Stage(Rest::Gone)));
    stage.list(&listed(&all[1..])).unwrap();
    gone.await;
    until(|| (nodes(&stage).len() == 1).then_some(())).await;
    assert!(stage.cluster.count("create", "pods/eviction") >= 1);
    assert_eq!(stage.cluster.object("", "pods", "default", "web"), None);
    let (_, removed) = stage.hosts.iter().next().unwrap();
    assert_eq!(without_logs(removed.model().snapshot()), before[0]);
    assert!(nodes(&stage).iter().all(|node| is_finished(node)));
    assert_eq!(notes(&stage, "InstanceTeardown").len(), 1);

    // Its address can be used again: nothing of it is kept.
    let keys =
        stage.cluster.object("", "configmaps", stage.namespace(), objects::HOST_KEYS_CONFIG_MAP);
    let is_kept = |keys: &serde_json::Value| {
        let data = keys["data"].as_object();
        data.is_some_and(|data| data.keys().any(|key| key.starts_with(&all[0])))
    };
    assert!(!keys.is_some_and(|keys| is_kept(&keys)));
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
    let progress = Progress::new();
    let joined = settled(&progress, &all);
    let running = stage.operate(progress.clone()).unwrap();
    joined.await;
    stage.list(&BTreeMap::new()).unwrap();
    until(|| nodes(&stage).is_empty().then_some(())).await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}
