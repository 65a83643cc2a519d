//! One worker per instance: observe, reconcile, execute, wait.
//!
//! A worker owns all remote work on its host, so nothing else touches it at the same time, and a
//! host that does not answer holds up nobody else. What it keeps in memory is only what it saw;
//! losing it costs a probe.

mod backoff;
mod drain;
mod error;
mod executor;
mod host_keys;
mod inputs;
mod link;
mod records;

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::watch;
use wmco_core::limits;
use wmco_core::node::{Awaited, Because, Learnt, Memory, Next, Plan, Wake};
use wmco_core::protocol::RootAccess;

use backoff::Backoff;
pub use error::StepError;
pub use executor::{Executor, Seen};
pub use inputs::{InstanceInputs, NodeSeen, Release};
pub use link::Link;
pub use records::{Edit, HostRecords};

use crate::claims::Claims;
use crate::metrics::InstanceLabels;
use crate::progress::{Progress, Stage};

/// Drives one instance until its inputs end.
pub struct Worker {
    inputs: watch::Receiver<Arc<InstanceInputs>>,
    executor: Executor,
    claims: Claims,
    progress: Progress,
    link: Link,
    /// What its metrics are called by.
    label: InstanceLabels,
    memory: Memory,
    backoff: Backoff,
    /// Whether anything was done since the instance was last settled.
    worked: bool,
}

/// How long a worker sleeps unless its inputs change.
struct Pause {
    until: Timestamp,
    /// Whether a change of the Node ends it; otherwise only what people ask for does.
    heeds_node: bool,
}

impl Worker {
    /// A worker that has not looked at anything yet.
    pub fn new(
        inputs: watch::Receiver<Arc<InstanceInputs>>,
        executor: Executor,
        claims: Claims,
        progress: Progress,
    ) -> Self {
        let label = InstanceLabels { instance: inputs.borrow().assignment.address.clone() };
        Self {
            inputs,
            label,
            executor,
            claims,
            progress,
            link: Link::default(),
            memory: Memory::default(),
            backoff: Backoff::default(),
            worked: false,
        }
    }

    /// Runs until the fleet has no more work for this instance.
    pub async fn run(mut self) {
        while self.inputs.has_changed().is_ok() {
            let inputs = Arc::clone(&self.inputs.borrow_and_update());
            let (desired, node) = (&*inputs.desired, inputs.node.as_ref().map(|seen| &seen.facts));
            self.memory.set_known_closed(inputs.is_known_closed());
            let plan = self.memory.plan(desired, node, inputs.on_record, Timestamp::now());
            if let Some(claims) = self.memory.claims_slot(desired, node, Timestamp::now()) {
                self.claims.set(inputs.node_name(), &inputs.assignment.address, claims);
            }
            let outcome = self.carry_out(&plan, &inputs).await;
            if self.inputs.has_changed().is_err() {
                // What is left of the plan, if anything, is nobody's wish any more.
                break;
            }
            let pause = match outcome {
                Ok(()) => self.pause_after(&plan, &inputs).await,
                Err(error) => Some(self.failed(&error, &inputs).await),
            };
            if let Some(pause) = pause
                && !self.sleep(&pause, &inputs).await
            {
                break;
            }
        }
        let inputs = Arc::clone(&self.inputs.borrow());
        self.claims.set(inputs.node_name(), &inputs.assignment.address, false);
        self.executor.metrics.retries.remove(&self.label);
        self.link.close().await;
    }

    /// Carries out a plan; what comes after a failed step is planned anew.
    async fn carry_out(&mut self, plan: &Plan, inputs: &InstanceInputs) -> Result<(), StepError> {
        for step in &plan.steps {
            if self.inputs.has_changed().is_err() {
                // Nobody wants it any more, and the next worker may begin.
                return Ok(());
            }
            tracing::info!(
                instance = %inputs.assignment.address,
                action = step.action.verb(),
                what = %step.action,
                because = %step.because,
                "step"
            );
            self.progress.step(&inputs.assignment, step).await;
            if step.because == Because::NodeGone {
                self.executor.announcer.node_gone(&inputs.assignment).await;
            }
            let host = self.memory.host();
            let seen = self.executor.execute(&step.action, inputs, host, &mut self.link).await?;
            let learnt = match seen {
                Seen::Learnt(learnt) => learnt,
                Seen::Node { resource_version } => {
                    self.catch_up(|inputs| {
                        inputs.node.as_ref().is_none_or(|n| n.resource_version >= resource_version)
                    })
                    .await;
                    Learnt::Changed
                }
                Seen::FoundNode { name } => {
                    self.catch_up(|inputs| inputs.node.is_some()).await;
                    if self.inputs.borrow().node.is_none() {
                        return Err(StepError::NodeInTheWay { node: name });
                    }
                    Learnt::FoundNode
                }
                Seen::Forgotten => {
                    self.progress.stage(&inputs.assignment, Stage::Gone);
                    self.catch_up(|inputs| !inputs.on_record).await;
                    Learnt::Changed
                }
                Seen::Recorded(root) => {
                    let closed = root == RootAccess::Closed;
                    self.catch_up(|inputs| inputs.is_known_closed() == closed).await;
                    Learnt::Changed
                }
                Seen::Gone => {
                    self.progress.stage(&inputs.assignment, Stage::Gone);
                    Learnt::Changed
                }
                Seen::Failed { host, error } => {
                    self.memory.learn(Learnt::Worked(host));
                    return Err(error);
                }
            };
            // Looking at a host proves nothing about what failed before.
            if !matches!(learnt, Learnt::Host(_)) && !step.action.looks() {
                self.worked = true;
                self.recovered();
            }
            self.memory.learn(learnt);
        }
        Ok(())
    }

