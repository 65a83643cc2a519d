//! Start and progress of work.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{Hold, Standing, Work, WorkState};
use crate::limits;

/// Unfinished work on one instance.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Pending {
    /// Identifier of the instance.
    pub address: String,
    /// Name of the instance in messages.
    pub name: String,
    /// The work.
    pub work: Work,
    /// Since when the instance has unfinished work.
    pub since: Timestamp,
    /// Why it does not block an upgrade; `None` if it does.
    pub hold: Option<Hold>,
}

/// How long each instance has had unfinished work. After a restart of the operator these times start again.
///
/// Work progresses when it reaches a stage that it has not had since it began. So work that fails, or repeats
/// itself, does not progress.
///
/// ```
/// use wmco_core::upgradeable::Spells;
///
/// let mut spells = Spells::default();
/// assert_eq!(spells.update(&[], |_| Default::default(), jiff::Timestamp::UNIX_EPOCH), []);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Spells(BTreeMap<String, Spell>);

#[derive(Clone, Debug)]
struct Spell {
    since: Timestamp,
    further: Timestamp,
    stages: BTreeSet<Stage>,
}

/// Identifies a stage of work.
type Stage = (Work, WorkState, Option<super::NodeState>);

impl Spells {
    /// Updates with the states of the instances, and the reports of their workers by address. Returns the
    /// unfinished work, sorted by the instances' names.
    pub fn update(
        &mut self,
        standings: &[Standing],
        state: impl Fn(&str) -> WorkState,
        now: Timestamp,
    ) -> Vec<Pending> {
        let mut before = std::mem::take(&mut self.0);
        let mut pending = Vec::new();
        for standing in standings {
            let state = state(&standing.address);
            let Some((work, hold)) = standing.work(state) else { continue };
            let new = || Spell { since: now, further: now, stages: BTreeSet::new() };
            let mut spell = before.remove(&standing.address).unwrap_or_else(new);
            spell.enter((work, state, standing.node.clone()), now);
            let stuck = now >= spell.ends();
            pending.push(Pending {
                address: standing.address.clone(),
                name: standing.name.clone(),
                work,
                since: spell.since,
                hold: hold.or(stuck.then_some(Hold::Stuck)),
            });
            self.0.insert(standing.address.clone(), spell);
        }
        pending.sort_by(|a, b| (&a.name, &a.address).cmp(&(&b.name, &b.address)));
        pending
    }

    /// The next time at which work counts as stuck if it does not progress.
    pub fn next_end(&self, now: Timestamp) -> Option<Timestamp> {
        self.0.values().map(Spell::ends).filter(|end| *end > now).min()
    }
}

impl Spell {
    fn enter(&mut self, stage: Stage, now: Timestamp) {
        // A failure is no progress.
        let counts = stage.1 != WorkState::Failing && self.stages.len() < limits::WORK_STAGES;
        if counts && self.stages.insert(stage) {
            self.further = now;
        }
    }

    fn ends(&self) -> Timestamp {
        self.further + limits::UPGRADE_PATIENCE
    }
}
