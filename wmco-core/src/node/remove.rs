//! Giving a host back and deleting its Node.

use jiff::Timestamp;

use super::configure::{apply, restart};
use super::work::{Grounds, HostWork};
use super::{Action, Awaited, Because, Desired, Observed, Plan, answering, disrupt};
use crate::fleet::DisruptionPermit;
use crate::limits;
use crate::names::host;
use crate::protocol::{HostStep, Probe, RootAccess};
use crate::winpath::WindowsPath;

pub(super) fn plan(
    desired: &Desired,
    observed: &Observed,
    permit: Option<&DisruptionPermit>,
    now: Timestamp,
) -> Plan {
    // Without a Node nothing of it is left to us; the fleet lists no such instance.
    let Some(node) = &observed.node else { return Plan::settled() };
    let probe = match answering(desired, observed) {
        Ok(probe) => probe,
        Err(plan) => return plan,
    };
    let Some(permit) = permit else {
        return Plan::wait(Awaited::DisruptionSlot, now + limits::RESYNC);
    };
    if let Some(plan) = disrupt::empty(node, observed, probe, permit, now) {
        return plan;
    }
    if let Some(plan) = disrupt::unmark(node, probe, permit, &Because::Unlisted) {
        return plan;
    }
    let grounds = || Grounds::Permitted(permit.clone());
    if !is_clean(probe) {
        let mut steps = vec![
            HostStep::RemoveDaemon,
            HostStep::RemoveServices { manifests: desired.known_manifests.clone() },
        ];
        let networks = host::HNS_NETWORKS.iter().filter(|name| probe.networks.contains(**name));
        steps.extend(networks.map(|name| HostStep::RemoveNetwork { name: (*name).to_owned() }));
        steps.push(HostStep::RemoveInstallation);
        return apply(std::collections::BTreeSet::new(), steps, grounds(), Because::Unlisted, now);
    }
    if probe.reboot.iter().any(|reason| reason.comes_from_leaving()) {
        return restart(probe, grounds(), now);
    }
    let mut plan = Plan { steps: Vec::new(), next: super::Next::Now };
    if observed.known_closed {
        // As soon as the root is gone anybody may make it again.
        plan = plan.and(Action::RecordRoot(RootAccess::Open), Because::Unlisted);
    }
    if let Some(work) = HostWork::new(vec![HostStep::RemoveInstallation], grounds()) {
        plan = plan.and(Action::RemoveLeftovers(work), Because::Unlisted);
    }
    if observed.key_in_config_map {
        plan = plan.and(Action::ForgetHostKey, Because::Unlisted);
    }
    plan.and(Action::DeleteNode(permit.clone()), Because::Unlisted)
}

/// Whether nothing of ours is left but the agent's own file and the folders around it.
///
/// Outside our root the record tells what is ours: others have files in some of those folders too.
fn is_clean(probe: &Probe) -> bool {
    let within = |path: &WindowsPath, folder: &str| {
        folder.parse().is_ok_and(|folder: WindowsPath| path.is_within(&folder))
    };
    let ours = |path: &WindowsPath| {
        within(path, host::ROOT)
            && !within(path, host::STAGING)
            && !path.as_str().eq_ignore_ascii_case(host::AGENT)
    };
    probe.services.is_empty()
        && probe.networks.is_empty()
        && probe.environment.is_empty()
        && probe.state.is_none()
        && !probe.files.keys().any(ours)
}
