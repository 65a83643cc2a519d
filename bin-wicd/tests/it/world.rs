//! A cluster, a host and a controller.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bin_wicd::args::Cluster;
use bin_wicd::controller::{self, Settings, Site};
use jiff::SignedDuration;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Node;
use kube::api::{ListParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use kube_testserver::TestServer;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wmco_core::cluster::rbac;
use wmco_core::names::objects::{self, services_name};
use wmco_core::names::{self, host as paths};
use wmco_core::protocol::{ServiceRunState, ServicesData};
use wmco_services::fake::FakeWindows;
use wmco_services::logs::Bounds;
use wmco_services::manifest::{Manifest, NodeVariable, Parts, Service};
use wmco_services::windows::ServiceManager as _;

pub(crate) const NODE: &str = "win-1";
pub(crate) const NAMESPACE: &str = "winc";
pub(crate) const VERSION: &str = "1.2.3-test";

/// Far longer than anything here takes, so that a test that hangs ends and says where.
const PATIENCE: Duration = Duration::from_secs(120);

/// The result of `work`, which must come in the end.
#[track_caller]
pub(crate) fn within<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    let place = std::panic::Location::caller();
    async move {
        let done = tokio::time::timeout(PATIENCE, work).await;
        done.unwrap_or_else(|_| panic!("nothing came of {place}"))
    }
}

/// Waits until `condition` holds.
#[track_caller]
pub(crate) fn until(mut condition: impl FnMut() -> bool) -> impl Future<Output = ()> {
    within(async move {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
}

pub(crate) fn service(name: &str, command: &str, needs: &[&str], priority: u64) -> Service {
    let node_name = NodeVariable {
        name: "NODE_NAME".to_owned(),
        node_object_json_path: "{.metadata.name}".to_owned(),
    };
    Service {
        node_variables_in_command: command
            .contains("NODE_NAME")
            .then_some(node_name)
            .into_iter()
            .collect(),
        dependencies: needs.iter().map(|need| need.parse().unwrap()).collect(),
        bootstrap: priority == 0,
        priority,
        ..Service::new(name.parse().unwrap(), command)
    }
}

/// Two services, one of them with a value from the Node, and the variables that are set.
pub(crate) fn manifest(environment: &[(&str, &str)]) -> Manifest {
    let pairs = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let parts = Parts {
        services: vec![
            service("kubelet", "kubelet --run", &[], 0),
            service("overlay", "overlay --node NODE_NAME", &["kubelet"], 1),
        ],
        files: Vec::new(),
        environment: pairs.collect(),
        watched: paths::PROXY_VARIABLES.map(str::to_owned).to_vec(),
    };
    Manifest::new(parts).unwrap()
}

/// The host's Node, ready.
pub(crate) fn node() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": NODE, "labels": {(names::OS_LABEL): names::OS_WINDOWS}},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "10.0.0.10"}],
            "conditions": [{"type": "Ready", "status": "True", "reason": "Test",
                "message": "", "lastHeartbeatTime": "2026-01-01T00:00:00Z",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        },
    })
}

/// A cluster with a Node for the host, and the rights that an installation gives to WICD.
pub(crate) struct World {
    pub(crate) cluster: TestServer,
    pub(crate) client: Client,
    pub(crate) host: FakeWindows,
    pub(crate) settings: Settings,
    approving: Arc<AtomicUsize>,
    approver: JoinHandle<()>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.approver.abort();
    }
}

