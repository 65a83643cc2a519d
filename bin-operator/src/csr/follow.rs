//! Keeps a [`Docket`] in step with the cluster: work for what changed, and for nothing else.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::channel::mpsc::UnboundedSender;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::runtime::watcher::{self, Event};
use tokio::sync::{Notify, watch};
use wmco_core::instances::{self, Entries, Resolutions, Resolve as _};
use wmco_core::{limits, machines};
use wmco_csr::{ClusterFacts, Dispute, Docket, Facts, MachineFacts};

use super::Approver;
use crate::announce::Announcer;
use crate::clock;
use crate::host_reports::{HostReport, HostReports};
use crate::leader::Leadership;
use crate::machines::MachineInventory;
use crate::resolver::{Leads, Pointers, Resolver};
use crate::snapshot;
use crate::sources::Sources;

/// Pause before a change of the cluster is looked at.
const DEBOUNCE: Duration = Duration::from_millis(50);

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

/// Follows Nodes, instances, Machines and what the cluster says of itself.
pub(super) struct Cluster {
    sources: Sources,
    host_reports: HostReports,
    resolver: Resolver,
    leadership: Leadership,
    announcer: Announcer,
    namespace: String,
    machines: Option<Arc<MachineInventory>>,
    nodes: HashMap<String, Arc<Node>>,
    docket: Shared,
    again: UnboundedSender<String>,
    /// Those of the caches, of reports and of the DNS, from before the first look on: what comes while that
    /// is taken is not lost.
    changes: [watch::Receiver<u64>; 3],
    /// Tells that requests have other questions for the DNS.
    asked: Arc<Notify>,
    instances: Option<Instances>,
    /// Conflicts that people were told of and that are still there.
    told: BTreeSet<Dispute>,
}

/// What the docket knows of instances.
#[derive(Eq, PartialEq)]
struct Instances {
    data: BTreeMap<String, String>,
    answers: Resolutions,
    facts: Facts,
    cluster: ClusterFacts,
}

impl Cluster {
    pub(super) fn new(
        approver: &Approver,
        docket: Shared,
        again: UnboundedSender<String>,
        asked: Arc<Notify>,
    ) -> Self {
        Self {
            changes: [
                approver.sources.changes.clone(),
                approver.host_reports.changes(),
                approver.resolver.changes(),
            ],
            sources: approver.sources.clone(),
            host_reports: approver.host_reports.clone(),
            resolver: approver.resolver.clone(),
            leadership: approver.leadership.clone(),
            announcer: approver.announcer.clone(),
            namespace: approver.config.namespace.clone(),
            machines: None,
            nodes: HashMap::new(),
            docket,
            again,
            asked,
            instances: None,
            told: BTreeSet::new(),
        }
    }

    /// Brings the docket up to date for the first time.
    pub(super) async fn fill(&mut self) {
        // Before that, a Machine could be taken for a host.
        self.sources.machines.known().await;
        self.refresh();
    }

    /// Keeps the docket up to date for ever.
    pub(super) async fn follow(&mut self) {
        loop {
            let [sources, host_reports, resolver] = &mut self.changes;
            let changed = tokio::select! {
                changed = sources.changed() => changed,
                changed = host_reports.changed() => changed,
                changed = resolver.changed() => changed,
                () = self.asked.notified() => Ok(()),
                // What was asked of the DNS is old by then.
                () = tokio::time::sleep(limits::NAME_LIFETIME.unsigned_abs()) => Ok(()),
            };
            if changed.is_err() {
                return std::future::pending().await;
            }
            // Changes come in crowds, as the answers of the DNS after a start.
            tokio::time::sleep(DEBOUNCE).await;
            self.changes.iter_mut().for_each(watch::Receiver::mark_unchanged);
            self.refresh();
        }
    }

