//! The times of an election, in the terms of client-go.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use jiff::SignedDuration;
use wmco_core::limits;

/// Times that go together: `lease > renew_deadline > 1.2 * retry`.
///
/// An API server may be away for `renew_deadline` minus one `retry` without the leader giving up, and
/// for `lease` nobody takes over from a leader that died. Source: OpenShift's conventions for operators,
/// "Handling kube-apiserver disruption"; the inequality is client-go's.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Times {
    lease: Duration,
    renew_deadline: Duration,
    retry: Duration,
}

/// Times as they are typed.
#[derive(Args, Clone, Copy, Debug)]
pub struct TimesArgs {
    /// How long other processes respect a leader's Lease after its last renewal; whole seconds
    #[arg(
        long = Field::Lease.flag(), env = Field::Lease.variable(), value_name = "DURATION",
        default_value_t = Span(limits::LEASE.unsigned_abs())
    )]
    lease: Span,
    /// How long a leader tries to renew its Lease before it steps down
    #[arg(
        long = Field::RenewDeadline.flag(), env = Field::RenewDeadline.variable(),
        value_name = "DURATION",
        default_value_t = Span(limits::LEASE_RENEW_DEADLINE.unsigned_abs())
    )]
    renew_deadline: Span,
    /// Time between two attempts to acquire or renew the Lease
    #[arg(
        long = Field::Retry.flag(), env = Field::Retry.variable(), value_name = "DURATION",
        default_value_t = Span(limits::LEASE_RETRY.unsigned_abs())
    )]
    retry: Span,
}

/// Why times do not go together.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TimesError {
    /// A Lease says how long it is good for in seconds.
    #[error("--{} is {lease}, set it to whole seconds, at least 1s and at most 1h", Field::Lease.flag())]
    Lease {
        /// What was asked for.
        lease: Span,
    },
    /// A leader has to know before others that it does not lead any more.
    #[error(
        "--{} is {renew_deadline}, set it to less than --{}, which is {lease}",
        Field::RenewDeadline.flag(), Field::Lease.flag()
    )]
    RenewDeadline {
        /// What was asked for.
        renew_deadline: Span,
        /// What it must be less than.
        lease: Span,
    },
    /// A leader has to try more than once.
    #[error(
        "--{} is {retry}, set it to more than 0s and so that 1.2 times as much is less than --{}, \
         which is {renew_deadline}",
        Field::Retry.flag(), Field::RenewDeadline.flag()
    )]
    Retry {
        /// What was asked for.
        retry: Span,
        /// What it must be less than.
        renew_deadline: Span,
    },
}

/// The three times. The names of flags are client-go's.
#[derive(Clone, Copy)]
enum Field {
    Lease,
    RenewDeadline,
    Retry,
}

impl Field {
    const fn flag(self) -> &'static str {
        match self {
            Self::Lease => "leader-elect-lease-duration",
            Self::RenewDeadline => "leader-elect-renew-deadline",
            Self::Retry => "leader-elect-retry-period",
        }
    }

    const fn variable(self) -> &'static str {
        match self {
            Self::Lease => "LEADER_ELECT_LEASE_DURATION",
            Self::RenewDeadline => "LEADER_ELECT_RENEW_DEADLINE",
            Self::Retry => "LEADER_ELECT_RETRY_PERIOD",
        }
    }
}

/// A duration as flags of Kubernetes programs have it, for example `137s` or `2m17s`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Span(pub Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed: Result<SignedDuration, _> = text.parse();
        let duration = parsed.ok().and_then(|duration| Duration::try_from(duration).ok());
        duration.map(Self).ok_or_else(|| "write a duration such as 137s or 2m17s".to_owned())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s", self.0.as_secs_f64())
    }
}

impl Times {
    /// Longest lease: nobody would want to wait longer for the successor of a leader that died.
    const LONGEST: Duration = Duration::from_secs(3600);

