//! A host whose kubelet joins a simulated cluster.

use std::time::Duration;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};
use kube_testserver::TestServer;
use russh::keys::PrivateKey;
use wmco_core::limits;
use wmco_core::names::host::{
    BOOTSTRAP_KUBECONFIG, CONTAINERD_SERVICE, KUBELET_KUBECONFIG, KUBELET_SERVICE,
};
use wmco_core::protocol::ServiceRunState;
use wmco_services::windows::{Machine as _, ServiceManager as _, Wait};
use wmco_sim::host::SimHost;

use super::client::{host_with, until, within};
use crate::kubelet;

pub(super) const NODE: &str = "winhost";
const PKI: &str = r"C:\var\lib\kubelet\pki";

/// A cluster, and a host with everything that a kubelet needs.
pub(super) struct Joining {
    pub(super) cluster: TestServer,
    pub(super) client: Client,
    pub(super) host: SimHost,
}

impl Joining {
    /// Creates a host on which the kubelet's service is installed directly.
    async fn new() -> Self {
        let (joining, _) = Self::empty().await;
        kubelet::install(joining.host.model(), [10, 1, 2, 3].into());
        joining
    }

    /// Creates a host with the kubelet's files and none of our services.
    pub(super) async fn empty() -> (Self, PrivateKey) {
        let cluster = TestServer::start().await.unwrap();
        let client = kubelet::admin(&cluster).await;
        let (host, key) = host_with(|builder| {
            let moment = Duration::from_millis(50);
            builder
                .address([10, 1, 2, 3].into())
                .heartbeat(Duration::from_millis(100))
                .restart_delay(moment)
                .restart_duration(moment)
        })
        .await;
        kubelet::bring_files(host.model(), &cluster);
        (Self { cluster, client, host }, key)
    }

    /// Approves the next pending request, and returns it.
    pub(super) async fn approve(&self) -> CertificateSigningRequest {
        kubelet::approve(&self.client).await
    }

    pub(super) fn requests(&self) -> usize {
        self.cluster.objects("certificates.k8s.io", "certificatesigningrequests", "").len()
    }

    /// Waits until the Node's `Ready` condition has this status.
    #[track_caller]
    pub(super) fn ready(&self, status: &str) -> impl Future<Output = Node> {
        let seen = until(move || self.node().is_some_and(|node| readiness(&node) == status));
        async move {
            seen.await;
            self.node().unwrap()
        }
    }

    pub(super) fn node(&self) -> Option<Node> {
        let object = self.cluster.object("", "nodes", "", NODE)?;
        Some(serde_json::from_value((*object).clone()).unwrap())
    }

    pub(super) fn start(&self) {
        let kubelet = KUBELET_SERVICE.parse().unwrap();
        self.host.model().start(&kubelet, Wait::at_most(limits::SERVICE_START)).unwrap();
    }

    pub(super) fn stop(&self, name: &str) {
        self.host
            .model()
            .stop(&name.parse().unwrap(), Wait::at_most(limits::SERVICE_STOP))
            .unwrap();
    }

    pub(super) fn file(&self, path: &str) -> Option<String> {
        let bytes = self.host.model().file(&path.parse().unwrap())?;
        Some(String::from_utf8(bytes.to_vec()).unwrap())
    }
}

pub(super) fn readiness(node: &Node) -> &str {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = conditions.into_iter().flatten().find(|c| c.type_ == "Ready");
    ready.map_or("", |condition| &condition.status)
}

#[tokio::test]
async fn a_plain_approval_lets_the_kubelet_join() {
    let joining = Joining::new().await;
    joining.start();
    let request = joining.approve().await;
    assert_eq!(request.spec.signer_name, "kubernetes.io/kube-apiserver-client-kubelet");
    assert_eq!(request.spec.username.as_deref(), Some("bootstrapper"));

    let node = joining.ready("True").await;
    let labels = node.metadata.labels.unwrap();
    assert_eq!(labels["kubernetes.io/os"], "windows");
    assert_eq!(labels["node.openshift.io/os_id"], "Windows");
    assert_eq!(labels["kubernetes.io/hostname"], NODE);
    let taint = &node.spec.unwrap().taints.unwrap()[0];
    assert_eq!((&*taint.key, taint.value.as_deref()), ("os", Some("Windows")));
    let addresses: Vec<_> =
        node.status.unwrap().addresses.unwrap().into_iter().map(|a| (a.type_, a.address)).collect();
    let expected = [("InternalIP", "10.1.2.3"), ("Hostname", NODE)];
    assert_eq!(addresses, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));

    let request = joining.approve().await;
    assert_eq!(request.spec.signer_name, "kubernetes.io/kubelet-serving");
    assert_eq!(request.spec.username.as_deref(), Some("system:node:winhost"));
    until(|| joining.file(&format!(r"{PKI}\kubelet-server-current.pem")).is_some()).await;
    let certificate = joining.file(&format!(r"{PKI}\kubelet-client-current.pem")).unwrap();
    assert!(certificate.contains("BEGIN CERTIFICATE") && certificate.contains("PRIVATE KEY"));
    assert!(joining.file(KUBELET_KUBECONFIG).unwrap().contains("kubelet-client-current.pem"));

    let leases: Api<Lease> = Api::namespaced(joining.client.clone(), "kube-node-lease");
    let renewed = async || leases.get_opt(NODE).await.unwrap()?.spec?.renew_time;
    within(async {
        let first = loop {
            match renewed().await {
                Some(time) => break time,
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        };
        while renewed().await.unwrap() == first {}
    })
    .await;
    within(joining.host.shutdown()).await;
}

#[tokio::test]
async fn a_node_follows_its_services_and_needs_no_second_certificate() {
    let joining = Joining::new().await;
    joining.start();
    joining.approve().await;
    joining.ready("True").await;
    joining.approve().await;
    until(|| joining.file(&format!(r"{PKI}\kubelet-server-current.pem")).is_some()).await;

    joining.stop(KUBELET_SERVICE);
    joining.ready("Unknown").await;
    joining.start();
    joining.ready("True").await;

    joining.host.model().restart().unwrap();
    joining.ready("Unknown").await;
    let node = joining.ready("True").await;
    let boot = joining.host.model().boot_id().unwrap();
    assert_eq!(node.status.unwrap().node_info.unwrap().boot_id, boot);
    assert_eq!(joining.requests(), 2);

    joining
        .host
        .model()
        .set_service_state(&CONTAINERD_SERVICE.parse().unwrap(), ServiceRunState::Stopped);
    joining.ready("False").await;
}

#[tokio::test]
async fn a_kubelet_without_its_bootstrap_kubeconfig_fails() {
    let joining = Joining::new().await;
    joining.host.model().with_tree(|tree| tree.remove(&BOOTSTRAP_KUBECONFIG.parse().unwrap()));
    joining.start();
    let kubelet = KUBELET_SERVICE.parse().unwrap();
    let service = || joining.host.model().query(&kubelet).unwrap().unwrap();
    until(|| service().state == ServiceRunState::Stopped).await;
    assert_eq!(service().exit_code, 1);
    assert_eq!(joining.requests(), 0);
}
