//! Follows the unfinished work of the fleet: exports it as metrics, and tells the Operator Lifecycle Manager
//! whether it may replace the operator, where there is one.

mod object;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;
use wmco_core::limits;
use wmco_core::upgradeable::{Condition, Damper, Pending, Spells, Standing, WorkState};

use crate::metrics::{Metrics, WorkLabels};
pub use object::Object;

/// Changes that come within this time are looked at together.
const DEBOUNCE: Duration = Duration::from_millis(50);

/// Follows the fleet until the order to stop.
pub struct Follower {
    standings: watch::Receiver<Option<Vec<Standing>>>,
    states: watch::Receiver<BTreeMap<String, WorkState>>,
    metrics: Metrics,
    /// Where the condition is kept; none without the Operator Lifecycle Manager.
    object: Option<Object>,
    spells: Spells,
    shown: BTreeSet<WorkLabels>,
    damper: Damper,
    /// What the times of the damper are counted from.
    begun: Instant,
}

impl Follower {
    /// Follows how the fleet stands by its last pass, none before the first, and what workers tell.
    pub fn new(
        standings: watch::Receiver<Option<Vec<Standing>>>,
        states: watch::Receiver<BTreeMap<String, WorkState>>,
        metrics: Metrics,
        object: Option<Object>,
    ) -> Self {
        Self {
            standings,
            states,
            metrics,
            object,
            spells: Spells::default(),
            shown: BTreeSet::new(),
            damper: Damper::default(),
            begun: Instant::now(),
        }
    }

    /// Runs until `stop`, which waits for no answer of the API server.
    pub async fn run(self, stop: CancellationToken) {
        stop.run_until_cancelled(self.follow()).await;
    }

    async fn follow(mut self) {
        loop {
            let next = self.pass().await;
            tokio::select! {
                changed = self.standings.changed() => if changed.is_err() { return },
                changed = self.states.changed() => if changed.is_err() { return },
                () = time::sleep_until(next) => {}
            }
            time::sleep(DEBOUNCE).await;
        }
    }

    /// Shows and tells what is so now; returns when to look again though nothing changes.
    async fn pass(&mut self) -> Instant {
        let now = Timestamp::now();
        let resync = Instant::now() + limits::CONDITION_RESYNC.unsigned_abs();
        let pending = {
            let standings = self.standings.borrow_and_update();
            let states = self.states.borrow_and_update();
            let Some(standings) = standings.as_ref() else { return resync };
            let state = |address: &str| states.get(address).copied().unwrap_or_default();
            self.spells.update(standings, state, now)
        };
        self.show(&pending);
        let stuck = self.spells.next_end(now).map(|end| end.duration_since(now).unsigned_abs());
        let stuck = stuck.map_or(resync, |pause| Instant::now() + pause);
        let told = self.tell(&Condition::of(&pending)).await;
        resync.min(stuck).min(told.unwrap_or(resync))
    }

    /// Writes the condition if it is due; returns when it will be.
    async fn tell(&mut self, wanted: &Condition) -> Option<Instant> {
        let object = self.object.as_mut()?;
        let running = self.begun.elapsed();
        let due = self.damper.due(wanted, running);
        if let Some(due) = due.filter(|due| *due > running) {
            return Some(self.begun + due);
        }
        if let Err(retry_at) = object.keep(wanted).await {
            return Some(retry_at);
        }
        if due.is_some() {
            self.damper.written(wanted.clone(), self.begun.elapsed());
        }
        Some(object.next_look())
    }

    /// Since when each instance is at work, by what is done.
    fn show(&mut self, pending: &[Pending]) {
        let gauges = &self.metrics.pending;
        let label = |it: &Pending| WorkLabels { instance: it.name.clone(), phase: it.work.name() };
        let shown: BTreeMap<_, _> =
            pending.iter().map(|it| (label(it), it.since.as_second())).collect();
        for (label, since) in &shown {
            gauges.get_or_create(label).set(*since);
        }
        for label in self.shown.iter().filter(|label| !shown.contains_key(label)) {
            gauges.remove(label);
        }
        self.shown = shown.into_keys().collect();
    }
}

/// Pause before the API server is asked again, after a failure.
pub(crate) const RETRY: Duration = limits::RETRY_MOST.unsigned_abs();
