//! Pods that do not leave a node are reported, and other nodes get their turn.

use bin_operator::demo::Stage;
use bin_operator::progress::Progress;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube_testserver::Fault;
use kube_testserver::error::ApiError;
use serde_json::{Value, json};
use wmco_core::{limits, names};

use super::new_services::{change_worker_config, released};
use super::scenery::{
    addresses, admin, configure, is_finished, name, nodes, notes, stage, until, until_metrics,
};

const BUDGET: &str = "db-budget";
const POD: &str = "db";

/// A pod on `node` that a budget protects for as long as it is there.
pub(super) async fn protected_pod(stage: &Stage, node: &str) {
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

/// A pod on `node` that nothing protects.
fn plain_pod(stage: &Stage, node: &str, name: &str) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "nodeName": node, "terminationGracePeriodSeconds": 0,
            "containers": [{ "name": name, "image": "web:1" }],
        },
    });
    stage.cluster.put(&pod).unwrap();
}

/// What a Node says about its drain.
pub(super) fn condition(node: &Value) -> Option<Value> {
    let conditions = node["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == names::DRAIN_CONDITION).cloned()
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
    // Events leave beside all other work.
    until(|| (!notes(&stage, names::events::DRAIN_GIVEN_UP).is_empty()).then_some(())).await;
    assert_eq!(notes(&stage, names::events::DRAIN_BLOCKED).len(), 1, "once for a blockage");

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

/// As webhooks, namespaces that are being deleted, and connections that break answer.
#[tokio::test(flavor = "multi_thread")]
async fn refused_evictions_hold_up_no_other_pod_and_are_reported() {
    let stage = stage(1).await;
    configure(&stage, &addresses(1)).await;
    let node = name(&nodes(&stage)[0]);
    let before = released(&nodes(&stage)[0]);
    // Asked in this order, so that each refusal comes before a pod that may go.
    let refused = ["a-400", "a-401", "a-403", "a-cut"];
    for pod in refused.iter().chain(&["web-1", "web-2"]) {
        plain_pod(&stage, &node, pod);
    }
    stage.cluster.inject_faults(|request| {
        if request.resource != "pods/eviction" {
            return None;
        }
        match request.name.as_str() {
            "a-400" => Some(Fault::Answer(ApiError::bad_request("the webhook has no code"))),
            "a-401" => Some(Fault::Answer(ApiError::unauthorized())),
            "a-403" => Some(Fault::Answer(ApiError::forbidden_path("the broker moves its pods"))),
            "a-cut" => Some(Fault::Hangup),
            _ => None,
        }
    });
    let running = stage.operate(Progress::new()).unwrap();
    change_worker_config(&stage);
    let gone = |pod: &str| stage.cluster.object("", "pods", "default", pod).is_none();
    until(|| (gone("web-1") && gone("web-2")).then_some(())).await;
    let told = until(|| condition(&nodes(&stage)[0]).filter(|c| c["status"] == "True")).await;
    let message = told["message"].as_str().unwrap();
    for part in ["default/a-400", "no code, code 400", "default/a-403", "code 403", "default/a-cut"]
    {
        assert!(message.contains(part), "{part}: {message}");
    }
    // The Event follows the condition.
    until(|| (notes(&stage, names::events::DRAIN_BLOCKED).len() == 1).then_some(())).await;
    assert_eq!(released(&nodes(&stage)[0]), before, "nothing was changed there");

    stage.cluster.clear_faults();
    let finished = |node: &Value| is_finished(node) && released(node) != before;
    until(|| finished(&nodes(&stage)[0]).then_some(())).await;
    assert!(refused.iter().all(|pod| gone(pod)));
    running.stop().await.unwrap();
    stage.shutdown().await;
}

/// A pod that tolerates the cordon, as a log agent of a Deployment: each time it goes, another one comes.
#[tokio::test(flavor = "multi_thread")]
async fn pods_that_come_back_are_asked_once_and_do_not_hold_the_node() {
    let stage = stage(1).await;
    configure(&stage, &addresses(1)).await;
    let node = name(&nodes(&stage)[0]);
    let before = released(&nodes(&stage)[0]);
    protected_pod(&stage, &node).await;
    let running = stage.operate(Progress::new()).unwrap();
    change_worker_config(&stage);
    let seen = until(|| {
        let node = nodes(&stage).remove(0);
        let seen = node["metadata"]["annotations"][names::CORDONED_SINCE_ANNOTATION].as_str()?;
        seen.parse::<Timestamp>().ok()
    })
    .await;
    // The API server dates pods by the second.
    let late = seen + limits::POD_CLOCK_SKEW + SignedDuration::from_secs(2);
    until(|| (Timestamp::now() > late).then_some(())).await;
    let replaces = |number: u32| plain_pod(&stage, &node, &format!("agent-{number}"));
    replaces(0);
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(admin(&stage).await, "default");
    budgets.delete(BUDGET, &DeleteParams::default()).await.unwrap();
    let agents = |stage: &Stage| {
        let pods = stage.cluster.objects("", "pods", "default");
        pods.iter().filter(|pod| name(pod).starts_with("agent")).count()
    };
    let mut number = 0;
    until(|| {
        if agents(&stage) == 0 {
            number += 1;
            replaces(number);
        }
        let node = nodes(&stage).remove(0);
        (is_finished(&node) && released(&node) != before).then_some(())
    })
    .await;
    let evictions =
        stage.cluster.requests().into_iter().filter(|request| {
            request.resource == "pods/eviction" && request.name.starts_with("agent")
        });
    assert_eq!(evictions.count(), 1);
    let told = notes(&stage, names::events::PODS_CAME_BACK);
    assert!(told.len() == 1 && told[0].contains("default/agent-0"), "{told:?}");
    running.stop().await.unwrap();
    stage.shutdown().await;
}
