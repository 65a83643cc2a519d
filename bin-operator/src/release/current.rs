//! What hosts get now: rendered anew when the cluster changes.

use std::time::Duration;

use wmco_core::ca_bundle::Injection;
use wmco_core::names::objects::{CA_BUNDLE_KEY, TRUSTED_CA_CONFIG_MAP};

use super::{NotReady, PreparedRelease};
use crate::config::Config;
use crate::payload::Payload;
use crate::problems::{Found, Problem};
use crate::snapshot;
use crate::sources::Sources;

/// What was rendered last, and what hosts need that leave while nothing is.
#[derive(Default)]
pub struct Releases {
    current: Option<PreparedRelease>,
    to_leave: Option<PreparedRelease>,
    injection: Injection,
}

impl Releases {
    /// What hosts get; `None` until the cluster has everything for that.
    pub const fn current(&self) -> Option<&PreparedRelease> {
        self.current.as_ref()
    }

    /// What hosts need that leave, while there is no other.
    pub const fn to_leave(&self) -> Option<&PreparedRelease> {
        self.to_leave.as_ref()
    }

    /// When certificates that come with a proxy are overdue, by the clock that [`refresh`](Self::refresh) is told.
    pub fn overdue_at(&self) -> Option<Duration> {
        self.injection.overdue_at()
    }

    /// Renders what hosts get; while that is not possible, the last rendering stays in force. `is_configured` says whether
    /// some node may have certificates that come with a proxy.
    pub fn refresh(
        &mut self,
        sources: &Sources,
        config: &Config,
        payload: &Payload,
        is_configured: bool,
        now: Duration,
        problems: &mut Found,
    ) {
        match self.render(sources, config, payload, is_configured, now, problems) {
            Ok(Some(release)) => self.current = Some(release),
            Ok(None) => {}
            Err(error) => not_ready(&error, problems),
        }
        let findings = self.current.iter().flat_map(|release| release.findings.iter().cloned());
        problems.extend(findings.map(|text| (Problem::of_settings(text), Duration::ZERO)));
        let last = self.to_leave.take();
        if self.current.is_some() {
            return;
        }
        match PreparedRelease::to_leave(sources, config, payload, last.as_ref()) {
            Ok(release) => self.to_leave = Some(release),
            Err(error) => not_ready(&error, problems),
        }
    }

    /// `None` while the certificates that come with a proxy are waited for, longer where a node `is_configured`.
    fn render(
        &mut self,
        sources: &Sources,
        config: &Config,
        payload: &Payload,
        is_configured: bool,
        now: Duration,
        problems: &mut Found,
    ) -> Result<Option<PreparedRelease>, NotReady> {
        let uses_proxy = snapshot::proxy(sources, config)?.is_enabled();
        let maps = &sources.config_maps;
        let found = snapshot::data(maps, &config.namespace, TRUSTED_CA_CONFIG_MAP);
        let text = found.as_ref().and_then(|data| data.get(CA_BUNDLE_KEY)).map(String::as_str);
        let some_may_have_them = is_configured && self.current.is_none();
        let injected = self.injection.look(uses_proxy, some_may_have_them, text, now);
        let problem = injected.problem();
        problems.extend(problem.map(|(text, patience)| (Problem::of_settings(text), patience)));
        let Some(proxy) = injected.trust() else { return Ok(None) };
        PreparedRelease::render(sources, config, payload, proxy, self.current.as_ref()).map(Some)
    }
}

fn not_ready(error: &NotReady, problems: &mut Found) {
    problems.insert(crate::chain(error).into(), error.patience());
}
