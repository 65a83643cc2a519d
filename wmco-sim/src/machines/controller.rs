//! Runs a pass whenever something may have changed.

use std::convert::Infallible;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{BoxStream, select_all};
use futures::{FutureExt as _, StreamExt as _};
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::core::PartialObjectMeta;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep_until};
use wmco_core::names::objects;
use wmco_core::text::chain;

use super::kinds::{Machine, MachineSet};
use super::pass::pass;
use super::resources::Resources;
use super::shared::Shared;

/// Pause before another pass after a failed one.
const RETRY: Duration = Duration::from_millis(100);

/// Runs until dropped.
pub(super) async fn run(shared: Arc<Shared>, client: Client) -> Infallible {
    let resources = Resources::new(&client);
    let namespace = objects::MACHINE_API_NAMESPACE;
    let mut changes = select_all([
        changes(Api::<PartialObjectMeta<MachineSet>>::namespaced(client.clone(), namespace)),
        changes(Api::<PartialObjectMeta<Machine>>::namespaced(client.clone(), namespace)),
        changes(Api::<PartialObjectMeta<Secret>>::namespaced(client.clone(), namespace)),
        // Full objects, for their status.
        changes(Api::<Node>::all(client)),
    ]);
    loop {
        // One pass observes all changes until now.
        while changes.next().now_or_never().flatten().is_some() {}
        let next = match pass(&shared, &resources).await {
            Ok(next) => next,
            Err(error) => {
                tracing::debug!(error = chain(&error), "a pass of the machine api failed");
                Some(Instant::now() + RETRY)
            }
        };
        let due = async {
            match next {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = changes.next() => {}
            () = shared.wake.notified() => {}
            () = due => {}
        }
    }
}

fn changes<K>(api: Api<K>) -> BoxStream<'static, ()>
where
    K: Clone + Debug + DeserializeOwned + Resource + Send + 'static,
{
    watcher(api, watcher::Config::default()).default_backoff().map(|_| ()).boxed()
}
