//! All Nodes of the cluster: a cache, and the question whether it is as new as it has to be.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::runtime::reflector::Store;
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt as _};
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;
use wmco_core::facts::NodeFacts;
use wmco_core::limits;
use wmco_core::node::NodeSearch;

/// Most Nodes in one answer of the API server.
const PAGE: u32 = 500;

/// The cache with what it has seen; cheap to clone.
#[derive(Clone)]
pub struct Nodes {
    store: Store<Node>,
    /// The newest resource version that the watch has brought.
    newest: watch::Receiver<u64>,
    /// The last list that was read past the cache, and when that began.
    list: Arc<Mutex<Option<List>>>,
}

/// All Nodes, as the API server told when it was asked after `begun`.
#[derive(Clone)]
struct List {
    begun: Instant,
    nodes: Arc<Vec<NodeFacts>>,
}

impl Nodes {
    /// The Nodes in `store`; `newest` follows the watch that fills it.
    pub fn new(store: Store<Node>, newest: watch::Receiver<u64>) -> Self {
        Self { store, newest, list: Arc::default() }
    }

    /// Every Node that was seen last.
    pub fn state(&self) -> Vec<Arc<Node>> {
        self.store.state()
    }

    /// The cache itself.
    pub fn store(&self) -> &Store<Node> {
        &self.store
    }

    /// The name of a Node that is meant by `search` and was there after this was called: one GET for
    /// each name, and the cache for the addresses once it is as new as an answer of the API server.
    ///
    /// # Errors
    /// The API server's.
    pub async fn find(&self, client: &Client, search: &NodeSearch) -> kube::Result<Option<String>> {
        let nodes: Api<Node> = Api::all(client.clone());
        for name in &search.names {
            if nodes.get_metadata_opt(name).await?.is_some() {
                return Ok(Some(name.clone()));
            }
        }
        let one = nodes.list_metadata(&ListParams::default().limit(1)).await?;
        let version = one.metadata.resource_version.and_then(|version| version.parse().ok());
        if self.has_seen(version).await {
            let state = self.store.state();
            let facts = state.iter().map(|node| NodeFacts::from(node.as_ref()));
            return Ok(meant(facts, search));
        }
        let all = self.read_past_cache(&nodes).await?;
        Ok(meant(all.iter().cloned(), search))
    }

    /// Whether the watch has brought something as new as `version`. In a cluster where Nodes change
    /// often that is a moment; in a quiet one it may take long, and a list costs little there.
    async fn has_seen(&self, version: Option<u64>) -> bool {
        let Some(version) = version else { return false };
        let mut newest = self.newest.clone();
        let seen = newest.wait_for(|newest| *newest >= version);
        let patience = limits::CACHE_PROOF.unsigned_abs();
        tokio::time::timeout(patience, seen).await.is_ok_and(|seen| seen.is_ok())
    }

    /// Lists all Nodes; the list begins after this call. Callers that arrive meanwhile share the next
    /// list, so that many calls at once cost two lists and not one each.
    async fn read_past_cache(&self, api: &Api<Node>) -> kube::Result<Arc<Vec<NodeFacts>>> {
        let asked = Instant::now();
        let mut last = self.list.lock().await;
        if let Some(list) = last.as_ref().filter(|list| list.begun >= asked) {
            return Ok(Arc::clone(&list.nodes));
        }
        let begun = Instant::now();
        let mut all = Vec::new();
        let mut params = ListParams::default().limit(PAGE);
        loop {
            let page = api.list(&params).await?;
            all.extend(page.items.iter().map(NodeFacts::from));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => break,
            }
        }
        let nodes = Arc::new(all);
        *last = Some(List { begun, nodes: Arc::clone(&nodes) });
        Ok(nodes)
    }
}

fn meant(nodes: impl Iterator<Item = NodeFacts>, search: &NodeSearch) -> Option<String> {
    nodes.into_iter().find(|node| search.is_at(&node.addresses)).map(|node| node.name)
}

/// The facts of all Nodes. Only of those that changed they are read anew.
#[derive(Debug, Default)]
pub struct SeenNodes {
    facts: Vec<NodeFacts>,
    /// The objects that they were read from, with their places, by name.
    read: HashMap<String, (Arc<Node>, usize)>,
}

impl SeenNodes {
    /// The facts of the Nodes in `state`, in any order.
    pub fn update(&mut self, state: &[Arc<Node>]) -> &[NodeFacts] {
        for node in state {
            match self.read.get_mut(node.metadata.name.as_deref().unwrap_or_default()) {
                Some((read, _)) if Arc::ptr_eq(read, node) => {}
                Some((read, place)) => {
                    if let Some(facts) = self.facts.get_mut(*place) {
                        *facts = NodeFacts::from(node.as_ref());
                    }
                    *read = Arc::clone(node);
                }
                None => {
                    self.read.insert(node.name_any(), (Arc::clone(node), self.facts.len()));
                    self.facts.push(NodeFacts::from(node.as_ref()));
                }
            }
        }
        if self.facts.len() > state.len() {
            self.forget_others(state);
        }
        &self.facts
    }

