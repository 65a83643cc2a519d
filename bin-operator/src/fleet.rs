//! Turns the list of instances and the Nodes into workers' inputs, one pass per change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wmco_core::cluster::services_name;
use wmco_core::content::{self, HostContent, Marks};
use wmco_core::digest::Sha256;
use wmco_core::fleet::{
    self, Assignment, Listed, Pin, Pinned, Reach, jump_keys_in_use, reach, remembered_port,
    remembered_via,
};
use wmco_core::host_key::{BadHostKey, HostKey};
use wmco_core::instances::{self, Entries};
use wmco_core::limits;
use wmco_core::names;
use wmco_core::node::{Desired, NodeFacts};
use wmco_core::secret::Secret;
use wmco_ssh::username::{self, Randomness, UsernameError};
use wmco_ssh::{Blob, Credentials, HostKeyPolicy, PrivateKey, Route, Target};

use crate::claims::Claims;
use crate::config::Config;
use crate::instance::{Executor, InstanceInputs, NodeSeen, Release, Worker};
use crate::metrics::NodeLabels;
use crate::payload::Payload;
use crate::problems::{Found, Problems};
use crate::resolver::Resolver;
use crate::snapshot;
use crate::sources::Sources;

/// Changes that come within this time are looked at together.
const DEBOUNCE: Duration = Duration::from_millis(20);

/// The keeper of all workers.
pub struct Fleet {
    config: Arc<Config>,
    payload: Payload,
    sources: Sources,
    resolver: Resolver,
    claims: Claims,
    executor: Executor,
    workers: BTreeMap<String, Keeper>,
    /// Nodes with a permit whose mark has not come back through the watch yet.
    granted: BTreeSet<String>,
    /// User names as encrypted last, since every encryption looks different.
    sealed: BTreeMap<(Sha256, String), String>,
    /// Nodes that are shown with a blocked drain.
    blocked: BTreeSet<NodeLabels>,
    problems: Problems,
    release: Option<Arc<Current>>,
}

struct Keeper {
    inputs: watch::Sender<Arc<InstanceInputs>>,
    task: JoinHandle<()>,
}

/// What is the same for all instances until the cluster changes.
struct Current {
    release: content::Release,
    blobs: Arc<Release>,
}

/// The cluster in one pass.
struct View<'a> {
    entries: &'a Entries,
    nodes: &'a [NodeSeen],
    kept: &'a BTreeMap<String, String>,
}

/// The private key and what follows from it.
struct Key {
    pem: Secret,
    parsed: Arc<PrivateKey>,
}

impl Fleet {
    /// No workers yet.
    pub fn new(
        config: Arc<Config>,
        payload: Payload,
        sources: Sources,
        executor: Executor,
    ) -> Self {
        Self {
            config,
            payload,
            sources,
            resolver: Resolver::new(),
            claims: Claims::new(),
            executor,
            workers: BTreeMap::new(),
            granted: BTreeSet::new(),
            sealed: BTreeMap::new(),
            blocked: BTreeSet::new(),
            problems: Problems::default(),
            release: None,
        }
    }

    /// The answers of the DNS that the fleet uses.
    pub fn resolver(&self) -> Resolver {
        self.resolver.clone()
    }

