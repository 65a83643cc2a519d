//! Keeps a [`Docket`] in step with the cluster: work for what changed, and for nothing else.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::channel::mpsc::UnboundedSender;
use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::runtime::watcher::{self, Event};
use wmco_core::instances::{self, Resolutions, Resolve as _};
use wmco_csr::{Docket, Facts};

use super::Approver;
use super::machines::Machines;
use crate::learned::Learned;
use crate::resolver::Resolver;
use crate::snapshot;
use crate::sources::Sources;

type Shared = Arc<Mutex<Docket>>;

fn lock(docket: &Shared) -> MutexGuard<'_, Docket> {
    docket.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Follows the watch of certificate requests.
pub(super) struct Requests {
    docket: Shared,
    /// While all of them are being listed: those seen so far.
    listed: HashSet<String>,
}

impl Requests {
    pub(super) fn new(docket: Shared) -> Self {
        Self { docket, listed: HashSet::new() }
    }

    /// Takes one event in and gives the names of requests to look at.
    pub(super) fn follow(
        &mut self,
        event: watcher::Result<Event<CertificateSigningRequest>>,
    ) -> Vec<String> {
        let mut docket = lock(&self.docket);
        match event {
            Ok(Event::Init) => {
                self.listed.clear();
                Vec::new()
            }
            Ok(Event::InitApply(request)) => {
                // The cache holds it after the last one only, so it is looked at then.
                docket.see(&request);
                self.listed.insert(request.name_any());
                Vec::new()
            }
            Ok(Event::InitDone) => {
                let listed = std::mem::take(&mut self.listed);
                docket.retain(&listed);
                docket.names().map(str::to_owned).collect()
            }
            Ok(Event::Apply(request)) => docket.see(&request),
            Ok(Event::Delete(request)) => docket.forget(&request.name_any()),
            Err(error) => {
                tracing::warn!(%error, "watch of certificate requests failed, trying again");
                Vec::new()
            }
        }
    }
}

/// Follows Nodes, instances and Machines.
pub(super) struct Cluster {
    sources: Sources,
    learned: Learned,
    resolver: Resolver,
    namespace: String,
    machines: Machines,
    docket: Shared,
    again: UnboundedSender<String>,
    nodes: HashMap<String, Arc<Node>>,
    instances: Option<Instances>,
}

/// What the docket knows of instances.
#[derive(Eq, PartialEq)]
struct Instances {
    data: BTreeMap<String, String>,
    answers: Resolutions,
    host_names: BTreeMap<String, String>,
}

impl Cluster {
    pub(super) fn new(approver: &Approver, docket: Shared, again: UnboundedSender<String>) -> Self {
        Self {
            sources: approver.sources.clone(),
            learned: approver.learned.clone(),
            resolver: approver.resolver.clone(),
            namespace: approver.config.namespace.clone(),
            machines: Machines::new(approver.client.clone()),
            docket,
            again,
            nodes: HashMap::new(),
            instances: None,
        }
    }

    /// Brings the docket up to date for the first time.
    pub(super) async fn fill(&mut self) {
        let machines = self.machines.changed().await;
        lock(&self.docket).set_machines(machines);
        self.refresh();
    }

    /// Keeps the docket up to date for ever.
    pub(super) async fn follow(&mut self) {
        let (mut sources, mut learned, mut resolver) =
            (self.sources.changes.clone(), self.learned.changes(), self.resolver.changes());
        loop {
            let changed = tokio::select! {
                changed = sources.changed() => changed,
                changed = learned.changed() => changed,
                changed = resolver.changed() => changed,
                machines = self.machines.changed() => {
                    let again = lock(&self.docket).set_machines(machines);
                    self.look_again(again);
                    continue;
                }
            };
            if changed.is_err() {
                return std::future::pending().await;
            }
            self.refresh();
        }
    }

    /// Takes in what changed in the caches since the last time.
    fn refresh(&mut self) {
        let mut docket = lock(&self.docket);
        let mut again = Vec::new();
        let mut gone = std::mem::take(&mut self.nodes);
        for node in self.sources.nodes.windows() {
            let name = node.name_any();
            let known = gone.remove(&name).is_some_and(|known| Arc::ptr_eq(&known, &node));
            if !known {
                again.extend(docket.set_node(&node));
            }
            self.nodes.insert(name, node);
        }
        for name in gone.into_keys() {
            again.extend(docket.remove_node(&name));
        }
        let list = snapshot::instance_list(&self.sources, &self.namespace);
        let data = list.unwrap_or_default().data;
        let answers = self.resolver.answers(&data, Timestamp::now());
        let instances = Instances { data, answers, host_names: self.learned.all() };
        if self.instances.as_ref() != Some(&instances) {
            let entries = instances::parse(&instances.data, &instances.answers);
            let mut facts = Facts { hostnames: instances.host_names.clone(), ..Facts::default() };
            for address in instances::addresses(&instances.data).into_iter().map(IpAddr::from) {
                // They lead back to the address, or they were not kept.
                let names = instances.answers.reverse(address).to_vec();
                facts.dns.reverse.insert(address, names);
            }
            again.extend(docket.set_entries(&entries, &facts));
            self.instances = Some(instances);
        }
        drop(docket);
        self.look_again(again);
    }

    fn look_again(&self, names: Vec<String>) {
        for name in names {
            // Nobody listens any more when the controller ends.
            let _ = self.again.unbounded_send(name);
        }
    }
}
