//! Pinned host keys: the ConfigMap is the authority.

use bin_operator::progress::{Progress, ProgressKind};
use wmco_core::names;

use super::scenery::{
    addresses, change_kept_keys, change_node, configure, is_finished, kept_keys, nodes, notes,
    settled, stage, until,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_pin_that_vanished_is_a_warning_and_no_first_use() {
    let (all, stage) = (addresses(1), stage(1).await);
    configure(&stage, &all).await;
    let pin = kept_keys(&stage)[&all[0]].clone();
    change_kept_keys(&stage, &[(&all[0], None)]);
    let (_, host) = stage.hosts.iter().next().unwrap();
    host.change_host_keys().unwrap();
    stage.hosts.reset_counts();
    let progress = Progress::new();
    let running = stage.operate(progress.clone()).unwrap();
    let told = until(|| {
        let told = notes(&stage, names::events::INSTANCE_SETUP_FAILURE);
        told.into_iter().find(|note| note.contains("is gone from ConfigMap"))
    })
    .await;
    assert!(told.contains(&all[0]) && told.contains("SHA256:"), "{told}");
    let logins = |stage: &bin_operator::demo::Stage| stage.hosts.counts()[0].authentications;
    assert_eq!(logins(&stage), 0, "nobody logged in");
    // Neither does the pin help that another host shows now.
    change_kept_keys(&stage, &[(&all[0], Some(pin))]);
    until(|| notes(&stage, names::events::HOST_KEY_MISMATCH).into_iter().next()).await;
    assert_eq!(logins(&stage), 0, "nobody logged in");
    let key = host.host_keys()[0].to_openssh().unwrap();
    let settled = settled(&progress, &all);
    change_kept_keys(&stage, &[(&all[0], key.split_whitespace().nth(1).map(str::to_owned))]);
    settled.await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_daemon_writes_on_a_node_pins_no_other_key() {
    let (all, stage) = (addresses(1), stage(1).await);
    configure(&stage, &all).await;
    let node = nodes(&stage)[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let pin = kept_keys(&stage)[&all[0]].clone();
    change_node(&stage, &node, |node| {
        node["metadata"]["annotations"][names::HOST_KEY_ANNOTATION] = "AAAA".into();
    });
    let running = stage.operate(Progress::new()).unwrap();
    until(|| {
        let now = nodes(&stage)[0]["metadata"]["annotations"][names::HOST_KEY_ANNOTATION].clone();
        (now == pin).then_some(())
    })
    .await;
    until(|| {
        let told = notes(&stage, names::events::INSTANCE_SETUP_FAILURE);
        told.into_iter().find(|note| note.contains(&node) && note.contains("set back"))
    })
    .await;
    running.stop().await.unwrap();
    assert!(is_finished(&nodes(&stage)[0]));
    stage.shutdown().await;
}

/// The next process finds it kept, so nobody would hear of it any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_pinned_is_told_before_anything_is_sent() {
    let (all, stage) = (addresses(1), stage(1).await);
    let progress = Progress::new();
    let mut events = progress.subscribe();
    let running = stage.operate(progress).unwrap();
    while !matches!(events.recv().await.unwrap().kind, ProgressKind::Upload(_)) {}
    running.stop().await.unwrap();
    assert!(kept_keys(&stage).contains_key(&all[0]), "it is kept");
    configure(&stage, &all).await;
    assert_eq!(notes(&stage, names::events::HOST_KEY_PINNED).len(), 1);
    stage.shutdown().await;
}
