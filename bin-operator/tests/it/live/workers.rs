//! Workers that begin, and that nobody wants any more in the middle of a step.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bin_operator::progress::{Progress, ProgressEvent, ProgressKind};
use futures::FutureExt as _;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::DeleteParams;
use tokio::sync::Notify;
use wmco_core::names::{events, objects};

use super::new_services::{change_worker_config, released};
use super::scenery::{
    addresses, admin, configure, delete_config_map, delete_node, is_finished, kept_keys, listed,
    nodes, notes, stage, until, within,
};

/// Longer than the operator needs to notice something.
const NOTICED: Duration = Duration::from_secs(2);

/// One step that is held.
#[derive(Default)]
struct Held {
    is_waiting: AtomicBool,
    reached: Notify,
    go_on: Notify,
    /// Steps that were begun in all, and those that began after the held one.
    begun: AtomicUsize,
    meanwhile: AtomicUsize,
}

/// Holds the first step for which `is_meant` returns `true`.
fn hold(is_meant: impl Fn(&str, &str) -> bool + Send + Sync + 'static) -> (Progress, Arc<Held>) {
    hold_after(0, is_meant)
}

/// The same after so many of them.
fn hold_after(
    before: usize,
    is_meant: impl Fn(&str, &str) -> bool + Send + Sync + 'static,
) -> (Progress, Arc<Held>) {
    let held = Arc::new(Held::default());
    let told = Arc::clone(&held);
    let gate = move |event: &ProgressEvent| {
        let step = match &event.kind {
            ProgressKind::Step { action, .. } => Some(is_meant(&event.address, action)),
            _ => None,
        };
        let held = Arc::clone(&told);
        async move {
            let Some(is_meant) = step else { return };
            let due = is_meant && held.begun.fetch_add(1, Ordering::SeqCst) >= before;
            if due && !held.is_waiting.swap(true, Ordering::SeqCst) {
                held.reached.notify_one();
                held.go_on.notified().await;
            } else if held.is_waiting.load(Ordering::SeqCst) {
                held.meanwhile.fetch_add(1, Ordering::SeqCst);
            }
        }
        .boxed()
    };
    (Progress::new().gated(Arc::new(gate)), held)
}

/// The list goes and comes back while a worker is in the middle of a step.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_worker_waits_for_the_step_of_the_one_before() {
    let all = addresses(1);
    let stage = stage(1).await;
    let (progress, held) = hold(|_, action| action.starts_with("apply"));
    let running = stage.operate(progress).unwrap();
    within(held.reached.notified()).await;
    delete_config_map(&stage, objects::INSTANCES_CONFIG_MAP).await;
    tokio::time::sleep(NOTICED).await;
    stage.list(&listed(&all)).unwrap();
    tokio::time::sleep(NOTICED).await;
    assert_eq!(held.meanwhile.load(Ordering::SeqCst), 0, "two workers on one host");
    held.go_on.notify_one();
    until(|| nodes(&stage).iter().any(|node| is_finished(node)).then_some(())).await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}

/// The host is to be cleaned; then the key goes, and the host is listed again.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_listed_again_is_not_cleaned_while_there_is_no_key() {
    let all = addresses(1);
    let stage = stage(1).await;
    configure(&stage, &all).await;
    let name = nodes(&stage)[0]["metadata"]["name"].as_str().unwrap().to_owned();
    delete_node(&stage, &name).await;
    stage.list(&listed(&[])).unwrap();
    let (progress, held) = hold(|_, action| action == "probe");
    let running = stage.operate(progress).unwrap();
    within(held.reached.notified()).await;
    let secrets: Api<Secret> = Api::namespaced(admin(&stage).await, stage.namespace());
    secrets.delete(objects::PRIVATE_KEY_SECRET, &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(NOTICED).await;
    stage.list(&listed(&all)).unwrap();
    tokio::time::sleep(NOTICED).await;
    held.go_on.notify_one();
    // Long enough to clean it.
    tokio::time::sleep(2 * NOTICED).await;
    assert_eq!(kept_keys(&stage).len(), 2);
    stage.give_key(stage.key.expose()).unwrap();
    until(|| nodes(&stage).iter().any(|node| is_finished(node)).then_some(())).await;
    assert_eq!(notes(&stage, events::INSTANCE_TEARDOWN), Vec::<String>::new());
    running.stop().await.unwrap();
    stage.shutdown().await;
}

/// A host gets the only slot, and its entry breaks before it has used it.
#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_nobody_uses_goes_to_the_next() {
    let all = addresses(2);
    let stage = stage(2).await;
    configure(&stage, &all).await;
    let before = released(&nodes(&stage)[1]);
    let (first, second) = (all[0].clone(), stage.hosts.iter().nth(1).unwrap().1);
    // So that the other one asks first.
    second.set_latency(Duration::from_millis(700));
    change_worker_config(&stage);
    let (progress, held) =
        hold_after(1, move |address, action| address == first && action == "probe");
    let running = stage.operate(progress).unwrap();
    within(held.reached.notified()).await;
    let mut broken = listed(&all);
    broken.insert(all[0].clone(), "nonsense".to_owned());
    stage.list(&broken).unwrap();
    tokio::time::sleep(NOTICED).await;
    held.go_on.notify_one();
    second.set_latency(Duration::ZERO);
    let is_second = |node: &serde_json::Value| {
        node["metadata"]["annotations"][wmco_core::names::INSTANCE_ANNOTATION] == *all[1]
    };
    until(|| {
        let nodes = nodes(&stage);
        let node = nodes.iter().find(|node| is_second(node))?;
        (is_finished(node) && released(node) != before).then_some(())
    })
    .await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}
