//! Follows all Nodes, whatever they run: none of them may lose a name or an address to a host.
//!
//! Of each only what a decision looks at is kept, by the docket.

use std::collections::HashSet;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::Node;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt as _};

/// All Nodes, as a watch shows them.
pub(super) struct Nodes {
    events: BoxStream<'static, watcher::Result<Event<Node>>>,
    known: HashSet<String>,
    /// While all of them are being listed: those seen so far.
    listed: HashSet<String>,
}

/// What a watch shows.
pub(super) enum Change {
    /// A Node was listed, made or changed.
    Seen(Box<Node>),
    /// Nodes are gone; every other one has been seen.
    Gone(Vec<String>),
}

impl Nodes {
    pub(super) fn new(client: Client) -> Self {
        let events = watcher(Api::all(client), watcher::Config::default());
        let events = events.default_backoff().boxed();
        Self { events, known: HashSet::new(), listed: HashSet::new() }
    }

    /// Waits for the next change.
    pub(super) async fn next(&mut self) -> Change {
        loop {
            match self.events.next().await {
                Some(Ok(Event::Init)) => self.listed.clear(),
                Some(Ok(Event::InitApply(node))) => {
                    self.listed.insert(node.name_any());
                    return Change::Seen(Box::new(node));
                }
                Some(Ok(Event::InitDone)) => {
                    let listed = std::mem::take(&mut self.listed);
                    let before = std::mem::replace(&mut self.known, listed);
                    return Change::Gone(before.difference(&self.known).cloned().collect());
                }
                Some(Ok(Event::Apply(node))) => {
                    self.known.insert(node.name_any());
                    return Change::Seen(Box::new(node));
                }
                Some(Ok(Event::Delete(node))) => {
                    let name = node.name_any();
                    self.known.remove(&name);
                    return Change::Gone(vec![name]);
                }
                Some(Err(error)) => tracing::warn!(%error, "watch of Nodes failed, trying again"),
                None => return std::future::pending().await,
            }
        }
    }
}
