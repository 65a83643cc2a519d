//! What Windows nodes take over from the cluster's network and the Linux workers.

use bin_operator::demo::Stage;
use bin_operator::progress::Progress;
use serde_json::{Value, json};
use wmco_core::ignition::CREDENTIAL_PROVIDER;
use wmco_core::names::objects::{self, services_name};

use super::scenery::{listed, notes, until};

/// Data of this version's services ConfigMap.
fn services(stage: &Stage) -> Option<String> {
    let name = services_name(bin_operator::VERSION);
    let map = stage.cluster.object("", "configmaps", stage.namespace(), &name)?;
    Some(map["data"]["services"].as_str()?.to_owned())
}

/// Has the worker pool use another configuration.
pub(super) fn roll_out(stage: &Stage, name: &str, config: &Value) {
    let apply = |object: &Value| stage.cluster.put(object).map(drop).unwrap();
    apply(&json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": { "name": name }, "spec": { "config": config },
    }));
    apply(&json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
        "metadata": { "name": objects::WORKER_POOL }, "spec": {},
        "status": { "configuration": { "name": name } },
    }));
}

/// A configuration that changes the arguments of the kubelets of Windows nodes.
pub(super) fn external_cloud_provider() -> Value {
    let unit = "[Service]\nExecStart=/usr/bin/kubelet --cloud-provider=external\n";
    let providers = "data:,apiVersion:%20kubelet.config.k8s.io/v1%0Akind:%20CredentialProviderConfig%0A\
                     providers:%20[{name:%20ecr,%20apiVersion:%20credentialprovider.kubelet.k8s.io/v1,%20\
                     defaultCacheDuration:%2012h,%20matchImages:%20[a.test]}]";
    json!({
        "ignition": { "version": "3.5.0" },
        "storage": { "files": [
            // On AWS nobody is configured without it.
            { "path": CREDENTIAL_PROVIDER, "contents": { "source": providers } },
        ] },
        "systemd": { "units": [{ "name": "kubelet.service", "contents": unit }] },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn services_follow_the_network_and_the_worker_pool() {
    let stage = Stage::start(&listed(&[]), |_, host| host).await.unwrap();
    let running = stage.operate(Progress::new()).unwrap();
    let first = until(|| services(&stage)).await;
    assert!(first.contains("--hybrid-overlay-vxlan-port 9898"), "{first}");
    assert!(!first.contains("--cloud-provider"), "{first}");

    roll_out(&stage, "rendered-worker-1", &external_cloud_provider());
    let external = |text: &String| text.contains("--cloud-provider=external");
    until(|| services(&stage).filter(external)).await;

    // An unreadable configuration is reported, and hosts keep theirs.
    roll_out(&stage, "rendered-worker-2", &json!({ "ignition": { "version": "2.2.0" } }));
    until(|| {
        let told = notes(&stage, super::bad_input::FAILURE);
        told.into_iter().find(|note| note.contains("rendered-worker-2"))
    })
    .await;
    assert!(services(&stage).as_ref().is_some_and(external));
    running.stop().await.unwrap();
    stage.shutdown().await;
}
