//! What the daemon does next, as data.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use wmco_core::names::events;
use wmco_core::winpath::WindowsPath;

use crate::{certs, env, services};

/// What to do now, in order, and when to look again.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[must_use = "a plan does nothing until an executor runs it"]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
    /// What people should know.
    pub notes: Vec<Note>,
    /// When to look again.
    pub next: Next,
}

/// Something that people should know.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Note {
    /// What it is about.
    pub about: About,
    /// One line; never a secret.
    pub text: String,
}

/// What a note is about.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum About {
    /// Certificates that the node is to trust.
    Roots,
    /// The services ConfigMap.
    Manifest,
    /// A service that waits, which is usual on a new node.
    Service,
    /// System-wide variables.
    Variables,
}

/// An action with its reason.
pub type Step = crate::step::Step<Action, Because>;

/// One side effect, or a plan of smaller ones. Idempotent.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "action")]
pub enum Action {
    /// Change variables.
    #[serde(rename_all = "camelCase")]
    Environment {
        /// Which.
        plan: env::Plan,
    },
    /// Change trusted roots.
    #[serde(rename_all = "camelCase")]
    Roots {
        /// Which.
        plan: certs::Plan,
    },
    /// Change services.
    #[serde(rename_all = "camelCase")]
    Services {
        /// Which.
        plan: services::Plan,
    },
    /// Remove a file.
    #[serde(rename_all = "camelCase")]
    RemoveFile {
        /// The file.
        path: WindowsPath,
    },
    /// Set annotations of the own Node.
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
    /// A newer certificate has long been in use.
    CertificateReplaced,
    /// All is as asked for and works.
    Configured,
    /// A change comes into force only when the host restarts.
    RestartNeeded,
    /// Trusted roots are not as asked for.
    RootsDiffer,
    /// Services are not as asked for.
    ServicesDiffer,
    /// Variables are not as asked for.
    VariablesDiffer,
}

/// When to look again. A failed step asks for a growing pause first.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "next")]
pub enum Next {
    /// As soon as the steps are done.
    Now,
    /// When something happens, at the latest at the deadline.
    #[serde(rename_all = "camelCase")]
    Await {
        /// What should happen.
        what: Awaited,
        /// When to look even if it did not.
        #[schemars(with = "String")]
        deadline: Timestamp,
    },
    /// All is well; look whether it still is.
    #[serde(rename_all = "camelCase")]
    Settled {
        /// When to look.
        #[schemars(with = "String")]
        resync: Timestamp,
    },
}

/// What the daemon waits for.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Awaited {
    /// The operator names a version.
    DesiredVersion,
    /// The services ConfigMap of that version is there and good.
    Manifest,
    /// The own Node is there.
    Node,
    /// A service that runs does its work.
    Health,
    /// The own Node is ready.
    NodeReady,
    /// The operator releases this node for the content of the services ConfigMap.
    Release,
    /// The operator restarts the host and takes the request away.
    Restart,
    /// What some services wait for is there.
    Services,
}

impl About {
    /// Reason of the Event that tells people about it, if it is more than a matter of time.
    pub const fn event(self) -> Option<&'static str> {
        match self {
            Self::Roots => Some(events::CERTIFICATE_READ_ERROR),
            Self::Manifest => Some(events::SERVICES_REFUSED),
            Self::Service => None,
            Self::Variables => Some(events::VARIABLE_NOT_IN_FORCE),
        }
    }
}

impl Next {
    /// When to look again, seen from `now`.
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
            Action::RemoveFile { .. } | Action::AnnotateNode { .. } => String::new(),
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
