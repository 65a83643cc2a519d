//! A cluster with hosts in its list, and the controller of certificate requests alone.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bin_operator::announce::Announcer;
use bin_operator::config::Config;
use bin_operator::csr::Approver;
use bin_operator::host_reports::{HostReport, HostReports};
use bin_operator::leader::Leadership;
use bin_operator::metrics::{CsrLabels, Metrics};
use bin_operator::resolver::{Dns, Lookup, Resolver, ReverseLookup};
use bin_operator::sources::Sources;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::Client;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube_testserver::TestServer;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wmco_core::names::objects;
use wmco_ssh::{Options, Pool, PoolLimits, TcpDialer};

pub(super) const NAMESPACE: &str = objects::DEFAULT_NAMESPACE;
const CERTIFICATES: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
/// Longest wait for anything; a machine under load needs most of it.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) struct Scene {
    pub(super) cluster: TestServer,
    pub(super) client: Client,
    pub(super) host_reports: HostReports,
    pub(super) metrics: Metrics,
    pub(super) dns: Arc<Mutex<BTreeMap<String, Vec<IpAddr>>>>,
    pub(super) reverse: Arc<Mutex<BTreeMap<IpAddr, String>>>,
    config: Config,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// What is asked for, and who asks.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) name: String,
    pub(super) signer: &'static str,
    pub(crate) common_name: String,
    pub(super) organization: &'static str,
    pub(crate) names: Vec<SanType>,
    pub(super) usages: Vec<&'static str>,
    pub(super) lifetime: Option<i32>,
    pub(crate) user: String,
    pub(crate) groups: Vec<&'static str>,
}

pub(super) fn client_of(node: &str) -> Asked {
    Asked {
        name: format!("client-{node}"),
        signer: "kubernetes.io/kube-apiserver-client-kubelet",
        common_name: format!("system:node:{node}"),
        organization: "system:nodes",
        names: Vec::new(),
        usages: vec!["digital signature", "client auth"],
        lifetime: None,
        user: objects::BOOTSTRAPPER_USER.to_owned(),
        groups: vec![
            "system:serviceaccounts",
            "system:serviceaccounts:openshift-machine-config-operator",
        ],
    }
}

pub(crate) fn serving_of(node: &str) -> Asked {
    Asked {
        name: format!("serving-{node}"),
        signer: "kubernetes.io/kubelet-serving",
        names: vec![SanType::DnsName(node.try_into().unwrap())],
        usages: vec!["digital signature", "server auth"],
        user: format!("system:node:{node}"),
        groups: vec!["system:nodes"],
        ..client_of(node)
    }
}

pub(crate) fn daemon_of(node: &str) -> Asked {
    Asked {
        name: format!("wicd-{node}"),
        signer: "kubernetes.io/kube-apiserver-client",
        common_name: format!("system:wicd-node:{node}"),
        organization: "system:wicd-nodes",
        usages: vec!["digital signature", "key encipherment", "client auth"],
        lifetime: Some(3600),
        user: format!("system:serviceaccount:{NAMESPACE}:{}", objects::WICD),
        groups: vec!["system:serviceaccounts"],
        ..client_of(node)
    }
}

/// Sends a request in the name of its requester.
pub(crate) async fn send(client: &Client, asked: &Asked, pem: &str) -> CertificateSigningRequest {
    use base64::Engine as _;
    let body = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": asked.name},
        "spec": {
            "expirationSeconds": asked.lifetime,
            "request": base64::prelude::BASE64_STANDARD.encode(pem),
            "signerName": asked.signer,
            "usages": asked.usages,
        },
    });
    let body = serde_json::to_vec(&body).unwrap();
    let create = kube::core::Request::new(CERTIFICATES);
    let mut create = create.create(&PostParams::default(), body).unwrap();
    create.headers_mut().insert("impersonate-user", asked.user.parse().unwrap());
    for group in &asked.groups {
        create.headers_mut().append("impersonate-group", group.parse().unwrap());
    }
    let made = client.request(create).await;
    made.unwrap_or_else(|error| panic!("{}: {error}", asked.name))
}

