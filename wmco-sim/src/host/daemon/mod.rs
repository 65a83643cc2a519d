//! The daemon of a simulated host: decisions of `wmco_services` with data of the API.

mod pass;
mod settings;

use std::convert::Infallible;
use std::time::Duration;

use futures::{FutureExt as _, Stream, StreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::ListParams;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use serde_json::json;
use wmco_core::names;
use wmco_core::secret::Secret;
use wmco_services::daemon::{self, NodeClaim, NodeSearchError};
use wmco_services::fake::FakeWindows;
use wmco_services::identity::{Certificate, RequestContent, Store, Usability, judge};
use wmco_services::windows::WindowsError;

use super::backoff::Backoff;
use super::identity::{self, IdentityError};
use super::shared::Shared;
use settings::{Settings, SettingsError};

/// Share of its life that a certificate is used; here all hosts may renew at once.
const SHARE: f64 = 0.8;

/// Why the daemon's current work failed; it is retried.
#[derive(Debug, thiserror::Error)]
enum DaemonError {
    #[error("the api did not do what the daemon asked")]
    Api(#[from] kube::Error),
    #[error("the daemon cannot log in")]
    Identity(#[from] IdentityError),
    #[error("the runtime of the simulation ended")]
    Interrupted { source: tokio::task::JoinError },
    #[error(
        "no node has an address of this host or the name in its certificates, wait for the kubelet"
    )]
    NoNode,
    #[error("the daemon cannot tell which node is its own")]
    NodeSearch(#[from] NodeSearchError),
    #[error("{failures}")]
    Steps { failures: String },
    #[error("the daemon's service has stopped")]
    Stopped,
    #[error("the daemon could not work on its host")]
    Windows(#[from] WindowsError),
}

/// A running daemon.
#[derive(Debug)]
pub(super) struct Daemon(Settings);

impl Daemon {
    /// Parses its command line.
    ///
    /// # Errors
    /// [`SettingsError`] if the process would end at once.
    pub(super) fn start(host: &FakeWindows, command: &str) -> Result<Self, SettingsError> {
        Settings::read(host, command).map(Self)
    }

    /// Runs until dropped.
    pub(super) async fn run(&self, host: &Shared) -> Infallible {
        let settings = &self.0;
        let mut backoff = Backoff::default();
        let node = loop {
            match find_node(&host.model, settings).await {
                Ok(node) => break node,
                Err(error) => backoff.failed("find its node", &error).await,
            }
        };
        let mut backoff = Backoff::default();
        loop {
            match log_in(host, settings, &node).await {
                Ok((client, renewal)) => {
                    backoff = Backoff::default();
                    let work = work(host, settings, &node, &client);
                    // Dropped between two passes or during one; a running pass ends by itself.
                    let _ = tokio::time::timeout(renewal, Box::pin(work)).await;
                }
                Err(error) => backoff.failed("log in", &error).await,
            }
        }
    }
}

/// Returns the name of this host's Node. Searches like the daemon, except that it lists without pages.
async fn find_node(host: &FakeWindows, settings: &Settings) -> Result<String, DaemonError> {
    let nodes: Api<Node> = Api::all(identity::client(host, &settings.kubeconfig).await?);
    let claim = |node: &Node| NodeClaim::from(&json!(node));
    let marks = daemon::host_identity(host, &settings.certificates)?;
    for name in daemon::names_to_ask(&marks) {
        let node = nodes.get_opt(name).await?;
        let settled = node.and_then(|node| daemon::search_result_of(&claim(&node), &marks)?.node);
        if let Some(node) = settled {
            return Ok(node);
        }
    }
    let windows =
        ListParams::default().labels(&format!("{}={}", names::OS_LABEL, names::OS_WINDOWS));
    let windows = nodes.list(&windows).await?;
    daemon::find_node(windows.iter().map(claim), &marks)?.node.ok_or(DaemonError::NoNode)
}

/// Returns a client with the daemon's own certificate, which is requested if there is no valid one, and the time until
/// its renewal. Source: `docs/contract/wicd.md`, WICD40 to WICD42.
async fn log_in(
    shared: &Shared,
    settings: &Settings,
    node: &str,
) -> Result<(Client, Duration), DaemonError> {
    let host = &shared.model;
    let store = Store { folder: &settings.certificates };
    let known = store.load(host)?;
    let (certificate, due) = match known.as_ref().map(|known| due(known, node)) {
        Some(Some(due)) if due > Timestamp::now() => (known.unwrap_or_default(), due),
        _ => {
            let client = identity::client(host, &settings.kubeconfig).await?;
            let wanted = RequestContent::daemon(node, settings.lifetime);
            let certificate = Secret::new(identity::obtain(client, &wanted).await?);
            let keep = || store.keep(host, &certificate, Timestamp::now());
            shared.gates.daemon.enter(host, keep).ok_or(DaemonError::Stopped)??;
            let due = due(&certificate, node).unwrap_or_default();
            let issued = Certificate::parse(certificate.expose()).ok();
            let due = issued.map_or(due, |issued| issued.earliest_renewal(due, Timestamp::now()));
            (certificate, due)
        }
    };
    let text = String::from_utf8_lossy(certificate.expose());
    let client = identity::client_with(host, &settings.kubeconfig, &text).await?;
    let left = Duration::try_from(due.duration_since(Timestamp::now()));
    Ok((client, left.unwrap_or_default()))
}

/// Returns when to renew the certificate; `None` if it is unusable.
fn due(certificate: &Secret, node: &str) -> Option<Timestamp> {
    let certificate = Certificate::parse(certificate.expose()).ok();
    match judge(certificate.as_ref(), node, SHARE, Timestamp::now()) {
        Usability::Usable { renew_at } => Some(renew_at),
        Usability::Unusable(_) => None,
    }
}

/// Runs a pass whenever something has changed or the previous pass requests it.
async fn work(host: &Shared, settings: &Settings, node: &str, client: &Client) -> Infallible {
    let mut changes = Box::pin(changes(settings, node, client));
    let mut passes = pass::Passes::new(host, settings, node, client);
    let mut backoff = Backoff::default();
    loop {
        // The next pass observes all changes until now.
        while let Some(Some(())) = changes.next().now_or_never() {}
        match passes.run().await {
            Ok(pause) => {
                backoff = Backoff::default();
                // Waits for the requested time or a change; the streams do not end by themselves.
                let _ = tokio::time::timeout(pause, changes.next()).await;
            }
            Err(error) => backoff.failed("finish a pass", &error).await,
        }
    }
}

/// Yields an item for each change of a relevant field of the Node, and of services ConfigMaps.
fn changes(settings: &Settings, node: &str, client: &Client) -> impl Stream<Item = ()> + use<> {
    let nodes: Api<Node> = Api::all(client.clone());
    let own = watcher::Config::default().fields(&format!("metadata.name={node}"));
    let nodes = watcher(nodes, own)
        .default_backoff()
        .touched_objects()
        .filter_map(async |node| node.ok().map(|node| daemon::pass_inputs(&json!(node))))
        .scan(None, |last, now| {
            let changed = last.as_ref() != Some(&now);
            *last = Some(now);
            std::future::ready(Some(changed))
        })
        .filter(|changed| std::future::ready(*changed))
        .map(drop);
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &settings.namespace);
    let maps = watcher(maps, watcher::Config::default())
        .default_backoff()
        .touched_objects()
        .filter_map(async |map| is_manifest(&map.ok()?).then_some(()));
    stream::select(nodes, maps)
}

fn is_manifest(map: &ConfigMap) -> bool {
    let name = map.metadata.name.as_deref().unwrap_or_default();
    name.starts_with(names::objects::SERVICES_CONFIG_MAP_PREFIX)
}
