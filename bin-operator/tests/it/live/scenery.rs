//! What the live tests share: a stage, and waiting for what it shows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bin_operator::demo::{Running, Stage};
use bin_operator::progress::{Progress, ProgressEvent, ProgressKind, Stage as Rest};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::timeout;
use wmco_core::names::{self, objects};

use super::https;

/// Longest wait for anything; a machine under load needs most of it.
pub(super) const PATIENCE: Duration = Duration::from_secs(500);

/// Between two looks at the cluster.
const LOOK: Duration = Duration::from_millis(50);

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

/// Waits until each of `addresses` rests settled, counting from the call.
#[track_caller]
pub(super) fn settled(progress: &Progress, addresses: &[String]) -> impl Future<Output = ()> {
    let mut missing: Vec<String> = addresses.to_vec();
    wait(progress, move |event| {
        if matches!(event.kind, ProgressKind::Stage(Rest::Settled)) {
            missing.retain(|address| *address != event.address);
        }
        missing.is_empty()
    })
}

/// Waits until an event from the call on ends the wait.
#[track_caller]
pub(super) fn wait(
    progress: &Progress,
    mut ends: impl FnMut(&ProgressEvent) -> bool + Send + 'static,
) -> impl Future<Output = ()> {
    let mut events = progress.subscribe();
    // A task of its own, for a subscriber that lags behind loses events, and the test does other things first.
    let waiting = tokio::spawn(async move {
        loop {
            match events.recv().await {
                Ok(event) if ends(&event) => return,
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => panic!("the operator ended"),
            }
        }
    });
    within(async { waiting.await.unwrap() })
}

/// Returns the result of `work`, which has to end.
#[track_caller]
pub(super) fn within<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    let place = std::panic::Location::caller();
    async move {
        let done = timeout(PATIENCE, work).await;
        done.unwrap_or_else(|_| panic!("{place}: nothing came of it in {} s", PATIENCE.as_secs()))
    }
}

/// Waits until `found` finds something in the cluster.
#[track_caller]
pub(super) fn until<T>(mut found: impl FnMut() -> Option<T>) -> impl Future<Output = T> {
    within(async move {
        loop {
            if let Some(found) = found() {
                return found;
            }
            tokio::time::sleep(LOOK).await;
        }
    })
}

/// Waits until a scrape of the operator's metrics is as `is_so` wants it; returns it.
#[track_caller]
pub(super) fn until_metrics(
    stage: &Stage,
    running: &Running,
    is_so: impl Fn(&str) -> bool,
) -> impl Future<Output = String> {
    within(async move {
        loop {
            let text = metrics(stage, running).await;
            if is_so(&text) {
                return text;
            }
            tokio::time::sleep(LOOK).await;
        }
    })
}

/// A client that may do everything.
pub(super) async fn admin(stage: &Stage) -> Client {
    let text = stage.cluster.kubeconfig("admin", &["system:masters"]).unwrap();
    let kubeconfig = Kubeconfig::from_yaml(&text).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    Client::try_from(config).unwrap()
}

/// Starts an operator and waits until each of `addresses` rests settled.
pub(super) async fn operate_until_settled(stage: &Stage, addresses: &[String]) -> Running {
    let progress = Progress::new();
    let watched = settled(&progress, addresses);
    let running = stage.operate(progress.clone()).unwrap();
    watched.await;
    running
}

/// Runs an operator until all hosts are settled, then stops it.
pub(super) async fn configure(stage: &Stage, addresses: &[String]) {
    operate_until_settled(stage, addresses).await.stop().await.unwrap();
}

pub(super) fn nodes(stage: &Stage) -> Vec<Arc<Value>> {
    stage.cluster.objects("", "nodes", "")
}

/// An object's name.
pub(super) fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap().to_owned()
}

/// The Node of this name.
pub(super) fn node(stage: &Stage, name: &str) -> Arc<Value> {
    stage.cluster.object("", "nodes", "", name).unwrap()
}

