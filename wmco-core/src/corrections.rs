//! Objects that somebody else changes again and again: how long the next correction waits.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::digest::Sha256;
use crate::limits::{CORRECTION_AGAIN, CORRECTION_FIRST, CORRECTION_MOST};

/// Counts corrections, by object. Times are those of a monotonic clock with any start.
///
/// ```
/// use std::time::Duration;
/// use wmco_core::corrections::Corrections;
/// use wmco_core::digest::Sha256;
///
/// let mut corrections = Corrections::default();
/// let (object, wanted) = ("Secret windows-user-data", Sha256::of(b"text"));
/// for second in 0..2 {
///     corrections.note(object, wanted, Duration::from_secs(second));
///     assert_eq!(corrections.rests_until(object), None);
/// }
/// // The first wrote what is wanted, so this is the second correction.
/// corrections.note(object, wanted, Duration::from_secs(2));
/// assert_eq!(corrections.rests_until(object), Some(Duration::from_secs(12)));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Corrections(BTreeMap<String, Streak>);

/// Corrections of one object in quick succession.
#[derive(Clone, Copy, Debug)]
struct Streak {
    count: u32,
    last: Duration,
    wanted: Sha256,
}

impl Streak {
    /// What the next one waits for after the last.
    fn pause(self) -> Duration {
        match self.count.checked_sub(2) {
            None => Duration::ZERO,
            Some(earlier) => {
                let doubled = CORRECTION_FIRST.checked_mul(2_u32.saturating_pow(earlier));
                doubled.map_or(CORRECTION_MOST, |pause| pause.min(CORRECTION_MOST))
            }
        }
    }

    /// When it is over, unless there is another one.
    fn ends_at(self) -> Duration {
        self.last + self.pause() + CORRECTION_AGAIN
    }
}

impl Corrections {
    /// Notes that the object was written, and returns the number of corrections in quick succession: writes of what was
    /// `wanted` before, too.
    pub fn note(&mut self, object: &str, wanted: Sha256, now: Duration) -> u32 {
        let before = self.0.get(object);
        let before = before.filter(|streak| streak.wanted == wanted && now <= streak.ends_at());
        let count = before.map_or(0, |streak| streak.count.saturating_add(1));
        self.0.insert(object.to_owned(), Streak { count, last: now, wanted });
        count
    }

    /// When the object may be corrected again; `None` if nothing holds that up.
    pub fn rests_until(&self, object: &str) -> Option<Duration> {
        let streak = self.0.get(object)?;
        let pause = streak.pause();
        (!pause.is_zero()).then(|| streak.last + pause)
    }

    /// Forgets objects that nobody has changed for a while.
    pub fn forget_calm(&mut self, now: Duration) {
        self.0.retain(|_, streak| now <= streak.ends_at());
    }

    /// Whether nothing was written that is still remembered.
    pub fn is_calm(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the object was corrected a moment ago.
    pub fn is_remembered(&self, object: &str) -> bool {
        self.0.contains_key(object)
    }

    /// Whether somebody changes the object again and again.
    pub fn is_contended(&self, object: &str) -> bool {
        self.rests_until(object).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> Sha256 {
        Sha256::of(b"wanted")
    }

    #[test]
    fn what_we_want_anew_is_no_correction() {
        let mut corrections = Corrections::default();
        for version in 0..100 {
            corrections.note("a", Sha256::of(&[version]), Duration::ZERO);
            assert!(!corrections.is_contended("a"));
        }
    }

    /// Somebody changes it back at once, for so long.
    fn contended(long: Duration) -> usize {
        let (mut corrections, mut now, mut count) = (Corrections::default(), Duration::ZERO, 0);
        while now < long {
            corrections.note("a", wanted(), now);
            count += 1;
            now = corrections.rests_until("a").unwrap_or(now).max(now + Duration::from_millis(20));
        }
        count
    }

    #[test]
    fn pauses_grow_up_to_ten_minutes() {
        assert_eq!(contended(Duration::from_secs(10)), 3);
        assert_eq!(contended(Duration::from_secs(3_600)), 13);
        assert_eq!(contended(Duration::from_secs(24 * 3_600)), 151);
    }

    #[test]
    fn a_correction_after_a_calm_minute_is_the_first_again() {
        let (mut corrections, minute) = (Corrections::default(), Duration::from_secs(61));
        for round in 0..100 {
            assert_eq!(corrections.note("a", wanted(), minute * round), 0);
            assert!(!corrections.is_contended("a"));
        }
        corrections.forget_calm(minute * 200);
        assert!(corrections.is_calm());
    }

    #[test]
    fn one_object_holds_up_no_other() {
        let mut corrections = Corrections::default();
        for _ in 0..5 {
            corrections.note("a", wanted(), Duration::ZERO);
        }
        assert!(corrections.is_contended("a") && !corrections.is_contended("b"));
    }
}
