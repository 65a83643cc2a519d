//! A short model of all that the planners decide about, with ghosts that they cannot see.
//!
//! Hosts, Nodes and pods behave as a [`Probe`](wmco_core::protocol::Probe) and the API would show
//! them. [`World::round`] is the operator; [`World::others_act`] is everybody else. Every broken
//! promise is noted in [`World::broken`] at the moment when it is broken.

mod api;
mod calm;
mod effects;
mod events;
mod faults;
mod host;
mod host_work;
mod keys;
mod machine_events;
mod machine_promises;
mod machines;
mod operator;
mod others;
mod promises;
mod records;
mod release;
mod slow;
mod swapped;
mod worker;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use jiff::{SignedDuration, Timestamp};
use wmco_core::names;
use wmco_core::protocol::FeatureState;

pub(crate) use api::Api;
use api::Node;
pub(crate) use events::Event;
use faults::{Faults, Stuck};
pub(crate) use host::Host;
pub(crate) use keys::KeyEvent;
use keys::Secret;
pub(crate) use machine_events::MachineEvent;
use operator::Operator;
pub(crate) use others::EVERYBODY;
use release::Release;
use slow::SlowRequest;

/// Rounds that any world of three hosts may need when nothing goes wrong any more.
pub(crate) const ROUNDS: usize = 150;

/// How long a drain may take before its slot goes to another node.
pub(crate) const DRAIN_TIMEOUT: SignedDuration = SignedDuration::from_mins(1);

/// A grace period of pods that is longer than a drain may take.
const LONG_GRACE: SignedDuration = SignedDuration::from_mins(2);

/// Nodes that nobody may touch: a Linux node and a Windows node that a Machine is behind.
const NOT_OURS: [&str; 2] = ["linux-1", "machine-1"];

/// Their addresses.
const STRANGERS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 9, 1), Ipv4Addr::new(10, 0, 9, 2)];

/// One entry of the instances ConfigMap.
#[derive(Clone, Copy, Debug)]
struct Entry {
    ipv4: Ipv4Addr,
    /// Whether it does not resolve or parse now.
    broken: bool,
}

impl Entry {
    /// Its value, as people write it.
    fn value(self) -> &'static str {
        if self.broken { "user=core" } else { "username=core" }
    }
}

/// Machines of a MachineSet that we deleted.
#[derive(Clone, Debug, Default)]
struct Deleted {
    /// Their UIDs.
    uids: BTreeSet<String>,
    /// How many of them served.
    served: usize,
    /// How many the MachineSet had when the last of them was to go.
    of: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct World {
    now: Timestamp,
    release: Release,
    /// What the services ConfigMap of each release says, where it is not the first edition any more.
    editions: BTreeMap<Release, u8>,
    budget: usize,
    /// Ghost: the budget, or an earlier one that was greater, while more than the budget got slots or permits then.
    allowed: usize,
    /// Ghost: when the budget was set.
    budget_set_at: Timestamp,
    listed: BTreeMap<String, Entry>,
    /// Whether the ConfigMap of instances is gone for a while.
    list_absent: bool,
    api: Api,
    /// Those of entries, then those of Machines; the last one is a stranger's.
    hosts: Vec<Host>,
    /// The keys that are to let us in, and that new Machines are made with.
    secret: Secret,
    operator: Operator,
    faults: Faults,
    /// Requests that take slots and are on their way.
    slow: Vec<SlowRequest>,
    pods: u32,
    moments: u32,
    /// Hosts, by number, whose pods a budget protects: none of them is evicted.
    protected: BTreeSet<usize>,
    /// Hosts, by number, whose pods do not end when they are evicted.
    clinging: BTreeSet<usize>,
    /// Hosts, by number, whose pods have a long grace period.
    graceful: BTreeSet<usize>,
    /// Hosts, by number, whose pods tolerate a cordon, so that they come back to a cordoned node.
    tolerant: BTreeSet<usize>,
    /// How often each kind of action was begun.
    pub(crate) actions: BTreeMap<&'static str, u32>,
    /// Ghost: promises that were broken.
    pub(crate) broken: Vec<String>,
    /// Ghost: until when nodes could not have been given back, by name.
    excused: BTreeMap<String, Timestamp>,
    /// Ghost: MachineSets that had a Machine deleted by us and have not got well since.
    replaced: BTreeMap<String, Deleted>,
    /// Ghost: when the operator saw a Node ready last, by UID.
    seen_ready: BTreeMap<String, Timestamp>,
    /// Ghost: MachineSets that lost a Machine that served by us, and whose successor was not seen to work since: UIDs of the
    /// Machines that are none.
    awaiting: BTreeMap<String, BTreeSet<String>>,
    /// Ghost: services went down by themselves this round.
    breakdown: bool,
    /// Print every plan, as with the variable `WORLD_LOG`.
    pub(crate) log: bool,
}

impl World {
    /// Hosts that nobody configured yet; those that `features` says have containers switched on.
    /// The first is listed by name.
    pub(crate) fn fresh(hosts: usize, budget: usize, features: u8) -> Self {
        let mut world = Self {
            now: Timestamp::UNIX_EPOCH,
            release: Release(1),
            editions: BTreeMap::new(),
            budget,
            allowed: budget,
            budget_set_at: Timestamp::MIN,
            listed: BTreeMap::new(),
            list_absent: false,
            api: Api::default(),
            hosts: Vec::new(),
            secret: Secret::default(),
            operator: Operator::default(),
            faults: Faults::default(),
            slow: Vec::new(),
            pods: 0,
            moments: 0,
            protected: BTreeSet::new(),
            clinging: BTreeSet::new(),
            graceful: BTreeSet::new(),
            tolerant: BTreeSet::new(),
            actions: BTreeMap::new(),
            broken: Vec::new(),
            excused: BTreeMap::new(),
            replaced: BTreeMap::new(),
            seen_ready: BTreeMap::new(),
            awaiting: BTreeMap::new(),
            breakdown: false,
            log: std::env::var_os("WORLD_LOG").is_some(),
        };
        for index in 0..hosts {
            let on = features & (1 << index) != 0;
            let feature = if on { FeatureState::Enabled } else { FeatureState::Disabled };
            world.hosts.push(Host::fresh(address(index), &format!("win-{index}"), feature));
            world.list(index);
        }
        world.hosts.push(strangers_host());
        for name in NOT_OURS {
            world.api.nodes.insert(name.to_owned(), not_ours(name));
        }
        world
    }

