//! Waits for the proxy's certificates, which the cluster injects.
//!
//! A node that gets the proxy without the certificates restarts a second time for them. The cluster fills a new
//! ConfigMap within seconds and restores deleted content, so waiting pays; but the cluster may never fill it.

use std::time::Duration;

use super::ProxyTrust;
use crate::limits;
use crate::names::objects::{CA_BUNDLE_KEY, TRUSTED_CA_CONFIG_MAP};

/// Each certificate begins with this.
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";

/// State of the certificates. Losing it only costs waiting time.
///
/// Times are those of a monotonic clock with any start.
///
/// ```
/// use std::time::Duration;
/// use wmco_core::ca_bundle::{Injected, Injection};
///
/// let mut injection = Injection::default();
/// assert_eq!(injection.look(true, false, None, Duration::ZERO), Injected::Awaited);
/// let pem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
/// assert_eq!(injection.look(true, false, Some(pem), Duration::from_secs(1)), Injected::There(pem));
/// // What is gone for a while is no reason to take it from every node.
/// assert_eq!(injection.look(true, false, Some(""), Duration::from_secs(2)), Injected::Lost(pem));
/// assert_eq!(injection.look(false, false, None, Duration::from_secs(3)), Injected::Unneeded);
/// ```
#[derive(Debug, Default)]
pub struct Injection {
    last: Option<String>,
    overdue_at: Option<Duration>,
}

/// The certificates that nodes get with the proxy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Injected<'a> {
    /// No proxy is set.
    Unneeded,
    /// The certificates that the cluster injected.
    There(&'a str),
    /// The certificates that the cluster injected before; the ConfigMap has lost them.
    Lost(&'a str),
    /// Waiting for the certificates.
    Awaited,
    /// The wait is over; no certificates.
    Overdue,
}

impl Injected<'_> {
    /// The certificates that hosts get with the proxy; `None` while they wait for them.
    pub const fn trust(&self) -> Option<ProxyTrust<'_>> {
        match self {
            Self::Unneeded => Some(ProxyTrust::Off),
            Self::There(text) | Self::Lost(text) => Some(ProxyTrust::On(Some(text))),
            Self::Overdue => Some(ProxyTrust::On(Some(""))),
            Self::Awaited => None,
        }
    }

    /// The problem to report, with its effect, and for how long it may last before that.
    pub fn problem(&self) -> Option<(String, Duration)> {
        let (consequence, patience) = match self {
            Self::Unneeded | Self::There(_) => return None,
            Self::Awaited => {
                ("no host is configured or changed for now", limits::INJECTION.unsigned_abs())
            }
            Self::Lost(_) => ("nodes keep those that were in it", Duration::ZERO),
            Self::Overdue => (
                "nodes go through the proxy without the certificates that the cluster trusts",
                Duration::ZERO,
            ),
        };
        let text = format!(
            "ConfigMap {TRUSTED_CA_CONFIG_MAP} has no certificate in {CA_BUNDLE_KEY}, so {consequence}; look why the \
             cluster does not fill it"
        );
        Some((text, patience))
    }
}

impl Injection {
    /// Records at `now` whether nodes use a proxy, whether `some_may_have_them`, the certificates, from an operator
    /// before this one, and those that were `found`.
    pub fn look(
        &mut self,
        uses_proxy: bool,
        some_may_have_them: bool,
        found: Option<&str>,
        now: Duration,
    ) -> Injected<'_> {
        if !uses_proxy {
            *self = Self::default();
            return Injected::Unneeded;
        }
        if let Some(text) = found.filter(|text| text.contains(BEGIN)) {
            self.overdue_at = None;
            if self.last.as_deref() != Some(text) {
                self.last = Some(text.to_owned());
            }
            return self.last.as_deref().map_or(Injected::Awaited, Injected::There);
        }
        if let Some(last) = self.last.as_deref() {
            return Injected::Lost(last);
        }
        let patience = if some_may_have_them { limits::INJECTION_ANEW } else { limits::INJECTION };
        let at = *self.overdue_at.get_or_insert(now + patience.unsigned_abs());
        if at <= now { Injected::Overdue } else { Injected::Awaited }
    }

    /// The time when the wait ends or ended; `None` while nothing is missing.
    pub const fn overdue_at(&self) -> Option<Duration> {
        self.overdue_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = limits::INJECTION.unsigned_abs();
    const A: &str = "-----BEGIN CERTIFICATE-----\na";
    const B: &str = "-----BEGIN CERTIFICATE-----\nb";

    #[test]
    fn waiting_ends() {
        let mut injection = Injection::default();
        assert_eq!(injection.look(true, false, None, LONG), Injected::Awaited);
        assert_eq!(injection.overdue_at(), Some(LONG * 2));
        assert_eq!(injection.look(true, false, Some("no PEM"), LONG + LONG / 2), Injected::Awaited);
        let overdue = injection.look(true, false, None, LONG * 2);
        assert_eq!(overdue, Injected::Overdue);
        assert!(overdue.problem().unwrap().0.contains("without the certificates"));
        assert_eq!(overdue.trust(), Some(ProxyTrust::On(Some(""))), "hosts go on");
        assert_eq!(injection.look(true, false, Some(A), LONG * 3), Injected::There(A));
        assert_eq!(injection.overdue_at(), None);
    }

    /// An operator that starts while the ConfigMap is empty does not know what nodes have.
    #[test]
    fn what_nodes_may_have_is_not_taken_from_them_after_a_minute() {
        let mut injection = Injection::default();
        let look = |injection: &mut Injection, now| {
            injection.look(true, true, None, now) == Injected::Overdue
        };
        assert!(!look(&mut injection, Duration::ZERO) && !look(&mut injection, LONG * 9));
        assert!(look(&mut injection, LONG * 10));
    }

    #[test]
    fn what_was_there_is_kept_until_there_is_another_or_no_proxy() {
        let mut injection = Injection::default();
        let now = Duration::ZERO;
        assert_eq!(injection.look(true, false, Some(A), now), Injected::There(A));
        // A person may write something else than the cluster does.
        for found in [None, Some(""), Some("no PEM")] {
            let lost = injection.look(true, false, found, now + LONG * 9);
            assert_eq!(lost, Injected::Lost(A));
            assert_eq!(lost.trust(), Some(ProxyTrust::On(Some(A))));
            assert!(lost.problem().unwrap().0.contains("nodes keep those"));
        }
        assert_eq!(injection.look(true, false, Some(B), now + LONG * 9), Injected::There(B));
        assert_eq!(injection.look(false, false, Some(B), now + LONG * 9), Injected::Unneeded);
        assert_eq!(injection.look(true, false, None, now + LONG * 9), Injected::Awaited);
    }
}
