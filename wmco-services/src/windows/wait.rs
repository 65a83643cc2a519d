//! Limits the time that a call waits for Windows.

use std::fmt;
use std::time::Duration;

use jiff::SignedDuration;
use wmco_core::protocol::ServiceRunState;

use super::WindowsError;
use crate::limits;

/// A time limit for a call, with an optional condition for waiting.
#[derive(Clone, Copy)]
pub struct Wait<'a> {
    limit: SignedDuration,
    wanted: Option<&'a dyn Fn() -> bool>,
}

impl<'a> Wait<'a> {
    /// Creates a wait with this limit.
    pub const fn at_most(limit: SignedDuration) -> Self {
        Self { limit, wanted: None }
    }

    /// Adds a condition: once `wanted` returns false, the caller stops waiting.
    #[must_use]
    pub const fn as_long_as(self, wanted: &'a dyn Fn() -> bool) -> Self {
        Self { wanted: Some(wanted), ..self }
    }

    /// The limit.
    pub const fn limit(self) -> SignedDuration {
        self.limit
    }

    /// Called at each poll of the awaited state.
    ///
    /// # Errors
    /// [`WindowsError::Interrupted`] with the text of `object` once the condition fails.
    pub fn check(self, object: impl FnOnce() -> String) -> Result<(), WindowsError> {
        match self.wanted {
            Some(wanted) if !wanted() => Err(WindowsError::Interrupted { object: object() }),
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the limit for starting or stopping: longer while a service reports [progress](Progress::update).
    pub fn limit_of(self, progressing: bool) -> SignedDuration {
        if progressing { self.limit.max(limits::SERVICE_PROGRESSING) } else { self.limit }
    }

    /// Whether the time is over for a service in this state that was told to stop `since` ago: the limit has passed, or
    /// the service ignores the request.
    pub fn is_over(self, state: ServiceRunState, since: Duration, progressing: bool) -> bool {
        since >= self.limit_of(progressing).unsigned_abs()
            || (state != ServiceRunState::Stopping
                && since >= limits::SERVICE_ANSWER.unsigned_abs())
    }
}

/// The progress that a starting or stopping service has reported so far.
///
/// Source: `docs/contract/wicd.md`, WICD73; Windows documentation of `SERVICE_STATUS`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// The last state and check point, and the time when they were first reported.
    last: Option<(ServiceRunState, u32, Duration)>,
}

impl Progress {
    /// Records the status of the service at `now`, a time since any fixed moment. Returns whether the service
    /// makes progress: it is starting or stopping, and its last new check point is not older than its wait hint.
    pub fn update(
        &mut self,
        state: ServiceRunState,
        checkpoint: u32,
        hint: Duration,
        now: Duration,
    ) -> bool {
        let since = match self.last {
            Some((before, at, since)) if before == state && at == checkpoint => since,
            Some(_) | None => now,
        };
        self.last = Some((state, checkpoint, since));
        let on_its_way = matches!(state, ServiceRunState::Starting | ServiceRunState::Stopping);
        on_its_way && now.saturating_sub(since) < hint
    }
}

impl fmt::Debug for Wait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait").field("limit", &self.limit).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Wait<'static> = Wait::at_most(SignedDuration::from_mins(2));

    #[test]
    fn a_service_that_says_that_it_stops_has_the_whole_limit() {
        let over =
            |seconds| WAIT.is_over(ServiceRunState::Stopping, Duration::from_secs(seconds), false);
        assert_eq!((over(119), over(120)), (false, true));
    }

    #[test]
    fn a_service_that_says_nothing_has_less() {
        let over =
            |seconds| WAIT.is_over(ServiceRunState::Running, Duration::from_secs(seconds), false);
        assert_eq!((over(29), over(30)), (false, true));
        let short = Wait::at_most(SignedDuration::from_secs(1));
        assert!(short.is_over(ServiceRunState::Running, Duration::from_secs(1), false));
    }

    /// Returns for each report whether the service is given up then. A report is a state, a check point, the wait hint
    /// in seconds, and the time in seconds.
    fn given_up(words: &[(ServiceRunState, u32, u64, u64)]) -> Vec<bool> {
        let mut progress = Progress::default();
        let hear = |(state, checkpoint, hint, at): &(ServiceRunState, u32, u64, u64)| {
            let at = Duration::from_secs(*at);
            let progressing = progress.update(*state, *checkpoint, Duration::from_secs(*hint), at);
            WAIT.is_over(*state, at, progressing)
        };
        words.iter().map(hear).collect()
    }

    const STOPPING: ServiceRunState = ServiceRunState::Stopping;

    #[test]
    fn a_service_that_gets_on_has_until_the_hard_limit() {
        let words: Vec<_> = (0..=60).map(|n| (STOPPING, n, 11, u64::from(n) * 10)).collect();
        let over = given_up(&words);
        assert_eq!(over.iter().position(|over| *over), Some(60));
    }

    #[test]
    fn a_service_that_does_not_keep_its_word_has_the_usual_limit() {
        // The same check point for longer than its hint.
        let late = [(STOPPING, 1, 20, 110), (STOPPING, 1, 20, 129), (STOPPING, 1, 20, 130)];
        assert_eq!(given_up(&late), [false, false, true]);
        // A later new check point counts again.
        let again = [(STOPPING, 1, 20, 90), (STOPPING, 1, 20, 119), (STOPPING, 2, 20, 121)];
        assert_eq!(given_up(&again), [false, false, false]);
        // A report without a hint is no progress.
        assert_eq!(given_up(&[(STOPPING, 1, 0, 119), (STOPPING, 2, 0, 120)]), [false, true]);
    }

    #[test]
    fn only_a_service_on_its_way_gets_on() {
        let running = ServiceRunState::Running;
        assert!(!Progress::default().update(running, 1, Duration::from_secs(9), Duration::ZERO));
        assert!(given_up(&[(running, 1, 60, 29), (running, 2, 60, 30)])[1]);
        // A change from starting to stopping counts as progress.
        let starting = ServiceRunState::Starting;
        assert_eq!(given_up(&[(starting, 1, 20, 10), (STOPPING, 1, 20, 125)]), [false, false]);
    }

    #[test]
    fn who_lost_interest_is_told_what_was_not_awaited() {
        let object = || "stop of service a".to_owned();
        WAIT.check(object).unwrap();
        WAIT.as_long_as(&|| true).check(object).unwrap();
        let error = WAIT.as_long_as(&|| false).check(object).unwrap_err();
        assert_eq!(
            error.to_string(),
            "stop of service a was not awaited, since the daemon is stopping; try again"
        );
    }
}