    /// Runs until nobody has anything to do; tells the rounds that it took.
    ///
    /// # Errors
    /// What is unmet when `most` rounds were not enough, or the promises that were broken.
    pub(crate) fn run(&mut self, most: usize) -> Result<usize, Vec<String>> {
        for round in 0..most {
            if !self.broken.is_empty() {
                return Err(self.broken.clone());
            }
            if self.unmet().is_empty() && self.operator_is_settled() {
                return Ok(round);
            }
            self.fair_round();
        }
        let mut why = self.unmet();
        why.push(format!("after {most} rounds"));
        Err(why)
    }

    /// Everybody acts; time passes as far as it must.
    pub(crate) fn fair_round(&mut self) {
        self.cache_catches_up();
        self.machines_catch_up();
        let claims = self.operator.claims.clone();
        // A claim is answered at once.
        let busy = self.round(EVERYBODY) || self.operator.claims != claims;
        // People follow what is reported.
        self.happen_to_keys(KeyEvent::UseNext);
        let before = (!busy).then(|| self.visible());
        self.others_act(EVERYBODY);
        self.now += SignedDuration::from_secs(1);
        if before.is_some_and(|before| before == self.visible()) {
            self.now = self.next_deadline().map_or(self.now, |deadline| deadline.max(self.now));
        }
    }

    /// The operator dies and comes back with nothing in memory.
    pub(crate) fn crash(&mut self) {
        self.operator = Operator::default();
        self.forsake_requests();
    }

    /// Whether a fault that was ordered has not come yet.
    pub(crate) fn has_faults_ahead(&self) -> bool {
        self.faults.crash_in.is_some() || self.faults.fail_in.is_some()
    }

    /// From now on each step with this verb fails.
    pub(crate) fn jam(&mut self, verb: &'static str) {
        let stuck = Some(Stuck { verb, tried: BTreeMap::new(), before: Vec::new() });
        self.faults = Faults { stuck, ..Faults::default() };
    }

    /// When each instance tried what fails each time, apart for each thing that it was asked for.
    pub(crate) fn tried(&self) -> impl Iterator<Item = (&str, &[Timestamp])> {
        let stuck = || self.faults.stuck.iter();
        let now = stuck().flat_map(|stuck| &stuck.tried);
        let before = stuck().flat_map(|stuck| stuck.before.iter().map(|(name, at)| (name, at)));
        now.chain(before).map(|(name, at)| (name.as_str(), at.as_slice()))
    }

    /// How often kubelets were started.
    pub(crate) fn kubelet_starts(&self) -> u32 {
        self.hosts.iter().map(|host| host.kubelet_starts).sum()
    }

    /// The time.
    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// Everything but the operator's own memory.
    pub(crate) fn visible(&self) -> (Api, Vec<Host>) {
        (self.api.clone(), self.hosts.clone())
    }

    /// How many instances are asked for that may be configured.
    pub(crate) fn wanted_count(&self) -> u32 {
        let ours = self.listed.values().filter(|entry| !STRANGERS.contains(&entry.ipv4));
        let made = self.hosts.iter().filter(|host| self.is_wanted_machine(host));
        u32::try_from(ours.count() + made.count()).unwrap()
    }

    /// Edition of a release's services ConfigMap.
    fn edition(&self, release: Release) -> u8 {
        self.editions.get(&release).copied().unwrap_or_default()
    }

    /// What the operator wants services to be.
    fn wanted_services(&self) -> (Release, u8) {
        (self.release, self.edition(self.release))
    }

    /// The number of the host behind a Node.
    fn number(&self, node: &str) -> Option<usize> {
        self.hosts.iter().position(|host| host.name == node)
    }

    /// Grace period of the pods on a host.
    fn grace_on(&self, number: Option<usize>) -> SignedDuration {
        let long = number.is_some_and(|number| self.graceful.contains(&number));
        if long { LONG_GRACE } else { SignedDuration::ZERO }
    }

    /// The address under which a host is listed.
    fn entry_of(&self, host: &Host) -> Option<String> {
        let mut entries = self.listed.iter();
        entries.find(|(_, entry)| host.owns(entry.ipv4)).map(|(key, _)| key.clone())
    }

    fn list(&mut self, index: usize) {
        let ipv4 = address(index);
        let key = if index == 0 { "win-0.example".to_owned() } else { ipv4.to_string() };
        self.listed.insert(key, Entry { ipv4, broken: false });
    }
}

fn address(index: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, u8::try_from(index).unwrap())
}

fn strangers_host() -> Host {
    Host::fresh(STRANGERS[1], "machine-1", FeatureState::Enabled)
}

fn not_ours(name: &str) -> Node {
    let (index, os) = if name == "linux-1" { (0, "linux") } else { (1, names::OS_WINDOWS) };
    let mut node = Node::registered(name, 0, vec![STRANGERS[index].to_string()], os);
    if os == names::OS_WINDOWS {
        node.annotate(names::MACHINE_ANNOTATION, "openshift-machine-api/machine-1");
    }
    node
}
