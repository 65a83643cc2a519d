//! Parts that several plans share.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::work::{Grounds, HostWork};
use super::{Action, Awaited, Because, Desired, Observed, Plan, agent_for_work};
use crate::digest::Sha256;
use crate::limits;
use crate::protocol::{HostStep, Probe, RebootReason};

/// Start of the wait for `what`.
pub(super) fn started(observed: &Observed, what: Awaited, now: Timestamp) -> Timestamp {
    observed.waiting.filter(|waiting| waiting.what == what).map_or(now, |waiting| waiting.since)
}

/// Restarts the host now.
pub(super) fn restart(desired: &Desired, probe: &Probe, grounds: Grounds, now: Timestamp) -> Plan {
    let reasons: Vec<RebootReason> = probe.reboot.iter().copied().collect();
    let because = if reasons.is_empty() {
        Because::RestartAsked
    } else {
        Because::RestartPending { reasons }
    };
    apply((desired, probe), BTreeSet::new(), vec![HostStep::Restart], grounds, because, now)
}

/// Uploads the needed contents and lets the agent carry out the steps.
pub(super) fn apply(
    (desired, probe): (&Desired, &Probe),
    contents: BTreeSet<Sha256>,
    steps: Vec<HostStep>,
    grounds: Grounds,
    because: Because,
    now: Timestamp,
) -> Plan {
    let mut plan = Plan { steps: Vec::new(), next: super::Next::Now };
    if !contents.is_empty() {
        let files = contents.len();
        let upload = Action::Upload(contents.into_iter().collect());
        plan = plan.and(upload, Because::ContentDiffers { files });
    }
    // Disturbing steps come only with grounds that allow them; otherwise wait for a slot.
    match HostWork::new(steps, grounds) {
        Some(work) => {
            let restarts = work.restarts();
            let agent = agent_for_work(desired, probe);
            let plan = plan.and(Action::Apply { agent, work }, because);
            if restarts { plan.until(Awaited::HostBack, now + limits::HOST_BACK) } else { plan }
        }
        None => Plan::wait(Awaited::DisruptionSlot, now + limits::RETRY_MOST),
    }
}

pub(super) fn remove_services(desired: &Desired) -> HostStep {
    HostStep::RemoveServices { manifests: desired.release.known_manifests.clone() }
}
