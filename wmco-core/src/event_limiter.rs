//! How many Events may be sent, so that a fleet in trouble neither fills the cluster's store nor hides what is new.

use std::collections::HashMap;
use std::time::Duration;

use crate::limits::{
    FAILURE_EVENT_BURST, FAILURE_EVENT_INTERVAL, OBJECT_EVENT_BURST, OBJECT_EVENT_INTERVAL,
};

/// A rate: bursts of so many, then one per interval.
#[derive(Clone, Copy, Debug)]
struct Rate {
    burst: u32,
    interval: Duration,
}

const EVENTS_PER_OBJECT: Rate = Rate { burst: OBJECT_EVENT_BURST, interval: OBJECT_EVENT_INTERVAL };
const EVENTS_OF_FAILURES: Rate =
    Rate { burst: FAILURE_EVENT_BURST, interval: FAILURE_EVENT_INTERVAL };

/// Counts Events. Times are those of a monotonic clock with any start.
///
/// ```
/// use std::time::Duration;
/// use wmco_core::event_limiter::EventLimiter;
///
/// let mut limiter = EventLimiter::default();
/// let sent = (0..100).filter(|_| limiter.admits("Node win-1", None, Duration::ZERO)).count();
/// assert_eq!(sent, 25);
/// assert!(limiter.admits("Node win-2", None, Duration::ZERO));
/// ```
#[derive(Clone, Debug, Default)]
pub struct EventLimiter {
    objects: Buckets,
    failures: Buckets,
}

impl EventLimiter {
    /// Whether an Event about `object` may be sent at `now`, and counts it. `failure` is the reason of Events about
    /// attempts that fail and are repeated; those are limited for all objects together, too.
    pub fn admits(&mut self, object: &str, failure: Option<&str>, now: Duration) -> bool {
        let failures =
            failure.is_none_or(|reason| self.failures.has(reason, EVENTS_OF_FAILURES, now));
        // A host that fails for ever may not use up what others on the same object are told with.
        let own = failure.map_or_else(|| object.to_owned(), |reason| format!("{object} {reason}"));
        let admitted = failures && self.objects.has(&own, EVENTS_PER_OBJECT, now);
        if admitted {
            self.objects.take(&own, EVENTS_PER_OBJECT, now);
            if let Some(reason) = failure {
                self.failures.take(reason, EVENTS_OF_FAILURES, now);
            }
        }
        admitted
    }
}

/// For each name, the time at which its whole burst is there again; absent ones have it.
#[derive(Clone, Debug, Default)]
struct Buckets(HashMap<String, Duration>);

impl Buckets {
    fn has(&self, name: &str, rate: Rate, now: Duration) -> bool {
        let used = self.0.get(name).map_or(Duration::ZERO, |full_at| full_at.saturating_sub(now));
        used <= rate.interval * rate.burst.saturating_sub(1)
    }

    fn take(&mut self, name: &str, rate: Rate, now: Duration) {
        if let Some(full_at) = self.0.get_mut(name) {
            *full_at = now.max(*full_at) + rate.interval;
            return;
        }
        self.0.retain(|_, full_at| *full_at > now);
        self.0.insert(name.to_owned(), now + rate.interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::RETRY_MOST;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn an_object_gets_a_burst_and_then_one_in_five_minutes() {
        let mut limiter = EventLimiter::default();
        let mut sent = |from: u64, to: u64| {
            let seconds = (from..to).map(Duration::from_secs);
            seconds.filter(|now| limiter.admits("a", None, *now)).count()
        };
        assert_eq!(sent(0, 30), 25);
        assert_eq!(sent(30, 300), 0);
        assert_eq!(sent(300, 3_600), 11);
        // An hour of silence is the first burst again, not more.
        let later = 100_000;
        assert_eq!(sent(later, later + 30), 25);
    }

    /// Each of 2,000 Machines is tried again each minute.
    #[test]
    fn two_thousand_that_fail_send_at_most_twenty_in_a_minute() {
        const HOSTS: u32 = 2_000;
        let mut limiter = EventLimiter::default();
        let mut at = Vec::new();
        for round in 0..30 {
            for host in 0..HOSTS {
                let now = RETRY_MOST.unsigned_abs() * round + MINUTE * host / HOSTS;
                if limiter.admits(&format!("machine {host}"), Some("MachineSetupFailure"), now) {
                    at.push(now);
                }
            }
        }
        let in_a_minute =
            |from: &Duration| at.iter().filter(|it| (*from..*from + MINUTE).contains(*it)).count();
        assert!(at.iter().map(in_a_minute).max().unwrap() <= 20);
        assert!(at.len() >= 300, "they are told of all the time: {}", at.len());
        // What succeeds beside them is told.
        assert!(limiter.admits("machine 1", None, MINUTE * 30));
    }

    #[test]
    fn a_host_that_fails_for_ever_hides_no_news_about_its_object() {
        let mut limiter = EventLimiter::default();
        for minute in 0..600 {
            limiter.admits("windows-instances", Some("InstanceSetupFailure"), MINUTE * minute);
        }
        assert!(limiter.admits("windows-instances", None, MINUTE * 600));
    }

    #[test]
    fn objects_that_are_quiet_are_forgotten() {
        let mut limiter = EventLimiter::default();
        for host in 0..10_000 {
            let now = Duration::from_secs(host);
            assert!(limiter.admits(&host.to_string(), None, now));
        }
        assert!(limiter.objects.0.len() <= 301, "{}", limiter.objects.0.len());
    }
}
