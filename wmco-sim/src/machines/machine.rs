//! Reconciles a Machine: its instance, its host, and its status.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use serde_json::{Value, json};
use tokio::time::Instant;
use wmco_core::names::objects;
use wmco_core::protocol::FeatureState;

use super::boot::Booted;
use super::cloud::{self, Instance};
use super::kinds::{FINALIZER, Machine};
use super::oddity::Oddity;
use super::resources::{PassError, Resources, unless_gone};
use super::shared::Shared;
use super::status::{self, Facts};
use crate::host::{Fault, SimHost};

/// Reconciles a Machine; returns when the next pass is due without an event.
pub(super) async fn of_machine(
    shared: &Shared,
    resources: &Resources,
    machine: &Machine,
    node: Option<&Node>,
) -> Result<Option<Instant>, PassError> {
    let oddities = shared.state().oddities.get(machine.name()).cloned().unwrap_or_default();
    let finalizers = machine.metadata.finalizers.clone().unwrap_or_default();
    let is_kept = finalizers.iter().any(|name| name == FINALIZER);
    if !machine.is_deleting() && !is_kept {
        let all: Vec<_> = finalizers.into_iter().chain([FINALIZER.to_owned()]).collect();
        patch(resources, machine, &json!({"metadata": {"finalizers": all}})).await?;
        return Ok(None);
    }
    let due = if machine.is_deleting() { None } else { host(shared, resources, machine).await? };
    show(shared, resources, machine, node, &oddities).await?;
    if machine.is_deleting() && is_kept && !oddities.contains(&Oddity::StuckInDeletion) {
        let gone = shared.state().cloud.instances.remove(machine.uid());
        cloud::switch_off(gone);
        if let Some(node) = node {
            delete_node(resources, node).await?;
        }
        let rest: Vec<_> = finalizers_without_ours(machine);
        patch(resources, machine, &json!({"metadata": {"finalizers": rest}})).await?;
    }
    Ok(due)
}

/// Creates the instance and its host when they are due; returns that time.
async fn host(
    shared: &Shared,
    resources: &Resources,
    machine: &Machine,
) -> Result<Option<Instant>, PassError> {
    let uid = machine.uid();
    let now = Instant::now();
    let (instance, ordered) = {
        let mut state = shared.state();
        if state.refused.contains_key(uid) {
            return Ok(None);
        }
        let ordered = *state.ordered.entry(uid.to_owned()).or_insert(now);
        (state.cloud.instances.get(uid).cloned(), ordered)
    };
    let settings = &shared.settings;
    let Some(instance) = instance else {
        let due = ordered + settings.provisioning;
        // The first phase is always reported, however short it is.
        if now < due || machine.status.as_ref().is_none_or(|status| status.phase.is_none()) {
            return Ok(Some(due));
        }
        let Some(user_data) = user_data(resources, machine).await? else { return Ok(None) };
        let booted = Booted::with(&settings.platform, &user_data);
        let ready_at = now + settings.boot;
        let (platform, reuse) = (settings.platform.as_str(), settings.reuse_addresses);
        let mut state = shared.state();
        let made = state.cloud.create(platform, machine.name(), uid, booted, reuse, ready_at);
        if let Err(refused) = made {
            state.refused.insert(uid.to_owned(), refused.to_string());
        }
        return Ok(Some(ready_at));
    };
    if instance.host.is_some() || !machine.is_windows() {
        return Ok(None);
    }
    if now < instance.ready_at {
        return Ok(Some(instance.ready_at));
    }
    let host = Arc::new(start(shared, machine.name(), &instance).await?);
    if let Some(instance) = shared.state().cloud.instances.get_mut(uid) {
        instance.host = Some(host);
    }
    Ok(None)
}

async fn start(shared: &Shared, machine: &str, instance: &Instance) -> Result<SimHost, PassError> {
    let mut builder = SimHost::builder()
        .host_name(&instance.computer_name)
        .metadata_name(&instance.cloud_name)
        .address(instance.address)
        .user(instance.booted.user)
        .containers(FeatureState::Enabled);
    for key in &instance.booted.keys {
        // The SSH server supports more kinds of keys than the operator.
        if let Ok(key) = russh::keys::PublicKey::from_openssh(&key.to_string()) {
            builder = builder.authorized_key(key);
        }
    }
    if !instance.booted.answers {
        builder = builder.fault(Fault::RefuseConnections);
    }
    Ok((shared.settings.adjust)(machine, builder).start().await?)
}

/// Returns the text in the Secret of a Machine; an empty one if it names no Secret. Without the Secret the Machine
/// waits.
async fn user_data(
    resources: &Resources,
    machine: &Machine,
) -> Result<Option<String>, kube::Error> {
    let Some(name) = machine.user_data_secret() else { return Ok(Some(String::new())) };
    let Some(secret) = resources.secrets.get_opt(name).await? else { return Ok(None) };
    let data = secret.data.unwrap_or_default();
    let text = data.get(objects::USER_DATA_KEY);
    Ok(text.map(|bytes| String::from_utf8_lossy(&bytes.0).into_owned()))
}

/// Writes the changes of the Machine's spec and status.
async fn show(
    shared: &Shared,
    resources: &Resources,
    machine: &Machine,
    node: Option<&Node>,
    oddities: &[Oddity],
) -> Result<(), PassError> {
    let (provider_id, status) = {
        let state = shared.state();
        let facts = Facts {
            instance: state.cloud.instances.get(machine.uid()),
            node,
            refused: state.refused.get(machine.uid()).map(String::as_str),
            oddities,
        };
        (status::provider_id(&facts).map(str::to_owned), status::status(machine, &facts))
    };
    if provider_id != machine.spec.provider_id {
        let spec = json!({"spec": {"providerID": provider_id}});
        patch(resources, machine, &spec).await?;
    }
    if oddities.contains(&Oddity::NoOwner) && machine.metadata.owner_references.is_some() {
        patch(resources, machine, &json!({"metadata": {"ownerReferences": null}})).await?;
    }
    if machine.status.as_ref() != Some(&status) {
        let mut status = json!({ "status": status });
        let now = jiff::Timestamp::now().round(jiff::Unit::Second).unwrap_or_default();
        json_patch::merge(&mut status, &json!({"status": {"lastUpdated": now}}));
        let patched = resources
            .machines
            .patch_status(machine.name(), &PatchParams::default(), &Patch::Merge(&status))
            .await;
        unless_gone(patched)?;
    }
    Ok(())
}

async fn patch(resources: &Resources, machine: &Machine, patch: &Value) -> Result<(), PassError> {
    let patch = Patch::Merge(patch);
    unless_gone(resources.machines.patch(machine.name(), &PatchParams::default(), &patch).await)
}

async fn delete_node(resources: &Resources, node: &Node) -> Result<(), PassError> {
    let preconditions =
        Preconditions { uid: node.metadata.uid.clone(), ..Preconditions::default() };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    let name = node.metadata.name.as_deref().unwrap_or_default();
    unless_gone(resources.nodes.delete(name, &params).await)
}

fn finalizers_without_ours(machine: &Machine) -> Vec<String> {
    let all = machine.metadata.finalizers.iter().flatten();
    all.filter(|name| *name != FINALIZER).cloned().collect()
}
