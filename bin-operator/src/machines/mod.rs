//! Follows the Machines and MachineSets of the cluster, once for all controllers.
//!
//! # Guarantees
//! - Nothing is known before both kinds have been listed. From then on what was seen last is known, also
//!   while a watch is broken.
//! - A cluster without the Machine API has no Machines. It is looked at again, less and less often, in case
//!   that it gets one. A failure of any other kind is no answer.
//! - Machines that were there are not forgotten over one answer that the Machine API is missing.
//! - A change of an object that changes none of its facts is told to nobody.

mod kind;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt as _};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wmco_core::facts::{MachineFacts, MachineSetFacts};
use wmco_core::limits;
use wmco_core::names::{machine_api, objects};

use kind::Kind;

/// What is known of all Machines and MachineSets.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct MachineInventory {
    /// The Machines, sorted by name.
    pub machines: Vec<MachineFacts>,
    /// The MachineSets, sorted by name.
    pub sets: Vec<MachineSetFacts>,
}

/// The Machines and MachineSets as a watch shows them; cheap to clone.
///
/// [`Sources::changes`](crate::sources::Sources::changes) tells of their changes.
#[derive(Clone, Debug)]
pub struct MachineWatch {
    state: Arc<Mutex<State>>,
    known: Arc<watch::Sender<bool>>,
}

#[derive(Debug, Default)]
struct State {
    machines: Kind<MachineFacts>,
    sets: Kind<MachineSetFacts>,
    /// Made of the kinds when somebody asks; none after a change.
    inventory: Option<Arc<MachineInventory>>,
}

impl MachineWatch {
    /// Starts to follow them until `stop`; `tell` is called after each change.
    pub fn start(
        client: &Client,
        tell: impl Fn() + Clone + Send + 'static,
        stop: &CancellationToken,
        tasks: &TaskTracker,
    ) -> Self {
        let watch = Self::unknown();
        let (.., machine) = objects::MACHINE;
        let machines = follow(api(client, machine), {
            let (watch, tell) = (watch.clone(), tell.clone());
            move |seen| {
                watch.update(&tell, |state| enter(seen, &mut state.machines, MachineFacts::of));
            }
        });
        let sets = follow(api(client, machine_api::MACHINE_SET_KIND), {
            let watch = watch.clone();
            move |seen| {
                watch.update(&tell, |state| enter(seen, &mut state.sets, MachineSetFacts::of));
            }
        });
        let both = futures::future::join(machines, sets);
        let stop = stop.clone();
        tasks.spawn(async move { stop.run_until_cancelled(both).await });
        watch
    }

    fn unknown() -> Self {
        Self { state: Arc::default(), known: Arc::new(watch::Sender::new(false)) }
    }

    /// What is known; `None` before both kinds have been listed.
    pub fn inventory(&self) -> Option<Arc<MachineInventory>> {
        let mut state = self.lock();
        if state.inventory.is_none() {
            state.inventory = state.collect().map(Arc::new);
        }
        state.inventory.clone()
    }

    /// Waits until something is known.
    pub async fn known(&self) {
        // It is not closed as long as we have it.
        let _ = self.known.subscribe().wait_for(|known| *known).await;
    }

    /// Has the state changed by `change`, which tells whether it did.
    fn update(&self, tell: &impl Fn(), change: impl FnOnce(&mut State) -> bool) {
        let known = {
            let mut state = self.lock();
            if !change(&mut state) {
                return;
            }
            state.inventory = None;
            state.machines.known().is_some() && state.sets.known().is_some()
        };
        self.known.send_if_modified(|is_known| !std::mem::replace(is_known, known) && known);
        tell();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn collect(&self) -> Option<MachineInventory> {
        let machines = self.machines.known()?.values().cloned().collect();
        let sets = self.sets.known()?.values().cloned().collect();
        Some(MachineInventory { machines, sets })
    }
}

/// What a watch brings of a kind.
type Seen = Result<Event<DynamicObject>, Missing>;

/// The cluster does not have the kind.
struct Missing;

/// Takes in what a watch brings, and tells whether anything is another now.
fn enter<F: PartialEq>(seen: Seen, kind: &mut Kind<F>, read: fn(&Value) -> F) -> bool {
    let facts = |object: DynamicObject| {
        let name = object.name_any();
        // An object that was read from JSON can be written as JSON.
        let facts = read(&serde_json::to_value(object).unwrap_or_default());
        (name, facts)
    };
    match seen {
        Ok(Event::Init) => {
            kind.list_begins();
            false
        }
        Ok(Event::InitApply(object)) => {
            let (name, facts) = facts(object);
            kind.list_shows(name, facts);
            false
        }
        Ok(Event::InitDone) => kind.list_ends(),
        Ok(Event::Apply(object)) => {
            let (name, facts) = facts(object);
            kind.set(name, facts)
        }
        Ok(Event::Delete(object)) => kind.remove(&object.name_any()),
        Err(Missing) => kind.is_missing(),
    }
}

fn api(client: &Client, kind: &str) -> Api<DynamicObject> {
    let (group, version, _) = objects::MACHINE;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(client.clone(), objects::MACHINE_API_NAMESPACE, &resource)
}

/// Gives `see` what a watch brings, for ever.
async fn follow(api: Api<DynamicObject>, see: impl Fn(Seen)) {
    let kind = api.resource_url().rsplit('/').next().unwrap_or_default().to_owned();
    let first = limits::RETRY_FIRST.unsigned_abs();
    let mut pause = first;
    loop {
        let events = watcher(api.clone(), watcher::Config::default()).default_backoff();
        let mut events = std::pin::pin!(events.modify(strip));
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    if matches!(event, Event::InitDone) {
                        pause = first;
                    }
                    see(Ok(event));
                }
                Err(watcher::Error::InitialListFailed(error)) if is_missing(&error) => {
                    see(Err(Missing));
                    break;
                }
                // A new list tells whether it is missing.
                Err(watcher::Error::WatchStartFailed(error)) if is_missing(&error) => break,
                Err(error) => tracing::warn!(kind, %error, "watch failed, trying again"),
            }
        }
        tokio::time::sleep(pause).await;
        pause = longer(pause);
    }
}

fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// The pause after `pause` when the kind is still missing.
fn longer(pause: Duration) -> Duration {
    (pause * 2).min(limits::RESYNC.unsigned_abs())
}

/// Takes off what nobody here looks at and what is most of an object.
fn strip(object: &mut DynamicObject) {
    object.metadata.managed_fields = None;
    object.metadata.annotations = None;
    if let Some(spec) = object.data.get_mut("spec").and_then(Value::as_object_mut) {
        // What remains is how many Machines a MachineSet is to have.
        spec.retain(|key, _| key == "replicas");
    }
    if let Some(status) = object.data.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("providerStatus");
    }
}

#[cfg(test)]
mod tests;
