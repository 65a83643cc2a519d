//! A model of the operator around the planners: what it remembers, and how a decision about the fleet is carried out.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use wmco_core::digest::Sha256;
use wmco_core::facts::NodeFacts;
use wmco_core::fleet::{self, Assignment, Intent, LoginResult, LoginTry, Patience};
use wmco_core::limits;
use wmco_core::login_keys::LoginKeys;
use wmco_core::machines::Machines;
use wmco_core::pass::{self, Pass, pass};

use super::World;
use super::worker::{Unencrypted, Worker};

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
    pub(crate) claims: BTreeSet<String>,
    /// Names that hosts reported, by address as listed.
    pub(super) host_names: BTreeMap<String, String>,
    /// Entries whose hosts it has tried to look at.
    pub(super) tried: BTreeSet<String>,
    /// Ghost: hosts that it could know to be listed when it decided.
    pub(crate) knew_as_listed: BTreeSet<Ipv4Addr>,
    pub(super) instances: BTreeMap<String, Worker>,
}

impl World {
    /// One look at the fleet and at most one plan per instance, with the `others` acting before
    /// every action. Tells whether any instance had a plan to carry out.
    pub(crate) fn round(&mut self, others: u8) -> bool {
        self.requests_land();
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
            taking: &self.taking(),
            right_user_data: right_user_data.as_deref(),
            hosts: &hosts,
            host_names: &host_names,
            never_contacted: &never_contacted,
        };
        let release = Arc::new(self.release.wanted(self.edition(self.release)));
        let reported = self.operator.host_names.clone();
        let (release, release_to_leave) = (Some(&release), None);
        let shown =
            pass::World { desired, observed, release, release_to_leave, reported: &reported };
        let Pass { decided, workers, mut work, records, forgotten_keys, .. } =
            pass(&mut memory, &shown, &mut Unencrypted, clock);
        let replaces = decided.instances.iter().any(|it| matches!(it.intent, Intent::Replace(_)));
        let edited = self.api.made.user_data.edited;
        let lately = edited
            .is_some_and(|edited| self.now.duration_since(edited).unsigned_abs() < REFUSED_FOR);
        assert!(!(replaces && lately), "a successor may get other user data");
        self.heed_rotation(&decided);
        self.forget_keys(&forgotten_keys);
        for (address, change) in &records {
            self.change_record(address, change);
        }
        self.operator.instances.retain(|key, _| workers.contains(key));
        // A Node that is left may show the address of an entry, whose worker does not care for it.
        let wanted = || decided.instances.iter().filter(|it| it.is_wanted());
        // A worker that ends takes its claim with it.
        let nodes: BTreeSet<_> = wanted().filter_map(Assignment::node_name).collect();
        self.operator.claims.retain(|node| nodes.contains(node.as_str()));
        let mut busy = !records.is_empty();
        for instance in wanted() {
            let Some(work) = work.remove(&instance.address) else { continue };
            if let Ok(worked) = self.work_on(instance, work.inputs, others) {
                busy |= worked;
            } else {
                self.crash();
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
        self.operator.instances.values().filter_map(Worker::wakes_at).min()
    }

    /// Whether it has tried to look at the host of an entry.
    pub(crate) fn has_tried(&self, entry: &str) -> bool {
        self.operator.tried.contains(entry)
    }

    /// Whether the operator has nothing left to do, by its own account.
    pub(crate) fn operator_is_settled(&self) -> bool {
        let mut workers = self.operator.instances.values();
        workers.all(Worker::is_settled)
    }
}

fn remembers_nothing() -> fleet::Memory {
    fleet::Memory::new(Patience { refused: REFUSED_FOR, unanswered: REFUSED_FOR })
}
