//! Follows the Machines and MachineSets of the cluster, once for all controllers.

mod seen;

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wmco_core::facts::{MachineFacts, MachineSetFacts};
use wmco_core::names::{machine_api, objects};

use crate::kinds::{Followed, Kind, Kinds, KindsWatch, enter, follow};
pub use seen::SeenMachines;

/// The known facts of all Machines and MachineSets.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct MachineInventory {
    /// The Machines, sorted by name.
    pub machines: Vec<MachineFacts>,
    /// The MachineSets, sorted by name.
    pub sets: Vec<MachineSetFacts>,
}

/// The Machines and MachineSets as a watch shows them; cheap to clone.
pub type MachineWatch = KindsWatch<MachineKinds>;

/// Facts of both kinds.
#[derive(Debug, Default)]
pub struct MachineKinds {
    machines: Kind<MachineFacts>,
    sets: Kind<MachineSetFacts>,
}

impl Kinds for MachineKinds {
    type Inventory = MachineInventory;

    fn is_known(&self) -> bool {
        self.machines.known().is_some() && self.sets.known().is_some()
    }

    fn collect(&self) -> MachineInventory {
        let machines = self.machines.known().into_iter().flat_map(|all| all.values().cloned());
        let sets = self.sets.known().into_iter().flat_map(|all| all.values().cloned());
        MachineInventory { machines: machines.collect(), sets: sets.collect() }
    }
}

/// Starts to follow them until `stop`; `tell` is called after each change.
pub fn watch(
    client: &Client,
    tell: impl Fn() + Clone + Send + 'static,
    stop: &CancellationToken,
    tasks: &TaskTracker,
) -> MachineWatch {
    let watch = MachineWatch::unknown();
    let (.., machine) = objects::MACHINE;
    let machines = follow(followed(client, machine), {
        let (watch, tell) = (watch.clone(), tell.clone());
        move |seen| {
            watch.update(&tell, |kinds| enter(seen, &mut kinds.machines, MachineFacts::of));
        }
    });
    let sets = follow(followed(client, machine_api::MACHINE_SET_KIND), {
        let watch = watch.clone();
        move |seen| {
            watch.update(&tell, |kinds| enter(seen, &mut kinds.sets, MachineSetFacts::of));
        }
    });
    let both = futures::future::join(machines, sets);
    let stop = stop.clone();
    tasks.spawn(async move { stop.run_until_cancelled(both).await });
    watch
}

fn followed(client: &Client, kind: &str) -> Followed {
    let (group, version, _) = objects::MACHINE;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let namespace = objects::MACHINE_API_NAMESPACE;
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    Followed { api, config: watcher::Config::default(), strip }
}

/// Takes off what nobody here looks at and what is most of an object.
fn strip(object: &mut DynamicObject) {
    object.metadata.managed_fields = None;
    object.metadata.annotations = None;
    if let Some(spec) = object.data.get_mut("spec").and_then(Value::as_object_mut) {
        // What remains is how many Machines a MachineSet is to have, with which labels and with which user data.
        let mut template = spec.get_mut("template").map(Value::take);
        spec.retain(|key, _| key == "replicas");
        if let Some(template) = &mut template {
            let mut take = |path| template.pointer_mut(path).map(Value::take);
            let labels = take("/metadata/labels").unwrap_or_default();
            let reference = take("/spec/providerSpec/value/userDataSecret").unwrap_or_default();
            let kept = json!({
                "metadata": {"labels": labels},
                "spec": {"providerSpec": {"value": {"userDataSecret": reference}}},
            });
            spec.insert("template".to_owned(), kept);
        }
    }
    if let Some(status) = object.data.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("providerStatus");
    }
}

#[cfg(test)]
mod tests;
