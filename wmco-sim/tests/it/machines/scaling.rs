//! Tests that MachineSets grow and shrink, and that hosts come and go with their Machines.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kube_testserver::Fault;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::time::Instant;
use wmco_core::names::{self, platforms};
use wmco_sim::machines::{DELETE_ANNOTATION, MachineApiBuilder, machine_set};

use super::scenery::{SET, World, address, text};
use crate::host::client::until;

#[tokio::test]
async fn a_set_grows_and_shrinks_with_its_hosts() {
    let world = World::new(platforms::NONE, |api| api).await.with_hosts(0).await;
    world.scale(3).await;
    world.hosts(3).await;
    let set = world.api("MachineSet").get(SET).await.unwrap();
    for machine in world.list() {
        let name = text(&machine, "/metadata/name");
        assert!(name.starts_with("win-") && name.len() == "win-".len() + 5, "{name}");
        assert_eq!(machine["metadata"]["labels"][names::MACHINE_OS_LABEL], "Windows");
        let owner = &machine["metadata"]["ownerReferences"][0];
        assert_eq!((&owner["kind"], &owner["name"]), (&json!("MachineSet"), &json!(SET)));
        assert_eq!(owner["uid"].as_str(), set.metadata.uid.as_deref());
        let listens = world.machines.ssh_address(address(&machine)).unwrap();
        assert_eq!(listens, world.host(&name).ssh_address());
        TcpStream::connect(listens).await.unwrap();
    }
    for pointer in
        ["/spec/providerID", "/status/addresses/0/address", "/status/addresses/2/address"]
    {
        let values: BTreeSet<_> = world.list().iter().map(|m| text(m, pointer)).collect();
        assert_eq!(values.len(), 3, "{pointer}: {values:?}");
    }

    let chosen = world.names()[1].clone();
    let annotation = json!({"metadata": {"annotations": {DELETE_ANNOTATION: "true"}}});
    world.patch("Machine", &chosen, &annotation).await;
    let (gone, listened) =
        (address(&world.get(&chosen).unwrap()), world.host(&chosen).ssh_address());
    world.scale(2).await;
    world.hosts(2).await;
    assert!(world.get(&chosen).is_none());
    assert_eq!(world.machines.ssh_address(gone), None);
    assert!(TcpStream::connect(listened).await.is_err());

    world.scale(1).await;
    world.hosts(1).await;
    world.scale(0).await;
    world.hosts(0).await;
    until(|| {
        let set = world.cluster.object(
            "machine.openshift.io",
            "machinesets",
            "openshift-machine-api",
            SET,
        );
        set.unwrap()["status"]["replicas"] == 0
    })
    .await;
    world.end().await;
}

#[tokio::test]
async fn a_deleted_set_takes_its_machines_with_it() {
    let world = World::new(platforms::NONE, |api| api).await.with_hosts(2).await;
    world.delete("MachineSet", SET).await;
    world.hosts(0).await;
    world.end().await;
}

#[tokio::test]
async fn a_deleted_machine_is_replaced_by_another() {
    let world = World::new(platforms::NONE, |api| api).await.with_hosts(1).await;
    let (first, key) = (world.names()[0].clone(), world.host(&world.names()[0]).host_keys());
    let before = address(&world.list()[0]);
    world.delete("Machine", &first).await;
    until(|| world.names().iter().all(|name| *name != first)).await;
    world.hosts(1).await;
    assert_ne!(address(&world.list()[0]), before);
    assert_ne!(world.host(&world.names()[0]).host_keys(), key);
    world.end().await;
}

#[tokio::test]
async fn an_address_is_given_again_if_asked_to_a_host_with_other_keys() {
    let world =
        World::new(platforms::NONE, MachineApiBuilder::reuse_addresses).await.with_hosts(1).await;
    let (first, key) = (world.names()[0].clone(), world.host(&world.names()[0]).host_keys());
    let before = address(&world.list()[0]);
    world.scale(0).await;
    world.hosts(0).await;
    world.scale(1).await;
    world.hosts(1).await;
    assert_ne!(world.names()[0], first);
    assert_eq!(address(&world.list()[0]), before);
    assert_ne!(world.host(&world.names()[0]).host_keys(), key);
    world.end().await;
}

