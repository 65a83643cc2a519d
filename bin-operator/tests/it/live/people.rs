//! What people do while nodes are drained, restarted and upgraded: nothing of theirs is lost, and never more than one
//! node is out of service.
//!
//! Sources: reports about kured, the system upgrade controller, Rancher and AKS.

use std::collections::BTreeMap;
use std::sync::Arc;

use bin_operator::demo::{Running, Stage};
use bin_operator::progress::Progress;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{ListParams, WatchEvent, WatchParams};
use serde_json::{Value, json};
use wmco_core::names::{self, events};

use super::drain::{condition, protected_pod};
use super::new_services::{change_worker_config, released};
use super::scenery::{
    addresses, admin, ask_restart, change_node, configure, delete_node, is_disrupted, is_finished,
    name, node, nodes, notes, operate_until_settled, stage, until, wants_restart, within,
};

/// Hosts that are nodes, and the name of one whose drain for a restart is blocked.
async fn blocked(hosts: u8) -> (Stage, Running, String) {
    let stage = stage(hosts).await;
    let running = operate_until_settled(&stage, &addresses(hosts)).await;
    let drained = name(&nodes(&stage)[0]);
    protected_pod(&stage, &drained).await;
    ask_restart(&stage, &drained);
    until(|| status(&stage, &drained).filter(|status| status == "True")).await;
    (stage, running, drained)
}

/// Removes a label or an annotation of a Node.
fn remove(node: &mut Value, kind: &str, name: &str) {
    node["metadata"][kind].as_object_mut().unwrap().remove(name).unwrap();
}

/// Whether pods block the drain of a Node, as it says.
fn status(stage: &Stage, node_name: &str) -> Option<String> {
    condition(&node(stage, node_name))?["status"].as_str().map(str::to_owned)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_that_is_not_asked_for_any_more_gives_the_node_back() {
    let (stage, running, drained) = blocked(1).await;
    change_node(&stage, &drained, |node| remove(node, "annotations", names::REBOOT_ANNOTATION));
    until(|| is_finished(&node(&stage, &drained)).then_some(())).await;
    until(|| status(&stage, &drained).filter(|status| status == "False")).await;
    assert!(stage.cluster.object("", "pods", "default", "db").is_some());
    running.stop().await.unwrap();
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_a_person_uncordons_during_its_drain_is_cordoned_again() {
    let (stage, running, drained) = blocked(1).await;
    change_node(&stage, &drained, |node| node["spec"]["unschedulable"] = Value::Null);
    until(|| (node(&stage, &drained)["spec"]["unschedulable"] == json!(true)).then_some(())).await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}

/// Another node waits for the slot meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_label_that_a_person_takes_off_is_back_and_frees_no_slot() {
    let (stage, running, drained) = blocked(2).await;
    let waits = nodes(&stage).iter().map(|node| name(node)).find(|name| *name != drained).unwrap();
    ask_restart(&stage, &waits);
    for _ in 0..6 {
        change_node(&stage, &drained, |node| remove(node, "labels", names::UPGRADING_LABEL));
        until(|| {
            assert!(!is_disrupted(&node(&stage, &waits)), "two nodes are out of service");
            let label = &node(&stage, &drained)["metadata"]["labels"][names::UPGRADING_LABEL];
            label.is_string().then_some(())
        })
        .await;
    }
    assert!(wants_restart(&node(&stage, &waits)), "it has not had its turn");
    running.stop().await.unwrap();
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_deleted_during_its_drain_is_back_in_service() {
    let (stage, running, drained) = blocked(1).await;
    let before = node(&stage, &drained);
    delete_node(&stage, &drained).await;
    until(|| {
        let nodes = nodes(&stage);
        let is_back = |node: &Arc<Value>| {
            is_finished(node) && node["metadata"]["uid"] != before["metadata"]["uid"]
        };
        nodes.iter().any(is_back).then_some(())
    })
    .await;
    until(|| notes(&stage, events::NODE_GONE).into_iter().next()).await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cordons_labels_and_taints_of_people_outlive_an_upgrade() {
    let stage = stage(3).await;
    configure(&stage, &addresses(3)).await;
    let all: Vec<String> = nodes(&stage).iter().map(|node| name(node)).collect();
    let before = released(&nodes(&stage)[0]);
    let taint = json!({ "key": "dedicated", "value": "sql", "effect": "NoExecute" });
    change_node(&stage, &all[1], |node| {
        node["spec"]["unschedulable"] = json!(true);
        node["spec"]["taints"] = json!([taint]);
        node["metadata"]["labels"]["team"] = json!("blue");
        node["metadata"]["annotations"]["example.com/owner"] = json!("ops");
    });
    let running = stage.operate(Progress::new()).unwrap();
    change_worker_config(&stage);
    let is_new = |name: &str| released(&node(&stage, name)) != before;
    let has_slot =
        |name: &str| !node(&stage, name)["metadata"]["labels"][names::UPGRADING_LABEL].is_null();
    // While one of them is upgraded, a person cordons another one.
    let late = until(|| {
        let first = all.iter().find(|name| has_slot(name))?;
        let mut others = all.iter().filter(|name| *name != first && **name != all[1]);
        others.find(|name| !is_new(name) && !has_slot(name)).cloned()
    })
    .await;
    change_node(&stage, &late, |node| node["spec"]["unschedulable"] = json!(true));
    let is_over = |name: &String| is_new(name) && !has_slot(name);
    until(|| all.iter().all(is_over).then_some(())).await;
    for name in &all {
        let cordoned = node(&stage, name)["spec"]["unschedulable"] == json!(true);
        assert_eq!(cordoned, *name == all[1] || *name == late, "{name}");
    }
    let marked = node(&stage, &all[1]);
    assert_eq!(marked["metadata"]["labels"]["team"], "blue");
    assert_eq!(marked["metadata"]["annotations"]["example.com/owner"], "ops");
    assert!(marked["spec"]["taints"].as_array().unwrap().contains(&taint), "{marked}");
    running.stop().await.unwrap();
    stage.shutdown().await;
}

/// All nodes are asked to restart at once. Every change of a Node is looked at.
#[tokio::test(flavor = "multi_thread")]
async fn a_patch_day_takes_one_node_after_the_other() {
    let stage = stage(3).await;
    let running = operate_until_settled(&stage, &addresses(3)).await;
    let all: Vec<String> = nodes(&stage).iter().map(|node| name(node)).collect();
    let api: Api<Node> = Api::all(admin(&stage).await);
    let list = api.list(&ListParams::default()).await.unwrap();
    let version = list.metadata.resource_version.unwrap();
    let mut changes = api.watch(&WatchParams::default(), &version).await.unwrap().boxed();
    for node in &all {
        ask_restart(&stage, node);
    }
    let mut seen = BTreeMap::new();
    let (mut most, mut taken) = (0, 0);
    within(async {
        while let Some(WatchEvent::Modified(changed)) = changes.try_next().await.unwrap() {
            let now = serde_json::to_value(changed).unwrap();
            let is_out = is_disrupted(&now);
            let is_done = !wants_restart(&now) && is_finished(&now);
            let before = seen.insert(name(&now), (is_out, is_done));
            taken += usize::from(is_out && before.is_none_or(|(was_out, _)| !was_out));
            most = most.max(seen.values().filter(|(is_out, _)| *is_out).count());
            if seen.len() == all.len() && seen.values().all(|(_, is_done)| *is_done) {
                break;
            }
        }
    })
    .await;
    assert_eq!((most, taken), (1, all.len()), "nodes at once, and how often one was taken out");
    running.stop().await.unwrap();
    stage.shutdown().await;
}