    /// Waits until our own write has come back through the watch, so that it is not planned again.
    async fn catch_up(&mut self, seen: impl Fn(&InstanceInputs) -> bool) {
        let caught_up = self.inputs.wait_for(|inputs| seen(inputs));
        // A watch that lags only repeats an idempotent write.
        let _ = tokio::time::timeout(limits::CATCH_UP.unsigned_abs(), caught_up).await;
    }

    /// `None` when the next plan follows at once.
    async fn pause_after(&mut self, plan: &Plan, inputs: &InstanceInputs) -> Option<Pause> {
        let until = self.memory.done(plan, Timestamp::now())?;
        let heeds_node = match &plan.next {
            Next::Now => return None,
            Next::Await { what, .. } => {
                self.progress.stage(&inputs.assignment, Stage::Awaits(*what));
                match what {
                    Awaited::HostReachable | Awaited::HostBack => false,
                    Awaited::DisruptionSlot
                    | Awaited::NodeAppears
                    | Awaited::NodeReady
                    | Awaited::PodsGone
                    | Awaited::VersionMark => true,
                }
            }
            Next::Settled => {
                self.recovered();
                self.progress.stage(&inputs.assignment, Stage::Settled);
                if std::mem::take(&mut self.worked) {
                    self.executor.announce_settled(inputs).await;
                }
                true
            }
        };
        Some(Pause { until, heeds_node })
    }

    /// Tells people about a failed step and backs off.
    async fn failed(&mut self, error: &StepError, inputs: &InstanceInputs) -> Pause {
        let pause = self.backoff.next();
        let retry_at = Timestamp::now() + pause.exact;
        let retry = self.executor.metrics.retries.get_or_create(&self.label).clone();
        retry.set(retry_at.as_second());
        let unknown = error.leaves_host_unknown();
        if unknown {
            self.link.close().await;
        }
        self.memory.failed(unknown.then_some(retry_at));
        if unknown {
            self.executor.learned.tried(&inputs.assignment.address);
        }
        tracing::warn!(
            instance = %inputs.assignment.address,
            error = %crate::chain(error),
            retry_at = %retry_at,
            "step failed"
        );
        self.progress.failed(&inputs.assignment, error, retry_at);
        self.executor.announce_failure(inputs, error, pause.within).await;
        // The claim of a host that does not answer must not hold up the others.
        let node = inputs.node.as_ref().map(|seen| &seen.facts);
        if let Some(claims) = self.memory.claims_slot(&inputs.desired, node, Timestamp::now()) {
            self.claims.set(inputs.node_name(), &inputs.assignment.address, claims);
        }
        Pause { until: retry_at, heeds_node: false }
    }

    /// Nothing is waited for that failed before.
    fn recovered(&mut self) {
        self.backoff = Backoff::default();
        self.executor.metrics.retries.remove(&self.label);
    }

    /// Returns whether there is still something to work for.
    async fn sleep(&mut self, pause: &Pause, inputs: &InstanceInputs) -> bool {
        let wake_of = |new: &InstanceInputs| {
            let granted = new.assignment.intent != inputs.assignment.intent;
            if new.asks_otherwise_than(inputs) {
                Some(Wake::AskedOtherwise)
            } else if !pause.heeds_node {
                None
            } else if granted {
                Some(Wake::AskedOtherwise)
            } else {
                Some(Wake::NodeChanged)
            }
        };
        let mut deadline = std::pin::pin!(sleep_until(pause.until));
        self.link.release();
        let wake = loop {
            tokio::select! {
                changed = self.inputs.changed() => {
                    if changed.is_err() {
                        return false;
                    }
                    if let Some(wake) = wake_of(&self.inputs.borrow()) {
                        break wake;
                    }
                }
                () = &mut deadline => break Wake::Deadline,
            }
        };
        if wake == Wake::AskedOtherwise {
            self.backoff = Backoff::default();
        }
        self.memory.woken(wake, Timestamp::now());
        true
    }
}

async fn sleep_until(until: Timestamp) {
    let pause = until.duration_since(Timestamp::now());
    if pause.is_positive() {
        tokio::time::sleep(pause.unsigned_abs()).await;
    }
}
