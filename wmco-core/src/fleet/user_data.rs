//! Whether a Machine that is made now would let us in.

use std::time::Duration;

/// The user data of new Machines, as far as our keys are concerned.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum UserData {
    /// They lack a key of ours.
    #[default]
    Due,
    /// They have every key of ours, and lacked one a moment ago: who changed them may do so again.
    Fresh,
    /// They have had every key of ours for as long as a host may refuse us, without a break.
    Settled,
}

/// For how long the user data have been right. If this state is lost, replacements are only delayed.
///
/// Times are those of a monotonic clock with any start.
///
/// ```
/// use std::time::Duration;
/// use wmco_core::fleet::{UserData, UserDataSince};
///
/// let [begin, half, end] = [0, 150, 300].map(Duration::from_secs);
/// let mut since = UserDataSince::default();
/// assert_eq!(since.look(true, end, begin), UserData::Fresh);
/// assert_eq!(since.look(true, end, end), UserData::Settled);
/// // One look at other user data, and they have to be right for as long again.
/// assert_eq!(since.look(false, end, end), UserData::Due);
/// assert_eq!(since.look(true, end, end + half), UserData::Fresh);
/// assert_eq!(since.next_end(end, end + half), Some(end + half + end));
/// ```
#[derive(Clone, Debug, Default)]
pub struct UserDataSince(Option<Duration>);

impl UserDataSince {
    /// Notes whether they are right now. `patience` is usually
    /// [`limits::LOGIN_REFUSED`](crate::limits::LOGIN_REFUSED).
    pub fn look(&mut self, are_right: bool, patience: Duration, now: Duration) -> UserData {
        if !are_right {
            self.0 = None;
            return UserData::Due;
        }
        let since = *self.0.get_or_insert(now);
        if now.saturating_sub(since) < patience { UserData::Fresh } else { UserData::Settled }
    }

    /// When they will have been right for long enough; `None` if they are, or are not right.
    pub fn next_end(&self, patience: Duration, now: Duration) -> Option<Duration> {
        self.0.map(|since| since + patience).filter(|end| *end > now)
    }
}
