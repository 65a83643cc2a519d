//! How many Events may be sent, so that a fleet in trouble neither fills the cluster's store nor hides what is new.

use std::collections::HashMap;
use std::time::Duration;

use crate::limits::{
    EVENT_SERIES, FAILURE_EVENT_BURST, FAILURE_EVENT_INTERVAL, SERIES_EVENT_BURST,
    SERIES_EVENT_INTERVAL,
};

/// A rate: bursts of so many, then one per interval.
#[derive(Clone, Copy, Debug)]
struct Rate {
    burst: u32,
    interval: Duration,
}

const EVENTS_OF_A_SERIES: Rate =
    Rate { burst: SERIES_EVENT_BURST, interval: SERIES_EVENT_INTERVAL };
const FAILURES: Rate = Rate { burst: FAILURE_EVENT_BURST, interval: FAILURE_EVENT_INTERVAL };

/// What Events have in common that are limited together.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct EventSeries {
    /// The object that they are recorded on, for example the list of instances.
    pub object: String,
    /// What they are about, where an object stands for many: an instance, an owned object, a topic.
    pub subject: String,
    /// Their reason, if they are about attempts that fail and are repeated. Such Events use up nothing of what else
    /// happens to the subject.
    pub failure: Option<String>,
}

/// Counts Events. Times are those of a monotonic clock with any start.
///
/// Events are limited for their series, and failures of one reason for all series together, too. Of those the first of a
/// series goes before repetitions of others, which leave half of the burst to it.
///
/// ```
/// use std::time::Duration;
/// use wmco_core::event_limiter::{EventLimiter, EventSeries};
///
/// let of = |subject: &str| EventSeries {
///     object: "ConfigMap windows-instances".into(),
///     subject: subject.into(),
///     failure: None,
/// };
/// let mut limiter = EventLimiter::default();
/// let sent = (0..100).filter(|_| limiter.admits(&of("10.0.0.1"), Duration::ZERO)).count();
/// assert_eq!(sent, 25);
/// assert!(limiter.admits(&of("10.0.0.2"), Duration::ZERO));
/// ```
#[derive(Clone, Debug, Default)]
pub struct EventLimiter {
    /// `None` is for all series that there is no room for.
    series: HashMap<Option<EventSeries>, Bucket>,
    /// By reason.
    failures: HashMap<String, Bucket>,
}

impl EventLimiter {
    /// Whether an Event of `series` may be sent at `now`, and counts it.
    pub fn admits(&mut self, series: &EventSeries, now: Duration) -> bool {
        let mut key = Some(series.clone());
        if self.series.get(&key).is_none_or(|bucket| !bucket.is_in_use(now)) {
            self.series.retain(|_, bucket| bucket.is_in_use(now));
            if self.series.len() >= EVENT_SERIES {
                key = None;
            }
        }
        let reserve = if self.series.contains_key(&key) { FAILURES.burst / 2 } else { 0 };
        let all = series.failure.as_ref();
        let mut all = all.map(|reason| self.failures.entry(reason.clone()).or_default());
        if all.as_ref().is_some_and(|all| !all.has(FAILURES, reserve, now)) {
            // One that was never told is still to come.
            if let Some(own) = self.series.get_mut(&key) {
                own.asked_at = now;
            }
            return false;
        }
        let own = self.series.entry(key).or_default();
        own.asked_at = now;
        if !own.has(EVENTS_OF_A_SERIES, 0, now) {
            return false;
        }
        if let Some(all) = &mut all {
            all.take(FAILURES, now);
        }
        own.take(EVENTS_OF_A_SERIES, now);
        true
    }
}

/// What is left of a burst.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    /// When the whole burst is there again.
    full_at: Duration,
    /// When it was last asked for, in vain or not.
    asked_at: Duration,
}

impl Bucket {
    /// Whether the series goes on: something of its burst is used, or it was asked for a moment ago.
    fn is_in_use(&self, now: Duration) -> bool {
        now < self.full_at || now < self.asked_at + SERIES_EVENT_INTERVAL
    }

    /// Whether more than the `reserve` is left.
    fn has(&self, rate: Rate, reserve: u32, now: Duration) -> bool {
        self.full_at.saturating_sub(now) <= rate.interval * rate.burst.saturating_sub(reserve + 1)
    }

