//! Turns the list of instances and the Nodes into workers' inputs, one pass per change.

mod view;
mod workers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wmco_core::facts::NodeFacts;
use wmco_core::fleet::{self, Patience, SlotWaits, Topic};
use wmco_core::host_record::RecordChange;
use wmco_core::limits;
use wmco_core::names::objects::TLS_SECRET;
use wmco_core::pass::{World, pass};
use wmco_core::upgradeable::Standing;
use wmco_core::username::{Sealing, Usernames};

use crate::claims::Claims;
use crate::clock;
use crate::config::Config;
use crate::csr::Issued;
use crate::fleet_metrics::FleetMetrics;
use crate::host_reports::LoginReport;
use crate::instance::Executor;
use crate::keys::Keys;
use crate::machines::SeenMachines;
use crate::nodes::SeenNodes;
use crate::payload::Payload;
use crate::preflight::Preflight;
use crate::problems::{Found, Problem, Problems};
use crate::randomness::randomness;
use crate::release::Releases;
use crate::resolver::Resolver;
use crate::snapshot;
use crate::sources::Sources;
use view::View;
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
    metrics: FleetMetrics,
    waits: SlotWaits,
    problems: Problems,
    preflight: Preflight,
    releases: Releases,
    /// Number of instances of the last pass.
    instances: usize,
    /// How all instances stand by the last pass.
    standings: watch::Sender<Option<Vec<Standing>>>,
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
            metrics: FleetMetrics::new(executor.metrics.clone(), issued),
            executor,
            waits: SlotWaits::default(),
            problems: Problems::default(),
            preflight: Preflight::default(),
            releases: Releases::default(),
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
        let overdue = self.releases.overdue_at().map(|at| self.begun + at);
        let overdue = overdue.filter(|at| Instant::now() < *at);
        [self.problems.next(), remembered, overdue]
            .into_iter()
            .flatten()
            .fold(names_old, Instant::min)
    }

    async fn pass(&mut self, now: Timestamp) {
        let mut problems = Found::new();
        let (config, running) = (Arc::clone(&self.config), self.begun.elapsed());
        let keys = self.keys(&mut problems);
        self.executor.metrics.has_key.set(i64::from(keys.is_some()));
        let Self { sources, executor, metrics, releases, memory, workers, .. } = self;
        let (reports, seen) = (&executor.host_reports, &mut self.machines);
        let view = View::of(sources, seen, &self.resolver, reports, &config, now, &mut problems);
        let is_unfit = self.preflight.look(sources, &config, &mut problems);
        metrics.show_findings(self.preflight.findings());
        let nodes = self.nodes.update(&sources.nodes.state());
        let is_configured = |node: &NodeFacts| node.is_windows() && node.version().is_some();
        let is_any = nodes.iter().any(is_configured);
        releases.refresh(sources, &config, &self.payload, is_any, running, &mut problems);
        for LoginReport { instance, login, result, tried } in reports.take_logins() {
            let since_start = |at: Instant| at.saturating_duration_since(self.begun);
            let tried = since_start(tried.start)..since_start(tried.end);
            memory.logged_in(&instance, login, result, &tried);
        }
        let right_user_data = keys.as_ref().and_then(|keys| {
            let all = keys.files().map(|file| &*file.parsed);
            snapshot::right_user_data(sources, all)
        });
        let (claims, taking) = (self.claims.all(), self.claims.taking());
        let release = releases.current().or(releases.to_leave());
        let world = World {
            desired: fleet::Desired {
                entries: view.is_listed.then_some(&view.entries),
                machines: &view.machines,
                version: &config.version,
                budget: config.max_unavailable.of(nodes),
                blocked: is_unfit,
                guard: view.guard,
                keys: keys.as_ref().map(|keys| &keys.facts),
            },
            observed: fleet::Observed {
                nodes,
                claims: &claims,
                taking: &taking,
                right_user_data: right_user_data.as_deref(),
                hosts: &view.hosts,
                host_names: &view.host_names,
                never_contacted: &view.never_contacted,
            },
            release: releases.current().map(|release| &release.wanted),
            release_to_leave: releases.to_leave().map(|release| &release.wanted),
            reported: &view.reported,
        };
        self.usernames.begin_pass(keys.as_ref().map(Keys::passphrases).unwrap_or_default());
        let mut sealing = Sealing { usernames: &mut self.usernames, randomness };
        let out = pass(memory, &world, &mut sealing, running);
        workers.keep_only(&out.workers);
        workers.withdraw_permits(&out.without_permit);
        if let (Some(keys), Some(release)) = (&keys, release) {
            let keys = keys.parsed();
            out.work.into_values().for_each(|work| workers.hand_over(work, &keys, release));
        }
        for (address, error) in out.not_sealed {
            problems.insert(error.to_string().into(), Duration::ZERO);
            reports.tried(&address);
        }
        let decided = out.decided;
        self.instances = decided.instances.len();
        let waits = self.waits.update(&decided, now);
        metrics.show(&decided, &waits, nodes, now);
        let exporter = snapshot::secret(&sources.secrets, &config.namespace, TLS_SECRET);
        metrics.show_certificates(nodes, exporter.as_deref(), now);
        let patience = limits::SLOT_PATIENCE.unsigned_abs();
        problems.extend(waits.iter().map(|wait| (Problem::from(wait), patience)));
        problems.extend(decided.notices.iter().map(|notice| {
            let problem = Problem::of_notice(notice, &view.machines);
            (problem, notice.patience().unsigned_abs())
        }));
        if let Some(registries) = sources.registries.inventory() {
            let notices = registries.notices.iter().map(Problem::from);
            let serious = registries.serious.iter().map(|it| Problem::of_settings(it.to_string()));
            problems.extend(notices.chain(serious).map(|problem| (problem, Duration::ZERO)));
        }
        let (records, forgotten) = (out.records, out.forgotten_keys);
        let used = decided.confirmation_used;
        self.standings.send_if_modified(|last| {
            let changed = last.as_ref() != Some(&out.standings);
            *last = Some(out.standings);
            changed
        });
        self.write(records, forgotten, used, &mut problems).await;
        self.tell(&problems);
    }

    /// The private keys; adds their problems to `problems`.
    fn keys(&self, problems: &mut Found) -> Option<Keys> {
        let (sources, namespace) = (&self.sources, &self.config.namespace);
        Keys::parse(snapshot::key_secret(sources, namespace), |problem| {
            problems.insert(problem.into(), Duration::ZERO);
        })
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
