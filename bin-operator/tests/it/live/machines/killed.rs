//! The operator is killed at each step of a replacement, and another one continues.

use std::sync::Arc;
use std::time::Duration;

use bin_operator::demo::{Running, Stage};
use bin_operator::progress::{Progress, ProgressEvent, ProgressKind};
use futures::FutureExt as _;
use tokio::sync::Notify;

use super::observer::Observer;
use super::scenery::{Key, cloud_with, machines, names, node_of, until_finished};
use crate::live::scenery::{kept_keys, until, within};

/// How long the hosts of Machines take to boot.
const BOOT: Duration = Duration::from_secs(4);

/// Kills an operator and lets another one lead at once.
fn kill(stage: &Stage, running: Running) {
    running.kill();
    stage.let_lease_run_out().unwrap();
}

/// An operator that never gets beyond the deletion of a Machine.
fn up_to_the_deletion(stage: &Stage) -> (Running, Arc<Notify>) {
    let reached = Arc::new(Notify::new());
    let tell = Arc::clone(&reached);
    let gate = move |event: &ProgressEvent| match &event.kind {
        ProgressKind::Step { action, .. } if action.starts_with("delete-machine") => {
            tell.notify_one();
            std::future::pending().boxed()
        }
        _ => std::future::ready(()).boxed(),
    };
    (stage.operate(Progress::new().gated(Arc::new(gate))).unwrap(), reached)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replacement_that_is_cut_short_anywhere_is_made_once() {
    // Longer than hosts may refuse the key, so that the other one's turn seems to have come.
    let stage = cloud_with(2, 0, |machines| machines.boot(BOOT)).await;
    let observer = Observer::start(&stage, 1).await;
    let (running, reached) = up_to_the_deletion(&stage);
    until_finished(&stage, 2, 0).await;
    let before = names(&machines(&stage));
    stage.give_key(Key::random().pem.as_bytes()).unwrap();
    within(reached.notified()).await;
    // It is on record, and nothing is done yet.
    assert!(kept_keys(&stage).values().any(|text| text.contains("replacementMachineSet")));
    assert_eq!(names(&machines(&stage)), before);
    kill(&stage, running);
    // It is deleted, whatever the operator has learned of that.
    let running = stage.operate(Progress::new()).unwrap();
    until(|| before.iter().any(|name| observer.has_deleted(name)).then_some(())).await;
    kill(&stage, running);
    let successor = || names(&machines(&stage)).into_iter().find(|name| !before.contains(name));
    let successor = until(successor).await;
    let running = stage.operate(Progress::new()).unwrap();
    // Its successor has a Node, and the first operator after that sees it half done.
    until(|| node_of(&stage, &successor)).await;
    kill(&stage, running);
    let running = stage.operate(Progress::new()).unwrap();
    until(|| names(&machines(&stage)).iter().all(|name| !before.contains(name)).then_some(()))
        .await;
    until_finished(&stage, 2, 0).await;
    running.stop().await.unwrap();
    let findings = observer.finish(&stage).await;
    let mut deleted = findings.deleted;
    deleted.sort();
    assert_eq!((deleted, findings.most_disrupted), (before, 1));
    stage.shutdown().await;
}
