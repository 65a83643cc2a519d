//! Mistakes that people made with other operators, as they reported them, and what the operator tells of each.

use bin_operator::progress::Progress;
use kube_testserver::Fault;
use kube_testserver::error::ApiError;
use serde_json::{Value, json};
use wmco_core::names;

use super::bad_input::FAILURE;
use super::scenery::{
    addresses, change_node, configure, is_finished, listed, nodes, notes, operate_until_settled,
    stage, until, until_metrics,
};

fn name(node: &Value) -> String {
    node["metadata"]["name"].as_str().unwrap().to_owned()
}

/// Source: <https://github.com/kubernetes/kubectl/issues/172>.
#[tokio::test(flavor = "multi_thread")]
async fn right_that_was_taken_away_is_told_in_one_sentence() {
    const SAID: &str = "the operator may not patch nodes";
    let stage = stage(1).await;
    configure(&stage, &addresses(1)).await;
    stage.cluster.inject_faults(|request| {
        let is_it = request.resource == "nodes" && request.verb == "patch";
        is_it.then(|| Fault::Answer(ApiError::forbidden_path(SAID)))
    });
    change_node(&stage, &name(&nodes(&stage)[0]), |node| {
        node["metadata"]["labels"][names::BYOH_LABEL] = Value::Null;
    });
    let running = stage.operate(Progress::new()).unwrap();
    let note = until(|| notes(&stage, FAILURE).into_iter().find(|n| n.contains(SAID))).await;
    assert_eq!((note.matches(SAID).count(), note.matches("403").count()), (1, 1), "{note}");
    assert!(note.contains("apply the rights in the operator's deployment again"), "{note}");
    assert!(!note.contains("Status") && !note.contains("Some("), "{note}");
    running.stop().await.unwrap();
    stage.shutdown().await;
}

/// Source: <https://github.com/openshift/windows-machine-config-operator/pull/446>.
#[tokio::test(flavor = "multi_thread")]
async fn file_pasted_as_a_user_name_is_told_by_its_entry() {
    let all = addresses(2);
    let stage = stage(2).await;
    let mut list = listed(&all[..1]);
    list.insert(all[1].clone(), format!("username={}", "A".repeat(900_000)));
    stage.list(&list).unwrap();
    let running = operate_until_settled(&stage, &all[..1]).await;
    let note = until(|| notes(&stage, FAILURE).into_iter().find(|n| n.contains(&all[1]))).await;
    assert!(note.contains("username") && note.contains("256"), "{note}");
    assert!(!note.contains("AAAA") && note.len() < 500, "{note}");
    assert!(nodes(&stage).iter().all(|node| is_finished(node)));
    running.stop().await.unwrap();
    stage.shutdown().await;
}

/// Source: <https://github.com/openshift/windows-machine-config-operator/pull/323>.
#[tokio::test(flavor = "multi_thread")]
async fn label_on_a_linux_node_takes_no_slot() {
    let all = addresses(1);
    let stage = stage(1).await;
    let labels = json!({ (names::OS_LABEL): "linux", (names::UPGRADING_LABEL): "true" });
    let linux = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": "linux-9", "labels": labels },
    });
    stage.cluster.put(&linux).unwrap();
    let running = operate_until_settled(&stage, &all).await;
    let win = || nodes(&stage).into_iter().find(|node| name(node) != "linux-9").unwrap();
    change_node(&stage, &name(&win()), |node| {
        node["metadata"]["annotations"][names::REBOOT_ANNOTATION] = json!("");
    });
    let asks = || !win()["metadata"]["annotations"][names::REBOOT_ANNOTATION].is_null();
    until(|| (!asks() && is_finished(&win())).then_some(())).await;
    until_metrics(&stage, &running, |text| text.contains("wmco_disrupted_nodes 0\n")).await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}
