//! A clock that nobody sets.

use std::ops::Add;
use std::time::Duration;

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