/// A controller that runs.
pub(crate) struct Running {
    stop: CancellationToken,
    ready: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::on(TestServer::start().await.unwrap()).await
    }

    /// The operator asks for these services.
    pub(crate) async fn asked(manifest: &Manifest) -> Self {
        let world = Self::new().await;
        world.put_manifest(VERSION, &manifest.render());
        world.annotate(names::DESIRED_VERSION_ANNOTATION, VERSION).await;
        world
    }

    async fn on(cluster: TestServer) -> Self {
        let text = cluster.kubeconfig("admin", &["system:masters"]).unwrap();
        let options = KubeConfigOptions::default();
        let kubeconfig = Kubeconfig::from_yaml(&text).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        let client = Client::try_from(config).unwrap();
        let mut objects = vec![
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
            json!(rbac::role_binding(NAMESPACE)),
            json!(rbac::cluster_role_binding(NAMESPACE)),
        ];
        objects.extend(rbac::shipped(NAMESPACE));
        objects.push(node());
        for object in objects {
            cluster.put(&object).unwrap();
        }
        let host = FakeWindows::new("winhost");
        let account = format!("system:serviceaccount:{NAMESPACE}:{}", objects::WICD);
        let kubeconfig = paths::WICD_KUBECONFIG.parse().unwrap();
        host.put_file(
            &kubeconfig,
            cluster.kubeconfig(&account, &["system:serviceaccounts"]).unwrap(),
        );
        let bundle = paths::CA_BUNDLE.parse().unwrap();
        host.put_file(&bundle, "");
        let settings = Settings {
            cluster: Cluster { kubeconfig, namespace: NAMESPACE.to_owned() },
            certificates: paths::WICD_CERTIFICATES.parse().unwrap(),
            lifetime: SignedDuration::from_hours(1),
            ca_bundle: Some(bundle),
            logs: Bounds::default(),
        };
        let approving = Arc::new(AtomicUsize::new(usize::MAX));
        let approver = tokio::spawn(approve(client.clone(), Arc::clone(&approving)));
        Self { cluster, client, host, settings, approving, approver }
    }

    /// Approves so many more requests, then none.
    pub(crate) fn approve_only(&self, requests: usize) {
        self.approving.store(requests, Ordering::SeqCst);
    }

    pub(crate) fn put_manifest(&self, version: &str, data: &ServicesData) {
        self.cluster
            .put(&json!({
                "apiVersion": "v1", "kind": "ConfigMap", "data": data.0,
                "metadata": {"namespace": NAMESPACE, "name": services_name(version)},
            }))
            .unwrap();
    }

    /// The kubelet's certificate, of a node of that name.
    pub(crate) fn put_kubelet_certificate(&self, node: &str) {
        let user = format!("{}{node}", names::NODE_USER_PREFIX);
        let made = self.cluster.client_certificate(&user, &[names::NODES_GROUP]).unwrap();
        let path = paths::KUBELET_CLIENT_CERTIFICATE.parse().unwrap();
        self.host.put_file(&path, format!("{}{}", made.certificate, made.key));
    }

    pub(crate) fn start(&self) -> Running {
        let (host, settings) = (Arc::new(self.host.running_as_service()), self.settings.clone());
        let stop = CancellationToken::new();
        let ready = Arc::new(AtomicUsize::new(0));
        let (token, count) = (stop.clone(), Arc::clone(&ready));
        let task = tokio::spawn(async move {
            let ready = || {
                count.fetch_add(1, Ordering::SeqCst);
            };
            controller::run(&Site { host, stop: token, ready: &ready }, &settings).await;
        });
        Running { stop, ready, task }
    }

    /// Starts the controller and waits until it says that the node is configured.
    pub(crate) async fn configured(&self) -> Running {
        let running = self.start();
        until(|| self.version().is_some()).await;
        running
    }

    /// Starts the controller and waits until it has its certificate.
    pub(crate) async fn logged_in(&self) -> Running {
        let running = self.start();
        until(|| running.times_ready() == 1).await;
        running
    }

    pub(crate) async fn annotate(&self, name: &str, value: impl Into<Value>) {
        let value: Value = value.into();
        let patch = Patch::Merge(json!({"metadata": {"annotations": {name: value}}}));
        let nodes: Api<Node> = Api::all(self.client.clone());
        nodes.patch(NODE, &PatchParams::default(), &patch).await.unwrap();
    }

    pub(crate) async fn ready(&self, status: &str) {
        let patch = Patch::Strategic(json!({"status": {"conditions": [
            {"type": "Ready", "status": status}]}}));
        let nodes: Api<Node> = Api::all(self.client.clone());
        nodes.patch_status(NODE, &PatchParams::default(), &patch).await.unwrap();
    }

    pub(crate) fn annotations(&self) -> BTreeMap<String, String> {
        let node = self.cluster.object("", "nodes", "", NODE);
        let annotations = node.and_then(|n| n.pointer("/metadata/annotations").cloned());
        annotations.map(|map| serde_json::from_value(map).unwrap()).unwrap_or_default()
    }

    pub(crate) fn version(&self) -> Option<String> {
        self.annotations().remove(names::VERSION_ANNOTATION)
    }

    /// Command line and state of a service.
    pub(crate) fn service(&self, name: &str) -> Option<(String, ServiceRunState)> {
        let service = self.host.query(&name.parse().unwrap()).unwrap()?;
        Some((service.config.command, service.state))
    }

    /// Requests for certificates so far, with who asked.
    pub(crate) fn requesters(&self) -> Vec<String> {
        let all = self.cluster.objects("certificates.k8s.io", "certificatesigningrequests", "");
        let user = |r: &Arc<Value>| r["spec"]["username"].as_str().unwrap_or_default().to_owned();
        all.iter().map(user).collect()
    }

    /// Reasons of the Events on the node.
    pub(crate) fn events(&self) -> Vec<String> {
        let all = self.cluster.objects("", "events", "");
        let here = all.iter().filter(|event| event["involvedObject"]["name"] == NODE);
        here.map(|event| event["reason"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Waits until the controller asks the cluster nothing any more.
    pub(crate) async fn idle(&self) {
        let gets = || self.cluster.count("get", "nodes");
        within(async {
            let mut before = u64::MAX;
            while before != gets() {
                before = gets();
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
        })
        .await;
    }
}

impl Running {
    /// Tells it to stop and waits until it has.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        within(&mut self.task).await.unwrap();
    }

    /// Ends it as a power cut would, wherever it is.
    pub(crate) async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    pub(crate) fn times_ready(&self) -> usize {
        self.ready.load(Ordering::SeqCst)
    }
}

/// Approves requests as long as `left` is not used up.
async fn approve(client: Client, left: Arc<AtomicUsize>) {
    let api: Api<CertificateSigningRequest> = Api::all(client);
    loop {
        let requests = api.list(&ListParams::default()).await.unwrap();
        for request in requests.items {
            let open = request.status.as_ref().is_none_or(|s| s.conditions.is_none());
            let allowed = left.load(Ordering::SeqCst);
            if open && allowed > 0 {
                left.store(allowed - 1, Ordering::SeqCst);
                let name = request.metadata.name.unwrap_or_default();
                let approval = Patch::Merge(json!({"status": {"conditions": [{"type": "Approved",
                    "status": "True", "reason": "Test", "message": "ok"}]}}));
                // A cluster that hangs up is asked again.
                while api.patch_approval(&name, &PatchParams::default(), &approval).await.is_err() {
                    tokio::task::yield_now().await;
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
