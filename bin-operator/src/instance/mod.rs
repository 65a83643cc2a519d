//! One worker per instance: observe, reconcile, execute, wait.
//!
//! A worker owns all remote work on its host, so nothing else touches it at the same time, and a
//! host that does not answer holds up nobody else. What it keeps in memory is only what it saw;
//! losing it costs a probe.

mod drain;
mod error;
mod executor;
mod host_keys;
mod inputs;
mod link;
mod logins;
mod records;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::error::Elapsed;
use wmco_core::fleet::Intent;
use wmco_core::limits;
use wmco_core::node::{
    Action, Awaited, Because, HostSeen, InstanceInputs, Next, Outcome, Plan, Rest, Step, Wake,
    WorkerState, doubts, unfit,
};
use wmco_core::preflight::Finding;

use crate::backoff::Pause;
use error::api;
pub use error::{Failure, StepError};
pub use executor::{Executor, Turn};
pub use inputs::WorkerInputs;
pub use link::Link;
pub use records::{Edit, HostRecords};

use crate::announce::News;
use crate::claims::{Claim, Taking};
use crate::clock;
use crate::host_reports::HostReport;
use crate::metrics::InstanceLabels;
use crate::progress::Stage;

/// A wait for a clock at half the speed is not cut into ever shorter ones.
const SHORTEST_SLEEP: Duration = Duration::from_millis(100);

/// Drives one instance until its inputs end.
pub struct Worker {
    inputs: watch::Receiver<Arc<WorkerInputs>>,
    executor: Executor,
    claim: Claim,
    link: Link,
    /// What its metrics are called by.
    label: InstanceLabels,
    state: WorkerState,
    /// Since when its host does not answer.
    unreachable_since: Option<Timestamp>,
    /// Whether work was done since the instance was last settled.
    worked: bool,
}

impl Worker {
    /// A worker that has not looked at anything yet.
    pub fn new(
        inputs: watch::Receiver<Arc<WorkerInputs>>,
        executor: Executor,
        claim: Claim,
    ) -> Self {
        let label = InstanceLabels { instance: inputs.borrow().instance.address.clone() };
        Self {
            inputs,
            label,
            executor,
            claim,
            link: Link::default(),
            state: WorkerState::default(),
            unreachable_since: None,
            worked: false,
        }
    }

    /// Runs until the fleet has no more work for this instance.
    pub async fn run(mut self) {
        while self.inputs.has_changed().is_ok() {
            let inputs = Arc::clone(&self.inputs.borrow_and_update());
            let plan = self.state.plan(&inputs.instance, clock::now());
            if self.state.meets_other_writer() {
                self.executor.announcer.tell(&inputs.instance, &News::OtherWriter);
            }
            self.claim(&inputs.instance);
            let outcome = self.carry_out(&plan, &inputs).await;
            if self.inputs.has_changed().is_err() {
                // What is left of the plan, if anything, is nobody's wish any more.
                break;
            }
            let rest = match outcome {
                Ok(()) => self.rest_after(&plan, &inputs.instance),
                Err(failure) => Some(self.failed(failure, &inputs.instance).await),
            };
            if let Some(rest) = rest
                && !self.sleep(rest, &inputs.instance).await
            {
                break;
            }
        }
        drop(self.claim);
        let inputs = Arc::clone(&self.inputs.borrow());
        self.executor.metrics.retries.remove(&self.label);
        self.executor.metrics.unreachable.remove(&self.label);
        self.executor.works.remove(&inputs.instance.address);
        self.link.close().await;
    }

    /// Reports to the fleet whether the instance needs a slot to continue.
    fn claim(&self, instance: &InstanceInputs) {
        match self.state.claims_slot(instance, clock::now()) {
            Some(true) => self.claim.set(instance.node_name()),
            Some(false) => self.claim.clear(),
            None => {}
        }
    }

