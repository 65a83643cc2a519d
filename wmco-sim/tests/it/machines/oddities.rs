//! Tests that each oddity takes effect and can be cleared.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpStream;
use wmco_core::names::platforms;
use wmco_sim::machines::Oddity;

use super::scenery::{World, address, text};

async fn world(machines: u32) -> (World, String) {
    let world = World::new(platforms::NONE, |api| api).await.with_hosts(machines).await;
    let name = world.names()[0].clone();
    (world, name)
}

/// Checks that a field is `odd` with the oddity, and unchanged without.
async fn check(oddity: Oddity, pointer: &'static str, odd: Value) {
    let (world, name) = world(1).await;
    let shown = |machine: &Value| machine.pointer(pointer).cloned().unwrap_or_default();
    let before = shown(&world.get(&name).unwrap());
    assert_ne!(before, odd);
    world.machines.set_oddity(&name, oddity);
    world.until(&name, |machine| shown(machine) == odd).await;
    world.machines.clear_oddities(&name);
    world.until(&name, |machine| shown(machine) == before).await;
    assert_eq!(world.names(), [name]);
    world.end().await;
}

#[tokio::test]
async fn no_addresses() {
    check(Oddity::NoAddresses, "/status/addresses", Value::Null).await;
}

#[tokio::test]
async fn no_provider_id() {
    check(Oddity::NoProviderId, "/spec/providerID", Value::Null).await;
}

#[tokio::test]
async fn no_owner() {
    check(Oddity::NoOwner, "/metadata/ownerReferences", Value::Null).await;
}

#[tokio::test]
async fn an_unknown_phase() {
    check(Oddity::Phase("Dreaming".to_owned()), "/status/phase", json!("Dreaming")).await;
}

#[tokio::test]
async fn a_failure() {
    check(Oddity::Failed, "/status/phase", json!("Failed")).await;
    check(Oddity::Failed, "/status/errorReason", json!("CreateError")).await;
}

#[tokio::test]
async fn the_address_of_another_machine() {
    let (world, name) = world(2).await;
    let other = world.names()[1].clone();
    let (own, others) = (address(&world.get(&name).unwrap()), address(&world.get(&other).unwrap()));
    world.machines.set_oddity(&name, Oddity::Address(others));
    world.until(&name, |machine| address(machine) == others).await;
    // The address leads to the host that has it.
    assert_eq!(world.machines.ssh_address(others), Some(world.host(&other).ssh_address()));
    assert_eq!(world.machines.ssh_address(own), Some(world.host(&name).ssh_address()));
    // The cloud links the Node to the right Machine.
    world.join(&other).await;
    world.until(&other, |machine| machine["status"]["phase"] == "Running").await;
    assert_eq!(world.get(&name).unwrap()["status"]["nodeRef"], Value::Null);
    world.end().await;
}

#[tokio::test]
async fn two_machines_of_one_address_without_provider_ids_get_no_node() {
    let (world, name) = world(2).await;
    let other = world.names()[1].clone();
    let others = address(&world.get(&other).unwrap());
    world.machines.set_oddity(&name, Oddity::Address(others));
    for name in [&name, &other] {
        world.machines.set_oddity(name, Oddity::NoProviderId);
        world.until(name, |m| address(m) == others && m["spec"]["providerID"].is_null()).await;
    }
    world.join(&other).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    for name in [&name, &other] {
        assert_eq!(world.get(name).unwrap()["status"]["phase"], "Provisioned");
    }
    world.end().await;
}

#[tokio::test]
async fn a_node_reference_with_a_stale_uid() {
    let (world, name) = world(1).await;
    let node = world.join(&name).await;
    world.until(&name, |machine| machine["status"]["phase"] == "Running").await;
    world.machines.set_oddity(&name, Oddity::NodeUid("long-gone".to_owned()));
    world.until(&name, |machine| machine["status"]["nodeRef"]["uid"] == "long-gone").await;
    assert_eq!(text(&world.get(&name).unwrap(), "/status/nodeRef/name"), node);
    world.machines.clear_oddities(&name);
    let uid = world.node(&node).unwrap().metadata.uid.unwrap();
    world.until(&name, |machine| text(machine, "/status/nodeRef/uid") == uid).await;
    world.end().await;
}

#[tokio::test]
async fn a_machine_that_is_stuck_in_deletion_keeps_its_host_and_its_node() {
    let (world, name) = world(1).await;
    let node = world.join(&name).await;
    world.until(&name, |machine| machine["status"]["phase"] == "Running").await;
    world.machines.set_oddity(&name, Oddity::StuckInDeletion);
    world.scale(0).await;
    world.until(&name, |machine| machine["status"]["phase"] == "Deleting").await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(world.get(&name).is_some() && world.node(&node).is_some());
    TcpStream::connect(world.host(&name).ssh_address()).await.unwrap();
    world.machines.clear_oddities(&name);
    world.hosts(0).await;
    assert!(world.node(&node).is_none());
    world.end().await;
}

/// A Machine that a person created, odd from the start.
#[tokio::test]
async fn a_machine_by_hand_is_odd_from_the_start() {
    let world = World::new(platforms::NONE, |api| api).await;
    world.machines.set_oddity("mine", Oddity::NoAddresses);
    world
        .cluster
        .put(&json!({
            "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
            "metadata": {"name": "mine", "namespace": "openshift-machine-api",
                "labels": {"machine.openshift.io/os-id": "Windows"}},
            "spec": {"providerSpec": {"value": {"userDataSecret": {"name": "windows-user-data"}}}},
        }))
        .unwrap();
    world.until("mine", |machine| machine["status"]["phase"] == "Provisioned").await;
    let machine = world.get("mine").unwrap();
    assert_eq!(machine["status"]["addresses"], Value::Null);
    assert_eq!(machine["metadata"]["ownerReferences"], Value::Null);
    assert_ne!(machine["spec"]["providerID"], Value::Null);
    world.end().await;
}
