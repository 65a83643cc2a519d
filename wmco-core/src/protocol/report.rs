//! The agent's output lines, and their parser.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PROTOCOL, Probe};

/// A line of the agent's standard output.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "wicd")]
pub enum ReportLine {
    /// A step begins.
    #[serde(rename_all = "camelCase")]
    Started {
        /// Its index in the plan, from 0.
        step: usize,
    },
    /// Progress of a step.
    #[serde(rename_all = "camelCase")]
    Progress {
        /// Its index in the plan, from 0.
        step: usize,
        /// Completed amount, in `total`'s unit.
        done: u64,
        /// Total amount.
        total: u64,
    },
    /// A step is done.
    #[serde(rename_all = "camelCase")]
    Done {
        /// Its index in the plan, from 0.
        step: usize,
        /// Whether the step changed anything.
        changed: bool,
    },
    /// A step failed and ended the plan. A probe still follows.
    #[serde(rename_all = "camelCase")]
    Failed {
        /// Its index in the plan, from 0.
        step: usize,
        /// One line: the problem and the next step; never a secret.
        error: String,
    },
    /// The plan itself could not be read or is not for this agent. A probe still follows.
    #[serde(rename_all = "camelCase")]
    Refused {
        /// One line: the problem and the next step.
        error: String,
    },
    /// The present state of the host; always the last line.
    Probed(Box<Probe>),
}

/// Why an agent's output cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The output has no report line.
    #[error(
        "the agent wrote no report ({bytes} bytes of other output), \
         check that nothing but ours is installed as the agent"
    )]
    Garbage {
        /// Length of the output.
        bytes: usize,
    },
    /// The last line is not a probe: the agent was interrupted.
    #[error("the agent stopped before its last line, look at its exit status and run it again")]
    Incomplete,
    /// The agent uses another protocol version.
    #[error("the agent speaks protocol {found}, not {PROTOCOL}, replace it")]
    OtherProtocol {
        /// The agent's protocol version.
        found: u32,
    },
}

/// Reads the report lines from an agent's output. Ignores other lines, such as a shell's banner or a profile's
/// greeting.
///
/// # Errors
/// [`ReportError`] if the output has no report, is incomplete, or has another protocol version.
pub fn read_report(output: &str) -> Result<Vec<ReportLine>, ReportError> {
    let mut lines = Vec::new();
    for text in output.lines() {
        let text = text.trim_start_matches('\u{feff}').trim();
        match serde_json::from_str::<ReportLine>(text) {
            Ok(line) => lines.push(line),
            Err(_) => {
                if let Some(found) = other_protocol(text) {
                    return Err(ReportError::OtherProtocol { found });
                }
            }
        }
    }
    match lines.last() {
        None => Err(ReportError::Garbage { bytes: output.len() }),
        Some(ReportLine::Probed(probe)) if probe.protocol != PROTOCOL => {
            Err(ReportError::OtherProtocol { found: probe.protocol })
        }
        Some(ReportLine::Probed(_)) => Ok(lines),
        Some(_) => Err(ReportError::Incomplete),
    }
}

/// The protocol version of a probe line that cannot be parsed.
fn other_protocol(text: &str) -> Option<u32> {
    #[derive(Deserialize)]
    struct Head {
        wicd: String,
        protocol: u32,
    }
    let head: Head = serde_json::from_str(text).ok()?;
    (head.wicd == "probed" && head.protocol != PROTOCOL).then_some(head.protocol)
}