    fn forget_others(&mut self, state: &[Arc<Node>]) {
        let there: HashSet<&str> =
            state.iter().filter_map(|node| node.metadata.name.as_deref()).collect();
        self.facts.retain(|facts| there.contains(facts.name.as_str()));
        self.read.retain(|name, _| there.contains(name.as_str()));
        for (place, facts) in self.facts.iter().enumerate() {
            if let Some((_, at)) = self.read.get_mut(&facts.name) {
                *at = place;
            }
        }
    }
}

/// Takes off what nobody here looks at, which is most of a Node.
pub fn strip(node: &mut Node) {
    node.metadata.managed_fields = None;
    if let Some(status) = &mut node.status {
        status.images = None;
        status.volumes_attached = None;
        status.volumes_in_use = None;
    }
}

/// Which events of the watch are worth a pass. Heartbeats of nodes that are no Windows nodes are not;
/// those of the others bring the version that a change of them is based on.
#[derive(Debug, Default)]
pub struct Heartbeats {
    others: HashMap<String, NodeFacts>,
}

impl Heartbeats {
    /// Whether something changed that somebody decides about.
    pub fn changes(&mut self, event: &watcher::Event<Node>) -> bool {
        match event {
            watcher::Event::Apply(node) | watcher::Event::InitApply(node) => {
                // A heartbeat brings a new version and nothing else.
                let facts = NodeFacts { resource_version: 0, ..NodeFacts::from(node) };
                let name = node.name_any();
                if facts.is_windows() {
                    self.others.remove(&name);
                    return true;
                }
                self.others.insert(name, facts.clone()) != Some(facts)
            }
            watcher::Event::Delete(node) => {
                self.others.remove(&node.name_any());
                true
            }
            watcher::Event::Init => {
                self.others.clear();
                false
            }
            watcher::Event::InitDone => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(os: &str, address: &str, heartbeat: &str) -> Node {
        serde_json::from_value(serde_json::json!({
            "metadata": { "name": "n", "labels": { "kubernetes.io/os": os } },
            "status": {
                "addresses": [{ "type": "InternalIP", "address": address }],
                "conditions": [{ "type": "Ready", "status": "True", "lastHeartbeatTime": heartbeat }],
            },
        }))
        .unwrap()
    }

    #[test]
    fn a_heartbeat_of_a_linux_node_is_no_change() {
        let mut heartbeats = Heartbeats::default();
        let mut apply =
            |os, address, time| heartbeats.changes(&watcher::Event::Apply(node(os, address, time)));
        assert!(apply("linux", "10.0.0.1", "2026-01-01T00:00:00Z"));
        assert!(!apply("linux", "10.0.0.1", "2026-01-01T00:00:10Z"));
        assert!(apply("linux", "10.0.0.2", "2026-01-01T00:00:20Z"));
        assert!(apply("windows", "10.0.0.2", "2026-01-01T00:00:30Z"));
        assert!(apply("windows", "10.0.0.2", "2026-01-01T00:00:40Z"));
        assert!(apply("linux", "10.0.0.2", "2026-01-01T00:00:50Z"), "its label came back");
    }
    #[test]
    fn facts_follow_their_nodes() {
        let named = |name: &str, address: &str| {
            let mut node = node("windows", address, "2026-01-01T00:00:00Z");
            node.metadata.name = Some(name.to_owned());
            Arc::new(node)
        };
        let mut seen = SeenNodes::default();
        let mut shown = |state: &[Arc<Node>]| {
            let facts = seen.update(state).iter();
            let mut shown: Vec<String> =
                facts.map(|node| format!("{} {}", node.name, node.addresses[0])).collect();
            shown.sort();
            shown.join(", ")
        };
        let (a, b, c) = (named("a", "10.0.0.1"), named("b", "10.0.0.2"), named("c", "10.0.0.3"));
        assert_eq!(shown(&[a.clone(), b]), "a 10.0.0.1, b 10.0.0.2");
        assert_eq!(shown(&[c.clone(), a.clone()]), "a 10.0.0.1, c 10.0.0.3");
        let moved = named("c", "10.0.0.4");
        assert_eq!(shown(&[moved, a]), "a 10.0.0.1, c 10.0.0.4");
        assert_eq!(shown(&[c]), "c 10.0.0.3");
        assert_eq!(shown(&[]), "");
    }
}
