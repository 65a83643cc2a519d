//! Machines whose successors let nobody in, while all nodes look ill.

use std::sync::atomic::{AtomicUsize, Ordering};

use bin_operator::progress::Progress;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use wmco_core::names::events;
use wmco_sim::host::{Fault, SimHostBuilder};

use super::scenery::{Key, cloud_with, machines, names, until_finished};
use crate::live::scenery::{admin, nodes, notes, until};

fn is_not_ready(node: &mut Value) {
    let conditions = node["status"]["conditions"].as_array_mut().unwrap();
    conditions.iter_mut().filter(|it| it["type"] == "Ready").for_each(|it| {
        it["status"] = "Unknown".into();
    });
}

/// As when the user data of the MachineSet lets nobody in, and the load balancer of the API fails meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn one_machine_is_gone_and_the_other_waits_for_a_successor_that_works() {
    // The first two let us in, their successors nobody.
    let started = AtomicUsize::new(0);
    let adjust = move |_: &str, host: SimHostBuilder| {
        let is_successor = started.fetch_add(1, Ordering::Relaxed) >= 2;
        if is_successor { host.fault(Fault::RefuseAuthentication) } else { host }
    };
    let stage = cloud_with(2, 0, |machines| machines.adjust(adjust)).await;
    let running = stage.operate(Progress::new()).unwrap();
    until_finished(&stage, 2, 0).await;
    let before = names(&machines(&stage));
    stage.give_key(Key::random().pem.as_bytes()).unwrap();
    until(|| names(&machines(&stage)).iter().any(|name| !before.contains(name)).then_some(()))
        .await;
    let api: Api<Node> = Api::all(admin(&stage).await);
    for node in nodes(&stage) {
        let mut node = node.as_ref().clone();
        is_not_ready(&mut node);
        let patch = Patch::Merge(json!({"status": {"conditions": node["status"]["conditions"]}}));
        let name = node["metadata"]["name"].as_str().unwrap();
        // That of the Machine that goes may be gone already.
        if let Err(error) = api.patch_status(name, &PatchParams::default(), &patch).await {
            assert!(matches!(&error, kube::Error::Api(status) if status.code == 404), "{error}");
        }
    }
    // Its successors are made anew as well, until three were in vain.
    until(|| {
        let held = notes(&stage, events::MACHINE_DELETION_RESTRICTED);
        held.iter().any(|note| note.contains("have no successor that works")).then_some(())
    })
    .await;
    running.stop().await.unwrap();
    let left = names(&machines(&stage));
    let of_before = left.iter().filter(|name| before.contains(name)).count();
    assert_eq!((of_before, left.len()), (1, 2), "{before:?} {left:?}");
    stage.shutdown().await;
}
