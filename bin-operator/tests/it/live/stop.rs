//! An operator ends after the order to stop, whatever it still waits for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bin_operator::demo::Stage;
use bin_operator::progress::Progress;
use kube_testserver::Fault;
use kube_testserver::error::ApiError;
use tokio::time::timeout;
use wmco_core::names::events;

use super::scenery::{PATIENCE, addresses, kept_keys, listed, notes, stage, until};

/// What it must have read, or written, before it can begin.
const NEEDED: [&str; 9] = [
    "certificatesigningrequests",
    "configmaps",
    "controllerconfigs",
    "infrastructures",
    "leases",
    "machineconfigpools",
    "networks",
    "nodes",
    "secrets",
];

#[tokio::test(flavor = "multi_thread")]
async fn one_that_was_never_answered_ends() {
    let stage = Stage::start(&listed(&[]), |_, host| host).await.unwrap();
    for resource in NEEDED {
        let asked = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&asked);
        stage.cluster.inject_faults(move |request| {
            let refused = request.resource == resource;
            seen.fetch_or(refused, Ordering::SeqCst);
            refused.then(|| Fault::Answer(ApiError::unauthorized()))
        });
        let running = stage.operate(Progress::new()).unwrap();
        until(|| asked.load(Ordering::SeqCst).then_some(())).await;
        let stopped = timeout(PATIENCE, running.stop()).await;
        stopped.unwrap_or_else(|_| panic!("it waits for {resource}")).unwrap();
    }
    stage.shutdown().await;
}

/// The API server answers slowly when the last one is sent.
#[tokio::test(flavor = "multi_thread")]
async fn events_of_the_last_moment_arrive() {
    let (all, stage) = (addresses(2), stage(2).await);
    stage.list(&listed(&all)).unwrap();
    stage.cluster.inject_faults(|request| {
        let is_event = request.resource == "events" && request.verb == "create";
        is_event.then_some(Fault::Delay(Duration::from_millis(100)))
    });
    let running = stage.operate(Progress::new()).unwrap();
    let is_told = || !notes(&stage, events::HOST_KEY_PINNED).is_empty();
    until(|| is_told().then_some(())).await;
    // Of both hosts, and what comes meanwhile.
    running.stop().await.unwrap();
    let told = notes(&stage, events::HOST_KEY_PINNED);
    let mut pinned = kept_keys(&stage).into_keys().filter(|key| !key.ends_with("_host"));
    let is_told = |key: &String| told.iter().any(|note| note.contains(&format!("`{key}`")));
    assert!(pinned.all(|key| is_told(&key)), "{told:?} {:?}", kept_keys(&stage).keys());
    stage.shutdown().await;
}
