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

    /// Whether a service in this state, which was told to stop so long ago, gets no more time: the
    /// limit has passed, or it goes on as if nobody had said anything.
    pub fn is_over(self, state: ServiceRunState, since: Duration) -> bool {
        since >= self.limit.unsigned_abs()
            || (state != ServiceRunState::Stopping
                && since >= limits::SERVICE_ANSWER.unsigned_abs())
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
        let over = |seconds| WAIT.is_over(ServiceRunState::Stopping, Duration::from_secs(seconds));
        assert_eq!((over(119), over(120)), (false, true));
    }

    #[test]
    fn a_service_that_says_nothing_has_less() {
        let over = |seconds| WAIT.is_over(ServiceRunState::Running, Duration::from_secs(seconds));
        assert_eq!((over(29), over(30)), (false, true));
        let short = Wait::at_most(SignedDuration::from_secs(1));
        assert!(short.is_over(ServiceRunState::Running, Duration::from_secs(1)));
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