impl Asked {
    pub(crate) fn pem(&self) -> String {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, self.organization);
        params.distinguished_name.push(DnType::CommonName, self.common_name.as_str());
        params.subject_alt_names.clone_from(&self.names);
        let key = KeyPair::generate().unwrap();
        params.serialize_request(&key).unwrap().pem().unwrap()
    }
}

impl Scene {
    /// A cluster that lists hosts by address; each has told its name, unless that is empty.
    pub(super) async fn start(hosts: &BTreeMap<String, String>) -> Self {
        let cluster = TestServer::start().await.unwrap();
        put(
            &cluster,
            &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        );
        let data: BTreeMap<&String, &str> = hosts.keys().map(|a| (a, "username=core")).collect();
        put(
            &cluster,
            &json!({
                "apiVersion": "v1", "kind": "ConfigMap", "data": data,
                "metadata": {"name": objects::INSTANCES_CONFIG_MAP, "namespace": NAMESPACE},
            }),
        );
        // Everybody may ask, as the bootstrapper, nodes and the daemon may in a real cluster.
        put(
            &cluster,
            &json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                "metadata": {"name": "ask"},
                "rules": [{
                    "apiGroups": ["certificates.k8s.io"],
                    "resources": ["certificatesigningrequests"], "verbs": ["create"],
                }],
            }),
        );
        put(
            &cluster,
            &json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                "metadata": {"name": "ask"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "ask",
                },
                "subjects": [{
                    "apiGroup": "rbac.authorization.k8s.io", "kind": "Group",
                    "name": "system:authenticated",
                }],
            }),
        );
        let kubeconfig = cluster.kubeconfig("admin", &["system:masters"]).unwrap();
        let kubeconfig = Kubeconfig::from_yaml(&kubeconfig).unwrap();
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        let host_reports = HostReports::new();
        for (address, name) in hosts.iter().filter(|(_, name)| !name.is_empty()) {
            host_reports.set(address, report(name));
        }
        let variable = |name: &str| (name == "WATCH_NAMESPACE").then(|| NAMESPACE.to_owned());
        Self {
            client: Client::try_from(config).unwrap(),
            config: Config::from_env(bin_operator::VERSION, false, 1, variable).unwrap(),
            host_reports,
            metrics: Metrics::new(no_hosts()),
            dns: Arc::new(Mutex::new(
                [("ip-127-0-0-1".to_owned(), vec![std::net::Ipv4Addr::LOCALHOST.into()])].into(),
            )),
            reverse: Arc::new(Mutex::new(
                [(std::net::Ipv4Addr::LOCALHOST.into(), "ip-127-0-0-1".to_owned())].into(),
            )),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            cluster,
        }
    }

    /// Adds a Node with its addresses.
    pub(super) fn node(&self, name: &str, os: &str, address: &str) {
        put(
            &self.cluster,
            &json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": {"name": name, "labels": {"kubernetes.io/os": os}},
                "status": {"addresses": [
                    {"type": "InternalIP", "address": address},
                    {"type": "Hostname", "address": name},
                ]},
            }),
        );
    }

    /// Starts the controller, once its caches are filled.
    pub(super) async fn approve(&self, deny: bool) {
        let (stop, tasks) = (&self.stop, &self.tasks);
        let sources = Sources::watch(&self.client, NAMESPACE, None, stop, tasks);
        sources.nodes.store().wait_until_ready().await.unwrap();
        sources.config_maps.wait_until_ready().await.unwrap();
        let approver = Approver {
            client: self.client.clone(),
            config: Arc::new(Config { deny_requests: deny, ..self.config.clone() }),
            sources,
            resolver: self.resolver(),
            host_reports: self.host_reports.clone(),
            leadership: Leadership::unchallenged(),
            announcer: Announcer::new(
                self.client.clone(),
                NAMESPACE,
                "operator",
                self.metrics.clone(),
            ),
            metrics: self.metrics.clone(),
            issued: bin_operator::csr::Issued::default(),
        };
        tasks.spawn(approver.run(stop.clone()));
    }

    /// A DNS that answers at once: with what a test says, or that there is no such name.
    fn resolver(&self) -> Resolver {
        let names = Arc::clone(&self.dns);
        let forward: Lookup = Arc::new(move |name| {
            let found = names.lock().unwrap().get(&name).cloned();
            let missing = || std::io::Error::from(std::io::ErrorKind::NotFound);
            Box::pin(std::future::ready(found.ok_or_else(missing)))
        });
        let addresses = Arc::clone(&self.reverse);
        let reverse: ReverseLookup = Arc::new(move |address| {
            let found = addresses.lock().unwrap().get(&address).cloned();
            Box::pin(std::future::ready(found))
        });
        Resolver::new(Dns { forward, reverse })
    }

    /// Sends a request in the name of its requester.
    pub(super) async fn ask(&self, asked: &Asked) -> CertificateSigningRequest {
        self.ask_with(asked, &asked.pem()).await
    }

    /// As [`Self::ask`], with any text as the request.
    pub(super) async fn ask_with(&self, asked: &Asked, pem: &str) -> CertificateSigningRequest {
        send(&self.client, asked, pem).await
    }

    /// The request as it is stored now.
    pub(super) fn stored(&self, name: &str) -> CertificateSigningRequest {
        let found =
            self.cluster.object("certificates.k8s.io", "certificatesigningrequests", "", name);
        serde_json::from_value(Value::clone(&found.unwrap())).unwrap()
    }

    pub(super) fn requests(&self) -> Api<CertificateSigningRequest> {
        Api::all(self.client.clone())
    }

    /// How often this was answered.
    pub(super) fn count(
        &self,
        kind: &'static str,
        verdict: &'static str,
        rule: &'static str,
    ) -> u64 {
        self.metrics.csrs.get_or_create(&CsrLabels { kind, verdict, rule }).get()
    }

    /// Waits until a request was answered in this way, at least once.
    pub(super) async fn answered(
        &self,
        kind: &'static str,
        verdict: &'static str,
        rule: &'static str,
    ) {
        self.until(|| self.count(kind, verdict, rule) > 0).await;
    }

    /// Waits until `holds`.
    pub(super) async fn until(&self, holds: impl Fn() -> bool) {
        let waiting = async {
            while !holds() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        assert!(waited.is_ok(), "not in time:\n{}", self.metrics.text());
    }

    /// The condition that was written, once it is.
    pub(super) async fn condition(&self, name: &str) -> (String, String) {
        let conditions = || self.stored(name).status.and_then(|status| status.conditions);
        self.until(|| conditions().is_some_and(|list| !list.is_empty())).await;
        let conditions = conditions().unwrap();
        let [condition] = &conditions[..] else { panic!("{conditions:?}") };
        (condition.type_.clone(), condition.reason.clone().unwrap())
    }

    /// Reasons and notes of all Events about a request.
    pub(super) fn events(&self, name: &str) -> Vec<(String, String)> {
        let events = self.cluster.objects("", "events", "");
        let about = |event: &&Arc<Value>| event["involvedObject"]["name"] == name;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        events.iter().filter(about).map(|e| (text(&e["reason"]), text(&e["message"]))).collect()
    }

    pub(super) async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.cluster.stop().await;
    }
}

/// What a host reports that is called so, wherever it was asked.
pub(super) fn report(host_name: &str) -> HostReport {
    HostReport { host_name: host_name.to_owned(), ..HostReport::default() }
}

pub(super) fn put(cluster: &TestServer, object: &Value) {
    cluster.put(object).unwrap_or_else(|error| panic!("{error}: {object}"));
}

/// Connections to hosts, of which there are none.
fn no_hosts() -> Pool {
    Pool::new(Arc::new(TcpDialer), Options::default(), PoolLimits::default())
}
