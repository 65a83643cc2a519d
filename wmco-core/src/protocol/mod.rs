//! What the operator and the agent on a host say to each other.
//!
//! The operator runs [`AgentCommand`]s over SSH. `probe` answers with one [`ReportLine::Probed`];
//! `apply` reads a [`HostPlan`] from a file and streams a [`ReportLine`] per event, the last of them
//! [`ReportLine::Probed`] again, so that acting also observes. Every line is one JSON object.
//!
//! Contents travel beside the plan as zstd files named by the SHA-256 of what is in them, in
//! [`host::STAGING`](crate::names::host::STAGING). No secret and no text of a person is ever on a
//! command line.
//!
//! Below [`host::ROOT`](crate::names::host::ROOT) nothing is run before an agent that was brought in the
//! same connection ([`AgentLocation::Brought`]) has told that only administrators may write there, or
//! did so earlier to an operator that kept it ([`HostRecord`](crate::host_record::HostRecord)).

mod command;
mod fresh;
mod plan;
mod probe;
mod report;
mod services_data;

pub use command::{AgentCommand, AgentLocation, Verb, staged_agent, staged_content, staged_plan};
pub use fresh::{FreshFolder, NotAFreshFolder};
pub use plan::{Access, HostPlan, HostStep};
pub use probe::{
    Agent, FeatureState, FileState, HostState, Probe, Quarantined, RebootReason, RootAccess,
    ServiceFacts, ServiceRunState,
};
pub use report::{ReportError, ReportLine, read_report};
pub use services_data::ServicesData;

/// Version of everything in this module; an agent with another one is replaced.
pub const PROTOCOL: u32 = 1;
