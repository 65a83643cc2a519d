//! What happens to a Node behind the operator's back, and what is noted on it.

use std::sync::Arc;
use std::time::Duration;

use bin_operator::progress::{Gate, Progress, ProgressEvent, ProgressKind};
use futures::FutureExt as _;
use russh::keys::ssh_key::LineEnding;
use russh::keys::{Algorithm, PrivateKey};
use tokio::sync::Notify;
use wmco_core::names::{self, events};

use super::bad_input::FAILURE;
use super::scenery::{
    addresses, delete_node, is_finished, nodes, notes, operate_until_settled, settled, stage,
    until, within,
};

#[tokio::test(flavor = "multi_thread")]
async fn deleted_node_comes_back_and_is_reported() {
    let all = addresses(1);
    let stage = stage(1).await;
    let running = operate_until_settled(&stage, &all).await;
    let node = nodes(&stage).remove(0);
    let name = node["metadata"]["name"].as_str().unwrap();
    delete_node(&stage, name).await;
    let is_new = |found: &serde_json::Value| found["metadata"]["uid"] != node["metadata"]["uid"];
    until(|| {
        let nodes = nodes(&stage);
        nodes.iter().any(|node| is_new(node) && is_finished(node)).then_some(())
    })
    .await;
    let told = notes(&stage, events::NODE_GONE);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("10.9.8.1: its Node is gone"), "{told:?}");
    running.stop().await.unwrap();
    stage.shutdown().await;
}

/// Holds up the first step whose text begins with `step`, notifies that it is reached, and continues when
/// notified.
fn hold(step: &'static str) -> (Arc<Gate>, Arc<Notify>, Arc<Notify>) {
    let (reached, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell, wait) = (Arc::clone(&reached), Arc::clone(&go_on));
    let once = Arc::new(std::sync::Once::new());
    let gate = move |event: &ProgressEvent| {
        let is_it =
            matches!(&event.kind, ProgressKind::Step { action, .. } if action.starts_with(step));
        let mut first = false;
        if is_it {
            once.call_once(|| first = true);
        }
        let (tell, wait) = (Arc::clone(&tell), Arc::clone(&wait));
        async move {
            if first {
                tell.notify_one();
                wait.notified().await;
            }
        }
        .boxed()
    };
    (Arc::new(gate), reached, go_on)
}

/// The private key is replaced in the middle of a join, by one that the host does not accept.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_is_noted_only_after_the_host_accepts_it() {
    let all = addresses(1);
    let stage = stage(1).await;
    let (gate, reached, go_on) = hold("apply");
    let progress = Progress::new().gated(gate);
    let running = stage.operate(progress.clone()).unwrap();
    within(reached.notified()).await;
    let other = PrivateKey::random(&mut russh::keys::key::safe_rng(), Algorithm::Ed25519).unwrap();
    let pem = other.to_openssh(LineEnding::LF).unwrap();
    stage.give_key(pem.as_bytes()).unwrap();
    // Longer than the operator needs to notice it.
    tokio::time::sleep(Duration::from_secs(2)).await;
    go_on.notify_one();
    until(|| notes(&stage, FAILURE).into_iter().find(|note| note.contains("private key"))).await;
    let wait_for_node = async {
        until(|| nodes(&stage).into_iter().next()).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
    };
    wait_for_node.await;
    let marks = nodes(&stage).remove(0)["metadata"]["annotations"].clone();
    for mark in [names::PUBLIC_KEY_HASH_ANNOTATION, names::USERNAME_ANNOTATION] {
        assert!(marks[mark].is_null(), "nobody has logged in with it: {marks}");
    }
    let joined = settled(&progress, &all);
    stage.give_key(stage.key.expose()).unwrap();
    joined.await;
    until(|| nodes(&stage).iter().all(|node| is_finished(node)).then_some(())).await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}
