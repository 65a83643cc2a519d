//! Follows the Windows nodes of a cluster, and counts how many are disrupted at once.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Node;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt as _};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use wmco_core::names;

/// Sees every change from its start on.
pub(crate) struct Observer {
    tell: Arc<watch::Sender<Seen>>,
    seen: watch::Receiver<Seen>,
    task: JoinHandle<()>,
}

/// The nodes at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// By name.
    pub(crate) nodes: BTreeMap<String, Standing>,
    /// Most nodes that were disrupted at the same time, while that is counted.
    most_disrupted: Option<usize>,
}

/// How a node stands.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Standing {
    /// Why pods had better not be there.
    disrupted: Vec<&'static str>,
    version: Option<String>,
}

impl Observer {
    pub(crate) fn start(client: &Client) -> Self {
        let (tell, seen) = watch::channel(Seen::default());
        let tell = Arc::new(tell);
        let task = tokio::spawn(follow(Api::all(client.clone()), Arc::clone(&tell)));
        Self { tell, seen, task }
    }

    /// Counts disrupted nodes from now on.
    pub(crate) fn count_disrupted(&self) {
        self.tell.send_modify(|seen| seen.most_disrupted = Some(0));
    }

    /// The most that were disrupted at the same time since [`count_disrupted`](Self::count_disrupted), which
    /// ends here.
    pub(crate) fn most_disrupted(&self) -> usize {
        let mut most = None;
        self.tell.send_modify(|seen| most = seen.most_disrupted.take());
        most.unwrap_or_default()
    }

    /// Waits until the nodes are `enough`.
    ///
    /// # Errors
    /// After `patience`, with how they stand.
    pub(crate) async fn until(
        &mut self,
        patience: Duration,
        enough: impl FnMut(&Seen) -> bool,
    ) -> anyhow::Result<()> {
        if let Ok(seen) = timeout(patience, self.seen.wait_for(enough)).await {
            return seen.map(drop).map_err(|_| anyhow::anyhow!("nobody follows the nodes"));
        }
        let seconds = patience.as_secs();
        anyhow::bail!("after {seconds} s they stand so: {}", *self.seen.borrow())
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Seen {
    /// Whether there are so many nodes and all of them are finished in `version`.
    pub(crate) fn are_finished(&self, count: usize, version: &str) -> bool {
        let is_finished =
            |node: &Standing| node.version.as_deref() == Some(version) && !node.is_disrupted();
        self.nodes.len() == count && self.nodes.values().all(is_finished)
    }

    fn take(&mut self, event: Event<Node>) {
        match event {
            Event::Init => self.nodes.clear(),
            Event::Apply(node) | Event::InitApply(node) => {
                self.nodes.insert(node.name_any(), Standing::of(&node));
            }
            Event::Delete(node) => drop(self.nodes.remove(&node.name_any())),
            Event::InitDone => {}
        }
        let disrupted = self.nodes.values().filter(|node| node.is_disrupted()).count();
        if let Some(most) = &mut self.most_disrupted {
            *most = disrupted.max(*most);
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nodes.is_empty() {
            return f.write_str("there are none");
        }
        for (number, (name, node)) in self.nodes.iter().enumerate() {
            let between = if number == 0 { "" } else { "; " };
            let version = node.version.as_deref().unwrap_or("none");
            write!(f, "{between}{name} version {version}")?;
            for why in &node.disrupted {
                write!(f, ", {why}")?;
            }
        }
        Ok(())
    }
}

impl Standing {
    fn of(node: &Node) -> Self {
        let status = node.status.iter();
        let mut conditions = status.filter_map(|status| status.conditions.as_ref()).flatten();
        let is_ready = conditions.any(|it| it.type_ == "Ready" && it.status == "True");
        let is_cordoned = node.spec.as_ref().is_some_and(|it| it.unschedulable == Some(true));
        let has_slot = node.labels().contains_key(names::UPGRADING_LABEL);
        let is_leaving = node.metadata.deletion_timestamp.is_some();
        let disrupted = [
            (!is_ready, "not ready"),
            (is_cordoned, "cordoned"),
            (has_slot, "upgrading"),
            (is_leaving, "leaving"),
        ];
        Self {
            disrupted: disrupted.iter().filter(|(is_so, _)| *is_so).map(|(_, why)| *why).collect(),
            version: node.annotations().get(names::VERSION_ANNOTATION).cloned(),
        }
    }

    const fn is_disrupted(&self) -> bool {
        !self.disrupted.is_empty()
    }
}

async fn follow(nodes: Api<Node>, tell: Arc<watch::Sender<Seen>>) {
    let windows = format!("{}={}", names::OS_LABEL, names::OS_WINDOWS);
    let windows = watcher::Config::default().labels(&windows);
    let mut events = std::pin::pin!(watcher(nodes, windows).default_backoff());
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => tell.send_modify(|seen| seen.take(event)),
            Err(error) => tracing::warn!(%error, "the nodes are not seen"),
        }
    }
}
