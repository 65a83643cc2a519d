//! Decides when a kubelet without a Node is started again, so that it registers.
//!
//! A kubelet registers its Node only when it starts.

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Action, Because, Step};
use crate::facts::NodeFacts;
use crate::limits;
use crate::protocol::{HostStep, Probe};

/// Remembered facts about the registration of one kubelet. A hint: losing it costs at most one start of the
/// kubelet.
#[derive(Clone, Copy, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Registration {
    /// Whether the host has had a Node.
    pub node_seen: bool,
    /// When services were started there, if no Node has come since.
    pub bootstrapped: Option<Timestamp>,
    /// Our starts of the kubelet because its Node was deleted.
    pub starts: Option<Starts>,
}

/// Starts of a kubelet because its Node was deleted.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Starts {
    /// Number of starts in a row.
    pub times: u32,
    /// Time of the last start.
    pub last: Timestamp,
}

impl Registration {
    /// When the kubelet may be started again, if its Node existed and was deleted; `None` if it may never have had
    /// one.
    ///
    /// An earlier Node is remembered, or proven by the daemon's certificate, which is for its Node.
    pub(super) fn again_at(&self, probe: &Probe, now: Timestamp) -> Option<Timestamp> {
        let had_node = self.node_seen || probe.daemon_certificate_valid;
        let starts = self.starts.filter(|starts| now < starts.forgotten_at());
        let paused_until = starts.map(|starts| starts.last + starts.pause());
        let starting_until = self.bootstrapped.map(|at| at + limits::KUBELET_AGAIN);
        had_node.then(|| paused_until.max(starting_until).unwrap_or(now))
    }

    /// The facts to remember after the steps of a plan.
    pub(super) fn after(self, steps: &[Step], now: Timestamp) -> Self {
        let applies = |step: &Step, wanted: fn(&HostStep) -> bool| matches!(&step.action, Action::Apply { work, .. } if work.plan().steps.iter().any(wanted));
        let begins_anew = |step: &Step| {
            matches!(step.because, Because::NodeGone | Because::NodeOverdue)
                && applies(step, |step| *step == HostStep::StopKubelet)
        };
        let bootstraps =
            |step: &Step| applies(step, |step| matches!(step, HostStep::Bootstrap { .. }));
        let before = self.starts.filter(|starts| now < starts.forgotten_at());
        let times = before.map_or(0, |starts| starts.times).saturating_add(1);
        let again = steps.iter().any(begins_anew).then_some(Starts { times, last: now });
        let bootstrapped = steps.iter().any(bootstraps).then_some(now).or(self.bootstrapped);
        Self { starts: again.or(before), bootstrapped, ..self }
    }

    /// Records whether there is a Node.
    pub(super) fn meet(&mut self, node: Option<&NodeFacts>) {
        if node.is_some() {
            (self.node_seen, self.bootstrapped) = (true, None);
        }
    }
}

impl Starts {
    /// How long the kubelet may take to register; doubles with each start.
    fn pause(self) -> SignedDuration {
        let doubled = 2_i32.saturating_pow(self.times.saturating_sub(1));
        let pause = limits::KUBELET_AGAIN.checked_mul(doubled).unwrap_or(limits::NODE_APPEARS);
        pause.min(limits::NODE_APPEARS)
    }

    fn forgotten_at(self) -> Timestamp {
        self.last + limits::NODE_APPEARS * 2
    }
}