/// Asks for a restart of a Node's host, as a person does.
pub(super) fn ask_restart(stage: &Stage, node: &str) {
    change_node(stage, node, |node| {
        node["metadata"]["annotations"][names::REBOOT_ANNOTATION] = "".into();
    });
}

/// Whether a restart of its host is asked for.
pub(super) fn wants_restart(node: &Value) -> bool {
    !node["metadata"]["annotations"][names::REBOOT_ANNOTATION].is_null()
}

/// Whether it is out of service, or has the label that says so.
pub(super) fn is_disrupted(node: &Value) -> bool {
    !node["spec"]["unschedulable"].is_null()
        || !node["metadata"]["labels"][names::UPGRADING_LABEL].is_null()
}

/// Waits for an Event with this reason and a note in which `part` stands; returns the note.
#[track_caller]
pub(super) fn told(stage: &Stage, reason: &str, part: &str) -> impl Future<Output = String> {
    until(move || notes(stage, reason).into_iter().find(|note| note.contains(part)))
}

/// Data of the ConfigMap of host keys.
pub(super) fn kept_keys(stage: &Stage) -> BTreeMap<String, String> {
    let map =
        stage.cluster.object("", "configmaps", stage.namespace(), objects::HOST_KEYS_CONFIG_MAP);
    let data = map.map(|map| map["data"].clone()).unwrap_or_default();
    serde_json::from_value(data).unwrap_or_default()
}

/// Changes data of the ConfigMap of host keys as a person does; none removes.
pub(super) fn change_kept_keys(stage: &Stage, changes: &[(&str, Option<String>)]) {
    let map =
        stage.cluster.object("", "configmaps", stage.namespace(), objects::HOST_KEYS_CONFIG_MAP);
    let mut map = map.unwrap().as_ref().clone();
    let data = map["data"].as_object_mut().unwrap();
    for (key, value) in changes {
        match value {
            Some(value) => drop(data.insert((*key).to_owned(), value.clone().into())),
            None => drop(data.remove(*key)),
        }
    }
    stage.cluster.put(&map).unwrap();
}

/// Changes a ConfigMap of the operator's namespace, as a person does.
pub(super) async fn patch_config_map(stage: &Stage, name: &str, patch: &Value) {
    let maps: Api<ConfigMap> = Api::namespaced(admin(stage).await, stage.namespace());
    maps.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

/// Deletes a ConfigMap, as a person does.
pub(super) async fn delete_config_map(stage: &Stage, name: &str) {
    let maps: Api<ConfigMap> = Api::namespaced(admin(stage).await, stage.namespace());
    maps.delete(name, &DeleteParams::default()).await.unwrap();
}

/// Deletes a Node, as a person does.
pub(super) async fn delete_node(stage: &Stage, name: &str) {
    let nodes: Api<Node> = Api::all(admin(stage).await);
    nodes.delete(name, &DeleteParams::default()).await.unwrap();
}

/// Changes a Node as somebody does who may.
pub(super) fn change_node(stage: &Stage, name: &str, change: impl FnOnce(&mut Value)) {
    let mut node = stage.cluster.object("", "nodes", "", name).unwrap().as_ref().clone();
    change(&mut node);
    stage.cluster.put(&node).unwrap();
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
pub(super) async fn metrics(stage: &Stage, running: &Running) -> String {
    let token = https::scraper(stage).await;
    https::get(running.http, "/metrics", Some(&token)).await.unwrap()
}

/// How often all Events with this reason together were counted.
pub(super) fn times_told(stage: &Stage, reason: &str) -> u64 {
    let events = stage.cluster.objects("", "events", "");
    let of_it = events.iter().filter(|event| event["reason"] == reason);
    of_it.map(|event| event["series"]["count"].as_u64().unwrap_or(1)).sum()
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
