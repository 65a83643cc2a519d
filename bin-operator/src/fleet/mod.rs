//! Turns the list of instances and the Nodes into workers' inputs, one pass per change.

mod counts;
mod preflight;
mod view;
mod workers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wmco_core::ca_bundle::Injection;
use wmco_core::facts::NodeFacts;
use wmco_core::fleet::{self, Assignments, Notice, Patience, SlotWaits, Topic};
use wmco_core::host_record::RecordChange;
use wmco_core::limits;
use wmco_core::names::events;
use wmco_core::names::objects::{CA_BUNDLE_KEY, TLS_SECRET, TRUSTED_CA_CONFIG_MAP};
use wmco_core::node::{Login, Order};
use wmco_core::reach::forgotten_jump_keys;
use wmco_core::upgradeable::Standing;
use wmco_core::username::{Randomness, Usernames, sealed_username};

use crate::claims::Claims;
use crate::clock;
use crate::config::Config;
use crate::csr::Issued;
use crate::host_reports::LoginReport;
use crate::instance::{Executor, WorkerInputs};
use crate::keys::Keys;
use crate::nodes::SeenNodes;
use crate::payload::Payload;
use crate::problems::{About, Found, Problem, Problems};
use crate::release::{NotReady, PreparedRelease};
use crate::resolver::Resolver;
use crate::snapshot;
use crate::sources::Sources;
use counts::Counts;
use preflight::Preflight;
use view::{SeenMachines, View};
use workers::Workers;

/// The keeper of all workers.
pub struct Fleet {
    config: Arc<Config>,
    payload: Payload,
    sources: Sources,
    resolver: Resolver,
    claims: Claims,
    executor: Executor,
    workers: Workers,
    nodes: SeenNodes,
    machines: SeenMachines,
    memory: fleet::Memory,
    /// What the times of `memory` are counted from.
    begun: Instant,
    usernames: Usernames,
    counts: Counts,
    waits: SlotWaits,
    problems: Problems,
    preflight: Preflight,
    release: Option<PreparedRelease>,
    /// What hosts need that leave, while there is no rendering yet.
    to_leave: Option<PreparedRelease>,
    injection: Injection,
    /// Number of instances of the last pass.
    instances: usize,
    /// How all instances stand by the last pass.
    standings: watch::Sender<Option<Vec<Standing>>>,
}

/// The system gives no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the system has no random bytes, check its random device")]
struct NoRandomBytes;

/// Fresh random bytes for one message.
fn randomness() -> Result<Randomness, NoRandomBytes> {
    Randomness::filled_by(getrandom::fill).map_err(|_| NoRandomBytes)
}

impl Fleet {
    /// No workers yet.
    pub fn new(
        config: Arc<Config>,
        payload: Payload,
        sources: Sources,
        resolver: Resolver,
        executor: Executor,
        issued: Issued,
    ) -> Self {
        let claims = Claims::new();
        let memory = fleet::Memory::new(Patience {
            refused: config.refused_after.unsigned_abs(),
            unanswered: config.unanswered_after.unsigned_abs(),
        });
        Self {
            config,
            payload,
            sources,
            resolver,
            workers: Workers::new(executor.clone(), claims.clone()),
            claims,
            nodes: SeenNodes::default(),
            machines: SeenMachines::default(),
            memory,
            begun: Instant::now(),
            usernames: Usernames::default(),
            counts: Counts::new(executor.metrics.clone(), issued),
            executor,
            waits: SlotWaits::default(),
            problems: Problems::default(),
            preflight: Preflight::default(),
            release: None,
            to_leave: None,
            injection: Injection::default(),
            instances: 0,
            standings: watch::channel(None).0,
        }
    }

    /// How all instances stand, once a pass has told.
    pub fn standings(&self) -> watch::Receiver<Option<Vec<Standing>>> {
        self.standings.subscribe()
    }

