//! A model of the operator around the planners: what it remembers and how it carries out plans.
//!
//! A *pass* over an instance begins when something changed or a wait is over. It begins with
//! nothing known of the host and of pods, so that nothing old is acted on, and goes on as long as
//! plans say [`Next::Now`]. A failed action ends it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use wmco_core::fleet::{self, Assignment, DisruptionPermit};
use wmco_core::host_record::{HostRecord, KnownHosts};
use wmco_core::instances::Instance;
use wmco_core::node::{
    Action, Grounds, HostSeen, HostWork, Intent, KnownAs, Learnt, Memory, Next, NodeFacts,
    PodFacts, Refusal, Wake,
};
use wmco_core::protocol::RootAccess;
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
    host_names: BTreeMap<String, BTreeSet<String>>,
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
        let listed: Vec<_> = self.listed.iter().map(|(a, entry)| entry.listed(a)).collect();
        let cache = self.operator.cache.get_or_insert_with(|| self.api.facts()).clone();
        let assignments = fleet::reconcile(
            &fleet::Desired {
                listed: (!self.list_absent).then_some(&listed),
                budget: self.budget,
                guard: fleet::RemovalGuard::default(),
            },
            &fleet::Observed {
                nodes: &cache,
                claims: &self.operator.claims,
                granted: &self.operator.granted,
                hosts: &KnownHosts::read(&self.api.host_keys),
                host_names: &self.operator.host_names,
            },
        );
        self.api.host_keys.retain(|key, _| !assignments.forgotten_keys.contains(key));
        for (address, record) in &assignments.records {
            self.put_on_record(address, record);
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

    /// Whether the operator has nothing left to do, by its own account.
    pub(crate) fn operator_is_settled(&self) -> bool {
        let mut workers = self.operator.instances.values();
        workers.all(|worker| worker.asleep.as_ref().is_some_and(|asleep| asleep.settled))
    }

    fn look_at(&mut self, instance: &Assignment, others: u8) -> Result<bool, Stop> {
        let key = instance.address.clone();
        let index = self.host_of(instance);
        let node = instance.node.as_ref().and_then(|name| self.api.nodes.get(name));
        let node = node.map(|node| node.facts.clone());
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
        let memory = &mut worker.memory;
        let edition = self.edition(self.release);
        let name = index.map(|index| self.hosts[index].wanted_name());
        let record = KnownHosts::read(&self.api.host_keys).record(&key).cloned();
        let record = record.unwrap_or_default();
        memory.set_known_closed(known_closed);
        let known_as = KnownAs { names: record.node.into_iter().collect(), ipv4: record.ipv4 };
        let wanted = (instance.intent.clone(), known_as);
        let desired = self.release.desired(edition, &key, name, wanted);
        let plan = memory.plan(&desired, node.as_ref(), kept, self.now);
        if self.log {
            eprintln!("{} {instance}\n{plan}\n", self.now);
        }
        if let (Some(name), Some(claims)) =
            (&instance.node, memory.claims_slot(&desired, node.as_ref(), self.now))
        {
            if claims {
                self.operator.claims.insert(name.clone());
            } else {
                self.operator.claims.remove(name);
            }
        }
        let mut failed = false;
        for step in &plan.steps {
            self.others_act(others);
            *self.actions.entry(step.action.verb()).or_default() += 1;
            match self.effect(&step.action, &key, instance, index) {
                Ok(learnt) => memory.learn(learnt),
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
            memory.done(&plan, self.now)
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
        instance: &Assignment,
        index: Option<usize>,
    ) -> Result<Learnt, Stop> {
        self.faults.pass()?;
        let release = self.release;
        if !matches!(action, Action::Probe | Action::ForgetHost) {
            self.promise_leaving(instance, index);
        }
        let learnt = match action {
            Action::Probe => {
                self.promise_ours(key, index);
                let host = self.connect(instance, index).ok_or(Stop::Fail)?;
                let seen = host.agent.map_or(HostSeen::NoAgent, |agent| probed(host, agent));
                Learnt::Host(seen)
            }
            Action::ProbeWithOurs(_) => {
                self.connect(instance, index).ok_or(Stop::Fail)?;
                let host = &mut self.hosts[index.unwrap()];
                host.bring(release, &mut self.faults)?;
                Learnt::Worked(probed(host, release))
            }
            Action::ProbeStaged(agent) => {
                self.promise_ours(key, index);
                let host = self.connect(instance, index).ok_or(Stop::Fail)?;
                let there = host.staged_agents.contains(agent);
                Learnt::Host(if there { probed(host, release) } else { HostSeen::NoAgent })
            }
            Action::RecordRoot(root) => {
                let fingerprint = self.hosts[index.ok_or(Stop::Fail)?].key().fingerprint();
                self.record_root(key, (*root == RootAccess::Closed).then_some(fingerprint));
                Learnt::Changed
            }
            Action::Upload(contents) => {
                self.promise_ours(key, index);
                let host = self.connect(instance, index).ok_or(Stop::Fail)?;
                host.staged.extend(contents);
                Learnt::Changed
            }
            Action::PatchNode(patch) => {
                let name = instance.node.as_ref().ok_or(Stop::Fail)?;
                self.promise_patch(name, patch);
                self.api.nodes.get_mut(name).ok_or(Stop::Fail)?.patch(patch);
                Learnt::Changed
            }
            Action::SeekNode(search) => {
                let is_meant = |node: &NodeFacts| {
                    search.names.contains(&node.name) || search.is_at(&node.addresses)
                };
                let found = self.api.nodes.values().any(|node| is_meant(&node.facts));
                if found { Learnt::FoundNode } else { Learnt::NoNode }
            }
            Action::ListPods => {
                let name = instance.node.as_ref().ok_or(Stop::Fail)?;
                Learnt::Pods(self.api.nodes.get(name).ok_or(Stop::Fail)?.pods.clone())
            }
            Action::Evict { pods, permit } => {
                self.promise_permit(instance, permit);
                self.evict(instance, pods)?
            }
            Action::TellDrain { notice, .. } => {
                let name = instance.node.as_ref().ok_or(Stop::Fail)?;
                let node = self.api.nodes.get_mut(name).ok_or(Stop::Fail)?;
                node.facts.drain_notice.clone_from(notice);
                Learnt::Changed
            }
            Action::Apply(work) => {
                self.promise_grounds(instance, work);
                self.promise_ours(key, index);
                self.connect(instance, index).ok_or(Stop::Fail)?;
                self.apply(work, index.unwrap())?;
                // The agent's last line is a probe, unless the host goes down meanwhile.
                let host = &self.hosts[index.unwrap()];
                let up = host.power == Power::On;
                Learnt::Worked(if up { probed(host, release) } else { HostSeen::Unknown })
            }
            Action::RemoveLeftovers(work) => {
                self.promise_grounds(instance, work);
                self.connect(instance, index).ok_or(Stop::Fail)?;
                self.hosts[index.unwrap()].remove_leftovers(&mut self.faults)?;
                Learnt::Worked(HostSeen::NoAgent)
            }
            Action::ForgetHost => {
                self.api.host_keys.remove(key);
                self.api.host_keys.remove(&HostRecord::key_name(key));
                // It is as it was before us, so its next key is a first one.
                self.hosts[index.ok_or(Stop::Fail)?].known = false;
                Learnt::Changed
            }
            Action::DeleteNode(permit) => {
                self.promise_permit(instance, permit);
                self.promise_delete(permit.node());
                self.api.nodes.remove(permit.node());
                Learnt::Changed
            }
        };
        self.faults.pass()?;
        Ok(learnt)
    }

    /// The host, if it answers and shows the pinned key. A key that is pinned nowhere goes into the
    /// ConfigMap, with its fingerprint on record.
    fn connect(&mut self, instance: &Assignment, index: Option<usize>) -> Option<&mut Host> {
        let index = index?;
        if self.hosts[index].power != Power::On {
            return None;
        }
        let known = KnownHosts::read(&self.api.host_keys);
        let listed = self.instance(&instance.address);
        let node = instance.node.as_ref().and_then(|name| self.api.nodes.get(name));
        let facts = node.map(|node| &node.facts);
        let user = |text: &str| Some(text.to_owned());
        let way = fleet::reach(instance, listed.as_ref(), facts, &known, user).ok()?;
        let host = &self.hosts[index];
        let (shown, address) = (host.key(), host.address);
        if way.host_key.as_ref().is_some_and(|pinned| pinned.key != shown.to_string()) {
            return None;
        }
        if way.host_key.is_none() && host.known {
            self.broken.push(format!("{address} was trusted on first use a second time"));
        }
        if way.address != address {
            self.broken.push(format!("{instance} dials {} for the host at {address}", way.address));
        }
        if way.host_key.is_none() || way.to_keep {
            let mut record = known.record(&instance.address).cloned().unwrap_or_default();
            record.pinned = Some(shown.fingerprint());
            self.put_on_record(&instance.address, &record);
            self.api.host_keys.insert(instance.address.clone(), shown.to_string());
        }
        let host = &mut self.hosts[index];
        host.known = true;
        let names = BTreeSet::from([host.name.clone()]);
        self.operator.host_names.insert(instance.address.clone(), names);
        Some(host)
    }

    fn evict(&mut self, instance: &Assignment, pods: &[PodFacts]) -> Result<Learnt, Stop> {
        let name = instance.node.as_ref().ok_or(Stop::Fail)?;
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
        Ok(Learnt::Evicted(refused))
    }

    fn record_root(&mut self, address: &str, closed_for: Option<String>) {
        let known = KnownHosts::read(&self.api.host_keys);
        let record = known.record(address).cloned().unwrap_or_default();
        self.put_on_record(address, &HostRecord { closed_for, ..record });
    }

    /// Whether the record says so of the host that has to show the pinned key.
    fn is_known_closed(&self, address: &str) -> bool {
        let known = KnownHosts::read(&self.api.host_keys);
        let key = known.pin(address).and_then(|key| key.parse().ok());
        let record = known.record(address);
        key.is_some_and(|key| record.is_some_and(|record| record.is_closed_for(&key)))
    }

    /// The entry of an instance, as the operator reads it.
    fn instance(&self, address: &str) -> Option<Instance> {
        let entry = self.listed.get(address).filter(|entry| !entry.broken)?;
        Some(Instance {
            address: address.to_owned(),
            ipv4: entry.ipv4,
            port: limits::SSH_PORT,
            username: "core".to_owned(),
            host_key: None,
            via: None,
            via_host_key: None,
        })
    }

    /// What is needed to clean the host later is on record before anything is done there.
    fn keep_record(&mut self, instance: &Assignment) {
        let Some(listed) = self.instance(&instance.address) else { return };
        let known = KnownHosts::read(&self.api.host_keys);
        let before = std::iter::once(&instance.address).chain(&instance.formerly);
        let before = before.into_iter().find_map(|name| known.record(name));
        let record = HostRecord::of_listed(before, &listed, "sealed", instance.confirmed_node());
        self.put_on_record(&instance.address, &record);
    }

    fn put_on_record(&mut self, address: &str, record: &HostRecord) {
        let json = serde_json::to_string(record).unwrap();
        self.api.host_keys.insert(HostRecord::key_name(address), json);
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
                node.touched |= permitted;
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

    fn host_of(&self, instance: &Assignment) -> Option<usize> {
        let recorded = || {
            let known = KnownHosts::read(&self.api.host_keys);
            known.record(&instance.address)?.ipv4
        };
        let listed = self.listed.get(&instance.address).map(|entry| entry.ipv4);
        let address = listed.or_else(recorded)?;
        self.hosts.iter().position(|host| host.address == address)
    }

    fn promise_grounds(&mut self, instance: &Assignment, work: &HostWork) {
        match work.grounds() {
            Grounds::Harmless | Grounds::Vacant(_) => {}
            Grounds::Permitted(permit) => self.promise_permit(instance, permit),
        }
    }

    fn promise_permit(&mut self, instance: &Assignment, permit: &DisruptionPermit) {
        if instance.node.as_deref() != Some(permit.node()) {
            self.broken.push(format!("{instance} used the {permit}"));
        }
    }
}

fn probed(host: &Host, agent: Release) -> HostSeen {
    HostSeen::Probed(Box::new(host.probe(agent)))
}
