//! A kubelet on a simulated host, installed directly.

use std::net::Ipv4Addr;
use std::time::Duration;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::{ListParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use kube_testserver::TestServer;
use serde_json::json;
use wmco_core::names::host::{BOOTSTRAP_KUBECONFIG, CONTAINERD_SERVICE, KUBELET_SERVICE};
use wmco_core::protocol::ServiceRunState;
use wmco_services::fake::FakeWindows;
use wmco_services::windows::{ServiceConfig, StartType};

use crate::host::client::within;

const BOOTSTRAPPER: &str = "bootstrapper";

/// Returns a client with all rights.
pub(crate) async fn admin(cluster: &TestServer) -> Client {
    let kubeconfig = cluster.kubeconfig("admin", &["system:masters"]).unwrap();
    let kubeconfig = Kubeconfig::from_yaml(&kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    config.proxy_url = None;
    Client::try_from(config).unwrap()
}

/// Creates all files of a kubelet on a host, and permits its first certificate request.
pub(crate) fn bring_files(model: &FakeWindows, cluster: &TestServer) {
    cluster
        .put(&json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "bootstrap"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                "name": "system:node-bootstrapper"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User",
                "name": BOOTSTRAPPER}],
        }))
        .unwrap();
    let kubeconfig = cluster.kubeconfig(BOOTSTRAPPER, &[]).unwrap();
    model.put_file(&BOOTSTRAP_KUBECONFIG.parse().unwrap(), kubeconfig);
    for program in [r"C:\k\kubelet.exe", r"C:\k\containerd\containerd.exe"] {
        model.put_file(&program.parse().unwrap(), "MZ");
    }
    let configuration = r#"{"maxPods": 250,
        "registerWithTaints": [{"key": "os", "value": "Windows", "effect": "NoSchedule"}]}"#;
    model.put_file(&r"C:\k\kubelet.conf".parse().unwrap(), configuration);
}

/// Adds the stopped services.
pub(crate) fn install(model: &FakeWindows, address: Ipv4Addr) {
    add_service(model, CONTAINERD_SERVICE, r"C:\k\containerd\containerd.exe", &[]);
    let command = r"C:\k\kubelet.exe --config=C:\k\kubelet.conf --kubeconfig=C:\k\kubeconfig --bootstrap-kubeconfig=C:\k\bootstrap-kubeconfig --cert-dir=c:\var\lib\kubelet\pki\ --node-labels=node.openshift.io/os_id=Windows";
    let command = format!("{command} --node-ip={address}");
    add_service(model, KUBELET_SERVICE, &command, &[CONTAINERD_SERVICE]);
}

fn add_service(model: &FakeWindows, name: &str, command: &str, needs: &[&str]) {
    let config = ServiceConfig {
        command: command.to_owned(),
        description: String::new(),
        dependencies: needs.iter().map(|name| name.parse().unwrap()).collect(),
        start: StartType::Automatic,
        recovery: None,
    };
    model.add_service(&name.parse().unwrap(), &config, ServiceRunState::Stopped);
}

/// Approves the next pending request, and returns it.
pub(crate) async fn approve(client: &Client) -> CertificateSigningRequest {
    let api: Api<CertificateSigningRequest> = Api::all(client.clone());
    within(async {
        loop {
            let requests = api.list(&ListParams::default()).await.unwrap();
            let pending = |request: &CertificateSigningRequest| {
                request.status.as_ref().is_none_or(|s| s.conditions.is_none())
            };
            if let Some(request) = requests.items.into_iter().find(pending) {
                let name = request.metadata.name.clone().unwrap();
                let approval = json!({"status": {"conditions": [
                    {"type": "Approved", "status": "True", "reason": "Test", "message": "ok"}]}});
                api.patch_approval(&name, &PatchParams::default(), &Patch::Merge(approval))
                    .await
                    .unwrap();
                return request;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}
