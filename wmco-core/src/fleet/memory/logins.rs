//! Hosts that refuse logins or do not answer.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::time::Duration;

use crate::digest::Sha256;
use crate::limits;
use crate::login_keys::LoginKeys;

/// Hosts that refuse our keys or do not answer, with the duration. If this state is lost, work is only delayed.
///
/// Times are those of a monotonic clock with any start.
#[derive(Clone, Debug, Default)]
pub(super) struct Logins {
    failed: BTreeMap<String, Failed>,
    /// Time of the last successful login to any host.
    accepted: Option<Duration>,
}

/// The address and the keys of a login attempt. Another address or other keys make it another attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LoginTry {
    /// The address of the host.
    pub at: Ipv4Addr,
    /// The [id](crate::login_keys::LoginKeys::id) of the keys that were offered.
    pub keys: Sha256,
}

/// Result of the login.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LoginResult {
    /// The host accepted a key.
    Accepted,
    /// The host refused every key.
    Refused,
    /// The host did not answer.
    Unanswered,
}

/// Failed attempts since the last success.
#[derive(Clone, Copy, Debug)]
struct Failed {
    login: LoginTry,
    refused: Option<Failures>,
    unanswered: Option<Failures>,
}

/// Attempts that failed alike, without one that ended otherwise between them.
#[derive(Clone, Copy, Debug)]
struct Failures {
    first: Duration,
    last: Duration,
    /// For how long they prove it. Each after the first proves the time that it took, and no more than the
    /// [longest pause](limits::RETRY_MOST) before it: while nobody tried, nothing is known.
    proven: Duration,
}

impl Logins {
    /// Records the result of a login to the host of this instance.
    pub(super) fn note(
        &mut self,
        instance: &str,
        login: LoginTry,
        result: LoginResult,
        tried: &Range<Duration>,
    ) {
        let known = self.failed.get(instance).filter(|failed| failed.login == login);
        let refused = known.and_then(|failed| failed.refused);
        let unanswered = known.and_then(|failed| failed.unanswered);
        let failed = match result {
            LoginResult::Accepted => {
                self.failed.remove(instance);
                self.accepted = Some(tried.end);
                return;
            }
            LoginResult::Refused => {
                Failed { login, refused: Some(Failures::with(refused, tried)), unanswered: None }
            }
            // The refusal still stands, and this tells nothing of it.
            LoginResult::Unanswered => {
                Failed { login, refused, unanswered: Some(Failures::with(unanswered, tried)) }
            }
        };
        self.failed.insert(instance.to_owned(), failed);
    }

    /// Notes that all logins to the hosts of these instances have ended like this, as long as anybody knows.
    pub(super) fn have_failed(
        &mut self,
        instances: impl IntoIterator<Item = String>,
        result: LoginResult,
    ) {
        let login = LoginTry { at: Ipv4Addr::UNSPECIFIED, keys: LoginKeys::id(&[]) };
        let ever = Failures { first: Duration::ZERO, last: Duration::MAX, proven: Duration::MAX };
        let ever = |failed| (result == failed).then_some(ever);
        let [refused, unanswered] = [LoginResult::Refused, LoginResult::Unanswered].map(ever);
        let failed = Failed { login, refused, unanswered };
        self.failed.append(&mut instances.into_iter().map(|instance| (instance, failed)).collect());
    }

    /// Forgets instances that are no longer `known`, or that are now tried with another address or other keys.
    pub(super) fn keep_only(&mut self, known: impl Fn(&str, LoginTry) -> bool) {
        self.failed.retain(|instance, failed| known(instance, failed.login));
    }

    /// Whether the host of an instance has refused every key for at least `patience`, at every answer in between; usually
    /// [`limits::LOGIN_REFUSED`].
    pub(super) fn is_refused(&self, instance: &str, patience: Duration) -> bool {
        let refused = self.failed.get(instance).and_then(|failed| failed.refused);
        refused.is_some_and(|refused| refused.proven >= patience)
    }

    /// Whether the host of an instance has not answered for at least `patience`, usually
    /// [`limits::ROTATION_PATIENCE`](crate::limits::ROTATION_PATIENCE), while another host accepted a login:
    /// otherwise our own network may be down.
    pub(super) fn is_unanswered(&self, instance: &str, patience: Duration) -> bool {
        let unanswered = self.failed.get(instance).and_then(|failed| failed.unanswered);
        let alone = |since: Duration| self.accepted.is_some_and(|accepted| accepted >= since);
        unanswered.is_some_and(|it| it.proven >= patience && alone(it.first))
    }
}