    /// Times that go together.
    ///
    /// # Errors
    /// [`TimesError`] names the flag of the first that does not.
    pub fn new(
        lease: Duration,
        renew_deadline: Duration,
        retry: Duration,
    ) -> Result<Self, TimesError> {
        let whole = lease.subsec_nanos() == 0 && !lease.is_zero() && lease <= Self::LONGEST;
        if !whole {
            return Err(TimesError::Lease { lease: Span(lease) });
        }
        if renew_deadline >= lease {
            let (renew_deadline, lease) = (Span(renew_deadline), Span(lease));
            return Err(TimesError::RenewDeadline { renew_deadline, lease });
        }
        if retry.is_zero() || retry.saturating_mul(6) >= renew_deadline.saturating_mul(5) {
            let (retry, renew_deadline) = (Span(retry), Span(renew_deadline));
            return Err(TimesError::Retry { retry, renew_deadline });
        }
        Ok(Self { lease, renew_deadline, retry })
    }

    /// For so long after its last renewal a Lease is respected by others; whole seconds.
    pub const fn lease(self) -> Duration {
        self.lease
    }

    /// Who could not renew for so long does not lead any more; less than [`Times::lease`].
    pub const fn renew_deadline(self) -> Duration {
        self.renew_deadline
    }

    /// One attempt may take so long: a connection that carries nothing leaves time for another one.
    pub(super) fn attempt(self) -> Duration {
        self.renew_deadline / 2
    }

    /// Between two attempts.
    pub const fn retry(self) -> Duration {
        self.retry
    }
}

impl Default for Times {
    fn default() -> Self {
        Self {
            lease: limits::LEASE.unsigned_abs(),
            renew_deadline: limits::LEASE_RENEW_DEADLINE.unsigned_abs(),
            retry: limits::LEASE_RETRY.unsigned_abs(),
        }
    }
}

impl TryFrom<TimesArgs> for Times {
    type Error = TimesError;

    fn try_from(typed: TimesArgs) -> Result<Self, TimesError> {
        Self::new(typed.lease.0, typed.renew_deadline.0, typed.retry.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check([lease, renew_deadline, retry]: [&str; 3], expected: Result<(), &str>) {
        let span = |text: &str| text.parse().unwrap();
        let typed = TimesArgs {
            lease: span(lease),
            renew_deadline: span(renew_deadline),
            retry: span(retry),
        };
        let got = Times::try_from(typed).map(drop).map_err(|error| error.to_string());
        assert_eq!(got, expected.map_err(str::to_owned));
    }

    #[test]
    fn the_defaults_go_together() {
        let Times { lease, renew_deadline, retry } = Times::default();
        assert_eq!(Times::new(lease, renew_deadline, retry), Ok(Times::default()));
        assert_eq!([lease, renew_deadline, retry].map(|time| time.as_secs()), [137, 107, 26]);
    }

    #[test]
    fn durations_are_read_as_flags_of_kubernetes_have_them() {
        check(["2m17s", "107s", "26s"], Ok(()));
        check(["3s", "1.5s", "100ms"], Ok(()));
        for wrong in ["", "137", "-1s", "ten", "1s2"] {
            assert!(wrong.parse::<Span>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_lease_has_whole_seconds() {
        let next = "set it to whole seconds, at least 1s and at most 1h";
        for (lease, told) in [("0s", "0s"), ("1500ms", "1.5s"), ("61m", "3660s")] {
            let told = format!("--leader-elect-lease-duration is {told}, {next}");
            check([lease, "107s", "26s"], Err(&told));
        }
    }

    #[test]
    fn a_leader_knows_before_others_that_it_leads_no_more() {
        let told = "--leader-elect-renew-deadline is 137s, set it to less than \
                    --leader-elect-lease-duration, which is 137s";
        check(["137s", "137s", "26s"], Err(told));
    }

    #[test]
    fn a_leader_tries_more_than_once() {
        for (retry, told) in [("0s", "0s"), ("10s", "10s"), ("90s", "90s")] {
            let told = format!(
                "--leader-elect-retry-period is {told}, set it to more than 0s and so that 1.2 \
                 times as much is less than --leader-elect-renew-deadline, which is 12s"
            );
            check(["15s", "12s", retry], Err(&told));
        }
        check(["15s", "12s", "9s"], Ok(()));
    }
}
