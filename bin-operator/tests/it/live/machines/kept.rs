//! The API server keeps a Machine that is to be made anew.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bin_operator::progress::Progress;
use kube_testserver::Fault;
use kube_testserver::error::{ApiError, Subject};
use wmco_core::names::{events, objects};

use super::scenery::{Key, cloud, machines, names, until_finished};
use crate::live::scenery::{notes, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_somebody_changes_all_the_time_is_told_and_tried_again_soon() {
    let stage = cloud(1, 0).await;
    let running = stage.operate(Progress::new()).unwrap();
    until_finished(&stage, 1, 0).await;
    let before = names(&machines(&stage));
    let tries = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&tries);
    stage.cluster.inject_faults(move |request| {
        let deletes = request.verb == "delete" && request.resource == "machines";
        let fails = deletes && counted.fetch_add(1, Ordering::SeqCst) == 0;
        let of = Subject { group: "machine.openshift.io", kind: "machines", name: &request.name };
        fails.then(|| Fault::Answer(ApiError::modified(of)))
    });
    stage.give_key(Key::random().pem.as_bytes()).unwrap();
    until(|| (names(&machines(&stage)) != before).then_some(())).await;
    until_finished(&stage, 1, 0).await;
    assert_eq!(tries.load(Ordering::SeqCst), 2);
    let told = notes(&stage, events::MACHINE_DELETION_FAILED);
    assert!(told.iter().any(|note| note.contains("see who writes the machine")), "{told:#?}");
    running.stop().await.unwrap();
    stage.shutdown().await;
}

/// A cache shows what was there when the right to look was taken.
#[tokio::test(flavor = "multi_thread")]
async fn no_machine_goes_when_the_user_data_cannot_be_read() {
    let stage = cloud(1, 0).await;
    let running = stage.operate(Progress::new()).unwrap();
    until_finished(&stage, 1, 0).await;
    let before = names(&machines(&stage));
    let (taken, deleted) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU32::new(0)));
    let (is_taken, count) = (Arc::clone(&taken), Arc::clone(&deleted));
    stage.cluster.inject_faults(move |request| {
        if request.verb == "delete" && request.resource == "machines" {
            count.fetch_add(1, Ordering::SeqCst);
        }
        let of = Subject { group: "", kind: "secrets", name: objects::USER_DATA_SECRET };
        let looks = request.verb == "list" && request.resource == "secrets";
        let fails = looks && request.namespace == objects::MACHINE_API_NAMESPACE;
        (fails && is_taken.load(Ordering::SeqCst))
            .then(|| Fault::Answer(ApiError::forbidden(of, "the right was taken")))
    });
    stage.give_key(Key::random().pem.as_bytes()).unwrap();
    let told = || {
        let mut notes = notes(&stage, events::MACHINE_DELETION_FAILED).into_iter();
        notes.find(|note| note.contains("did not show the user data of new machines"))
    };
    until(told).await;
    assert_eq!((deleted.load(Ordering::SeqCst), names(&machines(&stage))), (0, before.clone()));
    taken.store(false, Ordering::SeqCst);
    until(|| (names(&machines(&stage)) != before).then_some(())).await;
    until_finished(&stage, 1, 0).await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}
