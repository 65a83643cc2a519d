//! The Go operator was stopped in the middle of an upgrade.

use bin_operator::progress::Progress;
use serde_json::json;
use wmco_core::names::{self as wire, objects};
use wmco_core::protocol::ServiceRunState;

use super::predecessor;
use super::scenery::{has_moved, install, patch_node};
use crate::live::machines::observer::Observer;
use crate::live::scenery::{nodes, until};

/// Its cordon cannot be told from a person's, so it stays; the slot is given back.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_go_operator_began_is_finished_and_stays_cordoned() {
    let (stage, members) = predecessor::left(2, 0).await;
    // Its daemon was taken away, and what that had written.
    let daemon = objects::WICD.parse().unwrap();
    members[1].model.set_service_state(&daemon, ServiceRunState::Stopped);
    let begun = json!({
        "metadata": {
            "labels": {wire::UPGRADING_LABEL: "true"},
            "annotations": {wire::VERSION_ANNOTATION: null},
        },
        "spec": {"unschedulable": true},
    });
    patch_node(&stage, "win-2", &begun).await;
    predecessor::stop(&stage).await;
    install(&stage).await;
    let observer = Observer::start(&stage, 1).await;
    let running = stage.operate(Progress::new()).unwrap();
    until(|| nodes(&stage).iter().all(|node| has_moved(node)).then_some(())).await;
    running.stop().await.unwrap();
    assert_eq!(observer.finish(&stage).await.most_disrupted, 1);
    let nodes = nodes(&stage);
    let cordoned: Vec<bool> =
        nodes.iter().map(|node| node["spec"]["unschedulable"] == true).collect();
    assert_eq!(cordoned, [false, true]);
    stage.shutdown().await;
}
