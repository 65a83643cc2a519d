//! Follows Machines, where the cluster has any: their kubelets are another approver's.

use std::collections::HashMap;

use futures::stream::{self, BoxStream};
use futures::{FutureExt as _, StreamExt as _};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt as _};
use wmco_core::limits;
use wmco_core::names::objects;
use wmco_csr::MachineFacts;

type Events = BoxStream<'static, watcher::Result<Event<DynamicObject>>>;

/// All Machines, as a watch shows them.
pub(super) struct Machines {
    api: Api<DynamicObject>,
    events: Events,
    known: HashMap<String, MachineFacts>,
    /// While all of them are being listed: those seen so far.
    listed: HashMap<String, MachineFacts>,
}

impl Machines {
    pub(super) fn new(client: Client) -> Self {
        let (group, version, kind) = objects::MACHINE;
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api = Api::namespaced_with(client, objects::MACHINE_API_NAMESPACE, &resource);
        Self { events: watch(&api), api, known: HashMap::new(), listed: HashMap::new() }
    }

    /// Waits until they have been listed or have changed, and gives all of them.
    ///
    /// A cluster without Machine API has none; whether it got one meanwhile is looked up now and
    /// then. Any other failure is no answer, so that no Machine is taken for a host.
    pub(super) async fn changed(&mut self) -> Vec<MachineFacts> {
        loop {
            match self.events.next().await {
                Some(Ok(event)) => {
                    if self.follow(event) {
                        break;
                    }
                }
                Some(Err(watcher::Error::InitialListFailed(kube::Error::Api(status))))
                    if status.code == 404 =>
                {
                    self.known.clear();
                    let pause = limits::RESYNC.unsigned_abs();
                    let watch = watch(&self.api);
                    let later = tokio::time::sleep(pause).map(|()| watch);
                    self.events = stream::once(later).flatten().boxed();
                    break;
                }
                Some(Err(error)) => {
                    tracing::warn!(%error, "watch of Machines failed, trying again");
                }
                None => return std::future::pending().await,
            }
        }
        self.known.values().cloned().collect()
    }

    /// Takes one event in and tells whether anything is another now.
    fn follow(&mut self, event: Event<DynamicObject>) -> bool {
        match event {
            Event::Init => {
                self.listed.clear();
                false
            }
            Event::InitApply(machine) => {
                self.listed.insert(machine.name_any(), facts(machine));
                false
            }
            Event::InitDone => {
                self.known = std::mem::take(&mut self.listed);
                true
            }
            Event::Apply(machine) => {
                let (name, facts) = (machine.name_any(), facts(machine));
                self.known.insert(name, facts.clone()) != Some(facts)
            }
            Event::Delete(machine) => self.known.remove(&machine.name_any()).is_some(),
        }
    }
}

fn watch(api: &Api<DynamicObject>) -> Events {
    watcher(api.clone(), watcher::Config::default()).default_backoff().boxed()
}

/// One that cannot be read claims its own name at least.
fn facts(machine: DynamicObject) -> MachineFacts {
    let name = machine.name_any();
    let object = serde_json::to_value(machine).and_then(serde_json::from_value);
    object.unwrap_or_else(|_| MachineFacts { names: vec![name], ..MachineFacts::default() })
}
