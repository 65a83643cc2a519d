//! The plan for services, as data.

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use wmco_core::protocol::ServiceRunState;
use wmco_core::winpath::WindowsPath;

use super::Script;
use crate::windows::{ServiceConfig, ServiceName};

/// The steps to take now, in order, and the services that cannot proceed yet.
#[derive(Clone, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[must_use = "a plan does nothing until an executor runs it"]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
    /// Services that wait for something that no step of ours provides.
    pub blocked: Vec<Blocked>,
}

/// An action with its reason.
pub type Step = crate::step::Step<Action, Because>;

/// A single side effect. Idempotent.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "action")]
pub enum Action {
    /// Run the pre-scripts of a service and store their results.
    #[serde(rename_all = "camelCase")]
    RunScripts {
        /// The service.
        service: ServiceName,
        /// The scripts, in order.
        scripts: Vec<Script>,
        /// Files that the service's process reads; if a script changes one, the service restarts.
        watched: Vec<WindowsPath>,
    },
    /// Stop a service.
    #[serde(rename_all = "camelCase")]
    Stop {
        /// The service.
        service: ServiceName,
    },
    /// End left-over processes of a service that does not run: those of its own programs.
    #[serde(rename_all = "camelCase")]
    EndLeftovers {
        /// The service. If it runs after all, nothing is ended.
        service: ServiceName,
        /// The programs.
        programs: BTreeSet<WindowsPath>,
    },
    /// Delete a stopped service.
    #[serde(rename_all = "camelCase")]
    Delete {
        /// The service.
        service: ServiceName,
    },
    /// Create a service, stopped.
    #[serde(rename_all = "camelCase")]
    Create {
        /// The service.
        service: ServiceName,
        /// Its configuration.
        config: ServiceConfig,
    },
    /// Correct all fields of a service at once.
    #[serde(rename_all = "camelCase")]
    Configure {
        /// The service.
        service: ServiceName,
        /// The desired configuration.
        config: ServiceConfig,
    },
    /// Start a service and wait until it runs.
    #[serde(rename_all = "camelCase")]
    Start {
        /// The service.
        service: ServiceName,
        /// Services that the Service Control Manager starts first.
        needs: Vec<ServiceName>,
    },
}

/// Why a step is taken.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "because")]
pub enum Because {
    /// The service does not exist.
    Missing,
    /// The service exists, but differs.
    #[serde(rename_all = "camelCase")]
    Differs {
        /// The differing fields.
        fields: Vec<ServiceField>,
    },
    /// The service has our tag, but is not in the manifest.
    NotInManifest,
    /// The service depends on one that must stop.
    #[serde(rename_all = "camelCase")]
    DependsOnStopped {
        /// The dependency that must stop.
        needs: ServiceName,
    },
    /// The service does not run.
    #[serde(rename_all = "camelCase")]
    NotRunning {
        /// Its current state.
        state: ServiceRunState,
        /// Its last exit code.
        exit_code: u32,
    },
    /// The service's scripts changed a file that its process has read.
    FilesChanged,
    /// A left-over process would run beside the new one.
    ProcessLeft,
    /// The service was stopped for a change.
    StoppedForChange,
    /// All services of the owner are removed.
    Removal,
    /// The host is prepared before a Node may be registered.
    HostWork,
    /// The service's scripts have no usable results yet.
    #[serde(rename_all = "camelCase")]
    ScriptsDue {
        /// The reason.
        reason: ScriptsDue,
    },
}

/// Why scripts run (again).
#[derive(Clone, Copy, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ScriptsDue {
    /// The scripts have not run yet.
    FirstTime,
    /// The scripts' texts have changed.
    Changed,
    /// The scripts' results are old.
    Old,
    /// The scripts failed some time ago.
    Retry,
}

/// A field of a service that we set.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ServiceField {
    /// The account of the process.
    Account,
    /// The command line.
    Command,
    /// The services that it depends on.
    Dependencies,
    /// The description.
    Description,
    /// The display name.
    DisplayName,
    /// The reaction of the host when the service cannot start.
    ErrorControl,
    /// The reaction to a failure of the service.
    Recovery,
    /// Whether it has its own process.
    ServiceType,
    /// The time of its start.
    StartType,
}

