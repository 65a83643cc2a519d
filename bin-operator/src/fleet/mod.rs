//! Turns the list of instances and the Nodes into workers' inputs, one pass per change.

mod counts;
mod usernames;
mod view;
mod workers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wmco_core::authorized_key::AuthorizedKey;
use wmco_core::fleet::{self, Assignments, Grants, LoginTry, Notice};
use wmco_core::host_record::RecordChange;
use wmco_core::limits;
use wmco_core::login_keys::LoginKeys;
use wmco_core::machines::Machine;
use wmco_core::node::{InstanceInputs, Login, due_record, sealed_username};
use wmco_core::reach::forgotten_jump_keys;
use wmco_ssh::username::UsernameError;

use crate::claims::Claims;
use crate::config::Config;
use crate::instance::{Executor, WorkerInputs};
use crate::keys::Keys;
use crate::nodes::SeenNodes;
use crate::payload::Payload;
use crate::problems::{Found, Problem, Problems};
use crate::release::Release;
use crate::resolver::Resolver;
use crate::snapshot;
use crate::sources::Sources;
use counts::Counts;
use usernames::Usernames;
use view::{SeenMachines, View};
use workers::Workers;

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
    workers: Workers,
    nodes: SeenNodes,
    machines: SeenMachines,
    grants: Grants,
    /// What the times of `grants` are counted from.
    begun: Instant,
    usernames: Usernames,
    counts: Counts,
    problems: Problems,
    release: Option<Release>,
}

