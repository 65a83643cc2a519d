//! Cleans a host and deletes its Node.

use jiff::Timestamp;

use super::steps::{apply, restart};
use super::vacant::vacated;
use super::work::{Grounds, HostWork};
use super::{Action, Because, Desired, Observed, Plan, Purpose, answering, disrupt};
use crate::fleet::DisruptionPermit;
use crate::names::host;
use crate::protocol::{HostStep, Probe, RootAccess};
use crate::winpath::WindowsPath;

pub(super) fn plan(
    desired: &Desired,
    observed: &Observed,
    permit: Option<&DisruptionPermit>,
    now: Timestamp,
) -> Plan {
    let probe = match answering(desired, observed, now) {
        Ok(probe) => probe,
        Err(plan) => return plan,
    };
    let Some(node) = &observed.node else {
        return without_node(desired, observed, probe, now);
    };
    let Some(permit) = disrupt::usable(permit, node, observed, now) else {
        return disrupt::await_slot(node, observed, now);
    };
    if let Some(plan) =
        disrupt::empty(desired, node, observed, probe, (permit, Purpose::Removal), now)
    {
        return plan;
    }
    if let Some(plan) = disrupt::unmark(desired, node, probe, permit, &Because::Unlisted) {
        return plan;
    }
    let grounds = || Grounds::Permitted(permit.clone());
    if let Some(plan) = clean(desired, probe, grounds, now) {
        return plan;
    }
    // The record is deleted last, because it is the only way to find the host again without a Node.
    let plan = remove_leftovers(observed, grounds());
    forget(plan.and(Action::DeleteNode(permit.clone()), Because::Unlisted), observed)
}

/// Cleans a host whose Node was deleted, or never came, by the host's record.
fn without_node(desired: &Desired, observed: &Observed, probe: &Probe, now: Timestamp) -> Plan {
    vacated(desired, observed, probe, |grounds| {
        clean(desired, probe, || grounds.clone(), now)
            .unwrap_or_else(|| forget(remove_leftovers(observed, grounds.clone()), observed))
    })
}

/// Plans to restore the host's former state; `None` if only leftovers remain.
fn clean(
    desired: &Desired,
    probe: &Probe,
    grounds: impl Fn() -> Grounds,
    now: Timestamp,
) -> Option<Plan> {
    if !is_clean(probe) {
        let mut steps = vec![
            HostStep::RemoveDaemon,
            HostStep::RemoveServices { manifests: desired.release.known_manifests.clone() },
        ];
        let networks = host::HNS_NETWORKS.iter().filter(|name| probe.networks.contains(**name));
        steps.extend(networks.map(|name| HostStep::RemoveNetwork { name: (*name).to_owned() }));
        steps.push(HostStep::RemoveInstallation);
        let nothing = std::collections::BTreeSet::new();
        return Some(apply((desired, probe), nothing, steps, grounds(), Because::Unlisted, now));
    }
    let restart_due = probe.reboot.iter().any(|reason| reason.comes_from_leaving());
    restart_due.then(|| restart(desired, probe, grounds(), now))
}

/// Removes the files that the agent cannot remove itself.
fn remove_leftovers(observed: &Observed, grounds: Grounds) -> Plan {
    let mut plan = Plan { steps: Vec::new(), next: super::Next::Now };
    if observed.known_closed {
        // As soon as the root folder is removed, any user may create it again.
        plan = plan.and(Action::RecordRoot(RootAccess::Open), Because::Unlisted);
    }
    match HostWork::new(vec![HostStep::RemoveInstallation], grounds) {
        Some(work) => plan.and(Action::RemoveLeftovers(work), Because::Unlisted),
        None => plan,
    }
}

fn forget(plan: Plan, observed: &Observed) -> Plan {
    if observed.on_record { plan.and(Action::ForgetHost, Because::Unlisted) } else { plan }
}

/// Whether nothing of ours is left but the agent's own file and the folders around it.
///
/// Outside our root folder the agent's record decides what is ours, because others have files in some of those
/// folders, too.
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
