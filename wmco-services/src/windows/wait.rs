//! How long a call may wait for Windows.

use std::fmt;
use std::time::Duration;

use jiff::SignedDuration;
use wmco_core::protocol::ServiceRunState;

use super::WindowsError;
use crate::limits;

/// The patience of a caller: a limit, and perhaps something that makes it lose interest before.
#[derive(Clone, Copy)]
pub struct Wait<'a> {
    limit: SignedDuration,
    wanted: Option<&'a dyn Fn() -> bool>,
}

impl<'a> Wait<'a> {
    /// A caller that waits so long.
    pub const fn at_most(limit: SignedDuration) -> Self {
        Self { limit, wanted: None }
    }

    /// The same caller, who does not wait any more once `wanted` says no.
    #[must_use]
    pub const fn as_long_as(self, wanted: &'a dyn Fn() -> bool) -> Self {
        Self { wanted: Some(wanted), ..self }
    }

    /// The limit.
    pub const fn limit(self) -> SignedDuration {
        self.limit
    }

    /// Asked at each look at what is waited for.
    ///
    /// # Errors
    /// [`WindowsError::Interrupted`], with what `object` says, when the caller lost interest.
    pub fn check(self, object: impl FnOnce() -> String) -> Result<(), WindowsError> {
        match self.wanted {
            Some(wanted) if !wanted() => Err(WindowsError::Interrupted { object: object() }),
            Some(_) | None => Ok(()),
        }
    }

    /// How long a service may start or stop: longer than the limit when it [gets on](Progress::hears).
    pub fn limit_of(self, gets_on: bool) -> SignedDuration {
        if gets_on { self.limit.max(limits::SERVICE_HONEST) } else { self.limit }
    }

    /// Whether a service in this state, which was told to stop so long ago, gets no more time: the
    /// limit has passed, or it goes on as if nobody had said anything.
    pub fn is_over(self, state: ServiceRunState, since: Duration, gets_on: bool) -> bool {
        since >= self.limit_of(gets_on).unsigned_abs()
            || (state != ServiceRunState::Stopping
                && since >= limits::SERVICE_ANSWER.unsigned_abs())
    }
}

/// What a service that starts or stops has said so far.
///
/// Source: `spec/wicd.md`, section 23.6, row 47; Windows documentation of `SERVICE_STATUS`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// The last state and check point, and when they were new.
    last: Option<(ServiceRunState, u32, Duration)>,
}

impl Progress {
    /// Takes in what the service says at `now`, a time since any fixed moment. Tells whether it gets on:
    /// it is on its way, and its last new check point is not older than it said it would be.
    pub fn hears(
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

    /// Whether a service is given up at this second, of which each word is state, check point, seconds of
    /// the hint, and second at which it is heard.
    fn given_up(words: &[(ServiceRunState, u32, u64, u64)]) -> Vec<bool> {
        let mut progress = Progress::default();
        let hear = |(state, checkpoint, hint, at): &(ServiceRunState, u32, u64, u64)| {
            let at = Duration::from_secs(*at);
            let gets_on = progress.hears(*state, *checkpoint, Duration::from_secs(*hint), at);
            WAIT.is_over(*state, at, gets_on)
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
        // The same check point for longer than it said.
        let late = [(STOPPING, 1, 20, 110), (STOPPING, 1, 20, 129), (STOPPING, 1, 20, 130)];
        assert_eq!(given_up(&late), [false, false, true]);
        // A new one afterwards counts again.
        let again = [(STOPPING, 1, 20, 90), (STOPPING, 1, 20, 119), (STOPPING, 2, 20, 121)];
        assert_eq!(given_up(&again), [false, false, false]);
        // No hint is no word.
        assert_eq!(given_up(&[(STOPPING, 1, 0, 119), (STOPPING, 2, 0, 120)]), [false, true]);
    }

    #[test]
    fn only_a_service_on_its_way_gets_on() {
        let running = ServiceRunState::Running;
        assert!(!Progress::default().hears(running, 1, Duration::from_secs(9), Duration::ZERO));
        assert!(given_up(&[(running, 1, 60, 29), (running, 2, 60, 30)])[1]);
        // Starting, and then stopping, begins anew.
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
            "stop of service a was not awaited, since the daemon is told to stop; look again"
        );
    }
}
