//! `wicd controller`: keeps the host as its Node's desired version says, until the order to stop.
//!
//! Decisions are `wmco_services::daemon`'s and `wmco_services::identity`'s. In here is what connects
//! them with the cluster: the client and its certificate (`login`), what wakes a pass (`changes`),
//! the pass itself (`pass`), and the Events (`events`).
//!
//! # Guarantees
//! - Passes never overlap, also when the certificate changes in the middle of one.
//! - Told to stop, it ends with the step that it is at.
//! - No failure of its running work is final: it is tried again, with growing pauses.

mod changes;
mod events;
mod login;
mod pass;
mod rotation;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use futures::{FutureExt as _, StreamExt as _};
use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;
use wmco_core::text::chain;
use wmco_core::winpath::WindowsPath;
use wmco_services::daemon;
use wmco_services::limits;
use wmco_services::logs::Bounds;
use wmco_services::windows::{Windows, WindowsError};

use crate::args::Cluster;
use crate::cluster::{self, ClusterError};
use crate::own_node::{self, OwnNodeError};
use login::{Login, Session};
use pass::{PassError, Passes};

/// Settings of the controller.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How to reach the cluster before there is a certificate, and where the ConfigMaps are.
    pub cluster: Cluster,
    /// Folder of the client certificates.
    pub certificates: WindowsPath,
    /// Life to ask for in certificate requests.
    pub lifetime: SignedDuration,
    /// File with the roots to trust, if any.
    pub ca_bundle: Option<WindowsPath>,
    /// How much of the services' logs is kept.
    pub logs: Bounds,
}

/// Who runs the controller, and how it hears from them.
pub struct Site<'a> {
    /// The host.
    pub host: Arc<dyn Windows>,
    /// Cancelled: the controller ends soon.
    pub stop: CancellationToken,
    /// Called when the controller does what it is for; more calls do no harm.
    pub ready: &'a (dyn Fn() + Send + Sync),
}

/// Why the daemon cannot tell which node is its own.
#[derive(Debug, thiserror::Error)]
enum NodeError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(
        "no node has an address of this host or the name in its certificates, wait for the kubelet"
    )]
    None,
    #[error(transparent)]
    Search(#[from] OwnNodeError),
    #[error("the network interfaces of this host cannot be read")]
    Windows(#[from] WindowsError),
}

/// Runs until the order to stop.
pub async fn run(site: &Site<'_>, settings: &Settings) {
    // On its own, for logs grow while a pass waits, or nobody reaches the cluster.
    let rotation = rotation::run(Arc::clone(&site.host), settings.logs);
    let _rotation = AbortOnDrop(tokio::spawn(rotation));
    // What is half done when it is dropped are requests to the cluster; work on the host ends first.
    let mut search = limits::NODE_SEARCH;
    while !site.stop.is_cancelled() {
        let node = site.stop.run_until_cancelled(own_node(site, settings, search)).await;
        let Some(node) = node else { break };
        tracing::info!(node, "this host's node is found");
        // A host that joins waits for its Node, one that was taken from the cluster may do so for ever.
        search = limits::NODE_GONE;
        let login = Login { host: Arc::clone(&site.host), settings: settings.clone(), node };
        serve(site, settings, &login).await;
    }
    tracing::info!("the controller has stopped");
}

/// The name of the Node of this host, as soon as there is one. That there is none is logged once.
async fn own_node(
    site: &Site<'_>,
    settings: &Settings,
    search: (SignedDuration, SignedDuration),
) -> String {
    let mut failing = pauses(limits::DAEMON_RETRY);
    let mut waiting = pauses(search);
    let mut told = false;
    loop {
        match find_node(&*site.host, settings).await {
            Ok(node) => return node,
            Err(error @ NodeError::None) => {
                // The cluster answers, and a start of the service should not wait for the kubelet.
                (site.ready)();
                if !std::mem::replace(&mut told, true) {
                    let longest = search.1.unsigned_abs();
                    tracing::warn!(%error, ?longest, "looking for the node, at growing intervals");
                }
                tokio::time::sleep(waiting.next().unwrap_or(search.1.unsigned_abs())).await;
            }
            Err(error) => rest(&mut failing, "find its node", &error).await,
        }
    }
}

async fn find_node(host: &dyn Windows, settings: &Settings) -> Result<String, NodeError> {
    let client = cluster::client(host.files(), &settings.cluster.kubeconfig)?;
    let identity = daemon::host_identity(host, &settings.certificates)?;
    let search = own_node::search(&client, &identity).await?;
    let node = search.node.ok_or(NodeError::None)?;
    for warning in search.warnings {
        tracing::warn!(node, "{warning}");
    }
    Ok(node)
}

/// How a session ended.
enum End {
    /// The daemon got the order to stop.
    Stop,
    /// There is a newer certificate.
    Renewed(Session),
    /// The cluster does not know the certificate any more.
    Unauthorized,
    /// The Node is gone.
    NodeGone,
}

/// Works with one certificate after the other, as long as the Node is there.
async fn serve(site: &Site<'_>, settings: &Settings, login: &Login) {
    let mut passes = Passes::new(Arc::clone(&site.host), settings, &login.node, &site.stop);
    let mut distrusted = None;
    'log_in: loop {
        let session = login.enter(distrusted.as_ref());
        let Some(mut session) = site.stop.run_until_cancelled(session).await else { return };
        (site.ready)();
        loop {
            match work(site, settings, login, &session, &mut passes).await {
                End::Stop | End::NodeGone => return,
                End::Renewed(next) => session = next,
                End::Unauthorized => {
                    tracing::warn!(
                        "the cluster does not accept the certificate, asking for another"
                    );
                    distrusted = Some(session.certificate);
                    continue 'log_in;
                }
            }
        }
    }
}

