//! A host behind a jump host joins and leaves through it.

use std::collections::BTreeMap;

use bin_operator::demo::Stage;
use bin_operator::progress::{Progress, Stage as Rest, What};
use wmco_core::host_record::HostRecord;
use wmco_core::names::{self, objects};
use wmco_sim::host::SimHost;
use wmco_ssh::PrivateKey;

use super::scenery::{addresses, is_finished, nodes, notes, settled, stage, until, wait};

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

/// Host keys that are kept, without the records beside them.
fn kept_keys(stage: &Stage) -> BTreeMap<String, String> {
    let map =
        stage.cluster.object("", "configmaps", stage.namespace(), objects::HOST_KEYS_CONFIG_MAP);
    let data = map.map(|map| map["data"].clone()).unwrap_or_default();
    let mut keys: BTreeMap<String, String> = serde_json::from_value(data).unwrap_or_default();
    keys.retain(|key, _| HostRecord::address_in(key).is_none());
    keys
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
    assert_eq!(
        joined_node["metadata"]["annotations"][names::SSH_VIA_ANNOTATION],
        format!("jump@{at}")
    );
    assert!(jump.counts().authentications >= 1);
    assert!(jump.counts().executions.is_empty(), "nothing is run on the way");

    // Its own key is with the Node, the jump host's is kept and pinned.
    let name = format!("{}_{}", at.ip(), at.port());
    until(|| (kept_keys(&stage).keys().collect::<Vec<_>>() == [&name]).then_some(())).await;
    let pinned = notes(&stage, "HostKeyPinned");
    assert_eq!(pinned.len(), 2, "both were trusted on first use: {pinned:?}");
    assert!(pinned.iter().all(|note| note.matches("SHA256:").count() == 1), "{pinned:?}");
    running.stop().await.unwrap();
    jump.change_host_keys().unwrap();
    let running = stage.operate(Progress::new()).unwrap();
    let told = until(|| notes(&stage, "HostKeyMismatch").into_iter().next()).await;
    assert!(told.contains(&at.to_string()), "it names the jump host: {told}");
    let accept = format!("remove `{name}` from ConfigMap {}", objects::HOST_KEYS_CONFIG_MAP);
    assert!(told.contains(&accept), "{told}");
    running.stop().await.unwrap();

    // A person accepts the new key, and the entry goes: the way back leads through the jump host.
    let mut map = stage
        .cluster
        .object("", "configmaps", stage.namespace(), objects::HOST_KEYS_CONFIG_MAP)
        .unwrap()
        .as_ref()
        .clone();
    map["data"] = serde_json::json!({});
    stage.cluster.apply(&map).unwrap();
    stage.list(&BTreeMap::new()).unwrap();
    let before = jump.counts().authentications;
    let progress = Progress::new();
    let gone = wait(&progress, |h| matches!(h.what, What::Stage(Rest::Gone)));
    let running = stage.operate(progress.clone()).unwrap();
    gone.await;
    until(|| nodes(&stage).is_empty().then_some(())).await;
    assert!(jump.counts().authentications > before);
    until(|| kept_keys(&stage).is_empty().then_some(())).await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}
