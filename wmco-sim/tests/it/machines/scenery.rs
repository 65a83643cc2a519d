//! Shared fixtures of the Machine tests.

use std::net::Ipv4Addr;
use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube_testserver::TestServer;
use russh::keys::PrivateKey;
use serde_json::{Value, json};
use wmco_core::authorized_key::AuthorizedKey;
use wmco_core::limits;
use wmco_core::names::host::KUBELET_SERVICE;
use wmco_core::names::objects::{MACHINE_API_NAMESPACE, USER_DATA_KEY, USER_DATA_SECRET};
use wmco_core::render::user_data;
use wmco_services::windows::{ServiceManager as _, Wait};
use wmco_sim::host::SimHost;
use wmco_sim::machines::{MachineApi, MachineApiBuilder, machine_set};

use crate::host::client::{new_key, until, within};
use crate::kubelet;

/// The MachineSet of the tests.
pub(super) const SET: &str = "win";

const GROUP: &str = "machine.openshift.io";

/// A cluster with a Machine API, and the key in its user data.
pub(super) struct World {
    pub(super) cluster: TestServer,
    pub(super) machines: MachineApi,
    pub(super) client: Client,
    pub(super) key: PrivateKey,
}

impl World {
    /// Creates a world on a platform, with user data that holds a new key.
    pub(super) async fn new(
        platform: &str,
        settings: impl FnOnce(MachineApiBuilder) -> MachineApiBuilder,
    ) -> Self {
        let cluster = TestServer::start().await.unwrap();
        let builder = settings(MachineApi::builder().platform(platform));
        let machines = builder.start(&cluster).await.unwrap();
        let client = kubelet::admin(&cluster).await;
        let key = new_key();
        let world = Self { cluster, machines, client, key };
        world.give_user_data(&user_data(platform, &authorized(&world.key), None));
        world
    }

    /// Writes the Secret with the user data.
    pub(super) fn give_user_data(&self, text: &str) {
        self.cluster
            .put(&json!({
                "apiVersion": "v1", "kind": "Secret",
                "metadata": {"name": USER_DATA_SECRET, "namespace": MACHINE_API_NAMESPACE},
                "data": {USER_DATA_KEY: ByteString(text.into())},
            }))
            .unwrap();
    }

    /// Creates the set with a number of Machines, and waits for their hosts.
    pub(super) async fn with_hosts(self, replicas: u32) -> Self {
        self.cluster.put(&machine_set(SET, replicas)).unwrap();
        self.hosts(replicas).await;
        self
    }

    /// Waits for this number of hosts and Machines with addresses.
    pub(super) async fn hosts(&self, count: u32) {
        let count = usize::try_from(count).unwrap();
        let is_there = |machine: &Arc<Value>| !machine["status"]["addresses"].is_null();
        until(|| {
            let machines = self.list();
            machines.len() == count
                && machines.iter().all(is_there)
                && self.machines.hosts().len() == count
        })
        .await;
    }

    /// Returns all Machines, by name.
    pub(super) fn list(&self) -> Vec<Arc<Value>> {
        self.cluster.objects(GROUP, "machines", MACHINE_API_NAMESPACE)
    }

    /// Returns a Machine.
    pub(super) fn get(&self, name: &str) -> Option<Arc<Value>> {
        self.cluster.object(GROUP, "machines", MACHINE_API_NAMESPACE, name)
    }

    /// Returns the names of all Machines.
    pub(super) fn names(&self) -> Vec<String> {
        self.list().iter().map(|machine| text(machine, "/metadata/name")).collect()
    }

    /// Returns the host of a Machine.
    pub(super) fn host(&self, name: &str) -> Arc<SimHost> {
        self.machines.host(name).unwrap()
    }

    /// Waits until a condition holds for a Machine.
    #[track_caller]
    pub(super) fn until(
        &self,
        name: &str,
        mut holds: impl FnMut(&Value) -> bool,
    ) -> impl Future<Output = ()> {
        until(move || self.get(name).is_some_and(|machine| holds(&machine)))
    }

    /// Returns the client of a kind of the Machine API.
    pub(super) fn api(&self, kind: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(GROUP, "v1beta1", kind);
        let resource = ApiResource::from_gvk(&kind);
        Api::namespaced_with(self.client.clone(), MACHINE_API_NAMESPACE, &resource)
    }

    /// Patches a Machine or a MachineSet, as a person does.
    pub(super) async fn patch(&self, kind: &str, name: &str, patch: &Value) {
        let patch = Patch::Merge(patch);
        self.api(kind).patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    pub(super) async fn scale(&self, replicas: u32) {
        self.patch("MachineSet", SET, &json!({"spec": {"replicas": replicas}})).await;
    }

    pub(super) async fn delete(&self, kind: &str, name: &str) {
        self.api(kind).delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Makes the host of a Machine register its Node, and waits for that; returns the Node's name.
    pub(super) async fn join(&self, machine: &str) -> String {
        let host = self.host(machine);
        kubelet::bring_files(host.model(), &self.cluster);
        kubelet::install(host.model(), host.address());
        let service = KUBELET_SERVICE.parse().unwrap();
        host.model().start(&service, Wait::at_most(limits::SERVICE_START)).unwrap();
        kubelet::approve(&self.client).await;
        // The serving certificate is requested when the Node exists.
        let serving = kubelet::approve(&self.client).await;
        serving.spec.username.unwrap().trim_start_matches("system:node:").to_owned()
    }

    pub(super) fn node(&self, name: &str) -> Option<Node> {
        let object = self.cluster.object("", "nodes", "", name)?;
        Some(serde_json::from_value((*object).clone()).unwrap())
    }

    pub(super) async fn end(self) {
        within(self.machines.shutdown()).await;
        within(self.cluster.stop()).await;
    }
}

/// Returns the public half.
pub(super) fn authorized(key: &PrivateKey) -> AuthorizedKey {
    key.public_key().to_openssh().unwrap().parse().unwrap()
}

/// Returns a text in an object; empty if there is none.
pub(super) fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Returns the internal address that a Machine reports.
pub(super) fn address(machine: &Value) -> Ipv4Addr {
    let mut all = machine["status"]["addresses"].as_array().unwrap().iter();
    let internal = all.find(|entry| entry["type"] == "InternalIP").unwrap();
    internal["address"].as_str().unwrap().parse().unwrap()
}
