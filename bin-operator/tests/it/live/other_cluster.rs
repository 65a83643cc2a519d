//! A host that is listed by two clusters.

use std::time::Duration;

use bin_operator::demo::Stage;
use bin_operator::progress::Progress;
use serde_json::json;
use wmco_core::names::{self, events, host, objects};
use wmco_core::protocol::{Access, HostState};
use wmco_core::winpath::WindowsPath;
use wmco_services::windows::Windows as _;

use super::scenery::{
    addresses, configure, is_finished, listed, nodes, notes, patch_config_map, stage, until,
};

/// Long enough for anything that would be done by mistake.
const CALM: Duration = Duration::from_secs(1);

const THEIRS: &str = "11111111-0000-4000-8000-000000000000";

fn state_file() -> WindowsPath {
    host::STATE_FILE.parse().unwrap()
}

fn state(stage: &Stage) -> HostState {
    let (_, host) = stage.hosts.iter().next().unwrap();
    let json = host.model().files().read(&state_file(), 1 << 20).unwrap().unwrap();
    serde_json::from_slice(&json).unwrap()
}

/// What the operator of another cluster writes when it takes the host.
fn take(stage: &Stage, cluster: &str) {
    let (_, host) = stage.hosts.iter().next().unwrap();
    let mut taken = state(stage);
    taken.join(cluster);
    let json = serde_json::to_vec(&taken).unwrap();
    let files = host.model().files();
    files.write(&state_file(), Access::Administrators, &mut json.as_slice()).unwrap();
}

async fn told(stage: &Stage, words: &str) -> String {
    let notes = || notes(stage, events::PREFLIGHT_FAILED).into_iter();
    until(|| notes().find(|note| note.contains("other-cluster") && note.contains(words))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_of_another_cluster_is_taken_only_with_a_word() {
    let (stage, all) = (stage(1).await, addresses(1));
    configure(&stage, &all).await;
    let ours = state(&stage).cluster.unwrap();
    let version = stage.cluster.object("config.openshift.io", "clusterversions", "", "version");
    assert_eq!(version.unwrap()["spec"]["clusterID"], json!(ours));

    // It was a node of that one all the time, as far as it knows.
    let mut theirs = state(&stage);
    theirs.cluster = None;
    let (_, host) = stage.hosts.iter().next().unwrap();
    let json = serde_json::to_vec(&theirs).unwrap();
    host.model()
        .files()
        .write(&state_file(), Access::Administrators, &mut json.as_slice())
        .unwrap();
    take(&stage, THEIRS);
    let running = stage.operate(Progress::new()).unwrap();
    let note = told(&stage, THEIRS).await;
    let allow = format!("{}={THEIRS}", names::TAKE_OVER_ANNOTATION);
    assert!(note.contains(&ours) && note.contains(&allow), "{note}");
    // It is not cleaned, either.
    let before = host.model().services().list().unwrap();
    host.reset_counts();
    stage.list(&listed(&[])).unwrap();
    until(|| (!host.counts().executions.is_empty()).then_some(())).await;
    tokio::time::sleep(CALM).await;
    assert_eq!(host.model().services().list().unwrap(), before);
    assert_eq!(state(&stage).cluster.as_deref(), Some(THEIRS));
    stage.list(&listed(&all)).unwrap();

    let allow = json!({ "metadata": { "annotations": { names::TAKE_OVER_ANNOTATION: THEIRS } } });
    patch_config_map(&stage, objects::INSTANCES_CONFIG_MAP, &allow).await;
    until(|| (state(&stage).cluster.as_ref() == Some(&ours)).then_some(())).await;
    assert_eq!(state(&stage).taken_from, [THEIRS.to_owned()].into());
    until(|| nodes(&stage).iter().all(|node| is_finished(node)).then_some(())).await;
    running.stop().await.unwrap();

    // They take it back, and we were allowed before.
    take(&stage, THEIRS);
    let running = stage.operate(Progress::new()).unwrap();
    told(&stage, "took it from this one").await;
    running.stop().await.unwrap();
    assert_eq!(state(&stage).cluster.as_deref(), Some(THEIRS));
    stage.shutdown().await;
}
