//! What to do about services, as data.

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use wmco_core::protocol::ServiceRunState;
use wmco_core::winpath::WindowsPath;

use super::Script;
use crate::windows::{ServiceConfig, ServiceName};

/// What to do now, in order, and what cannot be done yet.
#[derive(Clone, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[must_use = "a plan does nothing until an executor runs it"]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
    /// Services that wait for something that no step of ours brings about.
    pub blocked: Vec<Blocked>,
}

/// An action with its reason.
pub type Step = crate::step::Step<Action, Because>;

/// One side effect. Idempotent.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "action")]
pub enum Action {
    /// Run the pre-scripts of a service and keep what they give.
    #[serde(rename_all = "camelCase")]
    RunScripts {
        /// The service.
        service: ServiceName,
        /// The scripts, in order.
        scripts: Vec<Script>,
        /// Files that the service's process reads; when the scripts change one, it starts anew.
        watched: Vec<WindowsPath>,
    },
    /// Stop a service.
    #[serde(rename_all = "camelCase")]
    Stop {
        /// The service.
        service: ServiceName,
    },
    /// End what is left of a service that does not run: processes of programs that are its own.
    #[serde(rename_all = "camelCase")]
    EndLeftovers {
        /// The service. When it runs after all, nothing is ended.
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
        /// How.
        config: ServiceConfig,
    },
    /// Correct everything about a service at once.
    #[serde(rename_all = "camelCase")]
    Configure {
        /// The service.
        service: ServiceName,
        /// How it shall be.
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
    /// The service is not there.
    Missing,
    /// The service is there, but otherwise.
    #[serde(rename_all = "camelCase")]
    Differs {
        /// In what.
        fields: Vec<ServiceField>,
    },
    /// It carries our tag, but the manifest does not have it.
    NotInManifest,
    /// It needs a service that must stop.
    #[serde(rename_all = "camelCase")]
    NeedsAStoppedOne {
        /// One that it needs and that must stop.
        needs: ServiceName,
    },
    /// It does not run.
    #[serde(rename_all = "camelCase")]
    NotRunning {
        /// What it does instead.
        state: ServiceRunState,
        /// The code that it ended with last.
        exit_code: u32,
    },
    /// Its scripts changed a file that it has read.
    FilesChanged,
    /// A process that it may have left behind would run beside the new one.
    NotTwice,
    /// It was stopped above.
    StoppedForTheChange,
    /// Everything of ours is to go.
    Removal,
    /// The host is worked on before a Node may come.
    HostWork,
    /// Its scripts have given nothing yet that can still be used.
    #[serde(rename_all = "camelCase")]
    ScriptsDue {
        /// Why not.
        reason: ScriptsDue,
    },
}

/// Why scripts run (again).
#[derive(Clone, Copy, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ScriptsDue {
    /// They have not run yet.
    FirstTime,
    /// They read otherwise now.
    Changed,
    /// What they gave is old.
    Old,
    /// They failed some time ago.
    Retry,
}

/// Something of a service that we decide.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ServiceField {
    /// The account that it runs as.
    Account,
    /// The command line.
    Command,
    /// The services that it needs.
    Dependencies,
    /// The description.
    Description,
    /// The name that people see.
    DisplayName,
    /// What the host does when it cannot start the service.
    ErrorControl,
    /// What happens when it fails.
    Recovery,
    /// Whether it has a process of its own.
    ServiceType,
    /// When it starts.
    StartType,
}

/// A service that cannot be brought further now.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Blocked {
    /// The service.
    pub service: ServiceName,
    /// One line: what it waits for and what to do; never a secret.
    pub reason: String,
    /// When it is tried again though nothing has changed; without it, when what it waits for comes.
    pub until: Option<Timestamp>,
}

impl Plan {
    /// Whether there is nothing to do and nothing to wait for.
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

    /// The service that it is about.
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
            Self::NeedsAStoppedOne { needs } => write!(f, "it needs {needs}, which must stop"),
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
            Self::NotTwice => f.write_str("what it may have left would run beside it"),
            Self::StoppedForTheChange => f.write_str("it was stopped for the change"),
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
    /// Whether a service must stop before it can be put right.
    pub(super) fn needs_a_stop(&self) -> bool {
        match self {
            Self::Differs { fields } => fields.iter().any(|field| field.needs_a_stop()),
            Self::Missing
            | Self::NotInManifest
            | Self::NeedsAStoppedOne { .. }
            | Self::NotRunning { .. }
            | Self::FilesChanged
            | Self::NotTwice
            | Self::StoppedForTheChange
            | Self::Removal
            | Self::HostWork
            | Self::ScriptsDue { .. } => true,
        }
    }
}

impl ServiceField {
    /// Whether it comes into force only when the service starts anew.
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
