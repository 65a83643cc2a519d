//! Pods that do not leave a node are reported, and other nodes get their turn.

use bin_operator::demo::Stage;
use bin_operator::progress::Progress;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use wmco_core::names;

use super::new_services::{change_worker_config, released};
use super::scenery::{
    addresses, admin, configure, is_finished, nodes, notes, stage, until, until_metrics,
};

const BUDGET: &str = "db-budget";
const POD: &str = "db";

/// A pod on `node` that a budget protects for as long as it is there.
async fn protected_pod(stage: &Stage, node: &str) {
    let labels = json!({ "app": POD });
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": POD, "namespace": "default", "labels": labels },
        "spec": {
            "nodeName": node, "terminationGracePeriodSeconds": 0,
            "containers": [{ "name": POD, "image": "db:1" }],
        },
    });
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": { "name": BUDGET, "namespace": "default" },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": labels } },
    });
    for object in [pod, budget] {
        stage.cluster.put(&object).unwrap();
    }
    let client = admin(stage).await;
    let params = PatchParams::default();
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let running = json!({ "status": {
        "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }],
    } });
    pods.patch_status(POD, &params, &Patch::Merge(&running)).await.unwrap();
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(client, "default");
    let full = json!({ "status": {
        "observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1,
        "expectedPods": 1,
    } });
    budgets.patch_status(BUDGET, &params, &Patch::Merge(&full)).await.unwrap();
}

/// What a Node says about its drain.
fn condition(node: &Value) -> Option<Value> {
    let conditions = node["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == names::DRAIN_CONDITION).cloned()
}

fn name(node: &Value) -> String {
    node["metadata"]["name"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_protected_pod_lets_another_node_go_and_is_told() {
    let mut stage = stage(2).await;
    configure(&stage, &addresses(2)).await;
    let blocked = name(&nodes(&stage)[0]);
    let before = released(&nodes(&stage)[0]);
    protected_pod(&stage, &blocked).await;
    stage.reconfigure(|config| config.drain_timeout = SignedDuration::from_secs(12));
    let running = stage.operate(Progress::new()).unwrap();
    change_worker_config(&stage);
    let of = |wanted: bool| {
        let found = nodes(&stage).into_iter().find(|node| (name(node) == blocked) == wanted);
        found.expect("both are there")
    };

    // A condition of the Node, an Event and a metric report what blocks it.
    let told = until(|| condition(&of(true)).filter(|c| c["status"] == "True")).await;
    let message = told["message"].as_str().unwrap();
    for part in ["pod default/db", "disruption budget db-budget", "began at"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let gauge = format!("wmco_drain_blocked_since_timestamp_seconds{{node=\"{blocked}\"}}");
    until_metrics(&stage, &running, |text| text.contains(&gauge)).await;

    // The other one gets its turn.
    until(|| (is_finished(&of(false)) && released(&of(false)) != before).then_some(())).await;
    assert_eq!(released(&of(true)), before, "nothing was changed there");
    assert!(stage.cluster.object("", "pods", "default", POD).is_some());
    assert_eq!(notes(&stage, names::events::DRAIN_BLOCKED).len(), 1, "once for a blockage");
    assert!(!notes(&stage, names::events::DRAIN_GIVEN_UP).is_empty());

    // Without the budget the drain proceeds, and its end is reported.
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(admin(&stage).await, "default");
    budgets.delete(BUDGET, &DeleteParams::default()).await.unwrap();
    until(|| (is_finished(&of(true)) && released(&of(true)) != before).then_some(())).await;
    assert_eq!(condition(&of(true)).unwrap()["status"], "False");
    let marks = &of(true)["metadata"]["annotations"];
    for mark in [names::DRAIN_SINCE_ANNOTATION, names::DRAIN_GIVEN_UP_ANNOTATION] {
        assert!(marks[mark].is_null(), "{marks}");
    }
    until_metrics(&stage, &running, |text| !text.contains(&gauge)).await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}
