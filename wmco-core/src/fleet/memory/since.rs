//! For how long something has lasted.

use std::collections::BTreeMap;
use std::time::Duration;

/// What lasts, by name: what it is told apart by from another one of that name, and the time of the first look that showed
/// it. If this is lost, work is only delayed.
///
/// Times are those of a monotonic clock with any start.
#[derive(Clone, Debug, Default)]
pub(super) struct Since(pub(super) BTreeMap<String, (String, Duration)>);

impl Since {
    /// Takes all that lasts now, each name with what it is told apart by. One look that does not show it ends it.
    pub(super) fn update<'a>(
        &mut self,
        lasting: impl IntoIterator<Item = (&'a str, &'a str)>,
        now: Duration,
    ) {
        let mut before = std::mem::take(&mut self.0);
        self.0.extend(lasting.into_iter().map(|(name, one)| {
            let known = before.remove_entry(name).filter(|(_, (before, _))| before == one);
            known.unwrap_or_else(|| (name.to_owned(), (one.to_owned(), now)))
        }));
    }

    /// Whether it has lasted for `patience`; `None` if it does not last.
    pub(super) fn has_lasted(&self, name: &str, patience: Duration, now: Duration) -> Option<bool> {
        self.0.get(name).map(|(_, since)| now.saturating_sub(*since) >= patience)
    }

    /// The next time when another one will have lasted for `patience`.
    pub(super) fn next_end(&self, patience: Duration, now: Duration) -> Option<Duration> {
        self.0.values().map(|(_, since)| *since + patience).filter(|end| *end > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(300);

    #[test]
    fn one_look_that_does_not_show_it_begins_the_time_anew() {
        let mut since = Since::default();
        for (looks, lasts) in [(0, true), (1, false), (2, true), (3, true)] {
            let now = WAIT * looks;
            since.update(lasts.then_some(("win", "u-1")), now);
            let has_lasted = since.has_lasted("win", WAIT, now);
            assert_eq!(has_lasted, lasts.then_some(looks == 3), "{looks}");
            let expected = (looks % 3 != 1 && looks < 3).then_some(now + WAIT);
            assert_eq!(since.next_end(WAIT, now), expected, "{looks}");
        }
    }

    /// What somebody writes may be put right between two looks.
    #[test]
    fn another_one_of_the_name_begins_anew() {
        let mut since = Since::default();
        since.update([("win", "u-1"), ("other", "u-3")], Duration::ZERO);
        since.update([("win", "u-2"), ("other", "u-3")], WAIT);
        let lasted = |name: &str, now| since.has_lasted(name, WAIT, now);
        assert_eq!([lasted("win", WAIT), lasted("other", WAIT)], [Some(false), Some(true)]);
        assert_eq!([lasted("win", WAIT * 2), lasted("gone", WAIT)], [Some(true), None]);
        assert_eq!(since.next_end(WAIT, WAIT), Some(WAIT * 2));
    }
}
