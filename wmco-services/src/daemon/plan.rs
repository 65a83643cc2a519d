//! The daemon's plan, as data.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use wmco_core::names::events;
use wmco_core::winpath::WindowsPath;

use crate::scripts::METADATA_SERVICE;
use crate::windows::Route;
use crate::{certs, env, services};

/// The steps to take now, in order, and the time of the next pass.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[must_use = "a plan does nothing until an executor runs it"]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
    /// Messages for people.
    pub notes: Vec<Note>,
    /// The time of the next pass.
    pub next: Next,
}

/// A message for people.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Note {
    /// Its subject.
    pub about: About,
    /// The message, in one line; never a secret.
    pub text: String,
}

/// The subject of a note.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum About {
    /// Certificates that the node should trust.
    Roots,
    /// The services ConfigMap.
    Manifest,
    /// The host's routes.
    Routes,
    /// A waiting service, which is usual on a new node.
    Service,
    /// System-wide variables.
    Variables,
}

/// An action with its reason.
pub type Step = crate::step::Step<Action, Because>;

/// A single side effect, or a plan of smaller ones. Idempotent.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "action")]
pub enum Action {
    /// Change variables.
    #[serde(rename_all = "camelCase")]
    Environment {
        /// The changes.
        plan: env::Plan,
    },
    /// Change trusted roots.
    #[serde(rename_all = "camelCase")]
    Roots {
        /// The changes.
        plan: certs::Plan,
    },
    /// Add the route to the metadata service.
    #[serde(rename_all = "camelCase")]
    AddRoute {
        /// The default route whose gateway it uses.
        via: Route,
    },
    /// Change services.
    #[serde(rename_all = "camelCase")]
    Services {
        /// The changes.
        plan: services::Plan,
    },
    /// Remove a file.
    #[serde(rename_all = "camelCase")]
    RemoveFile {
        /// The file.
        path: WindowsPath,
    },
    /// Set annotations of the node's own Node.
    #[serde(rename_all = "camelCase")]
    AnnotateNode {
        /// Names and values.
        annotations: BTreeMap<String, String>,
    },
}

/// Why a step is taken.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Because {
    /// A newer certificate has been in use for long.
    CertificateReplaced,
    /// Everything is as desired and works.
    Configured,
    /// A change takes effect only when the host restarts.
    RestartNeeded,
    /// The host has no route to an address that services use.
    RouteMissing,
    /// Trusted roots are not as desired.
    RootsDiffer,
    /// Services are not as desired.
    ServicesDiffer,
    /// Variables are not as desired.
    VariablesDiffer,
}

/// The time of the next pass. A failed step adds a growing pause before it.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "next")]
pub enum Next {
    /// As soon as the steps are done.
    Now,
    /// When an event occurs, at the latest at the deadline.
    #[serde(rename_all = "camelCase")]
    Await {
        /// The event.
        what: Awaited,
        /// The latest time.
        #[schemars(with = "String")]
        deadline: Timestamp,
    },
    /// Everything is as desired; only check again later.
    #[serde(rename_all = "camelCase")]
    Settled {
        /// The time of that check.
        #[schemars(with = "String")]
        resync: Timestamp,
    },
}

/// Events that the daemon waits for.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Awaited {
    /// The operator sets a desired version.
    DesiredVersion,
    /// A valid services ConfigMap of that version exists.
    Manifest,
    /// The own Node exists.
    Node,
    /// Running services pass their health check.
    Health,
    /// The own Node is ready.
    NodeReady,
    /// The operator releases the content of the services ConfigMap or of the CA bundle for this node.
    Release,
    /// The operator restarts the host and removes the request.
    Restart,
    /// The waiting services can continue.
    Services,
}

impl About {
    /// Reason of the Event to record for the note; `None` if the condition passes with time.
    pub const fn event(self) -> Option<&'static str> {
        match self {
            Self::Roots => Some(events::CERTIFICATE_READ_ERROR),
            Self::Manifest => Some(events::SERVICES_REFUSED),
            Self::Routes | Self::Service => None,
            Self::Variables => Some(events::VARIABLE_NOT_IN_FORCE),
        }
    }
}

impl Next {
    /// Returns the time of the next pass, given the current time.
    pub fn due(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Now => now,
            Self::Await { deadline, .. } => deadline,
            Self::Settled { resync } => resync,
        }
    }
}

impl Action {
    /// Short stable name for logs, metrics and tests.
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::Environment { .. } => "change-variables",
            Self::Roots { .. } => "change-roots",
            Self::AddRoute { .. } => "add-route",
            Self::Services { .. } => "change-services",
            Self::RemoveFile { .. } => "remove-file",
            Self::AnnotateNode { .. } => "annotate-node",
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| fmt::Display::fmt(step, f))?;
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {}", note.text))?;
        match self.next {
            Next::Now => writeln!(f, "then look again at once"),
            Next::Await { what, deadline } => writeln!(f, "then await {what}, until {deadline}"),
            Next::Settled { resync } => writeln!(f, "then all is well, look again at {resync}"),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.action.verb())?;
        match &self.action {
            Action::AddRoute { via } => write!(f, " {METADATA_SERVICE} by {}", via.gateway)?,
            Action::RemoveFile { path } => write!(f, " {path}")?,
            Action::AnnotateNode { annotations } => {
                for (name, value) in annotations {
                    write!(f, " {name}={value:?}")?;
                }
            }
            Action::Environment { .. } | Action::Roots { .. } | Action::Services { .. } => {}
        }
        writeln!(f, ", because {}", self.because)?;
        let inner = match &self.action {
            Action::Environment { plan } => plan.to_string(),
            Action::Roots { plan } => plan.to_string(),
            Action::Services { plan } => plan.to_string(),
            Action::AddRoute { .. } | Action::RemoveFile { .. } | Action::AnnotateNode { .. } => {
                String::new()
            }
        };
        inner.lines().try_for_each(|line| writeln!(f, "  {line}"))
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CertificateReplaced => "a newer certificate has long been in use",
            Self::Configured => "all is as asked for and works",
            Self::RestartNeeded => "a change comes into force only when the host restarts",
            Self::RouteMissing => "services ask there and the host has no route to it",
            Self::RootsDiffer => "trusted roots are not as asked for",
            Self::ServicesDiffer => "services are not as asked for",
            Self::VariablesDiffer => "variables are not as asked for",
        })
    }
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DesiredVersion => "a desired version",
            Self::Health => "services to answer",
            Self::Manifest => "the services ConfigMap",
            Self::Node => "the node",
            Self::NodeReady => "the node to be ready",
            Self::Release => "the release of other services",
            Self::Restart => "the restart of the host",
            Self::Services => "what services wait for",
        })
    }
}
