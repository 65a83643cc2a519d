//! The ServiceMonitor of the exporters follows the label of the namespace.

use bin_operator::demo::Stage;
use bin_operator::progress::Progress;
use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};
use wmco_core::monitoring::exporter_monitor;
use wmco_core::names::events;
use wmco_core::names::monitoring::{
    CLUSTER_MONITORING_LABEL, EXPORTER, SERVICE_MONITOR, SERVICE_MONITORS,
};
use wmco_core::names::objects;

use super::scenery::{admin, listed, notes, until};

fn monitor(stage: &Stage) -> Option<Value> {
    let (group, _, _) = SERVICE_MONITOR;
    let found = stage.cluster.object(group, SERVICE_MONITORS, stage.namespace(), EXPORTER)?;
    Some(found.as_ref().clone())
}

fn label(stage: &Stage, value: Option<&str>) {
    let mut namespace =
        stage.cluster.object("", "namespaces", "", stage.namespace()).unwrap().as_ref().clone();
    let labels = namespace["metadata"]["labels"].as_object_mut().unwrap();
    match value {
        Some(value) => drop(labels.insert(CLUSTER_MONITORING_LABEL.into(), value.into())),
        None => drop(labels.remove(CLUSTER_MONITORING_LABEL)),
    }
    stage.cluster.put(&namespace).unwrap();
}

async fn told(stage: &Stage, reason: &str, times: usize) {
    until(|| (notes(stage, reason).len() == times).then_some(())).await;
}

/// How many writes of the operator held. One by what a cache no longer says is refused, and changes nothing.
async fn writes(stage: &Stage) -> usize {
    let operator = format!("system:serviceaccount:{}:{}", stage.namespace(), objects::OPERATOR);
    until(|| {
        let requests = stage.cluster.requests();
        let ours = requests.iter().filter(|request| request.user == operator);
        let writes = ours.filter(|request| {
            request.resource == SERVICE_MONITORS
                && ["create", "patch", "delete"].contains(&request.verb.as_str())
        });
        let codes: Vec<u16> = writes.map(|request| request.code).collect();
        let is_answered = !codes.contains(&0);
        is_answered.then(|| codes.iter().filter(|code| **code != 409).count())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_there_while_the_namespace_is_labelled_and_is_put_right() {
    let stage = Stage::start(&listed(&[]), |_, host| host).await.unwrap();
    label(&stage, None);
    let running = stage.operate(Progress::new()).unwrap();
    let user_data = (objects::MACHINE_API_NAMESPACE, objects::USER_DATA_SECRET);
    until(|| stage.cluster.object("", "secrets", user_data.0, user_data.1)).await;
    assert!(monitor(&stage).is_none() && notes(&stage, events::MONITORING_DISABLED).is_empty());

    label(&stage, Some("true"));
    let made = until(|| monitor(&stage)).await;
    assert_eq!(made["spec"], exporter_monitor(stage.namespace())["spec"]);
    told(&stage, events::MONITORING_ENABLED, 1).await;

    // What others add stays, and is no reason to write.
    let mut edited = made.clone();
    edited["spec"]["targetLimit"] = 7.into();
    stage.cluster.put(&edited).unwrap();
    edited["spec"]["endpoints"][0]["interval"] = "5s".into();
    let before = writes(&stage).await;
    stage.cluster.put(&edited).unwrap();
    let restored = until(|| {
        monitor(&stage).filter(|found| found["spec"]["endpoints"][0]["interval"] == "30s")
    })
    .await;
    assert_eq!(restored["spec"]["targetLimit"], 7);
    assert_eq!(restored["metadata"]["uid"], made["metadata"]["uid"], "changed in place");
    assert_eq!(writes(&stage).await - before, 1);

    let (client, namespace) = (admin(&stage).await, stage.namespace());
    let api = bin_operator::service_monitor::api(&client, namespace);
    api.delete(EXPORTER, &DeleteParams::default()).await.unwrap();
    until(|| monitor(&stage)).await;

    label(&stage, Some("nonsense"));
    told(&stage, events::SETTING_NOT_APPLIED, 1).await;
    label(&stage, Some("false"));
    told(&stage, events::MONITORING_DISABLED, 1).await;
    api.delete(EXPORTER, &DeleteParams::default()).await.unwrap();
    let before = writes(&stage).await;
    let map: Api<k8s_openapi::api::core::v1::Secret> =
        Api::namespaced(client, objects::MACHINE_API_NAMESPACE);
    map.delete(objects::USER_DATA_SECRET, &DeleteParams::default()).await.unwrap();
    until(|| stage.cluster.object("", "secrets", user_data.0, user_data.1)).await;
    assert_eq!(writes(&stage).await, before, "nobody asks for it");
    running.stop().await.unwrap();
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_the_kind_is_served() {
    let stage = Stage::start(&listed(&[]), |_, host| host).await.unwrap();
    let (group, _, _) = SERVICE_MONITOR;
    let definitions: Api<kube::api::DynamicObject> = Api::all_with(
        admin(&stage).await,
        &kube::api::ApiResource::from_gvk(&kube::api::GroupVersionKind::gvk(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
        )),
    );
    let name = format!("{SERVICE_MONITORS}.{group}");
    let definition = definitions.get(&name).await.unwrap();
    definitions.delete(&name, &DeleteParams::default()).await.unwrap();
    let running = stage.operate(Progress::new()).unwrap();
    let user_data = (objects::MACHINE_API_NAMESPACE, objects::USER_DATA_SECRET);
    until(|| stage.cluster.object("", "secrets", user_data.0, user_data.1)).await;
    told(&stage, events::MONITORING_ENABLED, 1).await;
    assert_eq!(writes(&stage).await, 0);
    // The cluster gets it.
    let again = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name}, "spec": definition.data["spec"],
    });
    stage.cluster.put(&again).unwrap();
    until(|| monitor(&stage)).await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}
