//! What wakes a pass, in the cluster and on the host.

use std::sync::Arc;

use futures::{Stream, StreamExt as _, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use wmco_core::names::objects;
use wmco_core::text::chain;
use wmco_services::daemon::{self, WatchedServices};
use wmco_services::limits;
use wmco_services::windows::Windows;

/// An item for every change of what a pass reads from the Node, and of services ConfigMaps.
///
/// Source: `docs/contract/wicd.md`, WICD50.
pub(super) fn in_cluster(
    client: &Client,
    namespace: &str,
    node: &str,
) -> impl Stream<Item = ()> + use<> {
    let nodes: Api<Node> = Api::all(client.clone());
    let own = watcher::Config::default().fields(&format!("metadata.name={node}"));
    let nodes = watcher(nodes, own)
        .default_backoff()
        .filter_map(async |event| heard("its node", event))
        .scan(Own::default(), |own, event| std::future::ready(Some(own.changes(event))))
        .filter(|changed| std::future::ready(*changed))
        .map(drop);
    // Others in the namespace may be big, so only their names come over.
    let maps: Api<PartialObjectMeta<ConfigMap>> = Api::namespaced(client.clone(), namespace);
    let maps = watcher(maps, watcher::Config::default())
        .default_backoff()
        .touched_objects()
        .filter_map(async |map| is_manifest(&heard("config maps", map)?.name_any()).then_some(()));
    stream::select(nodes, maps)
}

/// What a watch brought. After an error it begins anew by itself.
fn heard<T>(of: &str, item: Result<T, watcher::Error>) -> Option<T> {
    item.inspect_err(|error| tracing::warn!(error = chain(error), "cannot watch {of}")).ok()
}

/// What was last heard of the own Node.
#[derive(Default)]
struct Own {
    /// What of it concerns a pass, null while there is none; nothing before it was heard of.
    last: Option<Value>,
    /// Whether the list that is being read has it.
    listed: bool,
}

impl Own {
    /// Whether a pass may find something new after `event`.
    fn changes(&mut self, event: Event<Node>) -> bool {
        let now = match event {
            Event::Init => {
                self.listed = false;
                return false;
            }
            Event::InitDone if self.listed => return false,
            // A deleted Node looks as it did before, so it must not be compared.
            Event::InitDone | Event::Delete(_) => Value::Null,
            Event::InitApply(node) => {
                self.listed = true;
                daemon::pass_inputs(&json!(node))
            }
            Event::Apply(node) => daemon::pass_inputs(&json!(node)),
        };
        let changed = self.last.as_ref() != Some(&now);
        self.last = Some(now);
        changed
    }
}

fn is_manifest(name: &str) -> bool {
    name.starts_with(objects::SERVICES_CONFIG_MAP_PREFIX)
}

/// Ends when the services are not as they were `seen` any more; never without anything to compare.
pub(super) async fn in_services(host: &Arc<dyn Windows>, seen: Option<WatchedServices>) {
    let Some(seen) = seen else { return std::future::pending().await };
    loop {
        tokio::time::sleep(limits::DAEMON_POLL.unsigned_abs()).await;
        let services = Arc::clone(host);
        match tokio::task::spawn_blocking(move || services.services().statuses()).await {
            Ok(Ok(now)) if seen.with(&now) != seen => return,
            Ok(Ok(_)) => {}
            // The next pass tells people, if it cannot list them either.
            Ok(Err(error)) => tracing::debug!(%error, "cannot look at the services"),
            Err(error) => tracing::debug!(%error, "a look at the services ended by itself"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(label: &str) -> Node {
        let node = json!({"metadata": {"name": "win-1", "labels": {"a": label}}});
        serde_json::from_value(node).unwrap()
    }

    #[test]
    fn a_node_changes_when_it_comes_differs_or_goes() {
        let mut own = Own::default();
        let events = vec![
            (Event::Init, false),
            (Event::InitApply(node("1")), true),
            (Event::InitDone, false),
            (Event::Apply(node("1")), false),
            (Event::Apply(node("2")), true),
            // The same Node in a list that is read anew.
            (Event::Init, false),
            (Event::InitApply(node("2")), false),
            (Event::InitDone, false),
            (Event::Delete(node("2")), true),
            (Event::Apply(node("2")), true),
            // It went while nobody watched.
            (Event::Init, false),
            (Event::InitDone, true),
        ];
        for (place, (event, expected)) in events.into_iter().enumerate() {
            assert_eq!(own.changes(event), expected, "{place}");
        }
    }

    #[test]
    fn a_node_that_is_not_there_from_the_start_is_told() {
        let mut own = Own::default();
        assert!(!own.changes(Event::Init));
        assert!(own.changes(Event::InitDone));
    }
}
