//! Tests the links between Nodes and Machines.

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::DeleteParams;
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::{Value, json};
use wmco_core::names::{self, platforms};
use wmco_sim::machines::machine_set;

use super::scenery::{SET, World, text};
use crate::host::client::{until, within};

#[tokio::test]
async fn each_machine_gets_the_node_of_its_host() {
    let world = World::new(platforms::NONE, |api| api).await.with_hosts(2).await;
    let machines = world.names();
    let mut seen = Vec::new();
    for name in &machines {
        let node = world.join(name).await;
        world.until(name, |machine| machine["status"]["phase"] == "Running").await;
        let (machine, node) = (world.get(name).unwrap(), world.node(&node).unwrap());
        let named = &machine["status"]["nodeRef"];
        assert_eq!(named["name"].as_str(), node.metadata.name.as_deref());
        assert_eq!(named["uid"].as_str(), node.metadata.uid.as_deref());
        let annotations = node.metadata.annotations.unwrap();
        assert_eq!(annotations[names::MACHINE_ANNOTATION], format!("openshift-machine-api/{name}"));
        let provider_id = node.spec.unwrap().provider_id.unwrap();
        assert_eq!(provider_id, text(&machine, "/spec/providerID"));
        seen.push(provider_id);
    }
    assert_ne!(seen[0], seen[1]);
    world.end().await;
}

#[tokio::test]
async fn a_machine_goes_through_its_phases_in_order() {
    let world = World::new(platforms::NONE, |api| api).await;
    let watched = watcher(world.api("Machine"), watcher::Config::default()).applied_objects();
    let mut watched = watched.boxed();
    let mut phases = Vec::new();
    world.cluster.put(&machine_set(SET, 1)).unwrap();
    let mut joins = false;
    while phases.last().is_none_or(|phase| phase != "Running") {
        let machine = within(watched.next()).await.unwrap().unwrap();
        let phase = text(&machine.data, "/status/phase");
        if phases.last() != Some(&phase) {
            phases.push(phase);
        }
        if !joins && phases.last().is_some_and(|phase| phase == "Provisioned") {
            joins = true;
            world.hosts(1).await;
            world.join(&world.names()[0]).await;
        }
    }
    assert_eq!(phases, ["", "Provisioning", "Provisioned", "Running"]);
    world.end().await;
}

#[tokio::test]
async fn a_deleted_machine_takes_its_node_and_its_host_with_it() {
    let world = World::new(platforms::NONE, |api| api).await.with_hosts(1).await;
    let name = world.names()[0].clone();
    let node = world.join(&name).await;
    world.until(&name, |machine| machine["status"]["phase"] == "Running").await;
    let host = world.host(&name);
    world.scale(0).await;
    world.hosts(0).await;
    assert!(world.node(&node).is_none());
    assert!(!host.model().is_up());
    world.end().await;
}

/// The Node of a listed host stays, whatever happens to Machines.
#[tokio::test]
async fn a_node_of_no_machine_is_left_alone() {
    let world = World::new(platforms::NONE, |api| api).await.with_hosts(1).await;
    let other = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "listed"},
        "status": {"addresses": [{"type": "InternalIP", "address": "10.9.8.7"}]}});
    world.cluster.put(&other).unwrap();
    let name = world.names()[0].clone();
    world.join(&name).await;
    world.until(&name, |machine| machine["status"]["phase"] == "Running").await;
    world.scale(0).await;
    world.hosts(0).await;
    let listed = world.node("listed").unwrap();
    assert_eq!(listed.metadata.annotations, None);
    assert_eq!(listed.spec.and_then(|spec| spec.provider_id), None);
    world.end().await;
}

#[tokio::test]
async fn a_machine_whose_node_is_deleted_has_none() {
    let world = World::new(platforms::NONE, |api| api).await.with_hosts(1).await;
    let name = world.names()[0].clone();
    let node = world.join(&name).await;
    world.until(&name, |machine| machine["status"]["phase"] == "Running").await;
    let nodes: Api<Node> = Api::all(world.client.clone());
    nodes.delete(&node, &DeleteParams::default()).await.unwrap();
    world.until(&name, |machine| machine["status"]["phase"] == "Provisioned").await;
    assert_eq!(world.get(&name).unwrap()["status"]["nodeRef"], Value::Null);
    world.end().await;
}

#[tokio::test]
async fn a_set_counts_its_ready_nodes() {
    let world = World::new(platforms::NONE, |api| api).await.with_hosts(2).await;
    world.join(&world.names()[0]).await;
    let object = || {
        let (group, namespace) = ("machine.openshift.io", "openshift-machine-api");
        world.cluster.object(group, "machinesets", namespace, SET).unwrap()
    };
    until(|| object()["status"]["readyReplicas"] == 1).await;
    assert_eq!(object()["status"]["replicas"], 2);
    world.end().await;
}
