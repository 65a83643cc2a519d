//! What Nodes say of themselves, and what of it is believed.

use bin_operator::progress::{Progress, ProgressKind, Stage as Rest};
use serde_json::{Value, json};
use wmco_core::host_record::HostRecord;
use wmco_core::names::{self, objects};

use super::scenery::{
    addresses, change_node, configure, delete_node, is_finished, kept_keys, listed, name, nodes,
    notes, operate_until_settled, patch_config_map, stage, until, wait,
};

/// The Node that was made from the entry `address`.
fn node_from(stage: &bin_operator::demo::Stage, address: &str) -> String {
    let made = |node: &&std::sync::Arc<Value>| {
        node["metadata"]["annotations"][names::INSTANCE_ANNOTATION] == address
    };
    name(nodes(stage).iter().find(made).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_shows_the_address_of_another_does_not_have_it_removed() {
    let (all, stage) = (addresses(2), stage(2).await);
    configure(&stage, &all).await;
    let [liar, other] = [&all[0], &all[1]].map(|address| node_from(&stage, address));
    change_node(&stage, &liar, |node| {
        let forged = json!({ "type": "InternalIP", "address": all[1] });
        node["status"]["addresses"].as_array_mut().unwrap().push(forged);
        node["metadata"]["annotations"][names::INSTANCE_ANNOTATION] = all[1].clone().into();
    });
    stage.hosts.reset_counts();
    let running = operate_until_settled(&stage, &all).await;
    let told = until(|| {
        notes(&stage, names::events::INSTANCE_SETUP_FAILURE)
            .into_iter()
            .find(|note| note.contains(&liar) && note.contains(&other))
    })
    .await;
    assert!(told.contains("correct node"), "{told}");
    running.stop().await.unwrap();
    assert!(nodes(&stage).iter().all(|node| is_finished(node)), "{:#?}", nodes(&stage));
    for counts in stage.hosts.counts() {
        assert_eq!(counts.executions.len(), 1, "a look and nothing else: {counts:#?}");
    }
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_whose_node_was_deleted_before_its_entry_is_cleaned() {
    let (all, stage) = (addresses(1), stage(1).await);
    let (_, host) = stage.hosts.iter().next().unwrap();
    let before = host.model().snapshot();
    configure(&stage, &all).await;
    assert!(host.model().snapshot().services.len() > before.services.len());
    delete_node(&stage, &name(&nodes(&stage)[0])).await;
    stage.list(&listed(&[])).unwrap();
    let progress = Progress::new();
    let gone = wait(&progress, |h| matches!(h.kind, ProgressKind::Stage(Rest::Gone)));
    let running = stage.operate(progress.clone()).unwrap();
    gone.await;
    until(|| kept_keys(&stage).is_empty().then_some(())).await;
    running.stop().await.unwrap();
    assert!(nodes(&stage).is_empty());
    let ours = |path: &&wmco_core::winpath::WindowsPath| path.as_str().starts_with(r"C:\k");
    let left = host.model().snapshot();
    assert_eq!((left.files.keys().find(ours), left.services), (None, before.services));
    assert_eq!(notes(&stage, names::events::INSTANCE_TEARDOWN).len(), 1);
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_nobody_lists_or_reaches_is_given_up_by_a_person() {
    let (all, stage) = (addresses(1), stage(1).await);
    let (_, host) = stage.hosts.iter().next().unwrap();
    configure(&stage, &all).await;
    delete_node(&stage, &name(&nodes(&stage)[0])).await;
    host.authorize_only([]);
    stage.list(&listed(&[])).unwrap();
    let running = stage.operate(Progress::new()).unwrap();
    let command = HostRecord::give_up_command(stage.namespace(), &all[0]);
    until(|| {
        let told = notes(&stage, names::events::INSTANCE_SETUP_FAILURE);
        told.iter().any(|note| note.contains(&command)).then_some(())
    })
    .await;
    // The patch in that command.
    let patch = serde_json::from_str(command.split('\'').nth(1).unwrap()).unwrap();
    patch_config_map(&stage, objects::HOST_KEYS_CONFIG_MAP, &patch).await;
    until(|| kept_keys(&stage).is_empty().then_some(())).await;
    stage.hosts.reset_counts();
    running.stop().await.unwrap();
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_its_labels_keeps_its_host_from_being_torn_down() {
    let (all, stage) = (addresses(1), stage(1).await);
    configure(&stage, &all).await;
    let node = name(&nodes(&stage)[0]);
    change_node(&stage, &node, |node| {
        node["metadata"]["labels"] = json!({});
        node["metadata"]["annotations"] = json!({});
        node["status"]["addresses"] = json!([]);
    });
    stage.hosts.reset_counts();
    let running = stage.operate(Progress::new()).unwrap();
    let told = until(|| {
        let told = notes(&stage, names::events::INSTANCE_SETUP_FAILURE);
        told.into_iter().find(|note| note.contains(&node))
    })
    .await;
    assert!(told.contains("no windows node"), "{told}");
    running.stop().await.unwrap();
    assert_eq!(nodes(&stage).len(), 1);
    assert!(stage.hosts.counts().iter().all(|counts| counts.executions.is_empty()));
    stage.shutdown().await;
}
