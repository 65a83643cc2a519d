//! Reconciles MachineSets: creates and deletes Machines to reach their replicas.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::kinds::{FINALIZER, Machine, MachineSet, MachineSetStatus};
use super::oddity::Oddity;
use super::resources::{PassError, Resources, unless_gone};
use super::scale::scaling;
use super::shared::Shared;

/// Creates, adopts and deletes Machines of a set, and updates its counts.
pub(super) async fn pass(
    shared: &Shared,
    resources: &Resources,
    set: &MachineSet,
    machines: &[Machine],
    linked: &BTreeMap<String, &Node>,
) -> Result<(), PassError> {
    let counted: Vec<&Machine> = machines.iter().filter(|machine| belongs(machine, set)).collect();
    if set.metadata.deletion_timestamp.is_none() {
        for machine in &counted {
            adopt(shared, resources, set, machine).await?;
        }
        let replicas = usize::try_from(set.spec.replicas.unwrap_or(1)).unwrap_or(0);
        let scaling = scaling(replicas, set.spec.delete_policy.as_deref(), &counted);
        for _ in 0..scaling.create {
            resources.machines.create(&PostParams::default(), &new_machine(set)).await?;
        }
        for name in scaling.delete {
            unless_gone(resources.machines.delete(name, &DeleteParams::default()).await)?;
        }
    }
    let staying = counted.iter().filter(|machine| !machine.is_deleting());
    let ready = staying
        .clone()
        .filter(|machine| linked.get(machine.uid()).is_some_and(|node| is_ready(node)));
    let (all, ready) = (number(staying.count()), number(ready.count()));
    let status = MachineSetStatus {
        available_replicas: ready,
        fully_labeled_replicas: all,
        observed_generation: set.metadata.generation.unwrap_or_default(),
        ready_replicas: ready,
        replicas: all,
    };
    if set.status.as_ref() != Some(&status) {
        let name = set.metadata.name.as_deref().unwrap_or_default();
        let patch = Patch::Merge(json!({ "status": status }));
        unless_gone(resources.sets.patch_status(name, &PatchParams::default(), &patch).await)?;
    }
    Ok(())
}

/// Whether a Machine has the labels of a set and no other controller.
fn belongs(machine: &Machine, set: &MachineSet) -> bool {
    let owners = machine.metadata.owner_references.iter().flatten();
    let mut controllers = owners.filter(|owner| owner.controller == Some(true));
    let is_ours = |owner: &OwnerReference| Some(&owner.uid) == set.metadata.uid.as_ref();
    controllers.next().is_none_or(is_ours) && selects(&set.spec.selector, machine)
}

/// Supports equal labels only. An empty selector selects nothing.
fn selects(selector: &LabelSelector, machine: &Machine) -> bool {
    let wanted = selector.match_labels.iter().flatten().collect::<Vec<_>>();
    let labels = machine.metadata.labels.clone().unwrap_or_default();
    !wanted.is_empty() && wanted.iter().all(|(key, value)| labels.get(*key) == Some(value))
}

async fn adopt(
    shared: &Shared,
    resources: &Resources,
    set: &MachineSet,
    machine: &Machine,
) -> Result<(), PassError> {
    let is_owned = machine.metadata.owner_references.as_ref().is_some_and(|all| !all.is_empty());
    let is_left = shared
        .state()
        .oddities
        .get(machine.name())
        .is_some_and(|oddities| oddities.contains(&Oddity::NoOwner));
    if is_owned || is_left || machine.is_deleting() {
        return Ok(());
    }
    let patch = Patch::Merge(json!({"metadata": {"ownerReferences": [owner(set)]}}));
    let name = machine.name();
    unless_gone(resources.machines.patch(name, &PatchParams::default(), &patch).await)
}

fn new_machine(set: &MachineSet) -> Machine {
    let template = &set.spec.template;
    let texts = |map: &serde_json::Map<String, serde_json::Value>| {
        let text = |(key, value): (&String, &serde_json::Value)| {
            Some((key.clone(), value.as_str()?.to_owned()))
        };
        Some(map.iter().filter_map(text).collect::<BTreeMap<_, _>>())
    };
    let mut machine = Machine::new("", template.spec.clone());
    machine.metadata.name = None;
    // The API adds five characters.
    machine.metadata.generate_name =
        Some(format!("{}-", set.metadata.name.as_deref().unwrap_or_default()));
    machine.metadata.labels = texts(&template.metadata.labels);
    machine.metadata.annotations = texts(&template.metadata.annotations);
    machine.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
    machine.metadata.owner_references = Some(vec![owner(set)]);
    machine
}

fn owner(set: &MachineSet) -> OwnerReference {
    OwnerReference {
        api_version: "machine.openshift.io/v1beta1".to_owned(),
        block_owner_deletion: Some(true),
        controller: Some(true),
        kind: "MachineSet".to_owned(),
        name: set.metadata.name.clone().unwrap_or_default(),
        uid: set.metadata.uid.clone().unwrap_or_default(),
    }
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|c| c.type_ == "Ready" && c.status == "True")
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
