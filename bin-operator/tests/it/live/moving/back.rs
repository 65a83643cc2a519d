//! From ours to the Go operator, as `docs/src/going-back.md` says, and to ours once more.

use bin_operator::demo::Stage;
use bin_operator::progress::Progress;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::DeleteParams;
use wmco_core::names::{events, host, objects};

use super::predecessor::hosts::path;
use super::predecessor::{self, Member};
use super::reader;
use super::scenery::{has_moved, install, uids};
use crate::live::machines::observer::Observer;
use crate::live::machines::scenery::{machines, names};
use crate::live::scenery::{admin, change_kept_keys, kept_keys, nodes, notes, until};

/// The version with which it returns.
const RETURNED: &str = "11.0.1-9e8d7c6";

/// Runs our operator until all nodes are ours.
async fn move_over(stage: &Stage) {
    install(stage).await;
    let running = stage.operate(Progress::new()).unwrap();
    until(|| nodes(stage).iter().all(|node| has_moved(node)).then_some(())).await;
    running.stop().await.unwrap();
}

/// Deletes the Secret with user data, as the page says.
async fn delete_user_data(stage: &Stage) {
    let secrets: Api<Secret> = Api::namespaced(admin(stage).await, objects::MACHINE_API_NAMESPACE);
    secrets.delete(objects::USER_DATA_SECRET, &DeleteParams::default()).await.unwrap();
}

/// Takes the records of these hosts out, as the page says.
fn forget(stage: &Stage, addresses: &[&str]) {
    let kept = kept_keys(stage);
    let is_record =
        |key: &&String| addresses.iter().any(|it| key.starts_with(it)) && key.ends_with("_host");
    let changes: Vec<_> = kept.keys().filter(is_record).map(|key| (key.as_str(), None)).collect();
    assert_eq!(changes.len(), addresses.len(), "{kept:?}");
    change_kept_keys(stage, &changes);
}

#[tokio::test(flavor = "multi_thread")]
async fn and_back_again() {
    let (stage, members) = predecessor::left(2, 2).await;
    predecessor::stop(&stage).await;
    let observer = Observer::start(&stage, 1).await;
    let before = (names(&machines(&stage)), uids(&stage, "", "nodes"));
    move_over(&stage).await;

    assert_eq!(reader::problems(&stage, &members), Vec::<String>::new());
    assert_eq!(reader::replaced(&stage), before.0, "the text of user data is another one");
    delete_user_data(&stage).await;
    assert_eq!(reader::replaced(&stage), Vec::<String>::new(), "it makes a Secret that is missing");
    // People follow the page for one host, and forget the others.
    forget(&stage, &[&members[0].address]);

    predecessor::come_back(&stage, &members, RETURNED).await;
    assert!(members.iter().all(|member| member.has_all_or_none() == Some(true)));
    assert_eq!(reader::replaced(&stage), Vec::<String>::new());
    predecessor::stop(&stage).await;
    move_over(&stage).await;

    let findings = observer.finish(&stage).await;
    assert_eq!((findings.deleted, findings.most_disrupted), (Vec::new(), 1));
    assert_eq!((names(&machines(&stage)), uids(&stage, "", "nodes")), before);
    assert_eq!(reader::problems(&stage, &members), Vec::<String>::new());
    assert_eq!(notes(&stage, events::HOST_KEY_MISMATCH), Vec::<String>::new());
    for member in &members {
        check_is_ours_again(member);
    }
    stage.shutdown().await;
}

fn check_is_ours_again(member: &Member) {
    assert_eq!(member.has_all_or_none(), Some(false), "{}", member.node);
    let root = member.model.snapshot().files[&path(host::ROOT)].access;
    assert_eq!(root, wmco_core::protocol::Access::Administrators, "{}", member.node);
}
