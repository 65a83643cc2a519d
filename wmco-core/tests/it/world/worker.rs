//! A model of the operator's workers: one carries out the plans for one instance.
//!
//! A *pass* over an instance begins when something changed or a wait is over. It begins with
//! nothing known of the host and of pods, so that nothing old is acted on, and continues
//! as long as plans say [`Next::Now`]. A failed action ends it.

use std::convert::Infallible;

use jiff::Timestamp;
use wmco_core::facts::NodeFacts;
use wmco_core::fleet::Assignment;
use wmco_core::host_record::KnownHosts;
use wmco_core::login_keys::LoginKeys;
use wmco_core::node::{
    AttemptedStep, FailureKind, InstanceInputs, Next, Outcome, Rest, Wake, WorkerState,
};
use wmco_core::pass::UserNames;
use wmco_core::reach::{Reach, Unreachable, reach};

use super::World;
use super::faults::Stop;
use super::host::{Host, Power};

#[derive(Clone, Debug, Default)]
pub(super) struct Worker {
    state: WorkerState,
    /// The host that it is connected to, until its pass ends.
    linked: Option<usize>,
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
    /// At most one plan for an instance. Tells whether there was one to carry out.
    pub(super) fn work_on(
        &mut self,
        instance: &Assignment<'_>,
        inputs: InstanceInputs,
        others: u8,
    ) -> Result<bool, Stop> {
        let key = instance.address.clone();
        if self.waits_for_answer(&key) {
            return Ok(true);
        }
        let index = self.host_of(instance);
        // A worker goes on once its last write came back through the watch.
        let inputs = InstanceInputs { node: self.node_of(instance).cloned(), ..inputs };
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
            self.promise_permitted(step, &inputs);
            let attempt = AttemptedStep::of(&step.action);
            state.connects();
            *self.actions.entry(step.action.verb()).or_default() += 1;
            let on_host = step.action.is_on_host();
            // Whoever has the address now does not go on with the connection.
            let is_cut = on_host && worker.linked.is_some() && worker.linked != index;
            let outcome = match self.faults.stuck(&attempt, &key, self.now) {
                Ok(()) if is_cut => Err(Stop::Fail),
                Ok(()) => self.effect(&step.action, &key, instance, index),
                Err(stop) => Err(stop),
            };
            match outcome {
                Ok(outcome) => {
                    worker.linked = worker.linked.or(index.filter(|_| on_host));
                    state.begins(&step.action);
                    state.succeeded(outcome);
                }
                Err(Stop::Fail) => {
                    let on = |host: &&Host| host.power == Power::On;
                    let host = index.map(|index| &self.hosts[index]).filter(on);
                    let refuses = on_host && host.is_some_and(|host| self.is_locked(host));
                    let down = host.is_none() || refuses || is_cut;
                    if !(on_host && down) {
                        state.begins(&step.action);
                    }
                    rest = Some(state.failed(FailureKind::Other, down, |pause| self.now + pause));
                }
                Err(Stop::Pending) => {
                    state.begins(&step.action);
                    worker.asleep = None;
                    self.operator.instances.insert(key, worker);
                    return Ok(true);
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
        worker.linked = worker.linked.filter(|_| rest.is_none());
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

impl Worker {
    /// The step that it has begun succeeded.
    pub(super) fn succeeded(&mut self, outcome: Outcome) {
        self.state.succeeded(outcome);
    }

    /// When it goes on by itself; `None` if it is not at rest.
    pub(super) fn wakes_at(&self) -> Option<Timestamp> {
        self.asleep.as_ref().map(|asleep| asleep.rest.until)
    }

    /// Whether it has nothing left to do, by its own account.
    pub(super) fn is_settled(&self) -> bool {
        self.asleep.as_ref().is_some_and(|asleep| asleep.settled)
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

/// Whether people list it, or did.
fn is_of_entry(instance: &Assignment<'_>) -> bool {
    wmco_core::machines::name_in(&instance.address).is_none()
}

/// User names are as people wrote them: what the encryption leaves to read is tested with real keys.
pub(super) struct Unencrypted;

impl UserNames for Unencrypted {
    type Error = Infallible;

    fn sealed(
        &mut self,
        _: &Assignment<'_>,
        _: &KnownHosts,
        _: &LoginKeys,
    ) -> Result<Option<String>, Infallible> {
        Ok(Some("sealed".to_owned()))
    }

    fn opened(&self, text: &str) -> Option<String> {
        Some(text.to_owned())
    }
}