/// Passes, whenever something changed or the last one says so, until the session ends.
async fn work(
    site: &Site<'_>,
    settings: &Settings,
    login: &Login,
    session: &Session,
    passes: &mut Passes,
) -> End {
    let mut changes =
        Box::pin(changes::in_cluster(&session.client, &settings.cluster.namespace, &login.node));
    // On its own, so that it continues while a pass works on the host.
    let mut renewal = AbortOnDrop(tokio::spawn(login.clone().renew(session.clone())));
    let mut retries = pauses(limits::DAEMON_RETRY);
    let mut failures: u32 = 0;
    loop {
        // What came until now is seen by the pass that begins.
        while let Some(Some(())) = changes.next().now_or_never() {}
        let (pause, seen) = match passes.run(&session.client).await {
            Ok((due, seen)) => {
                if failures > 0 {
                    (retries, failures) = (pauses(limits::DAEMON_RETRY), 0);
                }
                (until(due), Some(seen))
            }
            Err(PassError::NodeGone) => {
                // It may come back, perhaps under another name.
                tracing::warn!(node = login.node, "the node is gone, looking for another one");
                return End::NodeGone;
            }
            Err(error) if error.is_unauthorized() => return End::Unauthorized,
            Err(PassError::Stopped) => return End::Stop,
            Err(error) => {
                failures += 1;
                let pause = retries.next().unwrap_or(LONGEST);
                tracing::warn!(error = chain(&error), failures, ?pause, "a pass failed");
                // What a failed step did to services is no reason to repeat it sooner.
                (pause, None)
            }
        };
        tokio::select! {
            () = site.stop.cancelled() => return End::Stop,
            renewed = &mut renewal.0 => match renewed {
                Ok(session) => return End::Renewed(session),
                Err(error) => {
                    tracing::error!(%error, "the renewal of the certificate broke down");
                    return End::Unauthorized;
                }
            },
            () = tokio::time::sleep(pause) => {}
            // The streams do not end by themselves.
            _ = changes.next() => {}
            () = changes::in_services(&site.host, seen) => {}
        }
    }
}

/// A task that ends with its handle.
struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Longest pause between two attempts.
const LONGEST: Duration = limits::DAEMON_RETRY.1.unsigned_abs();

/// Pauses that grow from the first to the second length, without end.
fn pauses((first, longest): (SignedDuration, SignedDuration)) -> ExponentialBackoff {
    ExponentialBuilder::default()
        .with_min_delay(first.unsigned_abs())
        .with_max_delay(longest.unsigned_abs())
        .with_jitter()
        .without_max_times()
        .build()
}

/// Logs that the daemon could not do `what`, and waits before the next attempt.
async fn rest(pauses: &mut ExponentialBackoff, what: &str, error: &(dyn Error + 'static + Sync)) {
    let pause = pauses.next().unwrap_or(LONGEST);
    tracing::warn!(error = chain(error), ?pause, "cannot {what}, trying again");
    tokio::time::sleep(pause).await;
}

/// Time from now until then.
fn until(then: Timestamp) -> Duration {
    Duration::try_from(then.duration_since(Timestamp::now())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_minutes_for_a_node_that_is_gone_and_stay_short_for_one_that_comes() {
        let nth = |lengths, n| pauses(lengths).nth(n).unwrap().as_secs();
        assert!(nth(limits::NODE_GONE, 0) < 5);
        assert!((180..=360).contains(&nth(limits::NODE_GONE, 1000)));
        assert!((15..=30).contains(&nth(limits::NODE_SEARCH, 1000)));
    }
}
