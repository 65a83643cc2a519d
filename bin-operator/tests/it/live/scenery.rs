//! What the live tests share: a stage, and waiting for what it shows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bin_operator::demo::{Running, Stage};
use bin_operator::progress::{Happening, Progress, Stage as Rest, What};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::timeout;
use wmco_core::names;

/// Longest wait for anything; a machine under load needs most of it.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// Addresses of `count` hosts.
pub(super) fn addresses(count: u8) -> Vec<String> {
    (1..=count).map(|n| format!("10.9.8.{n}")).collect()
}

/// A list of instances with these addresses.
pub(super) fn listed(addresses: &[String]) -> BTreeMap<String, String> {
    addresses.iter().map(|a| (a.clone(), "username=Administrator".to_owned())).collect()
}

/// A stage with `count` healthy hosts.
pub(super) async fn stage(count: u8) -> Stage {
    Stage::start(&listed(&addresses(count)), |_, host| host).await.unwrap()
}

/// Waits until each of `addresses` rests settled, counting from now.
pub(super) async fn settled(progress: &Progress, addresses: &[String]) {
    let mut missing: Vec<String> = addresses.to_vec();
    wait(progress, |happening| {
        if matches!(happening.what, What::Stage(Rest::Settled)) {
            missing.retain(|address| *address != happening.address);
        }
        missing.is_empty()
    })
    .await;
}

/// Waits until a happening ends the wait.
pub(super) async fn wait(progress: &Progress, mut ends: impl FnMut(&Happening) -> bool) {
    let mut happenings = progress.watch();
    let waiting = async {
        loop {
            match happenings.recv().await {
                Ok(happening) if ends(&happening) => return,
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => panic!("the operator ended"),
            }
        }
    };
    timeout(PATIENCE, waiting).await.expect("it happens in time");
}

/// Waits until `found` finds something in the cluster.
pub(super) async fn until<T>(mut found: impl FnMut() -> Option<T>) -> T {
    let waiting = async {
        loop {
            if let Some(found) = found() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, waiting).await.expect("it shows in the cluster in time")
}

/// Runs an operator until all hosts are settled, then stops it.
pub(super) async fn configure(stage: &Stage, addresses: &[String]) {
    let progress = Progress::new();
    let watched = settled(&progress, addresses);
    let running = stage.operate(progress.clone()).unwrap();
    watched.await;
    running.stop().await.unwrap();
}

/// A client that may do everything.
pub(super) async fn admin(stage: &Stage) -> Client {
    let text = stage.cluster.kubeconfig("admin", &["system:masters"]).unwrap();
    let kubeconfig = Kubeconfig::from_yaml(&text).unwrap();
    let options = KubeConfigOptions::default();
    Client::try_from(Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap()).unwrap()
}

pub(super) fn nodes(stage: &Stage) -> Vec<Arc<Value>> {
    stage.cluster.objects("", "nodes", "")
}

/// Whether a Node is Ready, schedulable, without a slot, and carries our version.
pub(super) fn is_finished(node: &Value) -> bool {
    let annotation = |name: &str| node["metadata"]["annotations"][name].as_str();
    let ready = node["status"]["conditions"]
        .as_array()
        .is_some_and(|all| all.iter().any(|c| c["type"] == "Ready" && c["status"] == "True"));
    ready
        && node["spec"]["unschedulable"].is_null()
        && node["metadata"]["labels"][names::UPGRADING_LABEL].is_null()
        && annotation(names::VERSION_ANNOTATION) == Some(bin_operator::VERSION)
        && annotation(names::DESIRED_VERSION_ANNOTATION) == Some(bin_operator::VERSION)
}

/// The text that a scrape gets.
pub(super) async fn metrics(running: &Running) -> String {
    let mut socket = TcpStream::connect(running.http).await.unwrap();
    socket.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").await.unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).await.unwrap();
    text
}

/// Notes of all Events with this reason.
pub(super) fn notes(stage: &Stage, reason: &str) -> Vec<String> {
    let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
    let mut notes: Vec<String> = stage
        .cluster
        .objects("", "events", "")
        .iter()
        .chain(&stage.cluster.objects("events.k8s.io", "events", ""))
        .filter(|event| event["reason"] == reason)
        .map(|event| text(event, "message") + &text(event, "note"))
        .collect();
    notes.sort();
    notes.dedup();
    notes
}
