//! The lines that the agent writes, and how the operator reads them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PROTOCOL, Probe};

/// One line of the agent's standard output.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "wicd")]
pub enum ReportLine {
    /// A step begins.
    #[serde(rename_all = "camelCase")]
    Started {
        /// Its place in the plan, from 0.
        step: usize,
    },
    /// A step has come so far.
    #[serde(rename_all = "camelCase")]
    Progress {
        /// Its place in the plan, from 0.
        step: usize,
        /// Done so far, in `total`'s unit.
        done: u64,
        /// All there is to do.
        total: u64,
    },
    /// A step is done.
    #[serde(rename_all = "camelCase")]
    Done {
        /// Its place in the plan, from 0.
        step: usize,
        /// Whether anything had to be changed.
        changed: bool,
    },
    /// A step failed and ended the plan. A probe still follows.
    #[serde(rename_all = "camelCase")]
    Failed {
        /// Its place in the plan, from 0.
        step: usize,
        /// One line: what is wrong and what to do; never a secret.
        error: String,
    },
    /// The plan itself could not be read or is not for this agent. A probe still follows.
    #[serde(rename_all = "camelCase")]
    Refused {
        /// One line: what is wrong and what to do.
        error: String,
    },
    /// The host as it is now; always the last line.
    Probed(Box<Probe>),
}

/// Why an agent's output cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// There is no report line at all.
    #[error(
        "the agent wrote no report ({bytes} bytes of other output), \
         check that nothing but ours is installed as the agent"
    )]
    Garbage {
        /// How much it wrote.
        bytes: usize,
    },
    /// The last line is not a probe: the agent was cut short.
    #[error("the agent stopped before its last line, look at its exit status and run it again")]
    Incomplete,
    /// The agent speaks another protocol.
    #[error("the agent speaks protocol {found}, not {PROTOCOL}, replace it")]
    OtherProtocol {
        /// What it speaks.
        found: u32,
    },
}

/// Reads the report lines out of an agent's output. Lines that are no report (a shell's banner, a
/// profile's greeting) are passed over.
///
/// # Errors
/// [`ReportError`] when no report is in it, it is cut short, or it is of another protocol.
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

/// The protocol of a probe line that this version cannot read otherwise.
fn other_protocol(text: &str) -> Option<u32> {
    #[derive(Deserialize)]
    struct Head {
        wicd: String,
        protocol: u32,
    }
    let head: Head = serde_json::from_str(text).ok()?;
    (head.wicd == "probed" && head.protocol != PROTOCOL).then_some(head.protocol)
}
