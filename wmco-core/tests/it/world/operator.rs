//! A model of the operator around the planners: what it remembers and how it carries out plans.
//!
//! A *pass* over an instance begins when something changed or a wait is over. It begins with
//! nothing known of the host and of pods, so that nothing old is acted on, and goes on as long as
//! plans say [`Next::Now`]. A failed action ends it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use jiff::Timestamp;
use wmco_core::digest::Sha256;
use wmco_core::facts::{NodeFacts, PodFacts};
use wmco_core::fleet::{self, Assignment, DisruptionPermit, Intent};
use wmco_core::host_record::{HostRecord, KnownHosts, ListedHost, RecordChange};
use wmco_core::instances::{Entries, Resolutions, parse};
use wmco_core::machines::Machines;
use wmco_core::node::{
    Action, Grounds, HostSeen, HostWork, InstanceInputs, KnownAs, Memory, Next, Outcome, Refusal,
    Wake,
};
use wmco_core::protocol::HostStep;
use wmco_core::reach::{Reach, Unreachable, reach};
use wmco_core::{limits, names};

use super::World;
use super::faults::Stop;
use super::host::{Host, Power};
use super::release::Release;

/// All that the operator keeps in memory; a crash empties it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Operator {
    /// The Nodes as the fleet's last look at the cache showed them, maybe behind.
    pub(crate) cache: Option<Vec<NodeFacts>>,
    granted: BTreeSet<String>,
    pub(crate) claims: BTreeSet<String>,
    /// Names that hosts reported, by address as listed.
    host_names: BTreeMap<String, String>,
    /// Entries whose hosts it has tried to look at.
    tried: BTreeSet<String>,
    /// Ghost: hosts that it could know to be listed when it decided.
    pub(crate) knew_as_listed: BTreeSet<Ipv4Addr>,
    instances: BTreeMap<String, Worker>,
}

#[derive(Clone, Debug, Default)]
struct Worker {
    memory: Memory,
    asleep: Option<Asleep>,
}

/// What was true when the last pass ended, and when to look again anyway.
#[derive(Clone, Debug)]
struct Asleep {
    trigger: Trigger,
    until: Timestamp,
    settled: bool,
}

/// What wakes a worker.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Trigger {
    asked: (Intent, (Release, u8)),
    there: (Option<NodeFacts>, bool, bool, usize),
}

impl World {
    /// One look at the fleet and at most one plan per instance, with the `others` acting before
    /// every action. Tells whether any instance had a plan to carry out.
    pub(crate) fn round(&mut self, others: u8) -> bool {
        let entries = self.entries();
        self.operator.knew_as_listed = self.known_as_listed();
        let untried = |address: &&String| !self.operator.tried.contains(*address);
        let untried = self.listed.keys().filter(untried).cloned().collect();
        let cache = self.operator.cache.get_or_insert_with(|| self.api.facts()).clone();
        let (claims, granted) = (self.operator.claims.clone(), self.operator.granted.clone());
        let (hosts, host_names) = (self.known_hosts(), self.host_names());
        let assignments = fleet::reconcile(
            &fleet::Desired {
                entries: (!self.list_absent).then_some(&entries),
                machines: &Machines::default(),
                version: "",
                budget: self.budget,
                guard: fleet::RemovalGuard::default(),
            },
            &fleet::Observed {
                nodes: &cache,
                claims: &claims,
                granted: &granted,
                replaced: &BTreeSet::new(),
                refused: &BTreeSet::new(),
                user_data_ready: true,
                hosts: &hosts,
                host_names: &host_names,
                untried: &untried,
            },
        );
        self.forget_keys(&assignments.forgotten_keys);
        for (address, change) in &assignments.changes {
            self.change_record(address, change);
        }
        for instance in &assignments.instances {
            if let Some(permit) = instance.intent.permit() {
                self.operator.granted.insert(permit.node().to_owned());
            }
        }
        let known = |key: &String| assignments.instances.iter().any(|i| &i.address == key);
        self.operator.instances.retain(|key, _| known(key));
        let mut busy = false;
        for instance in &assignments.instances {
            if let Ok(worked) = self.look_at(instance, others) {
                busy |= worked;
            } else {
                self.operator = Operator::default();
                return true;
            }
        }
        busy
    }

