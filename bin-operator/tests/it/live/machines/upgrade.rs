//! Another version of the operator comes to Machines and entries alike.

use bin_operator::demo::Stage;
use bin_operator::progress::Progress;
use serde_json::Value;
use wmco_core::names as wire;

use super::observer::Observer;
use super::scenery::{annotation, cloud, machines, names, until_finished};
use crate::live::scenery::{nodes, until};

const NEXT: &str = "99.0.0-next";

fn is_upgraded(node: &Value) -> bool {
    let versions = [wire::VERSION_ANNOTATION, wire::DESIRED_VERSION_ANNOTATION];
    versions.iter().all(|name| annotation(node, name) == NEXT)
        && node["spec"]["unschedulable"].is_null()
        && node["metadata"]["labels"][wire::UPGRADING_LABEL].is_null()
}

fn uids(stage: &Stage) -> Vec<Value> {
    nodes(stage).iter().map(|node| node["metadata"]["uid"].clone()).collect()
}

async fn upgraded_with(max_unavailable: &str, budget: usize) {
    let mut stage = cloud(3, 3).await;
    stage.reconfigure(|config| config.max_unavailable = max_unavailable.parse().unwrap());
    let observer = Observer::start(&stage, budget).await;
    let running = stage.operate(Progress::new()).unwrap();
    until_finished(&stage, 3, 3).await;
    running.stop().await.unwrap();
    let before = (names(&machines(&stage)), uids(&stage));
    stage.upgrade(NEXT).unwrap();
    let running = stage.operate(Progress::new()).unwrap();
    until(|| nodes(&stage).iter().all(|node| is_upgraded(node)).then_some(())).await;
    running.stop().await.unwrap();
    assert_eq!((names(&machines(&stage)), uids(&stage)), before, "in place");
    let findings = observer.finish(&stage).await;
    assert_eq!((findings.deleted, findings.most_disrupted), (Vec::new(), budget));
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn six_mixed_nodes_are_upgraded_one_after_another() {
    upgraded_with("1", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn six_mixed_nodes_are_upgraded_in_pairs() {
    upgraded_with("40%", 2).await;
}
