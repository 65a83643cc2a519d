//! A host behind a jump host joins and leaves through it.

use std::collections::BTreeMap;

use bin_operator::demo::Stage;
use bin_operator::progress::{Progress, ProgressKind, Stage as Rest};
use wmco_core::host_record::HostRecord;
use wmco_core::names::objects;
use wmco_sim::host::SimHost;
use wmco_ssh::PrivateKey;

use super::scenery::{
    addresses, change_kept_keys, is_finished, kept_keys, nodes, notes, settled, stage, until, wait,
};

/// A host that connects on to the only host of `stage`.
async fn jump_to(stage: &Stage) -> SimHost {
    let (address, host) = stage.hosts.iter().next().unwrap();
    let key = PrivateKey::parse(&stage.key).unwrap().public().authorized_key();
    SimHost::builder()
        .user("jump")
        .authorized_key(russh::keys::PublicKey::from_openssh(&key).unwrap())
        .forward(address, host.ssh_address())
        .start()
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_behind_a_jump_host_joins_and_leaves_through_it() {
    let (all, stage) = (addresses(1), stage(1).await);
    let jump = jump_to(&stage).await;
    let at = jump.ssh_address();
    let entry = format!("username=Administrator\nvia=jump@{at}");
    stage.list(&[(all[0].clone(), entry)].into()).unwrap();
    let progress = Progress::new();
    let joined = settled(&progress, &all);
    let running = stage.operate(progress.clone()).unwrap();
    joined.await;
    let joined_node = nodes(&stage).remove(0);
    assert!(is_finished(&joined_node), "{joined_node}");
    let record = kept_keys(&stage)[&HostRecord::key_name(&all[0])].clone();
    let record: HostRecord = serde_json::from_str(&record).unwrap();
    assert_eq!(record.via, Some(format!("jump@{at}")));
    assert!(jump.counts().authentications >= 1);
    assert!(jump.counts().executions.is_empty(), "nothing is run on the way");

    // Its own key is kept, and so is the jump host's.
    let name = format!("{}_{}", at.ip(), at.port());
    assert!(kept_keys(&stage).contains_key(&name) && kept_keys(&stage).contains_key(&all[0]));
    let pinned = notes(&stage, "HostKeyPinned");
    assert_eq!(pinned.len(), 2, "both were trusted on first use: {pinned:?}");
    assert!(pinned.iter().all(|note| note.matches("SHA256:").count() == 1), "{pinned:?}");
    running.stop().await.unwrap();
    jump.change_host_keys().unwrap();
    let running = stage.operate(Progress::new()).unwrap();
    let told = until(|| notes(&stage, "HostKeyMismatch").into_iter().next()).await;
    assert!(told.contains(&at.to_string()), "it names the jump host: {told}");
    let accept = format!("replace `{name}` in ConfigMap {}", objects::HOST_KEYS_CONFIG_MAP);
    assert!(told.contains(&accept), "{told}");
    running.stop().await.unwrap();

    // A person accepts the new key, and the entry goes: the way back leads through the jump host.
    let key = jump.host_keys()[0].to_openssh().unwrap();
    let key = key.split_whitespace().nth(1).unwrap().to_owned();
    change_kept_keys(&stage, &[(&name, Some(key))]);
    stage.list(&BTreeMap::new()).unwrap();
    let before = jump.counts().authentications;
    let progress = Progress::new();
    let gone = wait(&progress, |h| matches!(h.kind, ProgressKind::Stage(Rest::Gone)));
    let running = stage.operate(progress.clone()).unwrap();
    gone.await;
    until(|| nodes(&stage).is_empty().then_some(())).await;
    assert!(jump.counts().authentications > before);
    until(|| kept_keys(&stage).is_empty().then_some(())).await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}
