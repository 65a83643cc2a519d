//! Protects work on a host without a Node from a Node that is registered meanwhile.

use jiff::Timestamp;
use wmco_core::names::host;
use wmco_core::protocol::{HostPlan, ServiceRunState};

use super::{AgentError, install};
use crate::lifecycle::{LifecycleError, problems};
use crate::owner::Owner;
use crate::services::{self, ScriptResults};
use crate::windows::{ServiceName, Windows};

/// Refuses a plan for a host without a Node if one may have been registered since the operator looked: a kubelet
/// registers its Node when it starts.
pub(super) fn check(windows: &dyn Windows, plan: &HostPlan) -> Result<(), AgentError> {
    let Some(since) = &plan.vacant_since else { return Ok(()) };
    if windows.machine().boot_id()? != *since {
        return Err(AgentError::NotVacant { why: "the host has restarted" });
    }
    let kubelet = windows.services().query(&kubelet()?)?;
    match kubelet.map(|service| service.state) {
        None | Some(ServiceRunState::Stopped | ServiceRunState::Stopping) => Ok(()),
        Some(ServiceRunState::Running | ServiceRunState::Starting | ServiceRunState::Paused) => {
            Err(AgentError::NotVacant { why: "a kubelet runs" })
        }
    }
}

/// Stops the daemon, which starts kubelets, then the kubelet with its dependents. Containers keep running.
pub(super) fn stop_kubelet(windows: &dyn Windows) -> Result<bool, AgentError> {
    install::stop_daemon(windows)?;
    let plan = services::stop(Owner::ours(), &kubelet()?, &windows.services().list()?);
    // Such a plan runs no script, so the time does not matter.
    let done = services::execute(
        &plan,
        windows,
        &mut ScriptResults::new(),
        Timestamp::UNIX_EPOCH,
        &|| true,
    );
    if done.failures.is_empty() {
        Ok(done.changed)
    } else {
        let problems = problems(&done.failures).collect();
        Err(LifecycleError::Services { problems }.into())
    }
}

fn kubelet() -> Result<ServiceName, AgentError> {
    Ok(host::KUBELET_SERVICE.parse()?)
}
