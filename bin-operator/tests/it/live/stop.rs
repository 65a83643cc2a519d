//! An operator ends after the order to stop, whatever it still waits for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bin_operator::demo::Stage;
use bin_operator::progress::Progress;
use kube_testserver::Fault;
use kube_testserver::error::ApiError;
use tokio::time::timeout;

use super::scenery::{PATIENCE, listed, until};

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