    /// Carries out a plan; what comes after a failed step is planned anew.
    async fn carry_out(&mut self, plan: &Plan, inputs: &WorkerInputs) -> Result<(), Failure> {
        for step in &plan.steps {
            if self.inputs.has_changed().is_err() {
                // Nobody wants it any more, and the next worker may begin.
                return Ok(());
            }
            let (address, node) = (&inputs.instance.address, inputs.instance.node_name());
            let slot = step.action.takes_slot_of(node).map(|slot| self.claim.take(slot));
            if !step.is_permitted_in(node, &self.inputs.borrow().instance) {
                tracing::info!(instance = %address, action = %step.action, "not taken: its permit is gone");
                return Ok(());
            }
            let (works, looks) = (self.executor.works.clone(), step.action.looks());
            works.update(address, |state| state.begins(looks));
            let taken = self.take(step, slot.as_ref(), inputs).await;
            works.update(address, |state| state.ends(looks, taken.is_ok()));
            let outcome = taken?;
            let seen = self.catch_up(&outcome).await;
            if let (Outcome::FoundNode { name }, false) = (&outcome, seen) {
                return Err(StepError::in_the_way(name.clone(), &inputs.instance).into());
            }
            if let (Outcome::MachineKept { .. }, false) = (&outcome, seen) {
                return Err(StepError::MachineKept.into());
            }
            if let Some(news) = News::of(step, &outcome) {
                self.executor.announcer.tell(&inputs.instance, &news);
            }
            self.worked |= step.is_work();
            self.state.succeeded(outcome);
            if !self.state.is_failing() {
                self.executor.metrics.retries.remove(&self.label);
            }
        }
        Ok(())
    }

    /// Takes one step, and maybe a slot with it, and tells people what happened.
    async fn take(
        &mut self,
        step: &Step,
        slot: Option<&Taking>,
        inputs: &WorkerInputs,
    ) -> Result<Outcome, Failure> {
        let instance = &inputs.instance;
        tracing::info!(
            instance = %instance.address,
            action = step.action.verb(),
            what = %step.action,
            because = %step.because,
            "step"
        );
        self.executor.progress.step(instance, step).await;
        if step.because == Because::NodeGone {
            self.executor.announcer.tell(instance, &News::NodeGone);
        }
        if let (Because::PodsCameBack, Action::Evict { pods, .. }) = (&step.because, &step.action) {
            self.executor.announcer.tell(instance, &News::PodsCameBack(pods.clone()));
        }
        let mut turn = Turn { inputs, link: &mut self.link, news: Vec::new() };
        self.state.connects();
        let connected = self.executor.connect(&step.action, &mut turn).await;
        self.executor.announcer.tell_all(instance, turn.news.drain(..));
        connected?;
        self.state.begins(&step.action);
        if step.action.is_on_host() {
            self.executor.metrics.unreachable.remove(&self.label);
            self.unreachable_since = None;
        }
        let execute = Box::pin(self.executor.execute(&step.action, &mut turn));
        let outcome = match slot {
            Some(slot) => slot.in_time(execute).await.unwrap_or_else(|late| Err(no_answer(late))),
            None => execute.await,
        };
        self.executor.announcer.tell_all(instance, turn.news.drain(..));
        let outcome = outcome?;
        if let Some(probe) = outcome.probe() {
            let report = HostReport::of(probe, instance.desired.known_as.ipv4);
            self.executor.host_reports.set(&instance.address, report);
        }
        if outcome.is_gone() {
            self.executor.progress.stage(instance, Stage::Gone);
        }
        Ok(outcome)
    }

    /// Waits until our own write has come back through the watch, so that it is not planned again;
    /// returns whether it has. What came with it counts as seen, so nothing is waited for in vain.
    async fn catch_up(&mut self, outcome: &Outcome) -> bool {
        if outcome.is_visible_in(&self.inputs.borrow().instance).is_none() {
            return true;
        }
        let is_seen =
            |inputs: &Arc<WorkerInputs>| outcome.is_visible_in(&inputs.instance) == Some(true);
        let seen = self.inputs.wait_for(is_seen);
        // A watch that lags only repeats an idempotent write.
        let seen = tokio::time::timeout(limits::CATCH_UP.unsigned_abs(), seen).await;
        seen.is_ok_and(|seen| seen.is_ok())
    }