    /// Takes in Nodes that changed, whatever they run: none of them may lose a name or an address to a
    /// host.
    fn refresh_nodes(&mut self) {
        let mut docket = lock(&self.docket);
        let mut again = Vec::new();
        let mut gone = std::mem::take(&mut self.nodes);
        for node in self.sources.nodes.state() {
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
        drop(docket);
        self.look_again(again);
    }

    /// Takes in what changed in the caches since the last time, and tells of conflicts that are new.
    fn refresh(&mut self) {
        self.refresh_nodes();
        let now = clock::now();
        let cluster = snapshot::cluster_facts(&self.sources);
        let list = snapshot::instance_list(&self.sources, &self.namespace);
        let data = list.unwrap_or_default().data;
        let answers = self.resolver.answers(&data, now);
        let entries = instances::parse(&data, &answers).without(&cluster.addresses);
        let found = self.sources.machines.inventory().unwrap_or_default();
        let mut reports = self.host_reports.of_listed(&entries);
        reports.extend(self.host_reports.of_machines(hosts_of(&found)));
        let questions = lock(&self.docket).questions();
        let mut names = names_in(&reports);
        names.extend(questions.names);
        let leads = self.resolver.leads(names, now);
        let pointers = self.resolver.pointers(questions.addresses, now);
        let facts = facts(&entries, &answers, &reports, leads, pointers);
        let instances = Instances { data, answers, facts, cluster };
        let is_known = self.instances.as_ref() == Some(&instances);
        let before = self.machines.replace(Arc::clone(&found));
        let is_same = |before: &Arc<MachineInventory>| {
            Arc::ptr_eq(before, &found) || before.machines == found.machines
        };
        let machines_known = before.is_some_and(|before| is_same(&before));
        if is_known && machines_known {
            return;
        }
        let (again, disputes) = {
            let mut docket = lock(&self.docket);
            let mut again = Vec::new();
            if !is_known {
                again.extend(docket.set_cluster(instances.cluster.clone()));
                again.extend(docket.set_entries(&entries, &instances.facts));
            }
            // Under one lock: what the host at a former address said counts for no other one.
            if !machines_known {
                again.extend(docket.set_machines(found.machines.iter().map(MachineFacts::from)));
            }
            (again, BTreeSet::from_iter(docket.disputes()))
        };
        self.instances = Some(instances);
        self.look_again(again);
        if self.leadership.check().is_ok() {
            for dispute in disputes.difference(&self.told) {
                self.announcer.disputed(dispute);
            }
            self.told = disputes;
        }
    }

    fn look_again(&self, names: Vec<String>) {
        for name in names {
            // Nobody listens any more when the controller ends.
            let _ = self.again.unbounded_send(name);
        }
    }
}

/// Where hosts of Machines are, by the keys of the Machines.
fn hosts_of(found: &MachineInventory) -> impl Iterator<Item = (String, Ipv4Addr)> {
    let windows = found.machines.iter().filter(|machine| machine.is_windows);
    windows.filter_map(|machine| {
        Some((machines::key(&machine.name), machines::host_address(machine).ok()?))
    })
}

/// Names whose DNS may say that they are somebody else's: what hosts report, and what their Nodes
/// may be called.
fn names_in(reports: &BTreeMap<String, HostReport>) -> BTreeSet<String> {
    let names = reports.values().flat_map(HostReport::names);
    let names = names.map(|name| instances::canonical(name.trim()));
    names
        .flat_map(|name| {
            let label = name.split_once('.').map(|(label, _)| label.to_owned());
            [Some(name), label].into_iter().flatten()
        })
        .collect()
}

/// Facts for the docket. A reported name counts once its DNS was asked.
fn facts(
    entries: &Entries,
    answers: &Resolutions,
    reports: &BTreeMap<String, HostReport>,
    leads: Leads,
    pointers: Pointers,
) -> Facts {
    let mut facts = Facts::default();
    let mut addresses = BTreeMap::new();
    for (address, report) in reports {
        let one = BTreeMap::from([(address.clone(), report.clone())]);
        if names_in(&one).iter().all(|name| leads.contains_key(name)) {
            facts.hostnames.insert(address.clone(), report.host_name.clone());
            let told = report.metadata_name.iter();
            facts.metadata_names.extend(told.map(|name| (address.clone(), name.clone())));
        }
        addresses.insert(address.clone(), report.addresses.clone());
    }
    facts.addresses = Some(addresses);
    facts.dns.forward = leads;
    facts.dns.reverse = pointers;
    for (address, entry) in entries.iter() {
        if let (Ok(entry), Err(_)) = (entry, address.parse::<IpAddr>()) {
            let leads = facts.dns.forward.entry(instances::canonical(address)).or_default();
            leads.push(entry.ipv4.into());
        }
        if let Ok(address) = address.parse::<IpAddr>() {
            // They lead back to the address, or they were not kept.
            facts.dns.reverse.insert(address, answers.reverse(address).to_vec());
        }
    }
    facts
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::http::{Request, Response};
    use futures::channel::mpsc;
    use kube::Client;
    use kube::client::Body;
    use tokio_util::sync::CancellationToken;
    use tokio_util::task::TaskTracker;
    use tower::service_fn;
    use wmco_ssh::{Options, Pool, PoolLimits, TcpDialer};

    use super::*;
    use crate::config::Config;
    use crate::metrics::Metrics;
    use crate::resolver::Dns;

    /// An API server that knows nothing.
    fn client() -> Client {
        let answer = |_: Request<Body>| async {
            Ok::<_, Infallible>(Response::builder().status(404).body(Body::empty()).unwrap())
        };
        Client::new(service_fn(answer), "ns")
    }

    /// Otherwise the answers of the DNS that are quicker than the first look count a minute later.
    #[tokio::test]
    async fn what_comes_while_the_first_look_is_taken_is_not_lost() {
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let namespace = |name: &str| (name == "WATCH_NAMESPACE").then(|| "ns".to_owned());
        let pool = Pool::new(Arc::new(TcpDialer), Options::default(), PoolLimits::default());
        let metrics = Metrics::new(pool);
        let approver = Approver {
            client: client(),
            config: Arc::new(Config::from_env("1.0.0", false, 1, namespace).unwrap()),
            sources: Sources::watch(&client(), "ns", None, &stop, &tasks),
            resolver: Resolver::new(Dns::none()),
            host_reports: HostReports::new(),
            leadership: Leadership::unchallenged(),
            announcer: Announcer::new(client(), "ns", "test", metrics.clone()),
            metrics,
            issued: super::super::Issued::default(),
        };
        let docket = Arc::new(Mutex::new(Docket::new()));
        let mut cluster = Cluster::new(&approver, docket, mpsc::unbounded().0, Arc::default());
        cluster.fill().await;
        // What the caches tell is not what this is about.
        cluster.changes[0].mark_unchanged();
        approver.host_reports.set("10.0.0.1", HostReport::default());
        cluster.instances = None;
        let following = tokio::time::timeout(80 * DEBOUNCE, cluster.follow());
        assert!(following.await.is_err());
        assert!(cluster.instances.is_some(), "nobody has looked again");
        stop.cancel();
    }
}
