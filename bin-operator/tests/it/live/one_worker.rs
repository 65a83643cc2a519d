//! A host has one worker at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bin_operator::progress::{Happening, Progress, What};
use futures::FutureExt as _;
use tokio::sync::Notify;

use super::scenery::{addresses, delete_list, is_finished, listed, nodes, stage, until};

/// What the test sees of the steps of all workers.
#[derive(Default)]
struct Seen {
    held: AtomicBool,
    reached: Notify,
    go_on: Notify,
    /// Steps that began while one was held.
    meanwhile: AtomicUsize,
}

/// The list goes and comes back while a worker is in the middle of a step.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_worker_waits_for_the_step_of_the_one_before() {
    let all = addresses(1);
    let stage = stage(1).await;
    let seen = Arc::new(Seen::default());
    let told = Arc::clone(&seen);
    let gate = move |happening: &Happening| {
        let is_apply =
            matches!(&happening.what, What::Step { action, .. } if action.starts_with("apply"));
        let seen = Arc::clone(&told);
        async move {
            if is_apply && !seen.held.swap(true, Ordering::SeqCst) {
                seen.reached.notify_one();
                seen.go_on.notified().await;
            } else if seen.held.load(Ordering::SeqCst) {
                seen.meanwhile.fetch_add(1, Ordering::SeqCst);
            }
        }
        .boxed()
    };
    let running = stage.operate(Progress::new().gated(Arc::new(gate))).unwrap();
    seen.reached.notified().await;
    delete_list(&stage).await;
    // Longer than the operator needs to notice it.
    tokio::time::sleep(Duration::from_secs(1)).await;
    stage.list(&listed(&all)).unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(seen.meanwhile.load(Ordering::SeqCst), 0, "two workers on one host");
    seen.go_on.notify_one();
    until(|| nodes(&stage).iter().any(|node| is_finished(node)).then_some(())).await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}
