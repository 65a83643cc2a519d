//! What these scenarios share: a cloud, and waiting for its nodes.

use std::sync::Arc;

use bin_operator::demo::Stage;
use jiff::SignedDuration;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams,
};
use russh::keys::ssh_key::LineEnding;
use russh::keys::{Algorithm, PrivateKey, PublicKey};
use serde_json::Value;
use wmco_core::names::{self, objects, platforms};
use wmco_core::secret::Secret;
use wmco_sim::host::SimHost;
use wmco_sim::machines::MachineApiBuilder;

pub(in crate::live) use crate::live::scenery::name;
use crate::live::scenery::{addresses, admin, is_finished, listed, nodes, until};

/// The MachineSet.
pub(in crate::live) const SET: &str = "winworker";

/// How long hosts may refuse the key here: the second try is a second after the first.
const REFUSED_AFTER: SignedDuration = SignedDuration::from_millis(1500);

/// A cloud with so many Machines in one MachineSet, and so many listed hosts beside them.
pub(in crate::live) async fn cloud(machines: u32, entries: u8) -> Stage {
    cloud_with(machines, entries, |machines| machines).await
}

/// The same with another Machine API.
pub(in crate::live) async fn cloud_with(
    machines: u32,
    entries: u8,
    adjust: impl FnOnce(MachineApiBuilder) -> MachineApiBuilder,
) -> Stage {
    let listed = listed(&addresses(entries));
    let mut stage = Stage::start_on(platforms::AWS, &listed, |_, host| host).await.unwrap();
    stage.reconfigure(|config| config.refused_after = REFUSED_AFTER);
    stage.start_machines(adjust).await.unwrap();
    stage.scale(SET, machines).unwrap();
    stage
}

pub(in crate::live) fn machines(stage: &Stage) -> Vec<Arc<Value>> {
    stage.cluster.objects(objects::MACHINE.0, "machines", objects::MACHINE_API_NAMESPACE)
}

pub(in crate::live) fn names(objects: &[Arc<Value>]) -> Vec<String> {
    objects.iter().map(|object| name(object)).collect()
}

/// Waits until there are exactly so many Machines and so many nodes, all of them finished.
pub(in crate::live) async fn until_finished(stage: &Stage, of_machines: usize, entries: usize) {
    until(|| {
        let (machines, nodes) = (machines(stage), nodes(stage));
        let finished = nodes.iter().filter(|node| is_finished(node)).count();
        let running = machines.iter().filter(|machine| machine["status"]["phase"] == "Running");
        let all = of_machines + entries;
        (machines.len() == of_machines
            && running.count() == of_machines
            && nodes.len() == all
            && finished == all)
            .then_some(())
    })
    .await;
}

/// The Node of a Machine.
pub(in crate::live) fn node_of(stage: &Stage, machine: &str) -> Option<Arc<Value>> {
    let machines = machines(stage);
    let machine = machines.iter().find(|found| name(found) == machine)?;
    let node = machine["status"]["nodeRef"]["name"].as_str()?;
    stage.cluster.object("", "nodes", "", node)
}

pub(in crate::live) fn annotation<'a>(object: &'a Value, name: &str) -> &'a str {
    object["metadata"]["annotations"][name].as_str().unwrap_or_default()
}

async fn machine_api(stage: &Stage) -> Api<DynamicObject> {
    let (group, version, kind) = objects::MACHINE;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(admin(stage).await, objects::MACHINE_API_NAMESPACE, &resource)
}

/// Deletes a Machine, as a person does.
pub(in crate::live) async fn delete_machine(stage: &Stage, name: &str) {
    machine_api(stage).await.delete(name, &DeleteParams::default()).await.unwrap();
}

/// Changes a Machine, as a person does.
pub(in crate::live) async fn patch_machine(stage: &Stage, name: &str, patch: &Value) {
    let patch = Patch::Merge(patch);
    machine_api(stage).await.patch(name, &PatchParams::default(), &patch).await.unwrap();
}

/// A key pair.
pub(in crate::live) struct Key {
    pub(in crate::live) pem: String,
    pub(in crate::live) public: PublicKey,
}

impl Key {
    /// A fresh one.
    pub(in crate::live) fn random() -> Self {
        let mut random = russh::keys::key::safe_rng();
        let key = PrivateKey::random(&mut random, Algorithm::Ed25519).unwrap();
        let pem = key.to_openssh(LineEnding::LF).unwrap().to_string();
        Self { pem, public: key.public_key().clone() }
    }

    /// The one that the hosts of a stage let in at first.
    pub(in crate::live) fn first(stage: &Stage) -> Self {
        let pem = String::from_utf8(stage.key.expose().to_vec()).unwrap();
        let public = PrivateKey::from_openssh(&pem).unwrap().public_key().clone();
        Self { pem, public }
    }

    /// Whether a Node says that its host was configured with it.
    pub(in crate::live) fn is_noted_on(&self, node: &Value) -> bool {
        let key = wmco_ssh::PrivateKey::parse(&Secret::new(self.pem.as_bytes())).unwrap();
        annotation(node, names::PUBLIC_KEY_HASH_ANNOTATION) == key.public().hash().to_string()
    }
}

/// All hosts of Machines, with the names of these.
pub(in crate::live) fn hosts(stage: &Stage) -> Vec<(String, Arc<SimHost>)> {
    stage.machines().unwrap().hosts()
}
