//! Removals in masses, and a list that is gone.

use std::time::Duration;

use bin_operator::progress::Progress;
use serde_json::json;
use wmco_core::names::{self, objects};

use super::scenery::{
    addresses, configure, delete_config_map, is_finished, listed, nodes, notes,
    operate_until_settled, patch_config_map, stage, until,
};

fn told(stage: &bin_operator::demo::Stage) -> Vec<String> {
    notes(stage, names::events::INSTANCE_SETUP_FAILURE)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_is_gone_removes_nothing() {
    let (all, stage) = (addresses(2), stage(2).await);
    configure(&stage, &all).await;
    let running = operate_until_settled(&stage, &all).await;
    delete_config_map(&stage, objects::INSTANCES_CONFIG_MAP).await;
    let told = until(|| told(&stage).into_iter().find(|note| note.contains("is absent"))).await;
    assert!(told.contains(objects::INSTANCES_CONFIG_MAP), "{told}");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(nodes(&stage).iter().all(|node| is_finished(node)) && nodes(&stage).len() == 2);
    // An empty one removes.
    stage.list(&listed(&[])).unwrap();
    until(|| nodes(&stage).is_empty().then_some(())).await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_removals_than_allowed_wait_for_their_number() {
    let (all, mut stage) = (addresses(3), stage(3).await);
    stage.reconfigure(|config| config.guard_removals = Some(1));
    configure(&stage, &all).await;
    let running = stage.operate(Progress::new()).unwrap();
    stage.list(&listed(&all[2..])).unwrap();
    let told = until(|| told(&stage).into_iter().find(|note| note.contains("confirmation"))).await;
    let wanted = format!("{}=2", names::CONFIRM_REMOVAL_ANNOTATION);
    assert!(told.contains(&wanted), "{told}");
    assert_eq!(nodes(&stage).len(), 3);
    let confirm = |number: &str| json!({ "metadata": { "annotations": { names::CONFIRM_REMOVAL_ANNOTATION: number } } });
    let list_map = objects::INSTANCES_CONFIG_MAP;
    patch_config_map(&stage, list_map, &confirm("3")).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(nodes(&stage).len(), 3, "another number confirms nothing");
    patch_config_map(&stage, list_map, &confirm("2")).await;
    until(|| (nodes(&stage).len() == 1).then_some(())).await;
    // It does not count for what comes later.
    let list = || {
        let name = objects::INSTANCES_CONFIG_MAP;
        stage.cluster.object("", "configmaps", stage.namespace(), name).unwrap()
    };
    until(|| {
        let left = list()["metadata"]["annotations"][names::CONFIRM_REMOVAL_ANNOTATION].is_null();
        left.then_some(())
    })
    .await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}