/// A service that cannot proceed now.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Blocked {
    /// The service.
    pub service: ServiceName,
    /// What the service waits for and the remedy, in one line; never a secret.
    pub reason: String,
    /// Time of the next attempt without any change; `None`: after a change.
    pub until: Option<Timestamp>,
}

impl Plan {
    /// Whether there are no steps and no blocked services.
    pub fn is_settled(&self) -> bool {
        self.steps.is_empty() && self.blocked.is_empty()
    }
}

impl Action {
    /// Short stable name for logs, metrics and tests.
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::RunScripts { .. } => "run-scripts",
            Self::Stop { .. } => "stop",
            Self::EndLeftovers { .. } => "end-leftovers-of",
            Self::Delete { .. } => "delete",
            Self::Create { .. } => "create",
            Self::Configure { .. } => "configure",
            Self::Start { .. } => "start",
        }
    }

    /// Returns the service of the action.
    pub const fn service(&self) -> &ServiceName {
        match self {
            Self::RunScripts { service, .. }
            | Self::Stop { service }
            | Self::EndLeftovers { service, .. }
            | Self::Delete { service }
            | Self::Create { service, .. }
            | Self::Configure { service, .. }
            | Self::Start { service, .. } => service,
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))?;
        self.blocked.iter().try_for_each(|blocked| {
            writeln!(f, "service {} waits: {}", blocked.service, blocked.reason)
        })
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.action.verb(), self.action.service())?;
        if let Action::EndLeftovers { programs, .. } = &self.action {
            let names: Vec<&str> = programs.iter().map(WindowsPath::file_name).collect();
            write!(f, " ({})", names.join(", "))?;
        }
        write!(f, ", because {}", self.because)
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("it is missing"),
            Self::Differs { fields } => {
                let fields: Vec<&str> = fields.iter().map(|field| field.words()).collect();
                write!(f, "it differs in {}", fields.join(", "))
            }
            Self::NotInManifest => f.write_str("it carries our tag but is not in the manifest"),
            Self::DependsOnStopped { needs } => write!(f, "it needs {needs}, which must stop"),
            Self::NotRunning { state, exit_code } => {
                let state = match state {
                    ServiceRunState::Running => "running",
                    ServiceRunState::Stopped => "stopped",
                    ServiceRunState::Starting => "still starting",
                    ServiceRunState::Stopping => "stopping",
                    ServiceRunState::Paused => "paused",
                };
                write!(f, "it is {state}, last exit code {exit_code}")
            }
            Self::FilesChanged => f.write_str("its scripts changed a file that it has read"),
            Self::ProcessLeft => f.write_str("what it may have left would run beside it"),
            Self::StoppedForChange => f.write_str("it was stopped for the change"),
            Self::Removal => f.write_str("everything of ours is to go"),
            Self::HostWork => f.write_str("its host is worked on"),
            Self::ScriptsDue { reason } => f.write_str(match reason {
                ScriptsDue::FirstTime => "they have not run yet",
                ScriptsDue::Changed => "they read otherwise now",
                ScriptsDue::Old => "what they gave is old",
                ScriptsDue::Retry => "they failed some time ago",
            }),
        }
    }
}

impl Because {
    /// Whether the service must stop before the correction.
    pub(super) fn needs_a_stop(&self) -> bool {
        match self {
            Self::Differs { fields } => fields.iter().any(|field| field.needs_a_stop()),
            Self::Missing
            | Self::NotInManifest
            | Self::DependsOnStopped { .. }
            | Self::NotRunning { .. }
            | Self::FilesChanged
            | Self::ProcessLeft
            | Self::StoppedForChange
            | Self::Removal
            | Self::HostWork
            | Self::ScriptsDue { .. } => true,
        }
    }
}

impl ServiceField {
    /// Whether a change of the field takes effect only after a restart of the service.
    pub(crate) const fn needs_a_stop(self) -> bool {
        match self {
            Self::Account | Self::Command | Self::Dependencies | Self::ServiceType => true,
            Self::Description
            | Self::DisplayName
            | Self::ErrorControl
            | Self::Recovery
            | Self::StartType => false,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Account => "account",
            Self::Command => "command",
            Self::Dependencies => "dependencies",
            Self::Description => "description",
            Self::DisplayName => "display name",
            Self::ErrorControl => "error control",
            Self::Recovery => "recovery",
            Self::ServiceType => "service type",
            Self::StartType => "start type",
        }
    }
}