    /// Runs until `stop`, then ends all workers.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut changes = [self.sources.changes.clone(), self.executor.host_reports.changes()];
        let mut claims = self.claims.changes();
        let mut names = self.resolver.changes();
        let ended = self.workers.ended();
        loop {
            changes.iter_mut().for_each(watch::Receiver::mark_unchanged);
            claims.mark_unchanged();
            names.mark_unchanged();
            let begun = Instant::now();
            self.pass(clock::now()).await;
            self.executor.metrics.pass_time.observe(begun.elapsed().as_secs_f64());
            let [sources, host_reports] = &mut changes;
            tokio::select! {
                () = stop.cancelled() => break,
                _ = sources.changed() => {}
                _ = host_reports.changed() => {}
                _ = claims.changed() => {}
                _ = names.changed() => {}
                () = ended.notified() => {}
                () = tokio::time::sleep_until(self.next_pass()) => {}
            }
            tokio::time::sleep(limits::gather(self.instances)).await;
        }
        self.workers.end().await;
        self.executor.pool.close_idle().await;
    }

    /// When the next pass is due though nothing changes.
    fn next_pass(&self) -> Instant {
        let names_old = Instant::now() + limits::NAME_LIFETIME.unsigned_abs();
        let remembered = self.memory.wake_at(self.begun.elapsed()).map(|end| self.begun + end);
        let overdue = self.injection.overdue_at().map(|at| self.begun + at);
        let overdue = overdue.filter(|at| Instant::now() < *at);
        [self.problems.next(), remembered, overdue]
            .into_iter()
            .flatten()
            .fold(names_old, Instant::min)
    }

    async fn pass(&mut self, now: Timestamp) {
        let mut problems = Found::new();
        let (sources, host_reports) = (self.sources.clone(), &self.executor.host_reports);
        let (resolver, config) = (&self.resolver, Arc::clone(&self.config));
        let seen = &mut self.machines;
        let view = View::of(&sources, seen, resolver, host_reports, &config, now, &mut problems);
        let blocked = self.preflight.look(&sources, &config, &mut problems);
        self.counts.show_findings(self.preflight.findings());
        let keys = self.keys(&mut problems);
        self.executor.metrics.has_key.set(i64::from(keys.is_some()));
        let state = self.sources.nodes.state();
        let mut looked_at = std::mem::take(&mut self.nodes);
        let nodes = looked_at.update(&state);
        let is_configured = |node: &NodeFacts| node.is_windows() && node.version().is_some();
        self.refresh_release(nodes.iter().any(is_configured), &mut problems);
        self.refresh_to_leave(&mut problems);
        let claims = self.claims.all();
        let running = self.begun.elapsed();
        let desired = fleet::Desired {
            entries: view.is_listed.then_some(&view.entries),
            machines: &view.machines,
            version: &config.version,
            budget: self.config.max_unavailable.of(nodes),
            // Nobody could be told what a node needs.
            blocked: blocked || self.release.is_none(),
            guard: view.guard,
            keys: keys.as_ref().map(|keys| &keys.facts),
        };
        let mut memory = std::mem::take(&mut self.memory);
        let since_start = |at: Instant| at.saturating_duration_since(self.begun);
        for LoginReport { instance, login, result, tried } in
            self.executor.host_reports.take_logins()
        {
            let tried = since_start(tried.start)..since_start(tried.end);
            memory.logged_in(&instance, login, result, &tried);
        }
        let right_user_data = keys.as_ref().and_then(|keys| {
            let all = keys.files().map(|file| &*file.parsed);
            snapshot::right_user_data(&self.sources, all)
        });
        let observed = fleet::Observed {
            nodes,
            claims: &claims,
            right_user_data: right_user_data.as_deref(),
            hosts: &view.hosts,
            host_names: &view.host_names,
            never_contacted: &view.never_contacted,
        };
        let mut assignments = memory.pass(&desired, &observed, running);
        self.instances = assignments.instances.len();
        let waits = self.waits.update(&assignments, now);
        self.counts.show(&assignments, &waits, nodes, now);
        problems.extend(waits.iter().map(|wait| {
            let problem = Problem {
                text: wait.to_string(),
                reason: events::SLOT_AWAITED,
                about: About::Node(wait.node.clone()),
                topic: Some(Topic::Once(wait.since.to_string())),
            };
            (problem, limits::SLOT_PATIENCE.unsigned_abs())
        }));
        let exporter = snapshot::secret(&self.sources.secrets, &config.namespace, TLS_SECRET);
        self.counts.show_certificates(nodes, exporter.as_deref(), now);
        let told = |notice: &Notice| {
            let set = notice.machine_set().and_then(|name| view.machines.set(name));
            let machine = notice.machine().and_then(|name| view.machines.get(name));
            let about = if let Some(set) = set {
                About::MachineSet { name: set.name.clone(), uid: set.uid.clone() }
            } else {
                machine.map_or(About::Instances, |it| About::Machine(it.identity()))
            };
            let (text, reason, topic) = (notice.to_string(), notice.reason(), notice.topic());
            (Problem { text, reason, about, topic }, notice.patience().unsigned_abs())
        };
        problems.extend(assignments.notices.iter().map(told));
        if let Some(registries) = self.sources.registries.inventory() {
            let notices = registries.notices.iter().map(Problem::from);
            let serious = registries.serious.iter().map(|it| Problem::of_settings(it.to_string()));
            problems.extend(notices.chain(serious).map(|problem| (problem, Duration::ZERO)));
        }
        let mut changes = std::mem::take(&mut assignments.changes);
        changes.extend(self.direct(&view, keys.as_ref(), &assignments, &mut problems));
        self.show_standings(&assignments, &view, keys.is_some());
        let mut forgotten = std::mem::take(&mut assignments.forgotten_keys);
        if view.is_listed {
            forgotten.extend(forgotten_jump_keys(&view.entries, &view.hosts));
        }
        let confirmation_used = assignments.confirmation_used;
        (self.nodes, self.memory) = (looked_at, memory);
        self.write(changes, forgotten, confirmation_used, &mut problems).await;
        self.tell(&problems);
    }

    /// Tells how all instances stand.
    fn show_standings(&self, assignments: &Assignments<'_>, view: &View, has_keys: bool) {
        let workable = has_keys && self.release.is_some();
        let standings = Standing::of(assignments, &self.config.version, &view.hosts, workable);
        self.standings.send_if_modified(|last| {
            let changed = last.as_ref() != Some(&standings);
            *last = Some(standings);
            changed
        });
    }

    /// Hands each instance to its worker once what is needed to clean its host later is on record; tells
    /// what has to be put on record for that.
    fn direct(
        &mut self,
        view: &View,
        keys: Option<&Keys>,
        assignments: &Assignments<'_>,
        problems: &mut Found,
    ) -> BTreeMap<String, RecordChange> {
        let mut changes = BTreeMap::new();
        let is_rendered = self.release.is_some();
        let release = self.release.clone().or_else(|| self.to_leave.clone());
        let (Some(release), Some(keys)) = (release, keys) else {
            // Nobody can tell its worker what people want of a host now.
            self.workers.keep_only(&BTreeSet::new());
            return changes;
        };
        self.usernames.begin_pass(keys.passphrases());
        let parsed = keys.parsed();
        let wanted = assignments.instances.iter().filter(|instance| instance.is_wanted());
        self.workers.keep_only(&wanted.map(|instance| instance.address.as_str()).collect());
        for assignment in assignments.instances.iter().filter(|it| it.is_due(is_rendered)) {
            let (hosts, names) = (&view.hosts, &mut self.usernames);
            let sealed = match sealed_username(assignment, hosts, &keys.facts, names, randomness) {
                Ok(sealed) => sealed,
                Err(error) => {
                    problems.insert(error.to_string().into(), Duration::ZERO);
                    self.executor.host_reports.tried(&assignment.address);
                    continue;
                }
            };
            let reported = view.reported.get(&assignment.address).map(String::as_str);
            let login = Login {
                keys: &keys.facts,
                rotation: assignments.rotation.as_ref(),
                username: sealed.as_deref(),
                decrypt: &|text| self.usernames.opened(text),
            };
            match Order::of(assignment, &release.wanted, &view.hosts, login, reported) {
                Order::Record(change) => drop(changes.insert(assignment.address.clone(), change)),
                Order::Work(instance) => {
                    let (keys, contents) = (Arc::clone(&parsed), Arc::clone(&release.contents));
                    let inputs = WorkerInputs { instance: *instance, keys, contents };
                    self.workers.hand_over(assignment, inputs);
                }
            }
        }
        changes
    }

    /// The private keys; adds their problems to `problems`.
    fn keys(&self, problems: &mut Found) -> Option<Keys> {
        let (sources, namespace) = (&self.sources, &self.config.namespace);
        Keys::parse(snapshot::key_secret(sources, namespace), |problem| {
            problems.insert(problem.into(), Duration::ZERO);
        })
    }

    /// Renders what hosts get; while that is not possible, the last rendering stays in force.
    fn refresh_release(&mut self, is_configured: bool, problems: &mut Found) {
        match self.render(is_configured, problems) {
            Ok(Some(release)) => self.release = Some(release),
            Ok(None) => {}
            Err(error) => {
                problems.insert(crate::chain(&error).into(), error.patience());
            }
        }
        let findings = self.release.iter().flat_map(|release| release.findings.iter().cloned());
        let findings = findings.map(Problem::of_settings);
        problems.extend(findings.map(|finding| (finding, Duration::ZERO)));
    }

    /// Looks what hosts need that leave, while nothing can be rendered.
    fn refresh_to_leave(&mut self, problems: &mut Found) {
        let last = self.to_leave.take();
        if self.release.is_some() {
            return;
        }
        let (sources, config, payload) = (&self.sources, &self.config, &self.payload);
        match PreparedRelease::to_leave(sources, config, payload, last.as_ref()) {
            Ok(release) => self.to_leave = Some(release),
            Err(error) => {
                problems.insert(crate::chain(&error).into(), error.patience());
            }
        }
    }

    /// What hosts get; `None` while the certificates that come with a proxy are waited for, longer where a node
    /// `is_configured`.
    fn render(
        &mut self,
        is_configured: bool,
        problems: &mut Found,
    ) -> Result<Option<PreparedRelease>, NotReady> {
        let (sources, config) = (&self.sources, &self.config);
        let uses_proxy = snapshot::proxy(sources, config)?.is_enabled();
        let maps = &sources.config_maps;
        let found = snapshot::data(maps, &config.namespace, TRUSTED_CA_CONFIG_MAP);
        let text = found.as_ref().and_then(|data| data.get(CA_BUNDLE_KEY)).map(String::as_str);
        let some_may_have_them = is_configured && self.release.is_none();
        let now = self.begun.elapsed();
        let injected = self.injection.look(uses_proxy, some_may_have_them, text, now);
        let problem = injected.problem();
        problems.extend(problem.map(|(text, patience)| (Problem::of_settings(text), patience)));
        let Some(proxy) = injected.trust() else { return Ok(None) };
        let last = self.release.as_ref();
        PreparedRelease::render(sources, config, &self.payload, proxy, last).map(Some)
    }

    /// Writes what a pass decided about what is kept of hosts.
    async fn write(
        &self,
        changes: BTreeMap<String, RecordChange>,
        forgotten: BTreeSet<String>,
        confirmation_used: bool,
        problems: &mut Found,
    ) {
        let what = match changes.len() {
            0 => "what is kept of hosts that are gone stays".to_owned(),
            1 => "1 host waits until it is on record".to_owned(),
            count => format!("{count} hosts wait until they are on record"),
        };
        if (!changes.is_empty() || !forgotten.is_empty())
            && let Err(error) = self.executor.change_records(changes, forgotten).await
        {
            let text = format!("{what}: {}", crate::chain(&error));
            let topic = Some(Topic::Retold("records".to_owned()));
            let problem = Problem { topic, ..Problem::from(text) };
            problems.insert(problem, limits::MISSING_OBJECT_PATIENCE.unsigned_abs());
        }
        if confirmation_used && let Err(error) = self.executor.use_up_confirmation().await {
            tracing::warn!(error = %crate::chain(&error), "the confirmation stays for now");
        }
    }

    /// Tells people of new problems, once each.
    fn tell(&mut self, problems: &Found) {
        for problem in self.problems.update(problems, Instant::now()) {
            if problem.is_good_news() {
                tracing::info!("{}", problem.text);
            } else {
                tracing::warn!(problem = %problem.text, "{}", problem.about.consequence());
            }
            self.executor.announcer.told(&problem);
        }
    }
}

#[cfg(test)]
mod tests {
    use wmco_core::secret::Secret;
    use wmco_core::username::encrypt;

    use super::*;

    #[test]
    fn random_bytes_are_fresh_for_each_message() {
        let sealed = || encrypt("core", &Secret::new("key"), &randomness().unwrap());
        assert_ne!(sealed(), sealed());
    }
}
