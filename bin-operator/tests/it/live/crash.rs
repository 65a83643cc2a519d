//! The operator is killed before every single action of a join, and another one continues.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bin_operator::progress::{Gate, Progress};
use futures::FutureExt as _;
use tokio::sync::Notify;

use super::scenery::{addresses, configure, is_finished, nodes, settled, stage};

/// Lets `steps` steps pass and holds up the next one for ever.
fn gate(steps: usize) -> (Arc<Gate>, Arc<Notify>, Arc<AtomicUsize>) {
    let reached = Arc::new(Notify::new());
    let taken = Arc::new(AtomicUsize::new(0));
    let (tell, count) = (Arc::clone(&reached), Arc::clone(&taken));
    let gate = move |_: &_| {
        if count.load(Ordering::SeqCst) == steps {
            tell.notify_one();
            return std::future::pending().boxed();
        }
        count.fetch_add(1, Ordering::SeqCst);
        std::future::ready(()).boxed()
    };
    (Arc::new(gate), reached, taken)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_survives_a_kill_before_every_action() {
    let all = addresses(1);
    let mut killed = 0;
    loop {
        let stage = stage(1).await;
        let (gate, reached, taken) = gate(killed);
        let progress = Progress::new().gated(gate);
        let done = settled(&progress, &all);
        let running = stage.operate(progress.clone()).unwrap();
        let finished = tokio::select! {
            () = reached.notified() => false,
            () = done => true,
        };
        running.kill();
        stage.let_lease_run_out().unwrap();
        assert_eq!(taken.load(Ordering::SeqCst), killed.min(taken.load(Ordering::SeqCst)));
        configure(&stage, &all).await;
        let node = nodes(&stage).remove(0);
        assert!(is_finished(&node), "killed before action {killed}: {node:#}");
        stage.shutdown().await;
        if finished {
            break;
        }
        killed += 1;
    }
    // Look, look with ours, upload, apply, mark the node, forget the key, give the node back.
    assert!(killed >= 7, "only {killed} actions were seen");
}
