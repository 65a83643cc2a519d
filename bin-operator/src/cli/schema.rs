//! `schema`: JSON Schemas of what others write or read.

use clap::{Args, ValueEnum};
use schemars::schema_for;
use serde_json::json;
use wmco_core::facts::Facts;
use wmco_core::preflight::Finding;
use wmco_core::protocol::{HostPlan, ReportLine};
use wmco_services::manifest::schemas;

use super::{Answer, Output};

/// Arguments of `schema`.
#[derive(Args, Debug)]
pub struct Schema {
    /// Which format.
    #[arg(value_enum)]
    name: Name,
    #[command(flatten)]
    output: Output,
}

/// Formats with a schema.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Name {
    /// One answer of `explain csr`.
    CsrDecision,
    /// The file for --facts.
    Facts,
    /// One finding of `check cluster` or `check host`.
    Finding,
    /// The plan that the operator gives the agent on a host.
    HostPlan,
    /// One line of the agent's output.
    HostReport,
    /// The data of a services ConfigMap.
    Services,
}

impl Schema {
    /// Prints the schema.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn run(self) -> anyhow::Result<Answer> {
        let schema = match self.name {
            Name::CsrDecision => json!(schema_for!(wmco_csr::Decision<'_>)),
            Name::Facts => json!(schema_for!(Facts)),
            Name::Finding => json!(schema_for!(Finding)),
            Name::HostPlan => json!(schema_for!(HostPlan)),
            Name::HostReport => json!(schema_for!(ReportLine)),
            Name::Services => json!(schemas()),
        };
        let text = serde_json::to_string_pretty(&schema)?;
        self.output.print(&schema, || format!("{text}\n"))?;
        Ok(Answer::Yes)
    }
}
