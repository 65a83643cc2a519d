//! Limits how often the condition is written.

use std::time::Duration;

use super::Condition;
use crate::limits;

/// Delays frequent writes. The start of work is written at once, its end when no work has begun for
/// [`limits::CONDITION_REST`], and a changed list of instances at most once in that time.
///
/// Times are those of a monotonic clock.
///
/// ```
/// use std::time::Duration;
/// use wmco_core::upgradeable::{Condition, Damper};
///
/// let mut damper = Damper::default();
/// let (condition, begun) = (Condition::of(&[]), Duration::ZERO);
/// assert!(damper.due(&condition, begun).is_some_and(|due| due > begun), "work may just begin");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Damper {
    written: Option<(Condition, Duration)>,
    /// The status that is desired but not written yet, with the time since when.
    turned: Option<(bool, Duration)>,
}

impl Damper {
    /// The time at which `wanted` is to be written; `None` if it is written already.
    pub fn due(&mut self, wanted: &Condition, now: Duration) -> Option<Duration> {
        let rest = limits::CONDITION_REST.unsigned_abs();
        match &self.written {
            Some((written, _)) if written == wanted => {
                self.turned = None;
                return None;
            }
            Some((written, at)) if written.upgradeable == wanted.upgradeable => {
                self.turned = None;
                return Some(*at + rest);
            }
            Some(_) | None => {}
        }
        let since = match self.turned {
            Some((to, since)) if to == wanted.upgradeable => since,
            Some(_) | None => now,
        };
        self.turned = Some((wanted.upgradeable, since));
        Some(if wanted.upgradeable { since + rest } else { now })
    }

    /// Records that the object has `condition`.
    pub fn written(&mut self, condition: Condition, now: Duration) {
        (self.written, self.turned) = (Some((condition, now)), None);
    }
}
