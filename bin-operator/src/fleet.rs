//! Turns the list of instances and the Nodes into workers' inputs, one pass per change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wmco_core::cluster::services_name;
use wmco_core::content::{self, HostContent, Marks};
use wmco_core::digest::Sha256;
use wmco_core::facts::NodeFacts;
use wmco_core::fleet::Intent;
use wmco_core::fleet::{self, Assignment, Because, RemovalGuard};
use wmco_core::host_key::{BadHostKey, HostKey};
use wmco_core::host_record::{KnownHosts, ListedHost, RecordChange};
use wmco_core::instances::{self, Entries};
use wmco_core::limits;
use wmco_core::names;
use wmco_core::node::{Desired, KnownAs};
use wmco_core::reach::{Pin, Pinned, Reach, forgotten_jump_keys, reach};
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
    /// Workers that nobody wants any more, until they are through with their step.
    ending: BTreeMap<String, JoinHandle<()>>,
    /// Told whenever a worker has ended.
    ended: Arc<Notify>,
    /// Nodes with a permit whose mark has not come back through the watch yet, and when each claimed its
    /// slot last.
    granted: BTreeMap<String, Instant>,
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
    nodes: &'a BTreeMap<&'a str, &'a NodeSeen>,
    hosts: &'a KnownHosts,
    /// Names that hosts reported, by address as listed.
    reported: &'a BTreeMap<String, String>,
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
            ending: BTreeMap::new(),
            ended: Arc::default(),
            granted: BTreeMap::new(),
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
        let mut learned = self.executor.learned.changes();
        loop {
            sources.mark_unchanged();
            claims.mark_unchanged();
            names.mark_unchanged();
            learned.mark_unchanged();
            self.pass(Timestamp::now()).await;
            let names_old = Instant::now() + limits::NAME_LIFETIME.unsigned_abs();
            let again = self.problems.next().map_or(names_old, |told| told.min(names_old));
            let release = |claimed: &Instant| *claimed + limits::CATCH_UP.unsigned_abs();
            let again = self.granted.values().map(release).fold(again, Instant::min);
            tokio::select! {
                () = stop.cancelled() => break,
                _ = sources.changed() => {}
                _ = claims.changed() => {}
                _ = names.changed() => {}
                _ = learned.changed() => {}
                () = self.ended.notified() => {}
                () = tokio::time::sleep_until(again) => {}
            }
            tokio::time::sleep(DEBOUNCE).await;
        }
        let working = std::mem::take(&mut self.workers).into_values().map(|keeper| keeper.task);
        for task in working.chain(std::mem::take(&mut self.ending).into_values()) {
            // A worker between two steps is as good as a killed one: the next process goes on.
            task.abort();
            let _ = task.await;
        }
        self.executor.pool.close_idle().await;
    }

    async fn pass(&mut self, now: Timestamp) {
        let namespace = self.config.namespace.clone();
        let mut problems = Found::new();
        let list = snapshot::instance_list(&self.sources, &namespace);
        let data = list.as_ref().map(|list| list.data.clone()).unwrap_or_default();
        let answers = self.resolver.answers(&data, now);
        let entries = instances::parse(&data, &answers);
        problems.extend(entries.errors().map(|error| (error.to_string(), Duration::ZERO)));
        let nodes = snapshot::nodes(&self.sources);
        let hosts = snapshot::known_hosts(&self.sources, &namespace);
        let learned = &self.executor.learned;
        learned.keep_only(|name| entries.get(name).is_some() || hosts.record(name).is_some());
        let reported = learned.of_listed(&entries).into_iter();
        let reported = reported.map(|(address, report)| (address, report.host_name));
        let reported = reported.filter(|(_, name)| !name.is_empty()).collect();
        let host_names = fleet::host_names(&entries, &answers, &reported, &hosts);
        let untried = learned.untried(entries.instances().map(|entry| entry.address.as_str()));
        let listed = list.as_ref().map(|_| entries.listed());
        let guard = RemovalGuard {
            most: self.config.guard_removals,
            confirmed: list.and_then(|list| list.confirmed),
        };
        let facts: Vec<NodeFacts> = nodes.iter().map(|node| node.facts.clone()).collect();
        let desired = fleet::Desired {
            listed: listed.as_deref(),
            budget: self.config.disruption_budget,
            guard,
        };
        let claims = self.claims.all();
        let observed = fleet::Observed {
            nodes: &facts,
            claims: &claims,
            granted: &BTreeSet::new(),
            hosts: &hosts,
            host_names: &host_names,
            untried: &untried,
        };
        let assignments = self.assign(&desired, observed);
        let notices = assignments.notices.iter();
        problems.extend(notices.map(|n| (n.to_string(), n.patience().unsigned_abs())));
        let mut changes = assignments.changes.clone();
        let key = self.key(&mut problems);
        self.refresh_release(&mut problems);
        if let (Some(current), Some(key)) = (self.release.clone(), key) {
            let nodes = nodes.iter().map(|node| (node.facts.name.as_str(), node)).collect();
            let view =
                View { entries: &entries, nodes: &nodes, hosts: &hosts, reported: &reported };
            changes.extend(self.direct(&current, &key, &view, &assignments, &mut problems));
        } else {
            // Nobody can tell its worker what people want of a host now.
            self.dismiss(|_| true);
        }
        let mut forgotten = assignments.forgotten_keys;
        forgotten
            .extend(forgotten_jump_keys(&entries, &hosts).into_iter().filter(|_| listed.is_some()));
        if (!changes.is_empty() || !forgotten.is_empty())
            && let Err(error) = self.executor.change_records(changes, forgotten).await
        {
            let problem = format!("hosts wait until they are on record: {}", crate::chain(&error));
            problems.insert(problem, limits::MISSING_OBJECT_PATIENCE.unsigned_abs());
        }
        if assignments.confirmation_used
            && let Err(error) = self.executor.use_up_confirmation().await
        {
            tracing::warn!(error = %crate::chain(&error), "the confirmation stays for now");
        }
        self.tell(&problems).await;
    }

    /// Hands each instance to its worker once what is needed to clean its host later is on record; tells
    /// what has to be put on record for that.
    fn direct(
        &mut self,
        current: &Current,
        key: &Key,
        view: &View<'_>,
        assignments: &fleet::Assignments,
        problems: &mut Found,
    ) -> BTreeMap<String, RecordChange> {
        let mut changes = BTreeMap::new();
        let mut ready = Vec::new();
        for assignment in &assignments.instances {
            if assignment.intent == Intent::Leave {
                continue;
            }
            match self.inputs(current, key, view, assignment) {
                // Nothing is done with a host before what is needed to undo it is kept.
                Ok((_, Some(due))) => {
                    changes.insert(assignment.address.clone(), RecordChange::Listed(due));
                }
                Ok((inputs, None)) => ready.push((assignment, inputs)),
                Err(error) => {
                    problems.insert(error.to_string(), Duration::ZERO);
                    self.executor.learned.tried(&assignment.address);
                }
            }
        }
        let is_wanted =
            |a: &&Assignment| a.intent != Intent::Leave || a.because == Because::RecordDue;
        let wanted: BTreeSet<&String> =
            assignments.instances.iter().filter(is_wanted).map(|a| &a.address).collect();
        self.dismiss(|address| !wanted.contains(address));
        for (assignment, inputs) in ready {
            self.hand_over(assignment, inputs);
        }
        changes
    }

    /// Ends workers after their step, and remembers them until then: a host has one worker.
    fn dismiss(&mut self, unwanted: impl Fn(&String) -> bool) {
        self.ending.retain(|_, task| !task.is_finished());
        let all = std::mem::take(&mut self.workers).into_iter();
        let (dismissed, kept): (BTreeMap<_, _>, _) =
            all.partition(|(address, _)| unwanted(address));
        self.workers = kept;
        // What it listens to ends with its keeper.
        self.ending.extend(dismissed.into_iter().map(|(address, keeper)| (address, keeper.task)));
    }

    fn assign(
        &mut self,
        desired: &fleet::Desired<'_>,
        observed: fleet::Observed<'_>,
    ) -> fleet::Assignments {
        let facts = observed.nodes;
        let marked: BTreeSet<&str> =
            facts.iter().filter(|n| n.holds_slot()).map(|n| n.name.as_str()).collect();
        let claims = observed.claims;
        let now = Instant::now();
        for (name, claimed) in &mut self.granted {
            if claims.contains(name) {
                *claimed = now;
            }
        }
        // The mark of a worker that has just ended may still be on its way to us.
        let patience = limits::CATCH_UP.unsigned_abs();
        self.granted
            .retain(|name, claimed| !marked.contains(name.as_str()) && *claimed + patience > now);
        let granted = self.granted.keys().cloned().collect();
        let observed = fleet::Observed { granted: &granted, ..observed };
        let assignments = fleet::reconcile(desired, &observed);
        let permits = assignments.instances.iter().filter_map(|a| a.intent.permit());
        self.granted.extend(permits.map(|permit| (permit.node().to_owned(), now)));
        self.count(&assignments.instances, marked.len());
        self.count_blocked(facts);
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
        let mut at_work = std::iter::once(&assignment.address).chain(&assignment.formerly);
        // By an address at which nobody was yet, and by a record, it may be any host.
        let may_be_any = inputs.record.as_ref().is_none_or(|record| record.pinned.is_none())
            || assignment.intent.verb() == "remove";
        if may_be_any && !self.ending.is_empty()
            || at_work.any(|address| self.ending.contains_key(address))
        {
            // The next pass follows when that one has ended.
            return;
        }
        let (sender, receiver) = watch::channel(inputs);
        let progress = self.executor.progress.clone();
        let worker = Worker::new(receiver, self.executor.clone(), self.claims.clone(), progress);
        let ended = Arc::clone(&self.ended);
        let task = tokio::spawn(async move {
            worker.run().await;
            ended.notify_one();
        });
        self.workers.insert(assignment.address.clone(), Keeper { inputs: sender, task });
    }

    /// What its worker gets, and what has to be put on record of a listed host before.
    fn inputs(
        &mut self,
        current: &Current,
        key: &Key,
        view: &View<'_>,
        assignment: &Assignment,
    ) -> Result<(InstanceInputs, Option<ListedHost>), UsernameError> {
        let node = assignment.node.as_ref().and_then(|name| view.nodes.get(name.as_str()).copied());
        let facts = node.map(|node| &node.facts);
        let instance = view.entries.get(&assignment.address).and_then(|entry| entry.as_ref().ok());
        let own = view.hosts.record(&assignment.address);
        let former = || assignment.formerly.iter().filter_map(|name| view.hosts.record(name));
        let kept = own.or_else(|| former().next());
        let decrypt = |text: &str| username::decrypt(text, &key.pem).ok();
        let way = reach(assignment, instance, facts, view.hosts, decrypt);
        let sealed = match instance {
            Some(instance) => {
                let on_record = kept.and_then(|record| record.username.as_deref());
                self.seal(&instance.username, on_record, key)?
            }
            None => String::new(),
        };
        let due = instance.map(|instance| ListedHost {
            node: assignment.confirmed_node().map(str::to_owned),
            host_name: view.reported.get(&assignment.address).cloned(),
            formerly: assignment.formerly.clone(),
            ..ListedHost::of(instance, &sealed)
        });
        let due = due.filter(|due| own != Some(&due.record(own, former())));
        let way_known = way.as_ref().ok();
        let host_key = way_known.and_then(|w| w.host_key.as_ref()?.key.parse::<HostKey>().ok());
        let host_key = host_key.map(|key| (key.to_string(), key.algorithm()));
        let marks = instance.map(|instance| Marks {
            address: &instance.address,
            username: &sealed,
            key_hash: key.parsed.public().hash(),
            host_key: host_key.as_ref().map(|(key, type_)| (key.as_str(), *type_)),
        });
        let known_as = KnownAs {
            names: kept
                .and_then(|record| record.node.clone())
                .into_iter()
                .chain([assignment.address.clone()])
                .collect(),
            ipv4: way_known.map(|way| way.address),
        };
        let intent = assignment.intent.clone();
        let desired: Desired = current.release.desired(intent, known_as, marks.as_ref());
        let inputs = InstanceInputs {
            assignment: assignment.clone(),
            desired: Arc::new(desired),
            node: node.cloned(),
            on_record: view.hosts.record(&assignment.address).is_some()
                || view.hosts.pin(&assignment.address).is_some(),
            key_to_keep: way_known.is_some_and(|way| way.to_keep),
            jump_key_name: way_known
                .and_then(|way| way.via.as_ref())
                .filter(|via| via.to_keep)
                .map(|via| via.key_name.clone()),
            record: kept.cloned(),
            pin: way_known.and_then(|way| Some(way.host_key.as_ref()?.by.clone())),
            jump_pin: way_known
                .and_then(|way| Some(way.via.as_ref()?.host_key.as_ref()?.by.clone())),
            route: way.map_err(|error| error.to_string()).and_then(|way| route(&way, key)),
            release: Arc::clone(&current.blobs),
        };
        Ok((inputs, due))
    }

    /// The encrypted user name: the one on record while it says the same, else the last one made.
    fn seal(
        &mut self,
        user: &str,
        current: Option<&str>,
        key: &Key,
    ) -> Result<String, UsernameError> {
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
    let address = way.address.to_string();
    let route = to(&address, way.port, &way.username, way.host_key.as_ref())?;
    match &way.via {
        Some(via) => {
            Ok(route.via(to(&via.address, via.port, &via.username, via.host_key.as_ref())?))
        }
        None => Ok(route),
    }
}

fn bad_stored_key(by: &Pin, problem: &BadHostKey) -> String {
    format!("the pinned host key cannot be used ({problem}); look at the host's own and {by}")
}