impl Failures {
    fn with(before: Option<Self>, tried: &Range<Duration>) -> Self {
        let Range { start, end } = *tried;
        let Some(before) = before else {
            return Self { first: end, last: end, proven: Duration::ZERO };
        };
        let pause = start.saturating_sub(before.last).min(limits::RETRY_MOST.unsigned_abs());
        let proven = before.proven + pause + end.saturating_sub(start.max(before.last));
        Self { last: end, proven, ..before }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = limits::RETRY_MOST.unsigned_abs();

    fn login(address: u8, keys: &[u8]) -> LoginTry {
        LoginTry { at: [10, 0, 128, address].into(), keys: Sha256::of(keys) }
    }

    /// An attempt that takes no time, after so many pauses.
    fn at(pauses: u32) -> Range<Duration> {
        WAIT * pauses..WAIT * pauses
    }

    #[test]
    fn another_key_or_host_is_tried_as_long_again() {
        for other in [login(1, b"b"), login(2, b"a")] {
            let mut logins = Logins::default();
            let mut refused =
                |login, now| logins.note("win", login, LoginResult::Refused, &at(now));
            refused(login(1, b"a"), 0);
            refused(other, 1);
            assert!(!logins.is_refused("win", WAIT), "{other:?}");
            logins.note("win", other, LoginResult::Refused, &at(2));
            assert!(logins.is_refused("win", WAIT));
        }
    }

    #[test]
    fn who_is_not_known_any_more_is_forgotten() {
        let mut logins = Logins::default();
        for now in [0, 1] {
            for (name, address) in [("a", 1), ("b", 2)] {
                logins.note(name, login(address, b"a"), LoginResult::Refused, &at(now));
            }
        }
        logins.keep_only(|instance, login| instance == "b" && login.keys == Sha256::of(b"a"));
        assert_eq!(["a", "b"].map(|name| logins.is_refused(name, WAIT)), [false, true]);
    }

    /// As without pinned keys, or while a host is busy.
    #[test]
    fn time_in_which_nobody_tries_proves_nothing() {
        let (win, other) = (login(1, b"a"), login(2, b"a"));
        for result in [LoginResult::Refused, LoginResult::Unanswered] {
            let mut logins = Logins::default();
            let failing = |logins: &Logins, after| match result {
                LoginResult::Refused => logins.is_refused("win", after),
                _ => logins.is_unanswered("win", after),
            };
            for (after, now) in [(WAIT, 0), (WAIT, 1), (WAIT * 2, 60), (WAIT * 3, 61)] {
                assert!(!failing(&logins, after), "{result:?}, {now}");
                logins.note("win", win, result, &at(now));
                logins.note("other", other, LoginResult::Accepted, &at(now));
            }
            assert!(failing(&logins, WAIT * 3));
        }
    }

    /// With a connect timeout of ten minutes, say.
    #[test]
    fn an_attempt_proves_the_time_that_it_takes() {
        let mut logins = Logins::default();
        let result = LoginResult::Unanswered;
        for tried in [at(0), WAIT..WAIT * 11, WAIT * 12..WAIT * 22] {
            assert!(!logins.is_unanswered("win", WAIT * 22), "{tried:?}");
            logins.note("win", login(1, b"a"), result, &tried);
            logins.note("other", login(2, b"a"), LoginResult::Accepted, &tried);
        }
        assert!(logins.is_unanswered("win", WAIT * 22));
    }

    /// A restart of a host that refuses our key does not restart the measured time.
    #[test]
    fn no_answer_is_no_refusal_and_no_login() {
        use LoginResult::{Refused, Unanswered};
        let mut logins = Logins::default();
        let tries = [(Refused, 0), (Refused, 1), (Unanswered, 2), (Unanswered, 3), (Refused, 4)];
        for (result, now) in tries {
            assert!(!logins.is_refused("win", WAIT * 2));
            logins.note("win", login(1, b"a"), result, &at(now));
            logins.note("other", login(2, b"a"), LoginResult::Accepted, &at(now));
            assert_eq!(logins.is_unanswered("win", WAIT), now == 3, "{now}");
        }
        assert!(logins.is_refused("win", WAIT * 2));
        logins.note("win", login(1, b"a"), LoginResult::Accepted, &at(5));
        assert!(!logins.is_refused("win", Duration::ZERO));
    }

    /// For a host that was reached before, it is unknown whether it still could be.
    #[test]
    fn nobody_is_alone_without_an_answer_while_nobody_else_is_reached() {
        let mut logins = Logins::default();
        let mut note = |name, result, now| logins.note(name, login(1, b"a"), result, &at(now));
        note("other", LoginResult::Accepted, 1);
        note("win", LoginResult::Unanswered, 2);
        note("win", LoginResult::Unanswered, 4);
        assert!(!logins.is_unanswered("win", WAIT));
        logins.note("other", login(2, b"a"), LoginResult::Accepted, &at(5));
        assert!(logins.is_unanswered("win", WAIT));
    }
}
