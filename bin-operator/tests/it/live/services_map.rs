//! The operator restores this version's services ConfigMap after any deletion or replacement.
//!
//! Source: `docs/contract/services.md`, SVC3.

use std::sync::Arc;

use bin_operator::demo::Stage;
use bin_operator::progress::Progress;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use wmco_core::names::objects::services_name;

use super::scenery::{admin, listed, until};

fn map(stage: &Stage) -> Option<Arc<Value>> {
    let name = services_name(bin_operator::VERSION);
    stage.cluster.object("", "configmaps", stage.namespace(), &name)
}

/// Deletes it as an administrator does.
async fn delete(stage: &Stage) {
    let maps: Api<ConfigMap> = Api::namespaced(admin(stage).await, stage.namespace());
    maps.delete(&services_name(bin_operator::VERSION), &DeleteParams::default()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_deleted_comes_back_as_it_was() {
    let stage = Stage::start(&listed(&[]), |_, host| host).await.unwrap();
    let running = stage.operate(Progress::new()).unwrap();
    let first = until(|| map(&stage)).await;
    delete(&stage).await;
    let other = |map: &Arc<Value>| map["metadata"]["uid"] != first["metadata"]["uid"];
    let second = until(|| map(&stage).filter(other)).await;
    assert_eq!((&second["data"], &second["immutable"]), (&first["data"], &json!(true)));
    running.stop().await.unwrap();
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_was_replaced_while_no_operator_ran_is_made_anew() {
    let stage = Stage::start(&listed(&[]), |_, host| host).await.unwrap();
    let running = stage.operate(Progress::new()).unwrap();
    let first = until(|| map(&stage)).await;
    running.stop().await.unwrap();
    delete(&stage).await;
    let bogus = r#"[{"name": "bogus", "path": "bogus.exe", "bootstrap": false, "priority": 9}]"#;
    let replaced = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "immutable": true,
        "metadata": {
            "name": services_name(bin_operator::VERSION), "namespace": stage.namespace(),
        },
        "data": {"services": bogus, "files": "[]"},
    });
    stage.cluster.put(&replaced).unwrap();
    let running = stage.operate(Progress::new()).unwrap();
    until(|| map(&stage).filter(|map| map["data"] == first["data"])).await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}
