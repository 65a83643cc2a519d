//! Waits for the proxy's certificates, which the cluster injects.
//!
//! A node that gets the proxy without the certificates restarts a second time for them. The cluster fills a new
//! ConfigMap within seconds and restores deleted content, so waiting pays; but the cluster may never fill it.

use std::time::Duration;

use crate::limits;
use crate::names::objects::{CA_BUNDLE_KEY, TRUSTED_CA_CONFIG_MAP};

/// State of the certificates. Losing it only costs waiting time.
///
/// Times are those of a monotonic clock with any start.
///
/// ```
/// use std::time::Duration;
/// use wmco_core::ca_bundle::{Injected, Injection};
///
/// let mut injection = Injection::default();
/// assert_eq!(injection.look(true, None, Duration::ZERO), Injected::Awaited);
/// assert_eq!(injection.look(true, Some("PEM"), Duration::from_secs(1)), Injected::There("PEM"));
/// // What is gone for a while is no reason to take it from every node.
/// assert_eq!(injection.look(true, Some(""), Duration::from_secs(2)), Injected::Lost("PEM"));
/// assert_eq!(injection.look(false, None, Duration::from_secs(3)), Injected::Unneeded);
/// ```
#[derive(Debug, Default)]
pub struct Injection {
    last: Option<String>,
    missing_since: Option<Duration>,
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
    /// The problem to report, with its effect.
    pub fn problem(&self) -> Option<String> {
        let consequence = match self {
            Self::Unneeded | Self::There(_) | Self::Awaited => return None,
            Self::Lost(_) => "nodes keep those that were in it",
            Self::Overdue => {
                "nodes go through the proxy without the certificates that the cluster trusts"
            }
        };
        Some(format!(
            "ConfigMap {TRUSTED_CA_CONFIG_MAP} has no {CA_BUNDLE_KEY}, so {consequence}; look why the cluster \
             does not fill it"
        ))
    }
}

impl Injection {
    /// Records at `now` whether nodes use a proxy, and the certificates that were `found`.
    pub fn look(&mut self, uses_proxy: bool, found: Option<&str>, now: Duration) -> Injected<'_> {
        if !uses_proxy {
            *self = Self::default();
            return Injected::Unneeded;
        }
        if let Some(text) = found.filter(|text| !text.trim().is_empty()) {
            self.missing_since = None;
            if self.last.as_deref() != Some(text) {
                self.last = Some(text.to_owned());
            }
            return self.last.as_deref().map_or(Injected::Awaited, Injected::There);
        }
        if let Some(last) = self.last.as_deref() {
            return Injected::Lost(last);
        }
        self.missing_since.get_or_insert(now);
        if self.overdue_at().is_some_and(|at| at <= now) {
            Injected::Overdue
        } else {
            Injected::Awaited
        }
    }

    /// The time when the wait ends or ended; `None` while nothing is missing.
    pub fn overdue_at(&self) -> Option<Duration> {
        Some(self.missing_since? + limits::INJECTION.unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = limits::INJECTION.unsigned_abs();

    #[test]
    fn waiting_ends() {
        let mut injection = Injection::default();
        assert_eq!(injection.look(true, None, LONG), Injected::Awaited);
        assert_eq!(injection.overdue_at(), Some(LONG * 2));
        assert_eq!(injection.look(true, Some(" \n"), LONG + LONG / 2), Injected::Awaited);
        let overdue = injection.look(true, None, LONG * 2);
        assert_eq!(overdue, Injected::Overdue);
        assert!(overdue.problem().unwrap().contains("without the certificates"));
        assert_eq!(injection.look(true, Some("a"), LONG * 3), Injected::There("a"));
        assert_eq!(injection.overdue_at(), None);
    }

    #[test]
    fn what_was_there_is_kept_until_there_is_another_or_no_proxy() {
        let mut injection = Injection::default();
        let now = Duration::ZERO;
        assert_eq!(injection.look(true, Some("a"), now), Injected::There("a"));
        let lost = injection.look(true, None, now + LONG * 9);
        assert_eq!(lost, Injected::Lost("a"));
        assert!(lost.problem().unwrap().contains("nodes keep those"));
        assert_eq!(injection.look(true, Some("b"), now + LONG * 9), Injected::There("b"));
        assert_eq!(injection.look(false, Some("b"), now + LONG * 9), Injected::Unneeded);
        assert_eq!(injection.look(true, None, now + LONG * 9), Injected::Awaited);
    }
}