    /// The fleet's cache catches up, so every mark of a permit that was used is visible in it.
    pub(crate) fn cache_catches_up(&mut self) {
        self.operator.cache = None;
        self.operator.granted.clear();
    }

    /// The next time that the operator looks by itself.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        let asleep = self.operator.instances.values().filter_map(|worker| worker.asleep.as_ref());
        asleep.map(|asleep| asleep.until).min()
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
        let node = self.node_of(instance).cloned();
        if instance.intent == Intent::Leave {
            self.operator.instances.remove(&key);
            return Ok(false);
        }
        self.keep_record(instance);
        let mut worker = self.operator.instances.remove(&key).unwrap_or_default();
        let pods = node.iter().filter_map(|n| self.api.nodes.get(&n.name)).map(|n| n.pods.len());
        let own = [key.clone(), HostRecord::key_name(&key)];
        let kept = own.iter().any(|name| self.api.host_keys.contains_key(name));
        let known_closed = self.is_known_closed(&key);
        let trigger = Trigger {
            asked: (instance.intent.clone(), self.wanted_services()),
            there: (node.clone(), kept, known_closed, pods.sum()),
        };
        if let Some(asleep) = &worker.asleep {
            let wake = if asleep.trigger.asked != trigger.asked {
                Wake::AskedOtherwise
            } else if self.now >= asleep.until {
                Wake::Deadline
            } else if asleep.trigger == trigger {
                self.operator.instances.insert(key, worker);
                return Ok(false);
            } else {
                Wake::NodeChanged
            };
            worker.memory.woken(wake, self.now);
        }
        let edition = self.edition(self.release);
        let name = index.map(|index| self.hosts[index].wanted_name());
        let record = self.known_hosts().record(&key).cloned();
        let known_as = KnownAs {
            names: record.iter().filter_map(|record| record.node.clone()).collect(),
            ipv4: record.as_ref().and_then(|record| record.ipv4),
        };
        let wanted = (instance.intent.clone(), known_as);
        let inputs = InstanceInputs {
            address: key.clone(),
            desired: self.release.desired(edition, &key, name, wanted),
            node,
            reach: self.reach(instance),
            key_hash: Sha256::of(b"key"),
            record,
            on_record: kept,
        };
        let memory = &mut worker.memory;
        let plan = memory.plan(&inputs, self.now);
        if self.log {
            eprintln!("{} {instance}\n{plan}\n", self.now);
        }
        if let (Some(name), Some(claims)) =
            (instance.node_name(), memory.claims_slot(&inputs, self.now))
        {
            if claims {
                self.operator.claims.insert(name.to_owned());
            } else {
                self.operator.claims.remove(name);
            }
        }
        let mut failed = false;
        for step in &plan.steps {
            self.others_act(others);
            *self.actions.entry(step.action.verb()).or_default() += 1;
            match self.effect(&step.action, &key, instance, index) {
                Ok(outcome) => memory.learn(outcome),
                Err(Stop::Fail) => failed = true,
                Err(Stop::Crash) => return Err(Stop::Crash),
            }
            self.check(&step.action);
            if failed {
                break;
            }
        }
        let until = if failed {
            let retry_at = self.now + limits::RETRY_FIRST;
            let down = index.is_none_or(|index| self.hosts[index].power != Power::On);
            memory.failed(down.then_some(retry_at));
            Some(retry_at)
        } else {
            memory.done(&plan, self.now).map(|rest| rest.until)
        };
        let settled = !failed && plan.next == Next::Settled;
        worker.asleep = until.map(|until| Asleep { trigger, until, settled });
        self.operator.instances.insert(key, worker);
        Ok(!plan.steps.is_empty())
    }

    fn effect(
        &mut self,
        action: &Action,
        key: &str,
        instance: &Assignment<'_>,
        index: Option<usize>,
    ) -> Result<Outcome, Stop> {
        self.faults.pass()?;
        let release = self.release;
        if !matches!(action, Action::Probe | Action::ForgetHost) {
            self.promise_leaving(instance, index);
        }
        let outcome = match action {
            Action::Probe => {
                self.promise_ours(key, index);
                let host = self.connect(instance, index).ok_or(Stop::Fail)?;
                let seen = host.agent.map_or(HostSeen::NoAgent, |agent| probed(host, agent));
                Outcome::Looked(seen)
            }
            Action::ProbeWithOurs(_) => {
                self.connect(instance, index).ok_or(Stop::Fail)?;
                let host = &mut self.hosts[index.unwrap()];
                host.bring(release, &mut self.faults)?;
                Outcome::Worked(probed(host, release))
            }
            Action::ProbeStaged(agent) => {
                self.promise_ours(key, index);
                let host = self.connect(instance, index).ok_or(Stop::Fail)?;
                let there = host.staged_agents.contains(agent);
                Outcome::Looked(if there { probed(host, release) } else { HostSeen::NoAgent })
            }
            Action::RecordRoot(root) => {
                let host = &self.hosts[index.ok_or(Stop::Fail)?];
                let (shown, name) = (host.key(), Some(host.wanted_name()));
                let seen = RecordChange::Seen { key: shown, host_name: name, root: *root };
                self.change_record(key, &seen);
                Outcome::RootRecorded(*root)
            }
            Action::Upload(contents) => {
                self.promise_ours(key, index);
                let host = self.connect(instance, index).ok_or(Stop::Fail)?;
                host.staged.extend(contents);
                Outcome::Uploaded
            }
            Action::PatchNode(patch) => {
                let name = instance.node_name().ok_or(Stop::Fail)?;
                self.promise_patch(name, patch);
                self.api.nodes.get_mut(name).ok_or(Stop::Fail)?.patch(patch);
                Outcome::NodeChanged { resource_version: 0 }
            }
            Action::SeekNode(search) => {
                let is_meant = |node: &NodeFacts| {
                    search.names.contains(&node.name) || search.is_at(&node.addresses)
                };
                let found = self.api.nodes.values().find(|node| is_meant(&node.facts));
                found.map_or(Outcome::NoNode, |node| Outcome::FoundNode {
                    name: node.facts.name.clone(),
                })
            }
            Action::ListPods => {
                let name = instance.node_name().ok_or(Stop::Fail)?;
                Outcome::Pods(self.api.nodes.get(name).ok_or(Stop::Fail)?.pods.clone())
            }
            Action::Evict { pods, permit } => {
                self.promise_permit(instance, permit);
                self.evict(instance, pods)?
            }
            Action::TellDrain { notice, .. } => {
                let name = instance.node_name().ok_or(Stop::Fail)?;
                let node = self.api.nodes.get_mut(name).ok_or(Stop::Fail)?;
                node.facts.drain_notice.clone_from(notice);
                Outcome::NodeChanged { resource_version: 0 }
            }
            Action::Apply { work, .. } => {
                self.promise_grounds(instance, work);
                self.promise_ours(key, index);
                self.connect(instance, index).ok_or(Stop::Fail)?;
                self.apply(work, index.unwrap())?;
                // The agent's last line is a probe, unless the host goes down meanwhile.
                let host = &self.hosts[index.unwrap()];
                let up = host.power == Power::On;
                Outcome::Worked(if up { probed(host, release) } else { HostSeen::Unknown })
            }
            Action::RemoveLeftovers(work) => {
                self.promise_grounds(instance, work);
                self.connect(instance, index).ok_or(Stop::Fail)?;
                self.hosts[index.unwrap()].remove_leftovers(&mut self.faults)?;
                Outcome::Worked(HostSeen::NoAgent)
            }
            Action::ForgetHost => {
                self.api.host_keys.remove(key);
                self.api.host_keys.remove(&HostRecord::key_name(key));
                // It is as it was before us, so its next key is a first one.
                self.hosts[index.ok_or(Stop::Fail)?].known.clear();
                Outcome::HostForgotten
            }
            Action::DeleteNode(permit) => {
                self.promise_permit(instance, permit);
                self.promise_delete(permit.node());
                self.api.nodes.remove(permit.node());
                Outcome::NodeDeleted
            }
        };
        self.faults.pass()?;
        Ok(outcome)
    }

    /// The host, if it answers and shows the pinned key. A key that is pinned nowhere goes into the
    /// ConfigMap, with its fingerprint on record.
    fn connect(&mut self, instance: &Assignment<'_>, index: Option<usize>) -> Option<&mut Host> {
        self.operator.tried.insert(instance.address.clone());
        let index = index?;
        if self.hosts[index].power != Power::On {
            return None;
        }
        let way = self.reach(instance).ok()?;
        let host = &self.hosts[index];
        let (shown, address) = (host.key(), host.address);
        if way.host_key.as_ref().is_some_and(|pinned| pinned.key != shown) {
            return None;
        }
        if way.host_key.is_none() && host.known.contains(&way.address) {
            self.broken.push(format!("{address} was trusted on first use a second time"));
        }
        if !host.answers_at(way.address) {
            self.broken.push(format!("{instance} dials {} for the host at {address}", way.address));
        }
        if way.host_key.is_none() || way.to_keep {
            let pinned = RecordChange::Pinned { key: shown, jump: None };
            self.change_record(&instance.address, &pinned);
        }
        let host = &mut self.hosts[index];
        host.known.insert(way.address);
        self.operator.host_names.insert(instance.address.clone(), host.name.clone());
        Some(host)
    }

    /// The way to the host of an instance, by what is known now.
    fn reach(&self, instance: &Assignment<'_>) -> Result<Reach, Unreachable> {
        let entries = self.entries();
        let listed = entries.get(&instance.address).and_then(|entry| entry.as_ref().ok());
        let node = self.node_of(instance);
        let now = Assignment { instance: listed, node, ..instance.clone() };
        reach(&now, &self.known_hosts(), |text| Some(text.to_owned()))
    }

    fn evict(&mut self, instance: &Assignment<'_>, pods: &[PodFacts]) -> Result<Outcome, Stop> {
        let name = instance.node_name().ok_or(Stop::Fail)?;
        let number = self.number(name);
        let protected = number.is_some_and(|number| self.protected.contains(&number));
        let leaves_by = self.now + self.grace_on(number);
        let node = self.api.nodes.get_mut(name).ok_or(Stop::Fail)?;
        let mut refused = Vec::new();
        for pod in node.pods.iter_mut().filter(|pod| pods.contains(pod)) {
            self.faults.pass()?;
            if protected {
                let (namespace, name) = (pod.namespace.clone(), pod.name.clone());
                refused.push(Refusal { namespace, name, why: "budget".into() });
            } else {
                pod.leaves_by = Some(leaves_by);
            }
        }
        Ok(Outcome::Evicted(refused))
    }

    /// Names that hosts reported, to this operator or to one before.
    fn host_names(&self) -> BTreeMap<String, BTreeSet<String>> {
        let known = self.known_hosts();
        let recorded =
            known.records().filter_map(|(a, r)| Some((a.to_owned(), r.host_name.clone()?)));
        let reported = self.operator.host_names.clone();
        recorded.chain(reported).map(|(address, name)| (address, [name].into())).collect()
    }

    /// Removes keys of the ConfigMap. A host whose entry has taken its key over may be trusted on first
    /// use at the address that it had before.
    fn forget_keys(&mut self, keys: &BTreeSet<String>) {
        let known = self.known_hosts();
        self.api.host_keys.retain(|key, _| !keys.contains(key));
        for key in keys.iter().filter_map(|key| HostRecord::address_in(key)) {
            let ipv4 = known.record(key).and_then(|record| record.ipv4);
            let Some(ipv4) = ipv4.filter(|_| !self.listed.contains_key(key)) else { continue };
            let left = self.known_hosts();
            for host in self.hosts.iter_mut().filter(|host| host.owns(ipv4)) {
                let shown = host.key().to_string();
                let pinned = left.records().filter(|(a, _)| left.pin(a) == Some(&shown));
                let pinned: Vec<_> = pinned.map(|(_, record)| record.ipv4).collect();
                if !pinned.is_empty() && !pinned.contains(&Some(ipv4)) {
                    host.known.remove(&ipv4);
                }
            }
        }
    }

    /// Whether the record says so of the host that has to show the pinned key.
    fn is_known_closed(&self, address: &str) -> bool {
        let known = self.known_hosts();
        let (key, record) = (known.pinned_key(address), known.record(address));
        key.is_some_and(|key| record.is_some_and(|record| record.is_closed_for(key.unwrap())))
    }

    /// The entries, as the operator reads them.
    fn entries(&self) -> Entries {
        let mut names = Resolutions::default();
        for (address, entry) in &self.listed {
            names.insert(address, Ok(entry.ipv4));
        }
        parse(self.listed.iter().map(|(address, entry)| (address, entry.value())), &names)
    }

    fn known_hosts(&self) -> KnownHosts {
        KnownHosts::read(&self.api.host_keys)
    }

    /// The Node of an instance as it is now.
    fn node_of(&self, instance: &Assignment<'_>) -> Option<&NodeFacts> {
        self.api.nodes.get(instance.node_name()?).map(|node| &node.facts)
    }

    /// What is needed to clean the host later is on record before anything is done there.
    fn keep_record(&mut self, instance: &Assignment<'_>) {
        let entries = self.entries();
        let Some(Ok(listed)) = entries.get(&instance.address) else { return };
        let reported = self.operator.host_names.contains_key(&instance.address);
        let index = self.host_of(instance).filter(|_| reported);
        let host = ListedHost {
            node: instance.confirmed_node().map(str::to_owned),
            // One that is about to be renamed is known by its new name.
            host_name: index.map(|index| self.hosts[index].wanted_name()),
            formerly: instance.formerly.clone(),
            ..ListedHost::of(listed, "sealed")
        };
        self.change_record(&instance.address, &RecordChange::Listed(host));
    }

    fn change_record(&mut self, address: &str, change: &RecordChange) {
        let ipv4 = |known: &KnownHosts| known.record(address).and_then(|record| record.ipv4);
        let before = ipv4(&self.known_hosts());
        change.apply(address, &mut self.api.host_keys).unwrap();
        let now = self.known_hosts();
        if let Some(before) = before.filter(|_| before != ipv4(&now))
            && !now.records().any(|(_, record)| record.ipv4 == Some(before))
        {
            // Its name leads elsewhere now, so nobody knows who answers there.
            self.hosts.iter_mut().for_each(|host| {
                host.known.remove(&before);
            });
        }
    }

    fn apply(&mut self, work: &HostWork, index: usize) -> Result<(), Stop> {
        let host = &self.hosts[index];
        let stays_vacant =
            |boot| host.boot_id() == boot && !host.runs(names::host::KUBELET_SERVICE);
        if !work.plan().vacant_since.as_deref().is_none_or(stays_vacant) {
            return Err(Stop::Fail);
        }
        let permitted = matches!(work.grounds(), Grounds::Permitted(_));
        for step in &work.plan().steps {
            self.promise_host_step(index, step);
            if let Some(node) = self.api.nodes.get_mut(&self.hosts[index].name) {
                // A restart alone leaves the host as it was.
                node.touched |= permitted && *step != HostStep::Restart;
            }
            let host = &mut self.hosts[index];
            if !host.staged_agents.contains(&self.release.agent())
                && host.agent != Some(self.release)
            {
                return Err(Stop::Fail);
            }
            host.apply(step, self.release, &mut self.faults)?;
        }
        Ok(())
    }

    fn host_of(&self, instance: &Assignment<'_>) -> Option<usize> {
        let recorded = || {
            let known = self.known_hosts();
            known.record(&instance.address)?.ipv4
        };
        let listed = self.listed.get(&instance.address).map(|entry| entry.ipv4);
        let address = listed.or_else(recorded)?;
        self.hosts.iter().position(|host| host.answers_at(address))
    }

    fn promise_grounds(&mut self, instance: &Assignment<'_>, work: &HostWork) {
        match work.grounds() {
            Grounds::Harmless | Grounds::Vacant(_) => {}
            Grounds::Permitted(permit) => self.promise_permit(instance, permit),
        }
    }

    fn promise_permit(&mut self, instance: &Assignment<'_>, permit: &DisruptionPermit) {
        if instance.node_name() != Some(permit.node()) {
            self.broken.push(format!("{instance} used the {permit}"));
        }
    }
}

fn probed(host: &Host, agent: Release) -> HostSeen {
    HostSeen::Probed(Box::new(host.probe(agent)))
}
