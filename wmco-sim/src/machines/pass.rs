//! A pass over all MachineSets, Machines and Nodes: observes them, and takes the next steps.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Node;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;
use tokio::time::Instant;
use wmco_core::names::{self, objects};

use super::cloud::{self, Instance};
use super::kinds::Machine;
use super::machine::of_machine;
use super::resources::{PassError, Resources, unless_gone};
use super::shared::Shared;
use super::{link, sets};

/// Runs a pass; returns the latest time of the next one. Objects are listed, not read from a cache, so that nothing is
/// created twice.
pub(super) async fn pass(
    shared: &Shared,
    resources: &Resources,
) -> Result<Option<Instant>, PassError> {
    let all = ListParams::default();
    let machines = resources.machines.list(&all).await?.items;
    // Listed after the Machines: a set that is deleted with its Machines is no longer in the list.
    let sets = resources.sets.list(&all).await?.items;
    let nodes = resources.nodes.list(&all).await?.items;
    let linked = link_nodes(shared, resources, &machines, &nodes).await?;
    for set in &sets {
        sets::pass(shared, resources, set, &machines, &linked).await?;
    }
    let mut next: Option<Instant> = None;
    for machine in &machines {
        let node = linked.get(machine.uid()).copied();
        let due = of_machine(shared, resources, machine, node).await?;
        next = [next, due].into_iter().flatten().min();
    }
    forget(shared, &machines);
    Ok(next)
}

/// Links Nodes to their instances and Machines; returns the Node of each Machine by the Machine's UID.
async fn link_nodes<'a>(
    shared: &Shared,
    resources: &Resources,
    machines: &[Machine],
    nodes: &'a [Node],
) -> Result<BTreeMap<String, &'a Node>, PassError> {
    let mut linked = BTreeMap::new();
    for node in nodes.iter().filter(|node| node.metadata.deletion_timestamp.is_none()) {
        let provider_id = link::provider_id(&shared.state().cloud, node).map(str::to_owned);
        let machine = link::machine(machines, node, provider_id.as_deref());
        let spec = node.spec.as_ref().and_then(|spec| spec.provider_id.clone());
        let name = machine.map(|m| format!("{}/{}", objects::MACHINE_API_NAMESPACE, m.name()));
        let annotations = node.metadata.annotations.as_ref();
        let annotation = annotations.and_then(|all| all.get(names::MACHINE_ANNOTATION));
        let mut patch = json!({});
        if let Some(id) = provider_id.filter(|_| spec.is_none_or(|id| id.is_empty())) {
            json_patch::merge(&mut patch, &json!({"spec": {"providerID": id}}));
        }
        if name.is_some() && name.as_ref() != annotation {
            let annotation = json!({ names::MACHINE_ANNOTATION: name });
            json_patch::merge(&mut patch, &json!({"metadata": {"annotations": annotation}}));
        }
        if patch != json!({}) {
            let name = node.metadata.name.as_deref().unwrap_or_default();
            let patched =
                resources.nodes.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await;
            unless_gone(patched)?;
        }
        linked.extend(machine.map(|machine| (machine.uid().to_owned(), node)));
    }
    Ok(linked)
}

/// Removes instances whose Machine is gone for any reason.
fn forget(shared: &Shared, machines: &[Machine]) {
    let known: BTreeSet<&str> = machines.iter().map(Machine::uid).collect();
    let mut state = shared.state();
    let (stay, gone) = std::mem::take(&mut state.cloud.instances)
        .into_iter()
        .partition(|(uid, _)| known.contains(uid.as_str()));
    state.cloud.instances = stay;
    state.ordered.retain(|uid, _| known.contains(uid.as_str()));
    state.refused.retain(|uid, _| known.contains(uid.as_str()));
    drop(state);
    let gone: BTreeMap<String, Instance> = gone;
    cloud::switch_off(gone.into_values());
}
