//! The operator tells the Operator Lifecycle Manager whether it may be replaced.

use bin_operator::demo::Stage;
use bin_operator::progress::Progress;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use wmco_core::names::events;
use wmco_core::names::monitoring::{OPERATOR_CONDITION, OPERATOR_CONDITIONS, UPGRADEABLE};
use wmco_core::names::{self, objects};
use wmco_sim::host::{Fault, SimHostBuilder};

use super::scenery::{
    addresses, admin, configure, is_finished, listed, nodes, notes, operate_until_settled, stage,
    until,
};

/// All our OperatorConditions; there is one.
fn object(stage: &Stage) -> Value {
    let (group, _, _) = OPERATOR_CONDITION;
    stage.cluster.objects(group, OPERATOR_CONDITIONS, stage.namespace())[0].as_ref().clone()
}

fn of_type(stage: &Stage, type_: &str) -> Option<Value> {
    let object = object(stage);
    let conditions = object.pointer("/spec/conditions")?.as_array()?;
    conditions.iter().find(|condition| condition["type"] == type_).cloned()
}

/// Waits for this status.
async fn until_status(stage: &Stage, status: &str) -> Value {
    until(|| of_type(stage, UPGRADEABLE).filter(|condition| condition["status"] == status)).await
}

/// What the operator asked about the object, by verb.
fn asked(stage: &Stage, verb: &str) -> usize {
    let operator = format!("system:serviceaccount:{}:{}", stage.namespace(), objects::OPERATOR);
    let requests = stage.cluster.requests();
    let ours = requests.iter().filter(|request| request.user == operator);
    ours.filter(|request| request.resource == OPERATOR_CONDITIONS && request.verb == verb).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_is_not_safe_until_all_nodes_have_theirs() {
    let mut stage = stage(3).await;
    let other = json!({
        "type": "Healthy", "status": "True", "reason": "x", "message": "another one's",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let mut with_other = object(&stage);
    with_other["spec"] = json!({"conditions": [other], "overrides": []});
    stage.cluster.put(&with_other).unwrap();
    let running = operate_until_settled(&stage, &addresses(3)).await;
    let first = until_status(&stage, "True").await;
    assert_eq!(first["reason"], "upgradeIsSafe");
    running.stop().await.unwrap();

    stage.upgrade("0.2.0").unwrap();
    let before = asked(&stage, "patch");
    let running = stage.operate(Progress::new()).unwrap();
    let during = until_status(&stage, "False").await;
    assert_eq!(during["reason"], "upgradeIsNotSafe");
    let message = during["message"].as_str().unwrap();
    for node in nodes(&stage) {
        let name = node["metadata"]["name"].as_str().unwrap();
        assert!(message.contains(name), "{name} is missing: {message}");
    }
    let after = until_status(&stage, "True").await;
    for node in nodes(&stage) {
        assert_eq!(node["metadata"]["annotations"][names::VERSION_ANNOTATION], "0.2.0");
    }
    assert_ne!(after["lastTransitionTime"], during["lastTransitionTime"]);
    assert_eq!(of_type(&stage, "Healthy"), Some(other));
    assert_eq!(object(&stage)["spec"]["overrides"], json!([]));
    let writes = asked(&stage, "patch") - before;
    assert!((2..=12).contains(&writes), "{writes} writes");
    assert_eq!(asked(&stage, "list") + asked(&stage, "watch"), 0);
    running.stop().await.unwrap();

    // A new process that finds all at rest changes nothing.
    let before = asked(&stage, "patch");
    let looks = asked(&stage, "get");
    let running = operate_until_settled(&stage, &addresses(3)).await;
    until(|| (asked(&stage, "get") > looks).then_some(())).await;
    running.stop().await.unwrap();
    assert_eq!(asked(&stage, "patch"), before, "it stands there already");
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_lifecycle_manager_nothing_is_read() {
    let mut stage = stage(1).await;
    stage.reconfigure(|config| config.operator_condition = None);
    configure(&stage, &addresses(1)).await;
    for verb in ["get", "list", "watch", "patch"] {
        assert_eq!(asked(&stage, verb), 0, "{verb}");
    }
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_not_there_is_told_once_and_stops_no_work() {
    let mut stage = stage(1).await;
    stage.reconfigure(|config| config.operator_condition = Some("absent".into()));
    let running = operate_until_settled(&stage, &addresses(1)).await;
    until(|| notes(&stage, events::OPERATOR_CONDITION_ERROR).first().cloned()).await;
    assert!(nodes(&stage).iter().all(|node| is_finished(node)));
    let told = notes(&stage, events::OPERATOR_CONDITION_ERROR);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("absent"), "{told:?}");
    running.stop().await.unwrap();
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_private_key_and_a_host_that_was_never_reached_keep_no_upgrade_away() {
    let silent = |_, host: SimHostBuilder| host.fault(Fault::BlackHole);
    let stage = Stage::start(&listed(&addresses(1)), silent).await.unwrap();
    let secrets: Api<Secret> = Api::namespaced(admin(&stage).await, stage.namespace());
    secrets.delete(objects::PRIVATE_KEY_SECRET, &DeleteParams::default()).await.unwrap();
    let running = stage.operate(Progress::new()).unwrap();
    let condition = until_status(&stage, "True").await;
    let message = condition["message"].as_str().unwrap();
    assert!(message.contains("10.9.8.1 (waits for a private key"), "{message}");
    stage.give_key(stage.key.expose()).unwrap();
    let told = |text: &'static str| {
        let stage = &stage;
        until(move || {
            let condition = of_type(stage, UPGRADEABLE)?;
            assert_eq!(condition["status"], "True");
            condition["message"].as_str()?.contains(text).then_some(())
        })
    };
    told("never reached").await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}
