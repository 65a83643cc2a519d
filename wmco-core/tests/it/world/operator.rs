//! A model of the operator around the planners: what it remembers and how it carries out plans.
//!
//! A *pass* over an instance begins when something changed or a wait is over. It begins with
//! nothing known of the host and of pods, so that nothing old is acted on, and goes on as long as
//! plans say [`Next::Now`]. A failed action ends it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use wmco_core::fleet::{self, Assignment, DisruptionPermit};
use wmco_core::host_record::HostRecord;
use wmco_core::node::{
    Action, Grounds, HostSeen, HostWork, Intent, Learnt, Memory, Next, NodeFacts, Wake,
};
use wmco_core::protocol::RootAccess;
use wmco_core::{limits, names};

use super::faults::Stop;
use super::host::{Host, Power};
use super::release::Release;
use super::{Entry, World};

/// All that the operator keeps in memory; a crash empties it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Operator {
    /// The Nodes as the fleet's last look at the cache showed them, maybe behind.
    pub(crate) cache: Option<Vec<NodeFacts>>,
    granted: BTreeSet<String>,
    claims: BTreeSet<String>,
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
            &fleet::Desired { listed: &listed, budget: self.budget },
            &fleet::Observed {
                nodes: &cache,
                claims: &self.operator.claims,
                granted: &self.operator.granted,
                kept_keys: &self.api.keys.union(&self.api.closed).cloned().collect(),
            },
        );
        self.api.keys.retain(|key| !assignments.forgotten_keys.contains(key));
        self.api.closed.retain(|key| !assignments.forgotten_keys.contains(key));
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
        let node = match (&instance.node, index) {
            (Some(name), _) => self.api.nodes.get(name).map(|node| node.facts.clone()),
            (None, Some(index)) => {
                let address = self.hosts[index].address;
                self.api.node_at(address).map(|node| node.facts.clone())
            }
            (None, None) => None,
        };
        let mut worker = self.operator.instances.remove(&key).unwrap_or_default();
        let pods = node.iter().filter_map(|n| self.api.nodes.get(&n.name)).map(|n| n.pods.len());
        let own = own_names(instance, node.as_ref());
        let kept = own.iter().any(|name| self.api.keys.contains(name));
        let known_closed = self.api.closed.contains(&record_name(instance, node.as_ref()));
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
        let desired = self.release.desired(edition, &key, name, instance.intent.clone());
        memory.set_known_closed(known_closed);
        let plan = memory.plan(&desired, node.as_ref(), kept, self.now);
        if self.log {
            eprintln!("{} {instance}\n{plan}\n", self.now);
        }
        if let (Some(name), Some(claims)) =
            (&instance.node, memory.claims_slot(&desired, node.as_ref()))
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
        let learnt = match action {
            Action::Probe => {
                self.promise_ours(key, index);
                let host = self.connect(key, index).ok_or(Stop::Fail)?;
                let seen = host.agent.map_or(HostSeen::NoAgent, |agent| probed(host, agent));
                Learnt::Host(seen)
            }
            Action::ProbeWithOurs(_) => {
                self.connect(key, index).ok_or(Stop::Fail)?;
                let host = &mut self.hosts[index.unwrap()];
                host.bring(release, &mut self.faults)?;
                Learnt::Worked(probed(host, release))
            }
            Action::ProbeStaged(agent) => {
                self.promise_ours(key, index);
                let host = self.connect(key, index).ok_or(Stop::Fail)?;
                let there = host.staged_agents.contains(agent);
                Learnt::Host(if there { probed(host, release) } else { HostSeen::NoAgent })
            }
            Action::RecordRoot(root) => {
                let node = instance.node.as_ref().and_then(|name| self.api.nodes.get(name));
                let record = record_name(instance, node.map(|node| &node.facts));
                match root {
                    RootAccess::Closed => self.api.closed.insert(record),
                    RootAccess::Open => self.api.closed.remove(&record),
                };
                Learnt::Changed
            }
            Action::Upload(contents) => {
                self.promise_ours(key, index);
                let host = self.connect(key, index).ok_or(Stop::Fail)?;
                host.staged.extend(contents);
                Learnt::Changed
            }
            Action::PatchNode(patch) => {
                let name = instance.node.as_ref().ok_or(Stop::Fail)?;
                self.promise_patch(name, patch);
                self.api.nodes.get_mut(name).ok_or(Stop::Fail)?.patch(patch);
                Learnt::Changed
            }
            Action::SeekNode => {
                let address = self.hosts[index.ok_or(Stop::Fail)?].address;
                match self.api.node_at(address) {
                    Some(_) => Learnt::FoundNode,
                    None => Learnt::NoNode,
                }
            }
            Action::ListPods => {
                let name = instance.node.as_ref().ok_or(Stop::Fail)?;
                Learnt::Pods(self.api.nodes.get(name).ok_or(Stop::Fail)?.pods.clone())
            }
            Action::Evict { pods, permit } => {
                self.promise_permit(instance, permit);
                let name = instance.node.as_ref().ok_or(Stop::Fail)?;
                let node = self.api.nodes.get_mut(name).ok_or(Stop::Fail)?;
                for pod in node.pods.iter_mut().filter(|pod| pods.contains(pod)) {
                    self.faults.pass()?;
                    pod.leaving = true;
                }
                Learnt::Changed
            }
            Action::Apply(work) => {
                self.promise_grounds(instance, work);
                self.promise_ours(key, index);
                self.connect(key, index).ok_or(Stop::Fail)?;
                self.apply(work, index.unwrap())?;
                // The agent's last line is a probe, unless the host goes down meanwhile.
                let host = &self.hosts[index.unwrap()];
                let up = host.power == Power::On;
                Learnt::Worked(if up { probed(host, release) } else { HostSeen::Unknown })
            }
            Action::RemoveLeftovers(work) => {
                self.promise_grounds(instance, work);
                self.connect(key, index).ok_or(Stop::Fail)?;
                self.hosts[index.unwrap()].remove_leftovers(&mut self.faults)?;
                Learnt::Worked(HostSeen::NoAgent)
            }
            Action::ForgetHostKey => {
                let node = instance.node.as_ref().and_then(|name| self.api.nodes.get(name));
                let own = own_names(instance, node.map(|node| &node.facts));
                self.api.keys.retain(|name| !own.contains(name));
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

    /// The host, if it answers. A key that is pinned nowhere goes into the ConfigMap.
    fn connect(&mut self, key: &str, index: Option<usize>) -> Option<&mut Host> {
        let host = self.hosts.get_mut(index?)?;
        if host.power != Power::On {
            return None;
        }
        let pinned =
            |node: &super::api::Node| node.facts.annotation(names::HOST_KEY_ANNOTATION).is_some();
        if !self.api.node_at(host.address).is_some_and(|node| pinned(node)) {
            self.api.keys.insert(key.to_owned());
        }
        Some(host)
    }

    fn apply(&mut self, work: &HostWork, index: usize) -> Result<(), Stop> {
        let host = &self.hosts[index];
        let stays_vacant =
            |boot| host.boot_id() == boot && !host.runs(names::host::KUBELET_SERVICE);
        if !work.plan().vacant_since.as_deref().is_none_or(stays_vacant) {
            return Err(Stop::Fail);
        }
        for step in &work.plan().steps {
            self.promise_host_step(index, step);
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
        let address = match self.listed.get(&instance.address) {
            Some(Entry { ipv4, .. }) => *ipv4,
            None => instance.address.parse().ok()?,
        };
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

/// Under which names a key of the instance may be kept, as [`fleet::reach`] knows them.
fn own_names(instance: &Assignment, node: Option<&NodeFacts>) -> BTreeSet<String> {
    let origin = node.and_then(|node| node.annotation(names::INSTANCE_ANNOTATION));
    let addresses = node.into_iter().flat_map(|node| node.addresses.iter());
    let mut own: BTreeSet<String> = addresses.cloned().collect();
    own.extend(origin.map(str::to_owned));
    own.insert(instance.address.clone());
    own
}

/// Under which name the record of the host is kept, as [`fleet::reach`] knows it.
fn record_name(instance: &Assignment, node: Option<&NodeFacts>) -> String {
    let origin = node.and_then(|node| node.annotation(names::INSTANCE_ANNOTATION));
    HostRecord::key_name(origin.unwrap_or(&instance.address))
}

fn probed(host: &Host, agent: Release) -> HostSeen {
    HostSeen::Probed(Box::new(host.probe(agent)))
}