#[tokio::test]
async fn a_machine_waits_for_its_secret() {
    let world = World::new(platforms::NONE, |api| api).await;
    let mut set = machine_set(SET, 1);
    set["spec"]["template"]["spec"]["providerSpec"]["value"]["userDataSecret"]["name"] =
        json!("later");
    world.cluster.put(&set).unwrap();
    until(|| world.list().iter().any(|m| m["status"]["phase"] == "Provisioning")).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(
        world.list()[0]["status"],
        json!({
            "phase": "Provisioning", "lastUpdated": world.list()[0]["status"]["lastUpdated"],
        })
    );
    world
        .cluster
        .put(&json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "later", "namespace": "openshift-machine-api"},
            "stringData": {"userData": ""},
        }))
        .unwrap();
    until(|| world.list()[0]["status"]["phase"] == "Provisioned").await;
    world.end().await;
}

#[tokio::test]
async fn provisioning_and_boot_take_their_time() {
    const EACH: Duration = Duration::from_millis(300);
    const LONG: Duration = Duration::from_secs(3600);
    let world = World::new(platforms::NONE, |api| api.provisioning(EACH).boot(LONG)).await;
    let start = Instant::now();
    world.cluster.put(&machine_set(SET, 1)).unwrap();
    until(|| world.list().iter().any(|m| m["status"]["phase"] == "Provisioned")).await;
    assert!(start.elapsed() >= EACH);
    assert!(world.machines.hosts().is_empty());
    assert_eq!(world.machines.ssh_address(address(&world.list()[0])), None);
    world.end().await;

    let world = World::new(platforms::NONE, |api| api.provisioning(EACH).boot(EACH)).await;
    let start = Instant::now();
    world.cluster.put(&machine_set(SET, 1)).unwrap();
    world.hosts(1).await;
    assert!(start.elapsed() >= 2 * EACH);
    world.end().await;
}

#[tokio::test]
async fn azure_refuses_names_that_no_computer_can_have() {
    let world = World::new(platforms::AZURE, |api| api).await;
    world.cluster.put(&machine_set("winworkers-east", 1)).unwrap();
    until(|| world.list().iter().any(|m| m["status"]["phase"] == "Failed")).await;
    let status = world.list()[0]["status"].clone();
    assert_eq!(status["errorReason"], "InvalidConfiguration");
    assert_eq!(status["addresses"], json!(null));
    assert!(world.machines.hosts().is_empty());
    world.end().await;
}

#[tokio::test]
async fn a_machine_of_another_system_has_no_host() {
    let world = World::new(platforms::NONE, |api| api).await;
    let mut set = machine_set(SET, 1);
    let labels = &mut set["spec"]["template"]["metadata"]["labels"];
    labels.as_object_mut().unwrap().remove(names::MACHINE_OS_LABEL);
    world.cluster.put(&set).unwrap();
    until(|| world.list().iter().any(|m| m["status"]["phase"] == "Provisioned")).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(world.machines.hosts().is_empty());
    world.end().await;
}

/// Half of the writes to Machines fail, and nothing is created twice.
#[tokio::test]
async fn what_the_api_refuses_is_tried_again() {
    let world = World::new(platforms::NONE, |api| api).await;
    let asked = AtomicU32::new(0);
    world.cluster.inject_faults(move |request| {
        let writes = request.verb != "list" && request.verb != "watch";
        let fails = writes
            && request.resource.starts_with("machines")
            && asked.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        fails.then_some(Fault::Hangup)
    });
    world.cluster.put(&machine_set(SET, 3)).unwrap();
    world.hosts(3).await;
    world.cluster.clear_faults();
    world.scale(0).await;
    world.hosts(0).await;
    let made = world.cluster.requests();
    let made = made.iter().filter(|request| {
        request.verb == "create" && request.resource == "machines" && request.code == 201
    });
    assert_eq!(made.count(), 3);
    world.end().await;
}
