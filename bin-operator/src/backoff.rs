//! How long to wait after a failure, of a host or of the API server.

use std::time::Duration;

use jiff::SignedDuration;
use wmco_core::limits;

/// A pause before the next attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Pause {
    /// What is waited: a little less than `within`, so that hosts do not all come at once.
    pub(crate) exact: Duration,
    /// The same without chance, for people.
    pub(crate) within: Duration,
}

impl Pause {
    /// Shortens `within` by chance, by a part of up to [`limits::RETRY_JITTER`].
    pub(crate) fn within(within: SignedDuration) -> Self {
        let within = within.unsigned_abs();
        // Without a random number all come at once, which is no reason to fail.
        let chance = f64::from(getrandom::u32().unwrap_or_default()) / f64::from(u32::MAX);
        Self { exact: within.mul_f64(1.0 - limits::RETRY_JITTER * chance), within }
    }
}

/// Pauses of [`limits::retry_pause`], one after each failure in a row.
#[derive(Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    pub(crate) fn next(&mut self) -> Pause {
        let pause = limits::retry_pause(self.failures);
        self.failures = self.failures.saturating_add(1);
        Pause::within(pause)
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
            let least = pause.within.mul_f64(1.0 - limits::RETRY_JITTER);
            assert!(pause.exact >= least && pause.exact <= pause.within, "{pause:?}");
        }
        assert!(pauses.iter().any(|pause| *pause != other.next()), "all hosts at once");
    }
}
