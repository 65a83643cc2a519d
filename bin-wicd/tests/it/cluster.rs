//! The cluster that the daemon talks to, with what the operator prepares for it.

use std::net::Ipv4Addr;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use kube_testserver::TestServer;
use serde_json::{Value, json};
use wmco_core::cluster::rbac;
use wmco_core::names;
use wmco_core::names::objects::{self, services_name};
use wmco_core::render::{ServiceAccountToken, token_kubeconfig};
use wmco_services::identity::Certificate;
use wmco_services::manifest::Manifest;

/// Name of the host's Node.
pub(crate) const NODE: &str = "winhost";

/// Namespace of the operator.
pub(crate) const NAMESPACE: &str = "winc";

/// Pause between two looks at what is waited for.
const LOOK: Duration = Duration::from_millis(50);

/// Without a request for so long, the daemon waits for something to happen.
const SILENCE: Duration = Duration::from_secs(2);

/// A simulated cluster with the daemon's rights and an operator that approves certificates.
pub(crate) struct Cluster {
    pub(crate) sim: TestServer,
    admin: Client,
    operator: tokio::task::JoinHandle<()>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.operator.abort();
    }
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        let sim = TestServer::start().await.unwrap();
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": NAMESPACE}});
        sim.put(&namespace).unwrap();
        let made = [
            json!(rbac::role_binding(NAMESPACE)),
            json!(rbac::cluster_role_binding(NAMESPACE)),
            json!({
                "apiVersion": "v1", "kind": "Secret", "type": objects::SERVICE_ACCOUNT_TOKEN_TYPE,
                "metadata": {"name": objects::WICD, "namespace": NAMESPACE,
                    "annotations": {objects::SERVICE_ACCOUNT_ANNOTATION: objects::WICD}},
            }),
        ];
        for object in rbac::shipped(NAMESPACE).into_iter().chain(made) {
            sim.put(&object).unwrap();
        }
        let kubeconfig = sim.kubeconfig("admin", &["system:masters"]).unwrap();
        let options = KubeConfigOptions::default();
        let kubeconfig = Kubeconfig::from_yaml(&kubeconfig).unwrap();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        config.proxy_url = None;
        let admin = Client::try_from(config).unwrap();
        let operator = tokio::spawn(approve(admin.clone()));
        Self { sim, admin, operator }
    }

    /// The daemon's kubeconfig, with the token of its service account.
    pub(crate) fn kubeconfig(&self) -> Vec<u8> {
        let secret = self.sim.object("", "secrets", NAMESPACE, objects::WICD).unwrap();
        let data = serde_json::from_value(secret["data"].clone()).unwrap();
        let secret = ServiceAccountToken::read(objects::WICD, &data).unwrap();
        let user = objects::WICD_KUBECONFIG_USER;
        token_kubeconfig(&self.sim.url(), user, &secret).unwrap().expose().to_vec()
    }

    /// Publishes the services of a version.
    pub(crate) fn publish(&self, version: &str, manifest: &Manifest) {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": manifest.render().0,
            "metadata": {"namespace": NAMESPACE, "name": services_name(version)},
        });
        self.sim.put(&map).unwrap();
    }

    /// What a kubelet and the operator do when the host at `address` joins.
    pub(crate) fn join(&self, address: Ipv4Addr, version: &str) {
        self.sim
            .put(&json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": {
                    "name": NODE,
                    "labels": {names::OS_LABEL: names::OS_WINDOWS},
                    "annotations": {
                        names::DESIRED_VERSION_ANNOTATION: version,
                        "k8s.ovn.org/hybrid-overlay-node-subnet": "10.132.0.0/24",
                    },
                },
                "status": {
                    "addresses": [{"type": "InternalIP", "address": address.to_string()}],
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            }))
            .unwrap();
    }

    fn node(&self) -> Option<Value> {
        self.sim.object("", "nodes", "", NODE).map(|node| (*node).clone())
    }

    /// The value of an annotation of the Node.
    pub(crate) fn annotation(&self, name: &str) -> Option<String> {
        Some(self.node()?["metadata"]["annotations"].get(name)?.as_str()?.to_owned())
    }

    /// Deletes the Node.
    pub(crate) async fn leave(&self) {
        let nodes: Api<Node> = Api::all(self.admin.clone());
        nodes.delete(NODE, &DeleteParams::default()).await.unwrap();
    }

    /// Sets an annotation of the Node, or removes it.
    pub(crate) fn annotate(&self, name: &str, value: Option<&str>) {
        let mut node = self.node().unwrap();
        let annotations = node["metadata"]["annotations"].as_object_mut().unwrap();
        match value {
            Some(value) => annotations.insert(name.to_owned(), value.into()),
            None => annotations.remove(name),
        };
        self.sim.put(&node).unwrap();
    }

    /// Waits until the daemon says that `version` is configured.
    pub(crate) async fn configured(&self, version: &str) {
        until("the node carries the version", async || {
            self.annotation(names::VERSION_ANNOTATION).as_deref() == Some(version)
        })
        .await;
    }

    /// How often the daemon has read its Node to begin a pass.
    pub(crate) fn passes(&self) -> u64 {
        self.sim.count("get", "nodes")
    }

    /// Requests about Nodes and ConfigMaps so far, of which only the daemon makes any.
    pub(crate) fn requests_about_nodes(&self) -> u64 {
        let of = |resource| {
            ["get", "list", "watch", "create", "patch", "update", "delete"]
                .map(|verb| self.sim.count(verb, resource))
        };
        of("nodes").into_iter().chain(of("configmaps")).sum()
    }

    /// How often the daemon has changed its Node.
    pub(crate) fn patches(&self) -> u64 {
        self.sim.count("patch", "nodes")
    }

    /// Who asked for certificates so far, oldest first.
    pub(crate) fn requesters(&self) -> Vec<String> {
        let all = self.sim.objects("certificates.k8s.io", "certificatesigningrequests", "");
        let mut asked: Vec<_> = all
            .iter()
            .map(|request| text(request, "/metadata/creationTimestamp"))
            .zip(all.iter().map(|request| text(request, "/spec/username")))
            .collect();
        asked.sort();
        asked.into_iter().map(|(_, user)| user).collect()
    }

    /// When the certificate ends that is good for longest.
    pub(crate) fn last_until(&self) -> Timestamp {
        let all = self.sim.objects("certificates.k8s.io", "certificatesigningrequests", "");
        let ends = all.iter().filter_map(|request| {
            let pem = BASE64_STANDARD.decode(text(request, "/status/certificate")).unwrap();
            Some(Certificate::leaf(&pem).ok()?.not_after)
        });
        ends.max().unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// Waits until a pass has begun and ended that sees the cluster and the host as they are now.
    pub(crate) async fn whole_pass(&self) {
        for _ in 0..2 {
            // Passes never overlap, so the second begins after the first has ended.
            let before = self.passes();
            let data = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"n": before.to_string()},
                "metadata": {"namespace": NAMESPACE, "name": services_name("wakes-the-daemon")}});
            self.sim.put(&data).unwrap();
            until("a pass begins", async || self.passes() > before).await;
        }
    }

    /// Waits until the daemon sends no request for a while: it may have been woken twice,
    /// and its last pass may not have ended. Returns the number of requests so far.
    pub(crate) async fn silent(&self) -> u64 {
        let mut asked = self.requests_about_nodes();
        until("the daemon is silent", async || {
            tokio::time::sleep(SILENCE).await;
            std::mem::replace(&mut asked, self.requests_about_nodes()) == asked
        })
        .await;
        asked
    }
}

fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Approves every request for a certificate.
async fn approve(client: Client) {
    let api: Api<CertificateSigningRequest> = Api::all(client);
    loop {
        let requests = api.list(&ListParams::default()).await.unwrap();
        for request in requests.items {
            if request.status.is_none_or(|status| status.conditions.is_none()) {
                let approval = json!({"status": {"conditions": [
                    {"type": "Approved", "status": "True", "reason": "Test", "message": "ok"}]}});
                let name = request.metadata.name.unwrap();
                let parameters = PatchParams::default();
                api.patch_approval(&name, &parameters, &Patch::Merge(approval)).await.unwrap();
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Waits until it is so, for some minutes at most: Wine on a busy machine takes its time.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    const MOST: Duration = Duration::from_secs(240);
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(LOOK).await;
        }
    };
    assert!(tokio::time::timeout(MOST, wait).await.is_ok(), "waited for long: {what}");
}
