//! One worker per instance: observe, reconcile, execute, wait.
//!
//! A worker owns all remote work on its host, so nothing else touches it at the same time, and a
//! host that does not answer holds up nobody else. What it keeps in memory is only what it saw;
//! losing it costs a probe.

mod condition;
mod error;
mod executor;
mod inputs;
mod link;

use std::sync::Arc;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use jiff::Timestamp;
use tokio::sync::watch;
use wmco_core::limits;
use wmco_core::node::{self, Awaited, HostSeen, Next, Observed, Plan, PodFacts, Waiting};

pub use error::StepError;
pub use executor::{Executor, Seen};
pub use inputs::{InstanceInputs, NodeSeen, Release};
pub use link::Link;

use crate::claims::Claims;
use crate::progress::{Progress, Stage};

/// Drives one instance until its inputs end.
pub struct Worker {
    inputs: watch::Receiver<Arc<InstanceInputs>>,
    executor: Executor,
    claims: Claims,
    progress: Progress,
    link: Link,
    host: HostSeen,
    pods: Option<Vec<PodFacts>>,
    waiting: Option<Waiting>,
    backoff: Option<ExponentialBackoff>,
    /// Whether anything was done since the instance was last settled.
    worked: bool,
}

/// How long a worker sleeps unless its inputs change.
enum Pause {
    /// Not at all.
    None,
    /// Until that time, or any change of its inputs.
    Until(Timestamp),
    /// Until that time, or a change of what people asked for: the Node's heartbeats do not count.
    BackOff(Timestamp),
}

impl Worker {
    /// A worker that has not looked at anything yet.
    pub fn new(
        inputs: watch::Receiver<Arc<InstanceInputs>>,
        executor: Executor,
        claims: Claims,
        progress: Progress,
    ) -> Self {
        Self {
            inputs,
            executor,
            claims,
            progress,
            link: Link::default(),
            host: HostSeen::Unknown,
            pods: None,
            waiting: None,
            backoff: None,
            worked: false,
        }
    }

    /// Runs until the fleet has no more work for this instance.
    pub async fn run(mut self) {
        loop {
            let inputs = Arc::clone(&self.inputs.borrow_and_update());
            let now = Timestamp::now();
            if let HostSeen::Unreachable { retry_at } = self.host
                && retry_at <= now
            {
                self.host = HostSeen::Unknown;
            }
            let observed = self.observed(&inputs);
            let claims = node::claims_slot(&inputs.desired, &observed);
            self.claims.set(inputs.node_name(), claims);
            let plan = node::reconcile(&inputs.desired, &observed, now);
            self.note_wait(&plan, now);
            let pause = match self.carry_out(&plan, &inputs).await {
                Ok(()) => self.pause_after(&plan, &inputs, now).await,
                Err(error) => self.failed(&error, &inputs).await,
            };
            if !self.sleep(pause, &inputs).await {
                break;
            }
        }
        self.link.close().await;
    }

    fn observed(&mut self, inputs: &InstanceInputs) -> Observed {
        Observed {
            node: inputs.node.as_ref().map(|seen| seen.facts.clone()),
            pods: self.pods.take(),
            host: self.host.clone(),
            key_in_config_map: !inputs.kept_keys.is_empty(),
            waiting: self.waiting,
        }
    }

    /// Remembers since when the same thing is waited for.
    fn note_wait(&mut self, plan: &Plan, now: Timestamp) {
        self.waiting = match &plan.next {
            Next::Await { what, .. } => match self.waiting {
                Some(waiting) if waiting.what == *what => Some(waiting),
                _ => Some(Waiting { what: *what, since: now }),
            },
            Next::Settled | Next::Now => None,
        };
    }

    /// Carries out a plan; what comes after a failed step is planned anew.
    async fn carry_out(&mut self, plan: &Plan, inputs: &InstanceInputs) -> Result<(), StepError> {
        for step in &plan.steps {
            tracing::info!(
                instance = %inputs.assignment.address,
                action = step.action.verb(),
                what = %step.action,
                because = %step.because,
                "step"
            );
            self.progress.step(&inputs.assignment, step).await;
            match self.executor.execute(&step.action, inputs, &self.host, &mut self.link).await? {
                Seen::Nothing => {}
                Seen::Host(host) => self.host = host,
                Seen::Pods(pods) => self.pods = Some(pods),
                Seen::Node { resource_version } => {
                    self.catch_up(|inputs| {
                        inputs.node.as_ref().is_none_or(|n| n.resource_version >= resource_version)
                    })
                    .await;
                }
                Seen::KeysForgotten => self.catch_up(|inputs| inputs.kept_keys.is_empty()).await,
                Seen::Gone => self.progress.stage(&inputs.assignment, Stage::Gone),
                Seen::Failed { host, error } => {
                    self.host = host;
                    return Err(error);
                }
            }
            // Looking at a host proves nothing about what failed before.
            if step.action != node::Action::Probe {
                self.worked = true;
                self.backoff = None;
            }
        }
        Ok(())
    }

