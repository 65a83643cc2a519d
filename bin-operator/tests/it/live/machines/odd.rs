//! Machines that people asked to leave alone, or that contradict what else is known.

use std::sync::Arc;
use std::time::Duration;

use bin_operator::demo::Stage;
use bin_operator::progress::Progress;
use serde_json::{Value, json};
use wmco_core::names::{self as wire, events};
use wmco_services::fake::Snapshot;
use wmco_sim::machines::Oddity;

use super::observer::Observer;
use super::scenery::{
    annotation, cloud, hosts, machines, name, names, node_of, patch_machine, until_finished,
};
use crate::live::new_services::released;
use crate::live::scenery::{delete_node, is_finished, nodes, notes, until};
use crate::live::worker_pool::{external_cloud_provider, roll_out};

/// Longer than the operator needs to do what it is not to do.
const NOTICED: Duration = Duration::from_secs(3);

/// What the operator may have written on a Node.
fn written(node: &Value) -> Value {
    let metadata = &node["metadata"];
    let mut annotations = metadata["annotations"].clone();
    // The Machine API writes it.
    annotations.as_object_mut().unwrap().remove(wire::MACHINE_ANNOTATION);
    json!([metadata["uid"], metadata["labels"], annotations, node["spec"]])
}

/// The Nodes that are released for other services than `before`, and finished.
fn released_anew(stage: &Stage, before: Option<&str>) -> Vec<Arc<Value>> {
    let mut nodes = nodes(stage);
    nodes.retain(|node| is_finished(node) && released(node).as_deref() != before);
    nodes
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ignored_machine_is_left_until_its_label_is_taken_off() {
    let stage = cloud(2, 1).await;
    let observer = Observer::start(&stage, 1).await;
    let running = stage.operate(Progress::new()).unwrap();
    until_finished(&stage, 2, 1).await;
    let ignored = name(&machines(&stage)[0]);
    let label = |value: Value| json!({"metadata": {"labels": {wire::IGNORE_LABEL: value}}});
    patch_machine(&stage, &ignored, &label(wire::TRUE.into())).await;
    // So that the operator knows when there is something to do.
    tokio::time::sleep(NOTICED).await;
    let node = node_of(&stage, &ignored).unwrap();
    let (before, host) = (released(&node), stage.machines().unwrap().host(&ignored).unwrap());
    let model = host.model().snapshot();
    roll_out(&stage, "rendered-worker-1", &external_cloud_provider());
    until(|| (released_anew(&stage, before.as_deref()).len() == 2).then_some(())).await;
    tokio::time::sleep(NOTICED).await;
    assert_eq!(written(&node_of(&stage, &ignored).unwrap()), written(&node));
    assert_eq!(host.model().snapshot(), model);
    patch_machine(&stage, &ignored, &label(Value::Null)).await;
    until(|| (released_anew(&stage, before.as_deref()).len() == 3).then_some(())).await;
    running.stop().await.unwrap();
    let findings = observer.finish(&stage).await;
    assert_eq!((findings.deleted, findings.most_disrupted), (Vec::new(), 1));
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_node_of_a_machine_comes_back_when_somebody_deletes_it() {
    let stage = cloud(1, 0).await;
    let observer = Observer::start(&stage, 1).await;
    let running = stage.operate(Progress::new()).unwrap();
    until_finished(&stage, 1, 0).await;
    let machine = names(&machines(&stage));
    let node = nodes(&stage).remove(0);
    delete_node(&stage, &name(&node)).await;
    until(|| {
        let nodes = nodes(&stage);
        let is_new = |found: &Value| found["metadata"]["uid"] != node["metadata"]["uid"];
        nodes.iter().any(|node| is_new(node) && is_finished(node)).then_some(())
    })
    .await;
    until_finished(&stage, 1, 0).await;
    running.stop().await.unwrap();
    assert_eq!(names(&machines(&stage)), machine);
    assert_eq!(observer.finish(&stage).await.deleted, Vec::<String>::new());
    stage.shutdown().await;
}

fn models(stage: &Stage, machine: &str, entry: &str) -> [Snapshot; 2] {
    let of_machine = stage.machines().unwrap().host(machine).unwrap();
    let (_, of_entry) = stage.hosts.iter().find(|(address, _)| *address == entry).unwrap();
    [of_machine.model().snapshot(), of_entry.model().snapshot()]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_and_an_entry_with_one_address_are_both_left_until_they_differ() {
    let stage = cloud(2, 2).await;
    let observer = Observer::start(&stage, 1).await;
    let running = stage.operate(Progress::new()).unwrap();
    until_finished(&stage, 2, 2).await;
    let machine = hosts(&stage).remove(0).0;
    let entry = stage.hosts.iter().next().unwrap().0.to_owned();
    let of_entry = nodes(&stage)
        .into_iter()
        .find(|node| annotation(node, wire::INSTANCE_ANNOTATION) == entry)
        .unwrap();
    let both = [of_entry, node_of(&stage, &machine).unwrap()].map(|node| name(&node));
    let now = || both.clone().map(|name| stage.cluster.object("", "nodes", "", &name).unwrap());
    let all_written = || now().map(|node| written(&node));
    let api = stage.machines().unwrap();
    api.set_oddity(&machine, Oddity::Address(entry.parse().unwrap()));
    for (reason, named, by) in [
        (events::MACHINE_SETUP_FAILURE, machine.as_str(), entry.as_str()),
        (events::INSTANCE_SETUP_FAILURE, &entry, &machine),
    ] {
        let is_told = |note: &String| note.contains(named) && note.contains(by);
        until(|| notes(&stage, reason).iter().any(is_told).then_some(())).await;
    }
    // There is something to do, and it reaches the others.
    let left = models(&stage, &machine, &entry);
    let (on_nodes, before) = (all_written(), released(&now()[0]));
    roll_out(&stage, "rendered-worker-1", &external_cloud_provider());
    until(|| (released_anew(&stage, before.as_deref()).len() == 2).then_some(())).await;
    tokio::time::sleep(NOTICED).await;
    assert_eq!(models(&stage, &machine, &entry), left);
    assert_eq!(all_written(), on_nodes);
    api.clear_oddities(&machine);
    until(|| (released_anew(&stage, before.as_deref()).len() == 4).then_some(())).await;
    running.stop().await.unwrap();
    let findings = observer.finish(&stage).await;
    assert_eq!((findings.deleted, findings.most_disrupted), (Vec::new(), 1));
    stage.shutdown().await;
}
