//! Errors of people and hosts are reported by name, tried again, and leave nothing half-done.

use bin_operator::demo::Stage;
use bin_operator::progress::Progress;
use serde_json::{Value, json};
use wmco_core::names::{self, objects};
use wmco_sim::host::Fault;

use super::scenery::{
    addresses, configure, is_finished, listed, metrics, nodes, notes, operate_until_settled,
    settled, stage, until,
};

pub(super) const FAILURE: &str = "InstanceSetupFailure";

/// When the only host is tried again.
const NEXT_ATTEMPT: &str = "wmco_instance_next_attempt_timestamp_seconds{instance=\"10.9.8.1\"} 1";

/// An Event about a host with `fault` contains `told`; without the fault the host joins.
async fn told_and_repaired(fault: Fault, reason: &str, told: &str) {
    let all = addresses(1);
    let stage = Stage::start(&listed(&all), |_, host| host.fault(fault)).await.unwrap();
    let progress = Progress::new();
    let joined = settled(&progress, &all);
    let running = stage.operate(progress.clone()).unwrap();
    let note = until(|| notes(&stage, reason).into_iter().find(|note| note.contains(told))).await;
    assert!(note.starts_with("10.9.8.1: "), "it names the entry: {note}");
    assert!(note.contains("it is tried again"), "it says what follows: {note}");
    assert!(metrics(&stage, &running).await.contains(NEXT_ATTEMPT), "the exact time");
    assert!(nodes(&stage).is_empty());
    stage.hosts.iter().for_each(|(_, host)| host.clear_faults());
    joined.await;
    assert!(nodes(&stage).iter().all(|node| is_finished(node)));
    assert!(!metrics(&stage, &running).await.contains(NEXT_ATTEMPT), "nothing is tried again");
    running.stop().await.unwrap();
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_authentication() {
    told_and_repaired(Fault::RefuseAuthentication, FAILURE, "refused the private key (").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_connections() {
    told_and_repaired(Fault::RefuseConnections, FAILURE, "start its ssh service").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk() {
    told_and_repaired(Fault::DiskFull { after_bytes: 1_500_000 }, FAILURE, "disk").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_prints_garbage() {
    told_and_repaired(Fault::AgentGarbage, FAILURE, "our agent does not do its work on the host")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_is_cut_again_and_again() {
    told_and_repaired(Fault::DropUpload { after_bytes: 700_000 }, FAILURE, "connection ended")
        .await;
}

/// What a Node says about its host's key.
fn condition_of_key(node: &Value) -> Option<Value> {
    let conditions = node["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == names::HOST_KEY_CONDITION).cloned()
}

#[tokio::test(flavor = "multi_thread")]
async fn another_host_key() {
    let all = addresses(1);
    let stage = stage(1).await;
    configure(&stage, &all).await;
    let (_, host) = stage.hosts.iter().next().unwrap();
    host.set_fault(Fault::ChangedHostKey);
    host.reset_counts();
    let progress = Progress::new();
    let kept = settled(&progress, &all);
    let running = stage.operate(progress.clone()).unwrap();
    let note = until(|| notes(&stage, "HostKeyMismatch").into_iter().next()).await;
    assert_eq!(note.matches("SHA256:").count(), 2, "both fingerprints: {note}");
    let condition =
        until(|| condition_of_key(&nodes(&stage)[0]).filter(|c| c["status"] == "True")).await;
    assert_eq!(condition["reason"], "HostKeyMismatch");
    let message = condition["message"].as_str().unwrap();
    assert_eq!(message.matches("SHA256:").count(), 2, "{message}");
    let accept = format!("replace `{}` in ConfigMap {}", all[0], objects::HOST_KEYS_CONFIG_MAP);
    assert!(message.contains(&accept), "how to accept it: {message}");
    assert_eq!(host.counts().authentications, 0);
    host.clear_faults();
    kept.await;
    until(|| condition_of_key(&nodes(&stage)[0]).filter(|c| c["status"] == "False")).await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}

/// A key that a person wrote down counts most, and only a person changes it.
#[tokio::test(flavor = "multi_thread")]
async fn another_host_key_than_the_listed_one() {
    const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
    let all = addresses(1);
    let stage = stage(1).await;
    let entry = |key: &str| format!("username=Administrator\nhostKey={key}");
    stage.list(&[(all[0].clone(), entry(KEY))].into()).unwrap();
    let progress = Progress::new();
    let joined = settled(&progress, &all);
    let running = stage.operate(progress.clone()).unwrap();
    let note = until(|| notes(&stage, "HostKeyMismatch").into_iter().next()).await;
    assert!(note.contains("change `hostKey=` of entry `10.9.8.1`"), "{note}");
    let (_, host) = stage.hosts.iter().next().unwrap();
    assert_eq!(host.counts().authentications, 0);

    let keys = host.host_keys();
    let line = keys.iter().map(|key| key.to_openssh().unwrap()).next().unwrap();
    stage.list(&[(all[0].clone(), entry(&line))].into()).unwrap();
    joined.await;
    assert_eq!(notes(&stage, "HostKeyPinned"), Vec::<String>::new(), "nothing was trusted unseen");
    running.stop().await.unwrap();
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_entry_is_told_and_blocks_nobody() {
    let all = addresses(2);
    let mut list = listed(&all[1..]);
    list.insert(all[0].clone(), "user=Administrator".to_owned());
    let stage = stage(2).await;
    stage.list(&list).unwrap();
    let running = operate_until_settled(&stage, &all[1..]).await;
    let note = until(|| notes(&stage, FAILURE).into_iter().find(|n| n.contains(&all[0]))).await;
    assert!(note.contains("windows-instances"), "{note}");
    assert!(!note.contains("Administrator"), "an entry's value is not repeated: {note}");
    assert_eq!(nodes(&stage).len(), 1);
    running.stop().await.unwrap();
    stage.shutdown().await;
}

/// Unusable keys are reported on the list of instances, and no host is touched.
async fn key_is_told(pem: &str, told: &str) {
    let stage = stage(1).await;
    let good = stage.key.expose().to_vec();
    stage.give_key(pem.as_bytes()).unwrap();
    let progress = Progress::new();
    let all = addresses(1);
    let joined = settled(&progress, &all);
    let running = stage.operate(progress.clone()).unwrap();
    let note =
        until(|| notes(&stage, FAILURE).into_iter().find(|n| n.contains("cloud-private-key")))
            .await;
    assert!(note.contains(told), "{note}");
    assert_eq!(stage.hosts.counts()[0].connections, 0);
    stage.give_key(&good).unwrap();
    joined.await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_encrypted_key() {
    key_is_told(include_str!("../../keys/encrypted-ed25519"), "passphrase").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_an_unknown_type() {
    key_is_told("-----BEGIN STRANGE KEY-----\nAAAA\n-----END STRANGE KEY-----\n", "key").await;
}

/// The key that is to come next may be wrong in any way: people hear of it, and hosts join with the one
/// that there is.
#[tokio::test(flavor = "multi_thread")]
async fn a_next_key_that_cannot_be_used() {
    let stage = stage(1).await;
    let own = String::from_utf8(stage.key.expose().to_vec()).unwrap();
    let running = operate_until_settled(&stage, &addresses(1)).await;
    for (next, told) in [
        (own.as_str(), "it is the key in private-key.pem"),
        (include_str!("../../keys/encrypted-ed25519"), "passphrase"),
        ("", "key private-key-next.pem: "),
    ] {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": objects::PRIVATE_KEY_SECRET, "namespace": stage.namespace() },
            "stringData": {
                objects::PRIVATE_KEY_KEY: own.as_str(),
                objects::NEXT_PRIVATE_KEY_KEY: next,
            },
        });
        stage.cluster.put(&secret).unwrap();
        let is_told =
            |note: &String| note.contains(objects::NEXT_PRIVATE_KEY_KEY) && note.contains(told);
        until(|| notes(&stage, FAILURE).into_iter().find(is_told)).await;
    }
    assert!(nodes(&stage).iter().all(|node| is_finished(node)));
    running.stop().await.unwrap();
    stage.shutdown().await;
}
