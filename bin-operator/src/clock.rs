//! Clocks that nobody sets back.

use std::ops::Add;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rustix::time::{ClockId, clock_gettime};

/// The clock that runs while the machine sleeps, too. `std::time::Instant` and tokio's clock stand
/// still then, so a leader that slept for an hour would think that its Lease is good. Other systems
/// than Linux have no such clock under this name; the operator runs there for developers only.
#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOCK: ClockId = ClockId::Monotonic;

/// A moment since the machine was booted. It never goes back.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Moment(Duration);

impl Moment {
    /// This moment.
    pub fn now() -> Self {
        // Time since boot is never negative.
        Self(clock_gettime(CLOCK).try_into().unwrap_or_default())
    }

    /// From `earlier` to this moment; zero if that is the later one.
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, later: Duration) -> Self {
        Self(self.0.saturating_add(later))
    }
}

/// When the clock of [`now`] was last set, and what it showed then.
static SET: Mutex<Option<(Moment, Timestamp)>> = Mutex::new(None);

/// The time that waits, retries and answers of the DNS are counted by: that of the system's clock, unless somebody set
/// that back. Then this one goes on from where it was, at half the speed until the system's has come there, so that nothing
/// waits for a time a second time.
pub fn now() -> Timestamp {
    let mut set = SET.lock().unwrap_or_else(PoisonError::into_inner);
    let moment = Moment::now();
    let steady = set.map(|(at, shown)| after(shown, moment.since(at)));
    let (time, is_set) = read(steady, Timestamp::now());
    if is_set {
        *set = Some((moment, time));
    }
    time
}

/// What the clock shows, and whether it is set by that, when it would show `steady` by itself and the system's clock
/// shows `system`.
fn read(steady: Option<Timestamp>, system: Timestamp) -> (Timestamp, bool) {
    match steady {
        Some(steady) if steady > system => (steady, false),
        Some(_) | None => (system, true),
    }
}

fn after(shown: Timestamp, passed: Duration) -> Timestamp {
    let passed = SignedDuration::try_from(passed / 2).unwrap_or(SignedDuration::MAX);
    shown.saturating_add(passed).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a process sees whose system's clock is off by `offsets`, one more second each time.
    fn shown(offsets: &[i64]) -> Vec<i64> {
        let mut set: Option<(i64, Timestamp)> = None;
        let show = |(second, offset): (i64, &i64)| {
            let system = Timestamp::from_second(1_000_000 + second + offset).unwrap();
            let passed = |at: i64| Duration::from_secs((second - at).unsigned_abs());
            let steady = set.map(|(at, shown)| after(shown, passed(at)));
            let (time, is_set) = read(steady, system);
            if is_set {
                set = Some((second, time));
            }
            time.as_millisecond() - 1_000_000_000
        };
        (0..).zip(offsets).map(show).collect()
    }

    #[test]
    fn a_clock_that_is_set_back_goes_on() {
        assert_eq!(shown(&[0, 0, -100, -100]), [0, 1_000, 1_500, 2_000]);
        assert_eq!(
            shown(&[0, 3, 0, 0, 0, 0, 0, 0]),
            [0, 4_000, 4_500, 5_000, 5_500, 6_000, 6_500, 7_000]
        );
        assert_eq!(shown(&[0, 50, 60]), [0, 51_000, 62_000]);
    }

    proptest! {
        /// However the system's clock is set: it goes on, and it is never late.
        #[test]
        fn it_always_goes_on(offsets in prop::collection::vec(-1000_i64..1000, 1..20)) {
            let shown = shown(&offsets);
            prop_assert!(shown.windows(2).all(|pair| pair[1] > pair[0]), "{shown:?}");
            let system = offsets.iter().zip(0..).map(|(offset, second): (&i64, i64)| second + offset);
            prop_assert!(shown.iter().zip(system).all(|(shown, system)| *shown >= system * 1_000));
        }
    }
}