impl Fleet {
    /// No workers yet.
    pub fn new(
        config: Arc<Config>,
        payload: Payload,
        sources: Sources,
        executor: Executor,
    ) -> Self {
        let claims = Claims::new();
        Self {
            config,
            payload,
            sources,
            resolver: Resolver::new(),
            workers: Workers::new(executor.clone(), claims.clone()),
            claims,
            nodes: SeenNodes::default(),
            machines: SeenMachines::default(),
            grants: Grants::default(),
            begun: Instant::now(),
            usernames: Usernames::default(),
            counts: Counts::new(executor.metrics.clone()),
            executor,
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
        let mut changes = [self.sources.changes.clone(), self.executor.learned.changes()];
        let mut claims = self.claims.changes();
        let mut names = self.resolver.changes();
        let ended = self.workers.ended();
        loop {
            changes.iter_mut().for_each(watch::Receiver::mark_unchanged);
            claims.mark_unchanged();
            names.mark_unchanged();
            self.pass(Timestamp::now()).await;
            let [sources, learned] = &mut changes;
            tokio::select! {
                () = stop.cancelled() => break,
                _ = sources.changed() => {}
                _ = learned.changed() => {}
                _ = claims.changed() => {}
                _ = names.changed() => {}
                () = ended.notified() => {}
                () = tokio::time::sleep_until(self.next_pass()) => {}
            }
            tokio::time::sleep(DEBOUNCE).await;
        }
        self.workers.end().await;
        self.executor.pool.close_idle().await;
    }

    /// When the next pass is due though nothing changes.
    fn next_pass(&self) -> Instant {
        let names_old = Instant::now() + limits::NAME_LIFETIME.unsigned_abs();
        let granted = self.grants.next_end().map(|end| self.begun + end);
        [self.problems.next(), granted].into_iter().flatten().fold(names_old, Instant::min)
    }

    async fn pass(&mut self, now: Timestamp) {
        let mut problems = Found::new();
        let (sources, learned) = (&self.sources, &self.executor.learned);
        let (resolver, config) = (&self.resolver, Arc::clone(&self.config));
        let seen = &mut self.machines;
        let view = View::of(sources, seen, resolver, learned, &config, now, &mut problems);
        let keys = self.keys(&mut problems);
        let state = self.sources.nodes.state();
        let mut seen = std::mem::take(&mut self.nodes);
        let nodes = seen.update(&state);
        let claims = self.claims.all();
        let running = self.begun.elapsed();
        self.grants.update(nodes, &view.machines, &claims, running);
        let desired = fleet::Desired {
            entries: view.is_listed.then_some(&view.entries),
            machines: &view.machines,
            version: &config.version,
            budget: self.config.disruption_budget,
            guard: view.guard,
            keys: keys.as_ref().map(|keys| &keys.facts),
        };
        let (granted, replaced) = (self.grants.nodes(), self.grants.machines());
        let failed = keys.as_ref().map(|keys| self.failed_logins(&view, keys));
        let [refused, unanswered] = failed.unwrap_or_default();
        let failed_is_empty = refused.is_empty() && unanswered.is_empty();
        let observed = fleet::Observed {
            nodes,
            claims: &claims,
            granted: &granted,
            replaced: &replaced,
            refused: &refused,
            unanswered: &unanswered,
            user_data_ready: keys.as_ref().is_some_and(|keys| {
                // It is long to read, and mostly of no matter.
                let matters = keys.facts.rotation().is_some() || !failed_is_empty;
                !matters || self.user_data_has(keys)
            }),
            hosts: &view.hosts,
            host_names: &view.host_names,
            untried: &view.untried,
        };
        let mut assignments = fleet::reconcile(&desired, &observed);
        self.grants.note(&assignments, running);
        self.counts.show(&assignments.instances, nodes);
        let told = |notice: &Notice| {
            let machine = notice.machine().and_then(|name| view.machines.get(name));
            let machine = machine.map(Machine::identity);
            let (text, reason) = (notice.to_string(), notice.reason());
            (Problem { text, reason, machine }, notice.patience().unsigned_abs())
        };
        problems.extend(assignments.notices.iter().map(told));
        let mut changes = std::mem::take(&mut assignments.changes);
        changes.extend(self.direct(&view, keys.as_ref(), &assignments, &mut problems));
        let mut forgotten = std::mem::take(&mut assignments.forgotten_keys);
        if view.is_listed {
            forgotten.extend(forgotten_jump_keys(&view.entries, &view.hosts));
        }
        let confirmation_used = assignments.confirmation_used;
        self.nodes = seen;
        self.write(changes, forgotten, confirmation_used, &mut problems).await;
        self.tell(&problems).await;
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
        self.refresh_release(problems);
        let (Some(release), Some(keys)) = (self.release.clone(), keys) else {
            // Nobody can tell its worker what people want of a host now.
            self.workers.keep_only(&BTreeSet::new());
            return changes;
        };
        self.usernames.begin_pass(keys.files());
        let parsed = keys.parsed();
        let wanted = assignments.instances.iter().filter(|instance| instance.is_wanted());
        self.workers.keep_only(&wanted.map(|instance| instance.address.as_str()).collect());
        for assignment in assignments.instances.iter().filter(|instance| instance.has_work()) {
            let sealed = match self.sealed_username(assignment, view, keys) {
                Ok(sealed) => sealed,
                Err(error) => {
                    problems.insert(error.to_string().into(), Duration::ZERO);
                    self.executor.learned.tried(&assignment.address);
                    continue;
                }
            };
            let reported = view.reported.get(&assignment.address).map(String::as_str);
            let due = sealed
                .as_deref()
                .and_then(|sealed| due_record(assignment, &view.hosts, sealed, reported));
            // Nothing is done with a host before what is needed to undo it is kept.
            if let Some(due) = due {
                changes.insert(assignment.address.clone(), RecordChange::Listed(due));
                continue;
            }
            let login = Login {
                keys: &keys.facts,
                rotation: assignments.rotation.as_ref(),
                username: sealed.as_deref(),
                decrypt: &|text| self.usernames.opened(text),
            };
            let inputs = WorkerInputs {
                instance: InstanceInputs::of(assignment, &release.wanted, &view.hosts, login),
                keys: Arc::clone(&parsed),
                contents: Arc::clone(&release.contents),
            };
            self.workers.hand_over(assignment, inputs);
        }
        changes
    }

    /// The encrypted user name of an instance that somebody asks for; the one in use is decrypted.
    fn sealed_username(
        &mut self,
        assignment: &fleet::Assignment<'_>,
        view: &View,
        keys: &Keys,
    ) -> Result<Option<String>, UsernameError> {
        let in_use = sealed_username(assignment, &view.hosts);
        if let Some(text) = in_use {
            self.usernames.open(text);
        }
        let Some(instance) = assignment.instance else { return Ok(None) };
        let own = keys.sealing(assignment.record(&view.hosts));
        self.usernames.seal(&instance.username, in_use, own).map(Some)
    }

    /// The private keys; what is wrong with them goes to `problems`.
    fn keys(&self, problems: &mut Found) -> Option<Keys> {
        let (sources, namespace) = (&self.sources, &self.config.namespace);
        let current = snapshot::private_key(sources, namespace);
        let next = snapshot::next_private_key(sources, namespace);
        Keys::parse(current, next, |problem| {
            problems.insert(problem.into(), Duration::ZERO);
        })
    }

    /// Instances whose hosts have refused these keys long enough, and those whose hosts have not answered.
    fn failed_logins(&self, view: &View, keys: &Keys) -> [BTreeSet<String>; 2] {
        let id = LoginKeys::id(&keys.facts.offered(None));
        let is_tried = |instance: &str, login: LoginTry| {
            login.keys == id && view.ipv4_of(instance) == Some(login.at)
        };
        let patience = [self.config.refused_after, self.config.unanswered_after];
        self.executor.learned.failed_logins(is_tried, patience.map(SignedDuration::unsigned_abs))
    }

    /// Whether new Machines let these keys in.
    fn user_data_has(&self, keys: &Keys) -> bool {
        let there = snapshot::user_data_keys(&self.sources);
        keys.files().all(|file| {
            let public = AuthorizedKey::try_from(file.parsed.public());
            public.is_ok_and(|public| there.contains(&public))
        })
    }

    /// Renders what hosts get; while that is not possible, the last rendering stays in force.
    fn refresh_release(&mut self, problems: &mut Found) {
        let last = self.release.as_ref();
        match Release::render(&self.sources, &self.config, &self.payload, last) {
            Ok(release) => self.release = Some(release),
            Err(error) => {
                problems.insert(crate::chain(&error).into(), error.patience());
            }
        }
    }

    /// Writes what a pass decided about what is kept of hosts.
    async fn write(
        &self,
        changes: BTreeMap<String, RecordChange>,
        forgotten: BTreeSet<String>,
        confirmation_used: bool,
        problems: &mut Found,
    ) {
        if (!changes.is_empty() || !forgotten.is_empty())
            && let Err(error) = self.executor.change_records(changes, forgotten).await
        {
            let problem = format!("hosts wait until they are on record: {}", crate::chain(&error));
            problems.insert(problem.into(), limits::MISSING_OBJECT_PATIENCE.unsigned_abs());
        }
        if confirmation_used && let Err(error) = self.executor.use_up_confirmation().await {
            tracing::warn!(error = %crate::chain(&error), "the confirmation stays for now");
        }
    }

    /// Tells people of new problems, once each.
    async fn tell(&mut self, problems: &Found) {
        for problem in self.problems.update(problems, Instant::now()) {
            tracing::warn!(problem = %problem.text, "instances cannot be configured");
            self.executor.announcer.wrong(problem).await;
        }
    }
}
