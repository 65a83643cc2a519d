//! A model of the operator around the planners: what it remembers and how it carries out plans.
//!
//! A *pass* over an instance begins when something changed or a wait is over. It begins with
//! nothing known of the host and of pods, so that nothing old is acted on, and continues
//! as long as plans say [`Next::Now`]. A failed action ends it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use wmco_core::digest::Sha256;
use wmco_core::facts::NodeFacts;
use wmco_core::fleet::{self, Assignment, Intent, LoginResult, LoginTry, Patience, Rotation};
use wmco_core::limits;
use wmco_core::login_keys::LoginKeys;
use wmco_core::machines::Machines;
use wmco_core::node::{
    AttemptedStep, FailureKind, InstanceInputs, Login, Next, Order, Rest, Wake, WorkerState,
};
use wmco_core::reach::{Reach, Unreachable, reach};

use super::World;
use super::faults::Stop;
use super::host::{Host, Power};

/// How long hosts have to refuse its key.
pub(super) const REFUSED_FOR: Duration = Duration::from_secs(3);

/// All that the operator keeps in memory; a crash empties it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Operator {
    /// The Nodes as the fleet's last look at the cache showed them, maybe behind.
    pub(crate) cache: Option<Vec<NodeFacts>>,
    /// The Machines, maybe behind, too.
    pub(crate) machines: Option<Arc<Machines>>,
    /// When each of both was seen.
    seen_at: [Timestamp; 2],
    /// What its passes leave to the next; `None` before the first.
    memory: Option<fleet::Memory>,
    /// What came of logins since the last pass, and when.
    logins: Vec<(String, LoginTry, LoginResult, Duration)>,
    /// How far the exchange of its key is.
    pub(super) rotation: Option<Rotation>,
    pub(crate) claims: BTreeSet<String>,
    /// Names that hosts reported, by address as listed.
    pub(super) host_names: BTreeMap<String, String>,
    /// Entries whose hosts it has tried to look at.
    pub(super) tried: BTreeSet<String>,
    /// Ghost: hosts that it could know to be listed when it decided.
    pub(crate) knew_as_listed: BTreeSet<Ipv4Addr>,
    instances: BTreeMap<String, Worker>,
}

#[derive(Clone, Debug, Default)]
struct Worker {
    state: WorkerState,
    asleep: Option<Asleep>,
}

/// What was true when the last pass ended, and what ends the rest.
#[derive(Clone, Debug)]
struct Asleep {
    inputs: InstanceInputs,
    rest: Rest,
    settled: bool,
}

impl World {
    /// One look at the fleet and at most one plan per instance, with the `others` acting before
    /// every action. Tells whether any instance had a plan to carry out.
    pub(crate) fn round(&mut self, others: u8) -> bool {
        let entries = self.entries();
        self.operator.knew_as_listed = self.known_as_listed();
        let never_contacted = |address: &&String| !self.operator.tried.contains(*address);
        let never_contacted = self.listed.keys().filter(never_contacted).cloned().collect();
        self.watches_lag();
        let cache = self.operator.cache.get_or_insert_with(|| self.api.facts()).clone();
        let machines = self.operator.machines.get_or_insert_with(|| self.api.made.read().into());
        let machines = Arc::clone(machines);
        self.see_ready(&cache, &machines);
        let keys = self.secret.read();
        let claims = self.operator.claims.clone();
        let clock = self.clock();
        let (hosts, host_names) = (self.known_hosts(), self.host_names());
        let version = self.release.version();
        let mut memory = self.operator.memory.take().unwrap_or_else(remembers_nothing);
        for (instance, login, result, at) in self.operator.logins.drain(..) {
            memory.logged_in(&instance, login, result, &(at..at));
        }
        let desired = fleet::Desired {
            entries: (!self.list_absent).then_some(&entries),
            machines: &machines,
            version: &version,
            budget: self.budget,
            blocked: false,
            guard: fleet::RemovalGuard::default(),
            keys: Some(&keys),
        };
        let right_user_data = self.api.made.user_data.look();
        let observed = fleet::Observed {
            nodes: &cache,
            claims: &claims,
            right_user_data: right_user_data.as_deref(),
            hosts: &hosts,
            host_names: &host_names,
            never_contacted: &never_contacted,
        };
        let assignments = memory.pass(&desired, &observed, clock);
        let replaces =
            assignments.instances.iter().any(|it| matches!(it.intent, Intent::Replace(_)));
        let edited = self.api.made.user_data.edited;
        let lately = edited
            .is_some_and(|edited| self.now.duration_since(edited).unsigned_abs() < REFUSED_FOR);
        assert!(!(replaces && lately), "a successor may get other user data");
        self.heed_rotation(&assignments);
        self.forget_keys(&assignments.forgotten_keys);
        for (address, change) in &assignments.changes {
            self.change_record(address, change);
        }
        let known = |key: &String| assignments.instances.iter().any(|i| &i.address == key);
        self.operator.instances.retain(|key, _| known(key));
        // A worker that ends takes its claim with it.
        let wanted = assignments.instances.iter().filter(|instance| instance.is_wanted());
        let wanted: BTreeSet<_> = wanted.filter_map(Assignment::node_name).collect();
        self.operator.claims.retain(|node| wanted.contains(node.as_str()));
        let mut busy = false;
        for instance in &assignments.instances {
            if let Ok(worked) = self.look_at(instance, others) {
                busy |= worked;
            } else {
                self.operator = Operator::default();
                return true;
            }
        }
        self.operator.memory = Some(memory);
        busy
    }

