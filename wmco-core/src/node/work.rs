//! Work on a host, with the grounds that allow it.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::drift::runs;
use super::{HostSeen, Observed};
use crate::fleet::DisruptionPermit;
use crate::names::{host, objects};
use crate::protocol::{HostPlan, HostStep, PROTOCOL, Probe};

/// Why work on a host is allowed.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Grounds {
    /// No step ends or changes a running program.
    Harmless,
    /// No Node exists and none can come, so the host runs nothing for the cluster.
    Vacant(Vacancy),
    /// The disruption budget allows it.
    Permitted(DisruptionPermit),
}

/// Proof that the host has no Node and cannot get one. Made from an observation only.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Vacancy {
    /// Boot identity of the host at the probe.
    since: String,
}

impl Vacancy {
    /// Returns the proof if there is no Node, nothing on the host can register one, and nothing did so without
    /// being visible in a cache yet.
    ///
    /// Only a kubelet registers Nodes, and only the daemon starts kubelets. On a host where neither was ever
    /// installed, the API server need not be asked.
    pub fn of(observed: &Observed) -> Option<Self> {
        let HostSeen::Probed(probe) = &observed.host else { return None };
        let untouched = probe.services.is_empty() && probe.state.is_none();
        let vacant = observed.node.is_none()
            && (untouched || (observed.node_sought && !may_register(probe)));
        vacant.then(|| Self { since: probe.boot_id.clone() })
    }
}

/// Whether the host runs a service that may register a Node.
pub(super) fn may_register(probe: &Probe) -> bool {
    [host::KUBELET_SERVICE, objects::WICD].iter().any(|name| runs(probe, name))
}

/// Allowed steps for a host. The executor accepts nothing else.
///
/// ```
/// use wmco_core::node::{Grounds, HostWork};
/// use wmco_core::protocol::HostStep;
///
/// // A restart disturbs, so harmlessness is no ground for it.
/// assert_eq!(HostWork::new(vec![HostStep::Restart], Grounds::Harmless), None);
/// ```
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
pub struct HostWork {
    plan: HostPlan,
    grounds: Grounds,
}

impl HostWork {
    /// Makes the work; `None` if a step disturbs and the grounds are [`Grounds::Harmless`].
    pub fn new(steps: Vec<HostStep>, grounds: Grounds) -> Option<Self> {
        let allowed = grounds != Grounds::Harmless || !steps.iter().any(disturbs);
        let vacant_since = match &grounds {
            Grounds::Vacant(vacancy) => Some(vacancy.since.clone()),
            Grounds::Harmless | Grounds::Permitted(_) => None,
        };
        let plan = HostPlan { protocol: PROTOCOL, vacant_since, steps };
        allowed.then_some(Self { plan, grounds })
    }

    /// The plan for the agent.
    pub fn plan(&self) -> &HostPlan {
        &self.plan
    }

    /// The grounds that allow it.
    pub fn grounds(&self) -> &Grounds {
        &self.grounds
    }

    /// Whether it only changes which of our keys the host accepts.
    pub fn only_exchanges_keys(&self) -> bool {
        let is_exchange = |step: &HostStep| matches!(step, HostStep::EnsureAuthorizedKeys { .. });
        self.plan.steps.iter().all(is_exchange)
    }

    /// Whether it ends with a restart of the host.
    pub fn restarts(&self) -> bool {
        self.plan.steps.contains(&HostStep::Restart)
    }
}

/// Whether a step ends or changes running programs. For files the planner decides, because it knows whether their
/// readers notice the change.
fn disturbs(step: &HostStep) -> bool {
    match step {
        HostStep::RemoveServices { .. }
        | HostStep::RemoveInstallation
        | HostStep::RemoveDirectory { .. }
        | HostStep::RemoveNetwork { .. }
        | HostStep::RemoveDaemon
        | HostStep::EnableContainers
        | HostStep::RenameComputer { .. }
        | HostStep::Bootstrap { .. }
        | HostStep::Restart => true,
        HostStep::JoinCluster { .. }
        | HostStep::InstallAgent
        | HostStep::EnsureDirectory { .. }
        | HostStep::PlaceFile { .. }
        | HostStep::RemoveFile { .. }
        | HostStep::EnsureAuthorizedKeys { .. }
        | HostStep::StopKubelet
        | HostStep::EnsureDaemon { .. } => false,
    }
}

impl fmt::Display for HostWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut counted: Vec<(&str, usize)> = Vec::new();
        for step in &self.plan.steps {
            match counted.iter_mut().find(|(verb, _)| *verb == step.verb()) {
                Some((_, count)) => *count += 1,
                None => counted.push((step.verb(), 1)),
            }
        }
        let mut separator = "";
        for (verb, count) in counted {
            write!(f, "{separator}{verb}")?;
            if count > 1 {
                write!(f, " x{count}")?;
            }
            separator = ", ";
        }
        Ok(())
    }
}