    /// Waits until our own write has come back through the watch, so that it is not planned again.
    async fn catch_up(&mut self, seen: impl Fn(&InstanceInputs) -> bool) {
        let caught_up = self.inputs.wait_for(|inputs| seen(inputs));
        // A watch that lags only repeats an idempotent write.
        let _ = tokio::time::timeout(limits::CATCH_UP.unsigned_abs(), caught_up).await;
    }

    async fn pause_after(&mut self, plan: &Plan, inputs: &InstanceInputs, now: Timestamp) -> Pause {
        match &plan.next {
            Next::Now => Pause::None,
            Next::Await { what, deadline } => {
                self.progress.stage(&inputs.assignment, Stage::Awaits(*what));
                match what {
                    Awaited::HostReachable => Pause::BackOff(*deadline),
                    Awaited::HostBack => {
                        let retry_at = now + limits::DRAIN_RETRY;
                        self.host = HostSeen::Unreachable { retry_at };
                        Pause::BackOff(retry_at)
                    }
                    Awaited::DisruptionSlot
                    | Awaited::NodeAppears
                    | Awaited::NodeReady
                    | Awaited::PodsGone
                    | Awaited::VersionMark => Pause::Until(*deadline),
                }
            }
            Next::Settled => {
                self.progress.stage(&inputs.assignment, Stage::Settled);
                if std::mem::take(&mut self.worked) {
                    self.executor.announce_settled(inputs).await;
                }
                Pause::Until(now + limits::RESYNC)
            }
        }
    }

    /// Tells people about a failed step and backs off.
    async fn failed(&mut self, error: &StepError, inputs: &InstanceInputs) -> Pause {
        let pause = self.next_pause();
        let retry_at = Timestamp::now() + pause;
        if error.leaves_host_unknown() {
            self.link.close().await;
            self.host = HostSeen::Unreachable { retry_at };
        }
        tracing::warn!(
            instance = %inputs.assignment.address,
            error = %crate::chain(error),
            retry_at = %retry_at,
            "step failed"
        );
        self.progress.failed(&inputs.assignment, error, retry_at);
        self.executor.announce_failure(inputs, error, retry_at).await;
        Pause::BackOff(retry_at)
    }

    fn next_pause(&mut self) -> std::time::Duration {
        let longest = limits::RETRY_MOST.unsigned_abs();
        let backoff = self.backoff.get_or_insert_with(|| {
            ExponentialBuilder::default()
                .with_min_delay(limits::RETRY_FIRST.unsigned_abs())
                .with_max_delay(longest)
                .with_jitter()
                .without_max_times()
                .build()
        });
        backoff.next().unwrap_or(longest)
    }

    /// Returns whether there is still something to work for.
    async fn sleep(&mut self, pause: Pause, inputs: &InstanceInputs) -> bool {
        let (until, any_change) = match pause {
            Pause::None => return self.inputs.has_changed().is_ok(),
            Pause::Until(until) => (until, true),
            Pause::BackOff(until) => (until, false),
        };
        let wakes = |new: &Arc<InstanceInputs>| {
            if new.asks_otherwise_than(inputs) { Some(true) } else { any_change.then_some(false) }
        };
        let deadline = sleep_until(until);
        let mut deadline = std::pin::pin!(deadline);
        self.link.release();
        loop {
            tokio::select! {
                changed = self.inputs.changed() => {
                    if changed.is_err() {
                        return false;
                    }
                    let woken = wakes(&self.inputs.borrow());
                    if let Some(asked) = woken {
                        if asked {
                            self.host = HostSeen::Unknown;
                            self.backoff = None;
                        }
                        return true;
                    }
                }
                () = &mut deadline => {
                    if matches!(pause, Pause::Until(_)) && self.waiting.is_none() {
                        self.host = HostSeen::Unknown;
                    }
                    return true;
                }
            }
        }
    }
}

async fn sleep_until(until: Timestamp) {
    let pause = until.duration_since(Timestamp::now());
    if pause.is_positive() {
        tokio::time::sleep(pause.unsigned_abs()).await;
    }
}
