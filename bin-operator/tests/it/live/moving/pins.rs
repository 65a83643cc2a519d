//! A host that shows another key than the Go operator pinned is not met for the first time.

use bin_operator::progress::Progress;
use serde_json::json;
use wmco_core::names::{self as wire, events, objects};

use super::predecessor;
use super::scenery::{install, patch_node};
use crate::live::machines::scenery::annotation;
use crate::live::scenery::{nodes, notes, patch_config_map, until};

#[tokio::test(flavor = "multi_thread")]
async fn another_key_than_the_go_operator_pinned_is_refused() {
    let (stage, members) = predecessor::left(2, 0).await;
    predecessor::stop(&stage).await;
    // One is pinned on its Node, the other one in the ConfigMap.
    let unpinned = json!({
        wire::HOST_KEY_ANNOTATION: null, wire::HOST_KEY_TYPE_ANNOTATION: null,
    });
    patch_node(&stage, "win-2", &json!({"metadata": {"annotations": unpinned}})).await;
    let pin = json!({"data": {members[1].address.as_str(): members[1].host_key()}});
    patch_config_map(&stage, objects::HOST_KEYS_CONFIG_MAP, &pin).await;
    for (_, host) in stage.hosts.iter() {
        host.change_host_keys().unwrap();
        host.reset_counts();
    }
    install(&stage).await;
    let running = stage.operate(Progress::new()).unwrap();
    for member in &members {
        until(|| {
            let told = notes(&stage, events::HOST_KEY_MISMATCH);
            told.iter().any(|note| note.contains(&member.address)).then_some(())
        })
        .await;
    }
    running.stop().await.unwrap();
    assert!(stage.hosts.counts().iter().all(|host| host.authentications == 0), "nobody logged in");
    for node in nodes(&stage) {
        assert_eq!(annotation(&node, wire::VERSION_ANNOTATION), predecessor::VERSION);
        assert!(node["spec"]["unschedulable"].is_null(), "it serves");
    }
    stage.shutdown().await;
}
