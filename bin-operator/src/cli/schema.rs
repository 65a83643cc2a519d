//! `schema`: JSON Schemas of what others write or read.

use clap::{Args, ValueEnum};
use schemars::schema_for;
use wmco_core::facts::Facts;
use wmco_core::protocol::{HostPlan, ReportLine};

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
    /// What the operator tells the agent on a host to do.
    HostPlan,
    /// One line of what the agent answers.
    HostReport,
}

impl Schema {
    /// Prints the schema.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn run(self) -> anyhow::Result<Answer> {
        let schema = match self.name {
            Name::CsrDecision => schema_for!(wmco_csr::Decision),
            Name::Facts => schema_for!(Facts),
            Name::HostPlan => schema_for!(HostPlan),
            Name::HostReport => schema_for!(ReportLine),
        };
        let text = serde_json::to_string_pretty(&schema)?;
        self.output.print(&schema, || format!("{text}\n"))?;
        Ok(Answer::Yes)
    }
}
