//! Messages between the operator and the agent on a host.
//!
//! The operator runs [`AgentCommand`]s over SSH. `probe` answers with one [`ReportLine::Probed`]; `apply` reads a
//! [`HostPlan`] from a file and streams a [`ReportLine`] per event, the last of them [`ReportLine::Probed`] again,
//! so that every change is also observed. Every line is a JSON object.
//!
//! Contents are uploaded beside the plan as zstd files named by the SHA-256 of the uncompressed content, in
//! [`host::STAGING`](crate::names::host::STAGING). No secret and no user input is ever on a command line.
//!
//! Below [`host::ROOT`](crate::names::host::ROOT) nothing is run before an agent that was uploaded in the same
//! connection ([`AgentLocation::Brought`]) reports that only administrators may write there, or a record says that
//! it did so earlier ([`HostRecord`](crate::host_record::HostRecord)).

mod command;
mod fresh;
mod plan;
mod probe;
mod report;
mod services_data;

pub use command::{
    AgentCommand, AgentLocation, ECHO_COMMAND, ECHO_WORD, Verb, staged_agent, staged_content,
    staged_plan,
};
pub use fresh::{FreshFolder, NotAFreshFolder};
pub use plan::{Access, HostPlan, HostStep};
pub use probe::{
    Agent, FeatureState, FileState, ForeignService, HostFitness, HostState, Probe, Quarantined,
    RebootReason, RootAccess, ServiceFacts, ServiceRunState,
};
pub use report::{ReportError, ReportLine, read_report};
pub use services_data::ServicesData;

/// Version of everything in this module; an agent with another version is replaced.
pub const PROTOCOL: u32 = 1;
