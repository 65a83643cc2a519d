//! Hosts that refuse our key.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;

use crate::digest::Sha256;

/// Which hosts have refused our key, and for how long. Losing it only delays.
///
/// Times are those of a clock that never goes back, since any moment.
///
/// ```
/// use std::time::Duration;
/// use wmco_core::digest::Sha256;
/// use wmco_core::fleet::{LoginTry, Refusals};
///
/// let (mut refusals, key) = (Refusals::default(), Sha256::of(b"public key"));
/// let patience = wmco_core::limits::LOGIN_REFUSED.unsigned_abs();
/// let login = LoginTry { at: [10, 0, 128, 1].into(), key };
/// for minutes in [0, 5] {
///     assert!(refusals.lasting(patience).is_empty());
///     refusals.refused("win-x7k2p_machine", login, Duration::from_secs(60 * minutes));
/// }
/// assert!(refusals.lasting(patience).contains("win-x7k2p_machine"));
/// refusals.accepted("win-x7k2p_machine");
/// assert!(refusals.lasting(patience).is_empty());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Refusals(BTreeMap<String, Refusal>);

/// Where somebody tried to log in, and with which key. Another address or another key is another try.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LoginTry {
    /// The address of the host.
    pub at: Ipv4Addr,
    /// Hash of the public key.
    pub key: Sha256,
}

#[derive(Clone, Copy, Debug)]
struct Refusal {
    login: LoginTry,
    first: Duration,
    last: Duration,
}

impl Refusals {
    /// The host of this instance refused our key.
    pub fn refused(&mut self, instance: &str, login: LoginTry, now: Duration) {
        let new = Refusal { login, first: now, last: now };
        let refusal = self.0.entry(instance.to_owned()).or_insert(new);
        if refusal.login == login {
            refusal.last = now;
        } else {
            *refusal = new;
        }
    }

    /// The host of this instance let us in.
    pub fn accepted(&mut self, instance: &str) {
        self.0.remove(instance);
    }

    /// Forgets instances that are not `known` any more, or are tried otherwise by now.
    pub fn keep_only(&mut self, known: impl Fn(&str, LoginTry) -> bool) {
        self.0.retain(|instance, refusal| known(instance, refusal.login));
    }

    /// Instances whose hosts have refused it for so long, at the first and at the last try and whenever
    /// they were tried in between; mostly [`limits::LOGIN_REFUSED`](crate::limits::LOGIN_REFUSED).
    pub fn lasting(&self, patience: Duration) -> BTreeSet<String> {
        let is_lasting = |refusal: &Refusal| refusal.last.saturating_sub(refusal.first) >= patience;
        let lasting = self.0.iter().filter(|(_, refusal)| is_lasting(refusal));
        lasting.map(|(instance, _)| instance.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(300);

    fn login(address: u8, key: &[u8]) -> LoginTry {
        LoginTry { at: [10, 0, 128, address].into(), key: Sha256::of(key) }
    }

    #[test]
    fn another_key_or_host_is_tried_as_long_again() {
        for other in [login(1, b"b"), login(2, b"a")] {
            let mut refusals = Refusals::default();
            refusals.refused("win", login(1, b"a"), Duration::ZERO);
            refusals.refused("win", other, WAIT);
            assert!(refusals.lasting(WAIT).is_empty(), "{other:?}");
            refusals.refused("win", other, WAIT * 2);
            assert_eq!(refusals.lasting(WAIT), ["win".to_owned()].into());
        }
    }

    #[test]
    fn who_is_not_known_any_more_is_forgotten() {
        let mut refusals = Refusals::default();
        for now in [Duration::ZERO, WAIT] {
            refusals.refused("a", login(1, b"a"), now);
            refusals.refused("b", login(2, b"a"), now);
        }
        refusals.keep_only(|instance, login| instance == "b" && login.key == Sha256::of(b"a"));
        assert_eq!(refusals.lasting(WAIT), ["b".to_owned()].into());
    }
}
