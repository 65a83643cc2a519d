//! Work on a host, together with the grounds on which it may be done.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::drift::runs;
use super::{HostSeen, Observed};
use crate::fleet::DisruptionPermit;
use crate::names::{host, objects};
use crate::protocol::{HostPlan, HostStep, PROTOCOL, Probe};

/// Why work on a host disturbs nobody, or may.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Grounds {
    /// Nothing in it ends or changes what runs.
    Harmless,
    /// There is no Node and none can come, so nothing runs there for the cluster.
    Vacant(Vacancy),
    /// The fleet's budget lets us.
    Permitted(DisruptionPermit),
}

/// Proof that no Node stands for the host and that none can come. Made from an observation only.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Vacancy {
    /// Boot identity of the host when it was looked at.
    since: String,
}

impl Vacancy {
    /// The proof, if there is no Node, nothing on the host can register one, and nothing did so
    /// before a cache would have told.
    ///
    /// Only a kubelet registers Nodes, and only the daemon starts kubelets. Where neither was ever
    /// installed nobody has to be asked.
    pub fn of(observed: &Observed) -> Option<Self> {
        let HostSeen::Probed(probe) = &observed.host else { return None };
        let untouched = probe.services.is_empty() && probe.state.is_none();
        let vacant = observed.node.is_none()
            && (untouched || (observed.node_sought && !may_register(probe)));
        vacant.then(|| Self { since: probe.boot_id.clone() })
    }
}

/// Whether something runs on the host that may bring a Node.
pub(super) fn may_register(probe: &Probe) -> bool {
    [host::KUBELET_SERVICE, objects::WICD].iter().any(|name| runs(probe, name))
}

/// Steps for a host that may be done. The executor takes nothing else.
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
    /// The work, or `None` if a step disturbs and the grounds are [`Grounds::Harmless`].
    pub fn new(steps: Vec<HostStep>, grounds: Grounds) -> Option<Self> {
        let allowed = grounds != Grounds::Harmless || !steps.iter().any(disturbs);
        let vacant_since = match &grounds {
            Grounds::Vacant(vacancy) => Some(vacancy.since.clone()),
            Grounds::Harmless | Grounds::Permitted(_) => None,
        };
        let plan = HostPlan { protocol: PROTOCOL, vacant_since, steps };
        allowed.then_some(Self { plan, grounds })
    }

    /// What the agent is to do.
    pub fn plan(&self) -> &HostPlan {
        &self.plan
    }

    /// Why it may be done.
    pub fn grounds(&self) -> &Grounds {
        &self.grounds
    }

    /// Whether it changes nothing but which keys of ours are let in.
    pub fn only_exchanges_keys(&self) -> bool {
        let is_exchange = |step: &HostStep| matches!(step, HostStep::EnsureAuthorizedKeys { .. });
        self.plan.steps.iter().all(is_exchange)
    }

    /// Whether the host restarts at its end.
    pub fn restarts(&self) -> bool {
        self.plan.steps.contains(&HostStep::Restart)
    }
}

/// Whether a step ends or changes what runs on the host. Placing a file is judged by the planner,
/// which knows whether its readers notice the change.
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
        HostStep::InstallAgent
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
