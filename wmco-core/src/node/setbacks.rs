//! Failures that a worker has not overcome, and how long it pauses after the next one.
//!
//! Pauses grow as long as something keeps failing, whatever succeeds before it in each attempt: a step that only
//! reads, or that is done again each time, proves nothing about the one that fails.
//!
//! # Source
//! `docs/contract/lifecycle.md`, LIFE40.

use std::collections::BTreeSet;

use jiff::SignedDuration;

use super::Action;
use crate::limits;

/// Something that a worker tries and that can fail by itself.
#[derive(Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum AttemptedStep {
    /// A connection to the host.
    #[default]
    Connect,
    /// A step, by its verb and by the fields that it changes: another change of the Node is another step.
    Step(String),
}

impl AttemptedStep {
    /// The attempt of a step.
    pub fn of(action: &Action) -> Self {
        let mut key = action.verb().to_owned();
        if let Action::PatchNode(patch) = action {
            let names = patch.labels.keys().chain(patch.annotations.keys()).map(String::as_str);
            for name in names.chain(patch.unschedulable.map(|_| "unschedulable")) {
                key.push(' ');
                key.push_str(name);
            }
        }
        Self::Step(key)
    }
}

/// How an attempt failed, as far as it matters for the next one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FailureKind {
    /// A server turned us away for now, because it has too many clients or refuses us for some time.
    TurnedAway,
    /// In any other way.
    Other,
}

impl FailureKind {
    /// The least pause before the next attempt.
    const fn least_pause(self) -> SignedDuration {
        match self {
            Self::TurnedAway => limits::BUSY_LEAST,
            Self::Other => SignedDuration::ZERO,
        }
    }
}

/// Failures since the worker last had nothing more to do, or was asked for something else.
#[derive(Clone, Debug, Default)]
pub(super) struct Setbacks {
    /// What has failed and not succeeded since.
    failing: BTreeSet<AttemptedStep>,
    /// Failures in a row.
    count: u32,
}

impl Setbacks {
    /// Records a failure; returns the pause before the next attempt.
    pub(super) fn failed(&mut self, attempt: AttemptedStep, kind: FailureKind) -> SignedDuration {
        self.failing.insert(attempt);
        let pause = limits::retry_pause(self.count);
        self.count = self.count.saturating_add(1);
        pause.max(kind.least_pause())
    }

    /// Records a success. Pauses begin anew once nothing that failed is left.
    pub(super) fn succeeded(&mut self, attempt: &AttemptedStep) {
        if self.failing.remove(attempt) && self.failing.is_empty() {
            self.clear();
        }
    }

    /// Forgets all failures: nothing is left to do, or something else is asked for.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether nothing is failing.
    pub(super) fn is_empty(&self) -> bool {
        self.failing.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn any_attempt() -> impl Strategy<Value = AttemptedStep> {
        prop_oneof![
            1 => Just(AttemptedStep::Connect),
            8 => (0..8_u8).prop_map(|step| AttemptedStep::Step(step.to_string())),
        ]
    }

    fn any_kind() -> impl Strategy<Value = FailureKind> {
        prop_oneof![Just(FailureKind::Other), Just(FailureKind::TurnedAway)]
    }

    /// The shortest time that chance makes of a pause.
    fn shortened(pause: SignedDuration) -> f64 {
        pause.as_secs_f64() * (1.0 - limits::RETRY_JITTER)
    }

    proptest! {
        /// Whatever succeeds before, a step that fails each time is tried at most 17 times in ten minutes.
        #[test]
        fn attempts_at_what_keeps_failing_are_few(
            fails in any_attempt(),
            kinds in vec(any_kind(), 1..4),
            passes in vec(vec(any_attempt(), 0..6), 1..6),
        ) {
            let (mut setbacks, mut elapsed, mut attempts) = (Setbacks::default(), 0.0, 0);
            for (pass, kind) in passes.iter().cycle().zip(kinds.iter().cycle()) {
                for succeeds in pass.iter().filter(|attempt| **attempt != fails) {
                    setbacks.succeeded(succeeds);
                }
                attempts += 1;
                elapsed += shortened(setbacks.failed(fails.clone(), *kind));
                if elapsed > 600.0 {
                    break;
                }
            }
            prop_assert!(attempts <= 17, "{attempts}");
        }

        /// The same when failures take turns: two that fail by turns are no success of either.
        #[test]
        fn failures_that_take_turns_pause_as_one(turns in vec((any_attempt(), any_kind()), 1..6)) {
            let (mut setbacks, mut elapsed, mut attempts) = (Setbacks::default(), 0.0, 0);
            for (fails, kind) in turns.iter().cycle() {
                attempts += 1;
                elapsed += shortened(setbacks.failed(fails.clone(), *kind));
                if elapsed > 600.0 {
                    break;
                }
            }
            prop_assert!(attempts <= 17, "{attempts}");
        }
    }

    #[test]
    fn other_changes_of_a_node_are_other_steps() {
        let patch = |name: &str| {
            let mut patch = super::super::NodePatch::default();
            patch.annotations.insert(name.to_owned(), None);
            AttemptedStep::of(&Action::PatchNode(patch))
        };
        assert_ne!(patch("a"), patch("b"));
        assert_eq!(patch("a"), patch("a"));
    }

    #[test]
    fn pauses_double_and_begin_anew_after_success() {
        let mut setbacks = Setbacks::default();
        let pause = |setbacks: &mut Setbacks| {
            setbacks.failed(AttemptedStep::Connect, FailureKind::Other).as_secs()
        };
        let pauses: Vec<_> = (0..9).map(|_| pause(&mut setbacks)).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        setbacks.succeeded(&AttemptedStep::Connect);
        assert!(setbacks.is_empty());
        assert_eq!(pause(&mut setbacks), 1);
    }

    #[test]
    fn busy_servers_are_left_alone_for_longer() {
        let mut setbacks = Setbacks::default();
        let pause = |_| setbacks.failed(AttemptedStep::Connect, FailureKind::TurnedAway);
        let pauses: Vec<_> = (0..8).map(pause).collect();
        let seconds: Vec<_> = pauses.iter().map(SignedDuration::as_secs).collect();
        assert_eq!(seconds, [17, 17, 17, 17, 17, 32, 60, 60]);
        // The least penalty of OpenSSH, also where chance has shortened the pause.
        assert!(pauses.into_iter().all(|pause| shortened(pause) >= 15.0));
    }
}
