//! The kubelet of a simulated host, as seen by the API.

mod node;
mod settings;

use std::convert::Infallible;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use wmco_core::names::{self, host as paths};
use wmco_core::protocol::{Access, ServiceRunState};
use wmco_core::text::chain;
use wmco_core::winpath::WindowsPath;
use wmco_services::fake::FakeWindows;
use wmco_services::identity::RequestContent;
use wmco_services::windows::{Files as _, Machine as _, ServiceManager as _, WindowsError};

use super::backoff::Backoff;
use super::identity::{self, IdentityError};
use super::shared::Shared;
use node::{Facts, Readiness};
use settings::{Settings, SettingsError};

/// Namespace of the Leases of nodes.
const LEASES: &str = "kube-node-lease";

/// Current certificates, in the folder of `--cert-dir`.
const CLIENT_CERTIFICATE: &str = "kubelet-client-current.pem";
const SERVING_CERTIFICATE: &str = "kubelet-server-current.pem";

/// Most time of an ending kubelet for its last status update.
const FAREWELL: Duration = Duration::from_secs(2);

/// Why the kubelet's current work failed; it is retried.
#[derive(Debug, thiserror::Error)]
enum KubeletError {
    #[error("the kubelet got no certificate")]
    Identity(#[from] IdentityError),
    #[error("the api did not take what the kubelet sent")]
    Api(#[from] kube::Error),
    #[error("the kubelet's service has stopped")]
    Stopped,
    #[error("the kubelet could not work on its host")]
    Windows(#[from] WindowsError),
}

/// A running kubelet.
#[derive(Debug)]
pub(super) struct Kubelet(Settings);

impl Kubelet {
    /// Parses its command line and configuration.
    ///
    /// # Errors
    /// [`SettingsError`] if the process would end at once.
    pub(super) fn start(host: &FakeWindows, command: &str) -> Result<Self, SettingsError> {
        Settings::read(host, command).map(Self)
    }

    /// Runs until dropped.
    ///
    /// # Errors
    /// [`IdentityError`] when it has no credentials to log in with; the process then ends.
    pub(super) async fn run(&self, host: &Shared) -> Result<Infallible, IdentityError> {
        let settings = &self.0;
        let mut backoff = Backoff::default();
        let client = loop {
            match log_in(host, settings).await {
                Ok(client) => break client,
                // Without its bootstrap kubeconfig a kubelet exits at once.
                Err(KubeletError::Identity(error @ IdentityError::MissingFile { .. })) => {
                    return Err(error);
                }
                Err(error) => backoff.failed("log in", &error).await,
            }
        };
        let mut backoff = Backoff::default();
        while let Err(error) = register(host, settings, &client).await {
            backoff.failed("register its node", &error).await;
        }
        let (endless, ()) =
            tokio::join!(stay_alive(host, settings, &client), serve(host, settings, &client),);
        Ok(endless)
    }

    /// Marks the ended kubelet's Node as silent. On a real cluster, a controller does that.
    pub(super) async fn leave(&self, host: &Shared) {
        let farewell = farewell(&host.model, &self.0);
        if let Ok(Err(error)) = tokio::time::timeout(FAREWELL, farewell).await {
            tracing::debug!(error = chain(&error), node = self.0.node, "a silent node stays ready");
        }
    }
}

async fn farewell(host: &FakeWindows, settings: &Settings) -> Result<(), KubeletError> {
    let nodes: Api<Node> = Api::all(identity::client(host, &settings.kubeconfig).await?);
    let node = nodes.get(&settings.node).await?;
    let conditions = node::conditions(Readiness::Silent, node.status.as_ref(), Timestamp::now());
    // Merged by type, like a real kubelet does, so that other conditions stay.
    let patch = Patch::Strategic(json!({ "status": { "conditions": conditions } }));
    nodes.patch_status(&settings.node, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Uses the certificate of an earlier run, or requests the first one.
async fn log_in(shared: &Shared, settings: &Settings) -> Result<Client, KubeletError> {
    let host = &shared.model;
    let certificate = settings.certificates.join(CLIENT_CERTIFICATE);
    let certificate = certificate.map_err(|bad| WindowsError::other("name a certificate", bad))?;
    let known = identity::read(host, certificate.as_str());
    if known.is_ok_and(|pem| identity::is_valid_now(&pem))
        && host.file(&settings.kubeconfig).is_some()
    {
        return Ok(identity::client(host, &settings.kubeconfig).await?);
    }
    let bootstrap = identity::client(host, &settings.bootstrap_kubeconfig).await?;
    let wanted = RequestContent {
        signer: "kubernetes.io/kube-apiserver-client-kubelet",
        user: format!("{}{}", names::NODE_USER_PREFIX, settings.node),
        group: names::NODES_GROUP,
        dns_names: Vec::new(),
        addresses: Vec::new(),
        usages: &["digital signature", "client auth"],
        lifetime: None,
    };
    let pem = identity::obtain(bootstrap, &wanted).await?;
    place(shared, &certificate, &pem)?;
    let text = identity::read(host, settings.bootstrap_kubeconfig.as_str())?;
    place(shared, &settings.kubeconfig, &identity::with_certificate(&text, &certificate)?)?;
    Ok(identity::client(host, &settings.kubeconfig).await?)
}

/// Writes a file of the kubelet, and its missing parent folders.
fn place(shared: &Shared, path: &WindowsPath, text: &str) -> Result<(), KubeletError> {
    let host = &shared.model;
    let written = shared.gates.kubelet.enter(host, || {
        if let Some(folder) = path.parent() {
            host.with_tree(|tree| tree.make_folders(&folder));
        }
        host.write(path, Access::Inherited, &mut text.as_bytes())
    });
    Ok(written.ok_or(KubeletError::Stopped)??)
}

/// Creates the Node, or updates the labels and the status of an existing one.
async fn register(host: &Shared, settings: &Settings, client: &Client) -> Result<(), KubeletError> {
    let nodes: Api<Node> = Api::all(client.clone());
    let wanted = node::node(settings, &facts(host)?, readiness(&host.model), Timestamp::now());
    match nodes.create(&PostParams::default(), &wanted).await {
        Ok(_) => return Ok(()),
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        Err(error) => return Err(error.into()),
    }
    let labels = Patch::Merge(json!({ "metadata": { "labels": wanted.metadata.labels } }));
    nodes.patch(&settings.node, &PatchParams::default(), &labels).await?;
    report(host, settings, client).await?;
    Ok(())
}

/// Keeps the Node's status and its Lease up to date.
async fn stay_alive(host: &Shared, settings: &Settings, client: &Client) -> Infallible {
    let mut changes = host.changes.subscribe();
    loop {
        changes.mark_unchanged();
        // A deleted Node is not created again: a real kubelet does that only at its start.
        if let Err(error) = beat(host, settings, client).await {
            tracing::debug!(%error, node = settings.node, "a heartbeat was lost");
        }
        // The sender is in `host`; whatever ended the wait, the next heartbeat is due.
        let _ = tokio::time::timeout(host.timing.heartbeat, changes.changed()).await;
    }
}

async fn beat(host: &Shared, settings: &Settings, client: &Client) -> Result<(), KubeletError> {
    let nodes: Api<Node> = Api::all(client.clone());
    let mut node = nodes.get(&settings.node).await?;
    if !node::has_readiness(&node, readiness(&host.model)) {
        node = report(host, settings, client).await?;
    }
    let leases: Api<Lease> = Api::namespaced(client.clone(), LEASES);
    let lease = node::lease(&node, Timestamp::now());
    match leases.patch(&settings.node, &PatchParams::default(), &Patch::Merge(&lease)).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => {
            leases.create(&PostParams::default(), &lease).await?;
        }
        answer => {
            answer?;
        }
    }
    Ok(())
}

/// Writes the whole status of the Node.
async fn report(host: &Shared, settings: &Settings, client: &Client) -> Result<Node, KubeletError> {
    let nodes: Api<Node> = Api::all(client.clone());
    let old = nodes.get(&settings.node).await?.status;
    let (facts, ready) = (facts(host)?, readiness(&host.model));
    let status = node::status(settings, &facts, ready, old.as_ref(), Timestamp::now());
    let patch = Patch::Strategic(json!({ "status": status }));
    Ok(nodes.patch_status(&settings.node, &PatchParams::default(), &patch).await?)
}

/// Requests a serving certificate unless there is a valid one.
async fn serve(host: &Shared, settings: &Settings, client: &Client) {
    let Ok(facts) = facts(host) else { return };
    let addresses = facts.addresses(settings).into_iter().map(|(_, address)| address).collect();
    let wanted = RequestContent {
        signer: "kubernetes.io/kubelet-serving",
        user: format!("{}{}", names::NODE_USER_PREFIX, settings.node),
        group: names::NODES_GROUP,
        dns_names: vec![settings.node.clone()],
        addresses,
        usages: &["digital signature", "server auth"],
        lifetime: None,
    };
    let Ok(path) = settings.certificates.join(SERVING_CERTIFICATE) else { return };
    if identity::read(&host.model, path.as_str()).is_ok_and(|pem| identity::is_valid_now(&pem)) {
        return;
    }
    let mut backoff = Backoff::default();
    loop {
        let placed = match identity::obtain(client.clone(), &wanted).await {
            Ok(pem) => place(host, &path, &pem),
            Err(error) => Err(error.into()),
        };
        match placed {
            Ok(()) => return,
            Err(error) => backoff.failed("get a serving certificate", &error).await,
        }
    }
}

fn facts(host: &Shared) -> Result<Facts, WindowsError> {
    let model = &host.model;
    Ok(Facts {
        os_build: model.os_build()?,
        boot_id: model.boot_id()?,
        ipv6: model.ipv6()?,
        cloud_address: host.cloud_address,
    })
}

fn readiness(host: &FakeWindows) -> Readiness {
    let runs = paths::CONTAINERD_SERVICE
        .parse()
        .ok()
        .and_then(|name| host.query(&name).ok()?)
        .is_some_and(|service| service.state == ServiceRunState::Running);
    if runs { Readiness::Ready } else { Readiness::RuntimeDown }
}
