//! Other content of the services ConfigMap under the same version.
//!
//! Source: `docs/contract/wicd.md`, WICD52.

use std::sync::Arc;

use bin_operator::demo::Stage;
use bin_operator::progress::Progress;
use serde_json::{Value, json};
use wmco_core::names::{self, host};
use wmco_services::windows::ServiceManager as _;

use super::scenery::{addresses, configure, is_finished, nodes, stage, until};

const ARGUMENT: &str = "--cloud-provider=external";

/// Changes the kubelet arguments of the Linux workers, and with them those of Windows nodes.
pub(super) fn change_worker_config(stage: &Stage) {
    let kind = "machineconfiguration.openshift.io";
    let [config] = &stage.cluster.objects(kind, "machineconfigs", "")[..] else {
        panic!("there is one");
    };
    let mut config = Value::clone(config);
    let unit = format!("[Service]\nExecStart=/usr/bin/kubelet {ARGUMENT}\n");
    config["spec"]["config"]["systemd"]["units"] =
        json!([{"name": "kubelet.service", "contents": unit}]);
    stage.cluster.put(&config).unwrap();
}

pub(super) fn released(node: &Value) -> Option<String> {
    node["metadata"]["annotations"][names::SERVICES_ANNOTATION].as_str().map(str::to_owned)
}

/// How many hosts run kubelets with the new argument.
fn changed(stage: &Stage) -> usize {
    let kubelet = host::KUBELET_SERVICE.parse().unwrap();
    let command = |host: &wmco_sim::host::SimHost| {
        host.model().query(&kubelet).unwrap().map(|service| service.config.command)
    };
    let commands = stage.hosts.iter().filter_map(|(_, host)| command(host));
    commands.filter(|command| command.contains(ARGUMENT)).count()
}

/// Waits until all nodes have it; looks at all of them again and again meanwhile.
async fn one_after_another(stage: &Stage, before: &str) {
    let all = stage.hosts.iter().count();
    let mut mixed = 0;
    until(|| {
        // Only a node that is released runs other services; it is released before they change.
        let changed = changed(stage);
        let nodes = nodes(stage);
        let is_new = |node: &&Arc<Value>| released(node).as_deref() != Some(before);
        let new = nodes.iter().filter(is_new).count();
        assert!(changed <= new, "{changed} kubelets changed, {new} nodes are released");
        let cordoned = nodes.iter().filter(|n| n["spec"]["unschedulable"] == json!(true)).count();
        assert!(cordoned <= 1, "{cordoned} nodes are out of service at once");
        // Another one is released only when those before it are back.
        let finished = nodes.iter().filter(is_new).filter(|node| is_finished(node)).count();
        assert!(new <= finished + 1, "{new} nodes are released, {finished} of them are back");
        mixed += usize::from(changed > 0 && changed < all);
        (finished == all && changed == all).then_some(())
    })
    .await;
    assert!(mixed > 0, "nobody saw that one was changed and another was not");
}

/// What all nodes are released for.
async fn first_release(stage: &Stage) -> String {
    configure(stage, &addresses(3)).await;
    let mut digests: Vec<_> = nodes(stage).iter().filter_map(|node| released(node)).collect();
    assert_eq!((digests.len(), changed(stage)), (3, 0));
    digests.dedup();
    assert_eq!(digests.len(), 1);
    digests.remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn it_reaches_one_node_after_another() {
    let stage = stage(3).await;
    let before = first_release(&stage).await;
    let running = stage.operate(Progress::new()).unwrap();
    change_worker_config(&stage);
    one_after_another(&stage, &before).await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changed_while_no_operator_ran_does_so_too() {
    let stage = stage(3).await;
    let before = first_release(&stage).await;
    change_worker_config(&stage);
    let running = stage.operate(Progress::new()).unwrap();
    one_after_another(&stage, &before).await;
    running.stop().await.unwrap();
    stage.shutdown().await;
}