    /// `None` when the next plan follows at once.
    fn rest_after(&mut self, plan: &Plan, instance: &InstanceInputs) -> Option<Rest> {
        let rest = self.state.done(plan, clock::now());
        self.executor.works.update(&instance.address, |state| state.rests(&plan.next));
        match &plan.next {
            Next::Now => {}
            Next::Await { what, .. } => {
                // Its time is over, whether or not what failed is needed again.
                self.executor.metrics.retries.remove(&self.label);
                self.executor.progress.stage(instance, Stage::Awaits(*what));
                if let (Awaited::HostFit, HostSeen::Probed(probe)) = (what, self.state.host()) {
                    let found = unfit(&instance.desired, instance.node.as_ref(), probe);
                    self.tell_findings(instance, found);
                }
            }
            Next::Settled => {
                // Nothing is waited for that failed before.
                self.executor.metrics.retries.remove(&self.label);
                self.executor.progress.stage(instance, Stage::Settled);
                let configured = matches!(instance.desired.intent, Intent::Configure(_));
                if std::mem::take(&mut self.worked) && configured {
                    self.executor.announcer.tell(instance, &News::Configured);
                    if let HostSeen::Probed(probe) = self.state.host() {
                        let found = doubts(&instance.desired, instance.node.as_ref(), probe);
                        self.tell_findings(instance, found);
                    }
                }
            }
        }
        rest
    }

    fn tell_findings(&self, instance: &InstanceInputs, found: Vec<Finding>) {
        for finding in found {
            self.executor.announcer.tell(instance, &News::Preflight(finding));
        }
    }

    /// Tells people about a failed step and backs off.
    async fn failed(&mut self, failure: Failure, instance: &InstanceInputs) -> Rest {
        let Failure { error, host } = failure;
        if let Some(host) = host {
            self.state.saw(host);
        }
        let unknown = error.leaves_host_unknown();
        let retry_at = |pause| clock::now() + Pause::within(pause).exact;
        let rest = self.state.failed(error.kind(), unknown, retry_at);
        let retry_at = rest.until;
        let retry = self.executor.metrics.retries.get_or_create(&self.label).clone();
        retry.set(retry_at.as_second());
        if unknown {
            self.link.close().await;
            let since = *self.unreachable_since.get_or_insert_with(clock::now);
            let unreachable = &self.executor.metrics.unreachable;
            unreachable.get_or_create(&self.label).set(since.as_second());
        }
        if unknown {
            self.executor.host_reports.tried(&instance.address);
        }
        let mut text = crate::chain(&error);
        if let Some(node) = instance.node.as_ref().filter(|node| node.holds_slot()) {
            text = format!("node {} holds a disruption slot meanwhile; {text}", node.name);
        }
        tracing::warn!(instance = %instance.address, error = %text, %retry_at, "step failed");
        self.executor.progress.failed(instance, text.clone(), retry_at);
        let reason = error.event_reason(instance);
        self.executor.announcer.failed(instance, reason, &text);
        if matches!(error, StepError::OtherHostKey { .. }) {
            self.executor.tell_host_key(instance.node.as_ref(), Some(&text)).await;
        }
        // The claim of a host that does not answer must not hold up the others.
        self.claim(instance);
        rest
    }

    /// Returns whether there is still something to work for.
    async fn sleep(&mut self, rest: Rest, instance: &InstanceInputs) -> bool {
        let mut deadline = std::pin::pin!(sleep_until(rest.until));
        self.link.release();
        // It may have come together with a write of ours, which was waited for.
        let asked = rest.ended_by(&self.inputs.borrow().instance, instance);
        if let Some(wake @ (Wake::AskedOtherwise | Wake::PermitChanged)) = asked {
            self.state.woken(wake, clock::now());
            return true;
        }
        let wake = loop {
            tokio::select! {
                changed = self.inputs.changed() => {
                    if changed.is_err() {
                        return false;
                    }
                    if let Some(wake) = rest.ended_by(&self.inputs.borrow().instance, instance) {
                        break wake;
                    }
                }
                () = &mut deadline => break Wake::Deadline,
            }
        };
        self.state.woken(wake, clock::now());
        true
    }
}

/// The API server took too long; kube has no limit of its own here.
fn no_answer(late: Elapsed) -> Failure {
    api("answer in time")(kube::Error::Service(Box::new(late))).into()
}

/// Sleeps until the clock shows `until`. One that was set back goes slower than tokio's meanwhile, so one sleep may not be
/// enough.
async fn sleep_until(until: Timestamp) {
    loop {
        let pause = until.duration_since(clock::now());
        if !pause.is_positive() {
            return;
        }
        tokio::time::sleep(pause.unsigned_abs().max(SHORTEST_SLEEP)).await;
    }
}