    /// Both views may be behind, but not by more than permits are kept for.
    fn watches_lag(&mut self) {
        let is_old = |seen_at: Timestamp| self.now >= seen_at + limits::CATCH_UP;
        let [nodes, machines] = self.operator.seen_at.map(is_old);
        if nodes {
            self.cache_catches_up();
        }
        if machines {
            self.machines_catch_up();
        }
        if self.operator.cache.is_none() {
            self.operator.seen_at[0] = self.now;
        }
        if self.operator.machines.is_none() {
            self.operator.seen_at[1] = self.now;
        }
    }

    /// The fleet's cache catches up.
    pub(crate) fn cache_catches_up(&mut self) {
        self.operator.cache = None;
    }

    /// Its view of the Machines becomes current, too.
    pub(crate) fn machines_catch_up(&mut self) {
        self.operator.machines = None;
    }

    /// Notes what came of a login to the host of an instance.
    pub(super) fn note_login(
        &mut self,
        instance: &Assignment<'_>,
        at: Ipv4Addr,
        result: LoginResult,
    ) {
        let now = self.clock();
        let login = LoginTry { at, keys: self.offered_id() };
        self.operator.logins.push((instance.address.clone(), login, result, now));
    }

    /// What tells the keys apart that are offered to all hosts.
    fn offered_id(&self) -> Sha256 {
        LoginKeys::id(&self.secret.read().offered(None))
    }

    /// The operator's clock, which never goes back.
    pub(super) fn clock(&self) -> Duration {
        self.now.duration_since(Timestamp::UNIX_EPOCH).unsigned_abs()
    }