    fn take(&mut self, rate: Rate, now: Duration) {
        self.full_at = now.max(self.full_at) + rate.interval;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::limits::RETRY_MOST;

    const MINUTE: Duration = Duration::from_secs(60);
    const FAILURE: &str = "InstanceSetupFailure";

    /// What happens to a subject that hangs on the list of instances.
    fn news(subject: impl std::fmt::Display) -> EventSeries {
        let (object, subject) = ("windows-instances".to_owned(), subject.to_string());
        EventSeries { object, subject, failure: None }
    }

    fn failures(subject: impl std::fmt::Display) -> EventSeries {
        EventSeries { failure: Some(FAILURE.to_owned()), ..news(subject) }
    }

    #[test]
    fn a_series_gets_a_burst_and_then_one_in_five_minutes() {
        let mut limiter = EventLimiter::default();
        let mut sent = |from: u64, to: u64| {
            let seconds = (from..to).map(Duration::from_secs);
            seconds.filter(|now| limiter.admits(&news("a"), *now)).count()
        };
        assert_eq!(sent(0, 30), 25);
        assert_eq!(sent(30, 300), 0);
        assert_eq!(sent(300, 3_600), 11);
        // An hour of silence is the first burst again, not more.
        let later = 100_000;
        assert_eq!(sent(later, later + 30), 25);
    }

    /// Each of 2,000 hosts is tried again each minute. All hang on one object.
    #[test]
    fn two_thousand_that_fail_send_at_most_twenty_in_a_minute_and_each_once_before_any_twice() {
        const HOSTS: u32 = 2_000;
        let mut limiter = EventLimiter::default();
        let mut sent = Vec::new();
        for round in 0..30 {
            for host in 0..HOSTS {
                let now = RETRY_MOST.unsigned_abs() * round + MINUTE * host / HOSTS;
                sent.extend(limiter.admits(&failures(host), now).then_some((now, host)));
            }
        }
        let in_a_minute = |(from, _): &(Duration, u32)| {
            sent.iter().filter(|(at, _)| (*from..*from + MINUTE).contains(at)).count()
        };
        assert!(sent.iter().map(in_a_minute).max().unwrap() <= 20);
        assert!(sent.len() >= 290, "they are told of all the time: {}", sent.len());
        let hosts: HashSet<u32> = sent.iter().map(|(_, host)| *host).collect();
        assert_eq!(hosts.len(), sent.len());
        // What succeeds beside them is told.
        assert!(limiter.admits(&news(1), MINUTE * 30));
    }

    /// One subject that is told of each second beside others that come later.
    #[test]
    fn repetitions_of_a_subject_use_up_nothing_of_others() {
        let mut limiter = EventLimiter::default();
        let mut admits =
            |subject: u32, second| limiter.admits(&news(subject), Duration::from_secs(second));
        let sent = (0..1_000).filter(|second| admits(0, *second)).count();
        assert!(sent <= 28);
        for subject in 1..44 {
            assert!(admits(subject, 1_000), "subject {subject}");
        }
    }

    /// A host that fails each second, with new words each time, beside 44 that are tried each minute.
    #[test]
    fn hosts_that_fail_are_all_told_of_within_five_minutes() {
        let mut limiter = EventLimiter::default();
        let mut told = HashSet::new();
        for second in 0..300_u64 {
            let now = Duration::from_secs(1_000 + second);
            limiter.admits(&failures("first"), now);
            let due = (0..44).filter(|host| second % 60 == *host);
            told.extend(due.filter(|host| limiter.admits(&failures(host), now)));
        }
        assert_eq!(told.len(), 44);
    }

    #[test]
    fn a_host_that_fails_for_ever_hides_no_news_about_itself() {
        let mut limiter = EventLimiter::default();
        for minute in 0..600 {
            limiter.admits(&failures("10.0.0.1"), MINUTE * minute);
        }
        assert!(limiter.admits(&news("10.0.0.1"), MINUTE * 600));
    }

    #[test]
    fn series_that_are_quiet_are_forgotten() {
        let mut limiter = EventLimiter::default();
        for host in 0..10_000 {
            assert!(limiter.admits(&news(host), Duration::from_secs(host)));
        }
        assert!(limiter.series.len() <= 301, "{}", limiter.series.len());
    }

    /// Subjects without end, for example names that somebody invents.
    #[test]
    fn series_have_a_bound_and_those_beyond_it_share_one_rate() {
        let mut limiter = EventLimiter::default();
        let mut admits = |subject: usize| limiter.admits(&news(subject), Duration::ZERO);
        let sent = (0..20_000).filter(|subject| admits(*subject)).count();
        assert_eq!(sent, EVENT_SERIES + 25);
        assert_eq!(limiter.series.len(), EVENT_SERIES + 1);
        // Those that have one keep it.
        assert!(limiter.admits(&news(0), MINUTE));
    }
}
