//! Whether a Machine that is made now would let us in.

use std::time::Duration;

/// The user data of new Machines, as far as our keys are concerned.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::fleet) enum UserData {
    /// They lack a key of ours.
    Due,
    /// They have every key of ours, and were written a moment ago: who changed them may do so again.
    Fresh,
    /// They have had every key of ours for as long as a host may refuse us, and nobody has written them since.
    Settled,
}

/// For how long the user data have been right. If this state is lost, replacements are only delayed.
///
/// Times are those of a monotonic clock with any start. Versions count, not what looks show: what somebody writes may be
/// put right between two looks.
#[derive(Clone, Debug, Default)]
pub(super) struct UserDataSince(pub(super) Option<(String, Duration)>);

impl UserDataSince {
    /// Takes the resource version of the user data, if they have every key of ours.
    pub(super) fn update(&mut self, right: Option<&str>, now: Duration) {
        let before = self.0.take();
        self.0 = right.map(|version| {
            let before = before.filter(|(before, _)| before == version);
            before.unwrap_or_else(|| (version.to_owned(), now))
        });
    }

    /// `patience` is usually [`limits::LOGIN_REFUSED`](crate::limits::LOGIN_REFUSED).
    pub(super) fn state(&self, patience: Duration, now: Duration) -> UserData {
        match &self.0 {
            None => UserData::Due,
            Some((_, since)) if now.saturating_sub(*since) < patience => UserData::Fresh,
            Some(_) => UserData::Settled,
        }
    }

    /// When they will have been right for long enough; `None` if they are, or are not right.
    pub(super) fn next_end(&self, patience: Duration, now: Duration) -> Option<Duration> {
        self.0.as_ref().map(|(_, since)| *since + patience).filter(|end| *end > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(
        since: &mut UserDataSince,
        right: Option<&str>,
        patience: Duration,
        now: Duration,
    ) -> UserData {
        since.update(right, now);
        since.state(patience, now)
    }

    #[test]
    fn they_are_settled_once_they_were_right_for_long_without_a_break() {
        let [begin, half, end] = [0, 150, 300].map(Duration::from_secs);
        let mut since = UserDataSince::default();
        assert_eq!(look(&mut since, Some("1"), end, begin), UserData::Fresh);
        assert_eq!(since.next_end(end, begin), Some(end));
        assert_eq!(look(&mut since, Some("1"), end, end), UserData::Settled);
        assert_eq!(since.next_end(end, end), None);
        // One look at others, and they have to be right for as long again.
        assert_eq!(look(&mut since, None, end, end), UserData::Due);
        assert_eq!(look(&mut since, Some("2"), end, end + half), UserData::Fresh);
        assert_eq!(look(&mut since, Some("2"), end, end + end), UserData::Fresh);
        assert_eq!(since.next_end(end, end + half), Some(end + half + end));
    }

    #[test]
    fn others_that_no_look_has_seen_count_as_well() {
        let [begin, end] = [0, 300].map(Duration::from_secs);
        let mut since = UserDataSince::default();
        assert_eq!(look(&mut since, Some("1"), end, begin), UserData::Fresh);
        // Somebody wrote others, and they were put right before this look.
        assert_eq!(look(&mut since, Some("3"), end, end), UserData::Fresh);
        assert_eq!(since.next_end(end, end), Some(end + end));
    }
}