    /// The next time that the operator looks by itself.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        let asleep = self.operator.instances.values().filter_map(|worker| worker.asleep.as_ref());
        asleep.map(|asleep| asleep.rest.until).min()
    }

    /// Whether it has tried to look at the host of an entry.
    pub(crate) fn has_tried(&self, entry: &str) -> bool {
        self.operator.tried.contains(entry)
    }

    /// Whether the operator has nothing left to do, by its own account.
    pub(crate) fn operator_is_settled(&self) -> bool {
        let mut workers = self.operator.instances.values();
        workers.all(|worker| worker.asleep.as_ref().is_some_and(|asleep| asleep.settled))
    }

    fn look_at(&mut self, instance: &Assignment<'_>, others: u8) -> Result<bool, Stop> {
        let key = instance.address.clone();
        let index = self.host_of(instance);
        if instance.intent == Intent::Leave {
            self.operator.instances.remove(&key);
            return Ok(false);
        }
        let inputs = match self.order(instance) {
            Order::Work(inputs) => *inputs,
            Order::Record(change) => {
                self.change_record(&key, &change);
                return Ok(true);
            }
        };
        let mut worker = self.operator.instances.remove(&key).unwrap_or_default();
        if let Some(asleep) = &worker.asleep {
            let Some(wake) = asleep.ended_by(&inputs, self.now) else {
                self.operator.instances.insert(key, worker);
                return Ok(false);
            };
            if wake == Wake::AskedOtherwise {
                self.faults.asked_otherwise(&key);
            }
            worker.state.woken(wake, self.now);
        }
        let state = &mut worker.state;
        let plan = state.plan(&inputs, self.now);
        if self.log {
            eprintln!("{} {instance}\n{plan}\n", self.now);
        }
        self.claim(instance, state.claims_slot(&inputs, self.now));
        let mut rest = None;
        for step in &plan.steps {
            self.others_act(others);
            let attempt = AttemptedStep::of(&step.action);
            state.connects();
            *self.actions.entry(step.action.verb()).or_default() += 1;
            let outcome = match self.faults.stuck(&attempt, &key, self.now) {
                Ok(()) => self.effect(&step.action, &key, instance, index),
                Err(stop) => Err(stop),
            };
            match outcome {
                Ok(outcome) => {
                    state.begins(&step.action);
                    state.succeeded(outcome);
                }
                Err(Stop::Fail) => {
                    let on_host = step.action.is_on_host();
                    let on = |host: &&Host| host.power == Power::On;
                    let host = index.map(|index| &self.hosts[index]).filter(on);
                    let refuses = on_host && host.is_some_and(|host| self.is_locked(host));
                    let down = host.is_none() || refuses;
                    if !(on_host && down) {
                        state.begins(&step.action);
                    }
                    rest = Some(state.failed(FailureKind::Other, down, |pause| self.now + pause));
                }
                Err(Stop::Crash) => return Err(Stop::Crash),
            }
            self.check(&step.action);
            if rest.is_some() {
                // An instance that does not answer must not hold up the others.
                self.claim(instance, state.claims_slot(&inputs, self.now));
                break;
            }
        }
        let settled = rest.is_none() && plan.next == Next::Settled;
        let rest = rest.or_else(|| state.done(&plan, self.now));
        worker.asleep = rest.map(|rest| Asleep { inputs, rest, settled });
        self.operator.instances.insert(key, worker);
        Ok(!plan.steps.is_empty())
    }

    /// Whether it needs a slot to continue, if that is known.
    fn claim(&mut self, instance: &Assignment<'_>, claims: Option<bool>) {
        match (instance.node_name(), claims) {
            (Some(name), Some(true)) => drop(self.operator.claims.insert(name.to_owned())),
            (Some(name), Some(false)) => drop(self.operator.claims.remove(name)),
            _ => {}
        }
    }

    /// What follows from a decision for the worker.
    fn order(&self, instance: &Assignment<'_>) -> Order {
        let reported = self.operator.host_names.get(&instance.address).map(String::as_str);
        let (keys, rotation) = (self.secret.read(), self.operator.rotation.as_ref());
        let decrypt = &|text: &str| Some(text.to_owned());
        let login = Login { keys: &keys, rotation, username: Some("sealed"), decrypt };
        let release = Arc::new(self.release.wanted(self.edition(self.release)));
        Order::of(&self.now_of(instance), &release, &self.known_hosts(), login, reported)
    }

    /// The way to the host of an instance, by what is known now.
    pub(super) fn reach(&self, instance: &Assignment<'_>) -> Result<Reach, Unreachable> {
        reach(&self.now_of(instance), &self.known_hosts(), |text| Some(text.to_owned()))
    }

    /// What was decided about an instance, with its Node as it is now.
    fn now_of<'a>(&'a self, instance: &Assignment<'a>) -> Assignment<'a> {
        Assignment { node: self.node_of(instance), ..instance.clone() }
    }

    /// The Node of an instance as it is now; that of a Machine is the one that it refers to.
    pub(super) fn node_of(&self, instance: &Assignment<'_>) -> Option<&NodeFacts> {
        let node = &self.api.nodes.get(instance.node_name()?)?.facts;
        let is_meant = is_of_entry(instance) || Some(&node.uid) == instance.node.map(|it| &it.uid);
        is_meant.then_some(node)
    }

    pub(super) fn host_of(&self, instance: &Assignment<'_>) -> Option<usize> {
        let recorded = || {
            let known = self.known_hosts();
            known.record(&instance.address)?.ipv4
        };
        let made = instance.instance.filter(|made| made.machine.is_some()).map(|made| made.ipv4);
        let listed = self.listed.get(&instance.address).map(|entry| entry.ipv4);
        let address = made.or(listed).or_else(recorded)?;
        self.hosts.iter().position(|host| host.answers_at(address))
    }
}

impl Asleep {
    /// What ends the rest now.
    fn ended_by(&self, inputs: &InstanceInputs, now: Timestamp) -> Option<Wake> {
        let changed = *inputs != self.inputs;
        let changed = changed.then(|| self.rest.ended_by(inputs, &self.inputs)).flatten();
        changed.or_else(|| (now >= self.rest.until).then_some(Wake::Deadline))
    }
}

fn remembers_nothing() -> fleet::Memory {
    fleet::Memory::new(Patience { refused: REFUSED_FOR, unanswered: REFUSED_FOR })
}

/// Whether people list it, or did.
fn is_of_entry(instance: &Assignment<'_>) -> bool {
    wmco_core::machines::name_in(&instance.address).is_none()
}
