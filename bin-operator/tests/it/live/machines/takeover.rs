//! A cluster whose Machines the Go operator has made nodes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bin_operator::demo::Stage;
use bin_operator::progress::{Progress, ProgressEvent, ProgressKind};
use futures::FutureExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use wmco_core::names::{self as wire, objects};

use super::observer::Observer;
use super::scenery::{Key, SET, annotation, cloud, hosts, machines, name, names, until_finished};
use crate::live::scenery::{admin, change_node, nodes, until};

const THEIRS: &str = "10.19.0-3d7a1b2";

/// Our own marks, which the Go operator does not know.
const OURS: [&str; 5] = [
    wire::SERVICES_ANNOTATION,
    wire::INSTANCE_ANNOTATION,
    wire::CORDONED_ANNOTATION,
    wire::HOST_KEY_ANNOTATION,
    wire::HOST_KEY_TYPE_ANNOTATION,
];

/// Makes the cluster as if it were of the Go operator; `key_hashes` are those on the Nodes, in turn.
async fn hand_over(stage: &Stage, key_hashes: &[&str]) {
    let maps: Api<ConfigMap> = Api::namespaced(admin(stage).await, stage.namespace());
    maps.delete(objects::HOST_KEYS_CONFIG_MAP, &DeleteParams::default()).await.unwrap();
    for (node, key_hash) in nodes(stage).iter().zip(key_hashes) {
        change_node(stage, &name(node), |node| {
            let annotations = node["metadata"]["annotations"].as_object_mut().unwrap();
            annotations.retain(|name, _| !OURS.contains(&name.as_str()));
            annotations.insert(wire::PUBLIC_KEY_HASH_ANNOTATION.to_owned(), (*key_hash).into());
        });
    }
    for (_, host) in hosts(stage) {
        host.reset_counts();
    }
}

fn is_theirs(node: &Value) -> bool {
    annotation(node, wire::VERSION_ANNOTATION) == THEIRS && node["spec"]["unschedulable"].is_null()
}

/// Another text that lets the same key in, as the Go operator's template does.
fn their_user_data(stage: &Stage) -> Value {
    let key = Key::first(stage).public.to_openssh().unwrap();
    let (ns, secret) = (objects::MACHINE_API_NAMESPACE, objects::USER_DATA_SECRET);
    let ours = stage.cluster.object("", "secrets", ns, secret).unwrap();
    let ours = BASE64_STANDARD.decode(ours["data"][objects::USER_DATA_KEY].as_str().unwrap());
    let text = String::from_utf8(ours.unwrap()).unwrap();
    assert!(text.contains(key.split(' ').nth(1).unwrap()));
    let theirs = text.replacen("<powershell>", "<powershell>\n# made by another operator", 1);
    assert_ne!(theirs, text);
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": secret, "namespace": ns},
        "data": {objects::USER_DATA_KEY: BASE64_STANDARD.encode(theirs)},
    })
}

/// How often the node of each instance was taken out of service.
type Begun = Arc<Mutex<BTreeMap<String, usize>>>;

fn counting_cordons() -> (Progress, Begun) {
    let begun = Begun::default();
    let told = Arc::clone(&begun);
    let gate = move |event: &ProgressEvent| {
        if let ProgressKind::Step { action, .. } = &event.kind
            && action.starts_with("patch-node cordon")
        {
            *told.lock().unwrap().entry(event.address.clone()).or_default() += 1;
        }
        std::future::ready(()).boxed()
    };
    (Progress::new().gated(Arc::new(gate)), begun)
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_of_the_go_operator_are_kept_and_installed_anew_once() {
    let mut stage = cloud(3, 0).await;
    stage.upgrade(THEIRS).unwrap();
    let running = stage.operate(Progress::new()).unwrap();
    until(|| {
        let nodes = nodes(&stage);
        let done = nodes.iter().filter(|node| is_theirs(node)).count();
        (done == 3).then_some(())
    })
    .await;
    running.stop().await.unwrap();
    stage.upgrade(bin_operator::VERSION).unwrap();
    let before = names(&machines(&stage));
    let of_another_key = "0".repeat(64);
    let observer = Observer::start(&stage, 1).await;
    hand_over(&stage, &["", &of_another_key, "\"\""]).await;
    stage.cluster.put(&their_user_data(&stage)).unwrap();
    let (progress, begun) = counting_cordons();
    let running = stage.operate(progress).unwrap();
    until_finished(&stage, 3, 0).await;
    let first = Key::first(&stage);
    assert!(nodes(&stage).iter().all(|node| first.is_noted_on(node)), "{:#?}", nodes(&stage));
    let begun = begun.lock().unwrap().clone();
    assert_eq!(begun.into_values().collect::<Vec<_>>(), [1, 1, 1]);
    assert_eq!(names(&machines(&stage)), before);
    // Whatever stands in the Secret now, new ones come.
    stage.scale(SET, 4).unwrap();
    until_finished(&stage, 4, 0).await;
    running.stop().await.unwrap();
    assert_eq!(observer.finish(&stage).await.deleted, Vec::<String>::new());
    stage.shutdown().await;
}
