//! MachineSets grow and shrink.

use std::sync::Arc;

use bin_operator::progress::{Progress, ProgressEvent, ProgressKind};
use futures::FutureExt as _;
use tokio::sync::Notify;
use wmco_core::host_record::HostRecord;
use wmco_core::machines::key;

use super::observer::Observer;
use super::scenery::{SET, cloud, delete_machine, hosts, machines, name, names, until_finished};
use crate::live::scenery::{kept_keys, until, within};

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_set_grows_and_shrinks_with_its_nodes() {
    let stage = cloud(0, 0).await;
    let observer = Observer::start(&stage, 1).await;
    let running = stage.operate(Progress::new()).unwrap();
    stage.scale(SET, 5).unwrap();
    until_finished(&stage, 5, 0).await;
    until(|| (kept_keys(&stage).len() == 10).then_some(())).await;
    stage.scale(SET, 2).unwrap();
    until_finished(&stage, 2, 0).await;
    // A key and a record of each, and nothing of those that left.
    let mut kept: Vec<String> = names(&machines(&stage))
        .iter()
        .flat_map(|name| [key(name), HostRecord::key_name(&key(name))])
        .collect();
    kept.sort();
    until(|| kept_keys(&stage).into_keys().eq(kept.iter().cloned()).then_some(())).await;
    running.stop().await.unwrap();
    let findings = observer.finish(&stage).await;
    assert_eq!((findings.deleted, findings.most_disrupted), (Vec::new(), 0));
    stage.shutdown().await;
}

/// As an entry's host, see `join.rs`: one of the commands is a look after the Node has changed.
#[tokio::test(flavor = "multi_thread")]
async fn a_machine_joins_with_at_most_six_commands_and_one_sftp_session() {
    let stage = cloud(1, 0).await;
    let running = stage.operate(Progress::new()).unwrap();
    until_finished(&stage, 1, 0).await;
    running.stop().await.unwrap();
    let counts = hosts(&stage).remove(0).1.counts();
    assert!((1..=6).contains(&counts.executions.len()), "{:#?}", counts.executions);
    assert_eq!((counts.sftp_sessions, counts.restarts), (1, 0));
    stage.shutdown().await;
}

/// A person deletes it while the operator is at work on its host.
#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_is_deleted_in_the_middle_of_its_join_leaves_nothing() {
    let stage = cloud(1, 0).await;
    let observer = Observer::start(&stage, 1).await;
    let (reached, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let first = until(|| machines(&stage).pop().map(|machine| name(&machine))).await;
    let (tell, wait, held) = (Arc::clone(&reached), Arc::clone(&go_on), key(&first));
    let gate = move |event: &ProgressEvent| {
        let is_step =
            matches!(&event.kind, ProgressKind::Step { action, .. } if action.starts_with("apply"));
        let is_it = is_step && event.address == held;
        let (tell, wait) = (Arc::clone(&tell), Arc::clone(&wait));
        async move {
            if is_it {
                tell.notify_one();
                wait.notified().await;
            }
        }
        .boxed()
    };
    let running = stage.operate(Progress::new().gated(Arc::new(gate))).unwrap();
    within(reached.notified()).await;
    delete_machine(&stage, &first).await;
    let second = until(|| {
        let mut others = names(&machines(&stage)).into_iter().filter(|name| *name != first);
        others.next()
    })
    .await;
    go_on.notify_one();
    until_finished(&stage, 1, 0).await;
    let kept = [key(&second), HostRecord::key_name(&key(&second))];
    until(|| kept_keys(&stage).into_keys().eq(kept.iter().cloned()).then_some(())).await;
    running.stop().await.unwrap();
    assert_eq!(observer.finish(&stage).await.deleted, Vec::<String>::new());
    stage.shutdown().await;
}