    /// Runs until `stop`, then ends all workers.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut sources = self.sources.changes.clone();
        let mut claims = self.claims.changes();
        let mut names = self.resolver.changes();
        loop {
            sources.mark_unchanged();
            claims.mark_unchanged();
            names.mark_unchanged();
            self.pass(Timestamp::now()).await;
            let names_old = Instant::now() + limits::NAME_LIFETIME.unsigned_abs();
            let again = self.problems.next().map_or(names_old, |told| told.min(names_old));
            tokio::select! {
                () = stop.cancelled() => break,
                _ = sources.changed() => {}
                _ = claims.changed() => {}
                _ = names.changed() => {}
                () = tokio::time::sleep_until(again) => {}
            }
            tokio::time::sleep(DEBOUNCE).await;
        }
        for (_, keeper) in std::mem::take(&mut self.workers) {
            // A worker between two steps is as good as a killed one: the next process goes on.
            keeper.task.abort();
            let _ = keeper.task.await;
        }
        self.executor.pool.close_idle().await;
    }

    async fn pass(&mut self, now: Timestamp) {
        let namespace = self.config.namespace.clone();
        let mut problems = Found::new();
        let data = snapshot::listed(&self.sources, &namespace);
        let answers = self.resolver.answers(&data, now);
        let entries = instances::parse(&data, &answers);
        problems.extend(entries.errors().map(|error| (error.to_string(), Duration::ZERO)));
        let nodes = snapshot::nodes(&self.sources);
        let kept = snapshot::kept_keys(&self.sources, &namespace);
        let assignments = self.assign(&entries, &nodes, &kept);
        let key = self.key(&mut problems);
        self.refresh_release(&mut problems);
        if let (Some(current), Some(key)) = (self.release.clone(), key) {
            for assignment in &assignments.instances {
                let view = View { entries: &entries, nodes: &nodes, kept: &kept };
                match self.inputs(&current, &key, &view, assignment) {
                    Ok(inputs) => self.hand_over(assignment, inputs),
                    Err(error) => {
                        problems.insert(error.to_string(), Duration::ZERO);
                    }
                }
            }
            let wanted: BTreeSet<&String> =
                assignments.instances.iter().map(|a| &a.address).collect();
            self.workers.retain(|address, _| wanted.contains(address));
        }
        if !assignments.forgotten_keys.is_empty() {
            let names: Vec<String> = assignments.forgotten_keys.into_iter().collect();
            if let Err(error) = self.executor.forget_host_keys(&names).await {
                tracing::warn!(error = %crate::chain(&error), "host keys stay for now");
            }
        }
        self.tell(&problems).await;
    }

    fn assign(
        &mut self,
        entries: &Entries,
        nodes: &[NodeSeen],
        kept: &BTreeMap<String, String>,
    ) -> fleet::Assignments {
        let facts: Vec<NodeFacts> = nodes.iter().map(|node| node.facts.clone()).collect();
        let listed = entries.listed();
        let marked: BTreeSet<&str> =
            facts.iter().filter(|n| n.holds_slot()).map(|n| n.name.as_str()).collect();
        let claims = self.claims.all();
        self.granted.retain(|name| claims.contains(name) && !marked.contains(name.as_str()));
        let of_jump_hosts = jump_keys_in_use(entries, &facts, kept);
        let kept_keys =
            kept.keys().filter(|name| !of_jump_hosts.contains(*name)).cloned().collect();
        let assignments = fleet::reconcile(
            &fleet::Desired { listed: &listed, budget: self.config.disruption_budget },
            &fleet::Observed {
                nodes: &facts,
                claims: &claims,
                granted: &self.granted,
                kept_keys: &kept_keys,
            },
        );
        let permits = assignments.instances.iter().filter_map(|a| a.intent.permit());
        self.granted.extend(permits.map(|permit| permit.node().to_owned()));
        self.count(&assignments.instances, marked.len());
        self.count_blocked(&facts);
        assignments
    }

    fn count(&self, assignments: &[Assignment], marked: usize) {
        let metrics = &self.executor.metrics;
        for intent in ["configure", "remove", "leave"] {
            let count = assignments.iter().filter(|a| a.intent.verb() == intent).count();
            let labels = crate::metrics::IntentLabels { intent };
            metrics.instances.get_or_create(&labels).set(count.try_into().unwrap_or(i64::MAX));
        }
        metrics.disrupted.set(marked.try_into().unwrap_or(i64::MAX));
    }

    /// Shows of each Node since when pods block its drain.
    fn count_blocked(&mut self, nodes: &[NodeFacts]) {
        let gauges = &self.executor.metrics.blocked_drains;
        let label = |node: &NodeFacts| NodeLabels { node: node.name.clone() };
        let since = |node: &NodeFacts| Some((label(node), node.drain_blocked_since?.as_second()));
        let blocked: BTreeMap<_, _> = nodes.iter().filter_map(since).collect();
        for (label, since) in &blocked {
            gauges.get_or_create(label).set(*since);
        }
        for label in self.blocked.difference(&blocked.keys().cloned().collect()) {
            gauges.remove(label);
        }
        self.blocked = blocked.into_keys().collect();
    }

    fn key(&self, problems: &mut Found) -> Option<Key> {
        let Some(pem) = snapshot::private_key(&self.sources, &self.config.namespace) else {
            let problem = format!(
                "secret {} has no key {}, create it with the private key of the instances",
                names::objects::PRIVATE_KEY_SECRET,
                names::objects::PRIVATE_KEY_KEY
            );
            problems.insert(problem, Duration::ZERO);
            return None;
        };
        match PrivateKey::parse(&pem) {
            Ok(parsed) => Some(Key { pem, parsed: Arc::new(parsed) }),
            Err(error) => {
                let secret = names::objects::PRIVATE_KEY_SECRET;
                let problem = format!("secret {secret}: {}", crate::chain(&error));
                problems.insert(problem, Duration::ZERO);
                None
            }
        }
    }

    /// Renders what hosts get; while that is not possible, the last rendering stays in force.
    fn refresh_release(&mut self, problems: &mut Found) {
        match self.render() {
            Ok(release) if self.release.as_ref().is_none_or(|old| old.release != release) => {
                let blobs = Arc::new(self.blobs(&release.content));
                self.release = Some(Arc::new(Current { release, blobs }));
            }
            Ok(_) => {}
            Err(error) => {
                problems.insert(crate::chain(&error), error.patience());
            }
        }
    }

    fn render(&self) -> Result<content::Release, snapshot::NotReady> {
        let content = snapshot::content(&self.sources, &self.config, &self.payload)?;
        let ours = crate::manifest::generate(&self.sources, &self.config)?;
        let mut known = snapshot::services(&self.sources);
        known.remove(&services_name(&self.config.version));
        let known = known.into_values().map(|found| found.data);
        Ok(content::Release {
            version: self.config.version.clone(),
            agent: self.payload.agent.digest(),
            content,
            known_manifests: std::iter::once(ours.data.clone()).chain(known).collect(),
            manifest: ours.data,
            bootstrap_services: ours.bootstrap_services,
            drain_timeout: self.config.drain_timeout,
        })
    }

    fn blobs(&self, content: &HostContent) -> Release {
        let mut contents = self.payload.contents.clone();
        for (digest, bytes) in &content.rendered {
            contents.insert(*digest, Blob::from_bytes(bytes.expose()));
        }
        Release { agent: self.payload.agent.clone(), contents }
    }

    fn hand_over(&mut self, assignment: &Assignment, inputs: InstanceInputs) {
        let inputs = Arc::new(inputs);
        if let Some(keeper) = self.workers.get(&assignment.address)
            && !keeper.task.is_finished()
        {
            keeper.inputs.send_if_modified(|old| {
                let changed = !old.equals(&inputs);
                if changed {
                    *old = inputs;
                }
                changed
            });
            return;
        }
        let (sender, receiver) = watch::channel(inputs);
        let progress = self.executor.progress.clone();
        let worker = Worker::new(receiver, self.executor.clone(), self.claims.clone(), progress);
        let task = tokio::spawn(worker.run());
        self.workers.insert(assignment.address.clone(), Keeper { inputs: sender, task });
    }

    fn inputs(
        &mut self,
        current: &Current,
        key: &Key,
        view: &View<'_>,
        assignment: &Assignment,
    ) -> Result<InstanceInputs, UsernameError> {
        let node = assignment
            .node
            .as_ref()
            .and_then(|name| view.nodes.iter().find(|node| &node.facts.name == name));
        let facts = node.map(|node| &node.facts);
        let instance = view.entries.get(&assignment.address).and_then(|entry| entry.as_ref().ok());
        let decrypt = |text: &str| username::decrypt(text, &key.pem).ok();
        let way = reach(assignment, instance, facts, view.kept, decrypt);
        let way_known = way.as_ref().ok();
        let sealed = match instance {
            Some(instance) => self.seal(&instance.username, facts, key)?,
            None => String::new(),
        };
        let host_key = way_known.and_then(|w| w.host_key.as_ref()?.key.parse::<HostKey>().ok());
        let host_key = host_key.map(|key| (key.to_string(), key.algorithm()));
        let via = instance.and_then(|instance| remembered_via(instance, facts));
        let marks = instance.map(|instance| Marks {
            address: &instance.address,
            port: remembered_port(instance, facts),
            via: via.as_deref(),
            username: &sealed,
            key_hash: key.parsed.public().hash(),
            host_key: host_key.as_ref().map(|(key, type_)| (key.as_str(), *type_)),
        });
        let desired: Desired = current.release.desired(assignment.intent.clone(), marks.as_ref());
        Ok(InstanceInputs {
            assignment: assignment.clone(),
            listed: instance.map(Listed::from),
            desired: Arc::new(desired),
            node: node.cloned(),
            key_name: way_known.map_or_else(|| assignment.address.clone(), |w| w.key_name.clone()),
            jump_key_name: way_known
                .and_then(|way| way.via.as_ref())
                .filter(|via| via.to_keep)
                .map(|via| via.key_name.clone()),
            kept_keys: way_known.map(|way| way.kept_keys.clone()).unwrap_or_default(),
            record: way_known.and_then(|way| way.record.clone()),
            pin: way_known.and_then(|way| Some(way.host_key.as_ref()?.by.clone())),
            jump_pin: way_known
                .and_then(|way| Some(way.via.as_ref()?.host_key.as_ref()?.by.clone())),
            route: way.map_err(|error| error.to_string()).and_then(|way| route(&way, key)),
            release: Arc::clone(&current.blobs),
        })
    }

    /// The encrypted user name: the Node's own while it says the same, else the last one made.
    fn seal(
        &mut self,
        user: &str,
        node: Option<&NodeFacts>,
        key: &Key,
    ) -> Result<String, UsernameError> {
        let current = node.and_then(|node| node.annotation(names::USERNAME_ANNOTATION));
        let same = |text: &&str| username::decrypt(text, &key.pem).is_ok_and(|found| found == user);
        if let Some(text) = current.filter(same) {
            return Ok(text.to_owned());
        }
        let slot = (key.parsed.public().hash(), user.to_owned());
        if let Some(text) = self.sealed.get(&slot) {
            return Ok(text.clone());
        }
        let text = username::encrypt(user, &key.pem, &Randomness::from_os()?);
        self.sealed.insert(slot, text.clone());
        Ok(text)
    }

    /// Tells people of new problems, once each.
    async fn tell(&mut self, problems: &Found) {
        for problem in self.problems.update(problems, Instant::now()) {
            tracing::warn!(%problem, "instances cannot be configured");
            self.executor.announcer.instances_wrong(problem).await;
        }
    }
}

fn route(way: &Reach, key: &Key) -> Result<Route, String> {
    let to = |address: &str, port, user: &str, host_key: Option<&Pinned>| {
        let policy = match host_key {
            Some(Pinned { key, by }) => {
                HostKeyPolicy::Pinned(key.parse().map_err(|problem| bad_stored_key(by, &problem))?)
            }
            None => HostKeyPolicy::TrustOnFirstUse,
        };
        let target = Target { address: address.to_owned(), port };
        let credentials = Credentials { user: user.to_owned(), key: Arc::clone(&key.parsed) };
        Ok::<_, String>(Route::new(target, credentials).host_key(policy))
    };
    let route = to(&way.address, way.port, &way.username, way.host_key.as_ref())?;
    match &way.via {
        Some(via) => {
            Ok(route.via(to(&via.address, via.port, &via.username, via.host_key.as_ref())?))
        }
        None => Ok(route),
    }
}

fn bad_stored_key(by: &Pin, problem: &BadHostKey) -> String {
    format!("the pinned host key cannot be used ({problem}); {by} to have it learned again")
}
