//! How long to wait after a failure, of a host or of the API server.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use wmco_core::limits;

/// A pause before the next attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Pause {
    /// What is waited: at least half of `within`, so that hosts do not all come at once.
    pub(crate) exact: Duration,
    /// The same without chance, for people.
    pub(crate) within: Duration,
}

/// Pauses that double from [`limits::RETRY_FIRST`] to [`limits::RETRY_MOST`].
pub(crate) struct Backoff {
    /// The lower ends; jitter adds up to as much again.
    halves: ExponentialBackoff,
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        let (first, most) = (limits::RETRY_FIRST.unsigned_abs(), limits::RETRY_MOST.unsigned_abs());
        let halves = ExponentialBuilder::default()
            .with_min_delay(first / 2)
            .with_max_delay(most / 2)
            .with_jitter()
            .without_max_times()
            .build();
        Self { halves, next: first }
    }
}

impl Backoff {
    pub(crate) fn next(&mut self) -> Pause {
        let most = limits::RETRY_MOST.unsigned_abs();
        let within = self.next;
        self.next = (within * 2).min(most);
        Pause { exact: self.halves.next().unwrap_or(within), within }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_with_jitter_and_never_exceed_the_longest() {
        let (mut one, mut other) = (Backoff::default(), Backoff::default());
        let pauses: Vec<_> = std::iter::repeat_with(|| one.next()).take(9).collect();
        let within: Vec<_> = pauses.iter().map(|pause| pause.within.as_secs()).collect();
        assert_eq!(within, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        for pause in &pauses {
            assert!(pause.exact >= pause.within / 2 && pause.exact <= pause.within, "{pause:?}");
        }
        assert!(pauses.iter().any(|pause| *pause != other.next()), "all hosts at once");
    }
}
