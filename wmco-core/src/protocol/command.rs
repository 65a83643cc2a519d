//! The only command lines that ever reach a host.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::digest::Sha256;
use crate::names::host;
use crate::protocol::FreshFolder;
use crate::winpath::WindowsPath;

/// Which copy of the agent to run.
#[derive(Clone, Copy, Debug, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum AgentLocation {
    /// The one in its final place, [`host::AGENT`].
    Installed,
    /// The copy with this digest that an agent of ours put into the staging folder after it had
    /// closed that, see [`staged_agent`].
    Staged(Sha256),
    /// The one that was brought in this connection, in a folder of its own in the login user's.
    Brought(#[schemars(with = "String")] FreshFolder),
}

/// What the agent is asked to do.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Verb {
    /// Describe the host.
    Probe,
    /// Carry out the plan with this digest, see [`staged_plan`].
    Apply(Sha256),
}

/// One remote command. It is put together from constants and digests, so its text form means the
/// same to `cmd` and to PowerShell, and nothing that a person wrote can be in it.
///
/// ```
/// use wmco_core::protocol::{AgentCommand, AgentLocation, Verb};
///
/// let command = AgentCommand { agent: AgentLocation::Installed, verb: Verb::Probe };
/// assert_eq!(command.to_string(), r"C:\k\windows-instance-config-daemon.exe probe");
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct AgentCommand {
    /// Which copy to run.
    pub agent: AgentLocation,
    /// What to ask it.
    pub verb: Verb,
}

impl fmt::Display for AgentCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.agent {
            AgentLocation::Installed => f.write_str(host::AGENT)?,
            AgentLocation::Staged(digest) => fmt::Display::fmt(&staged_agent(digest), f)?,
            // Where commands start: to `cmd` and to PowerShell this means the same.
            AgentLocation::Brought(folder) => {
                write!(f, r".\{folder}\{}", host::BROUGHT_AGENT)?;
            }
        }
        match self.verb {
            Verb::Probe => f.write_str(" probe"),
            Verb::Apply(plan) => write!(f, " apply {}", staged_plan(plan)),
        }
    }
}

/// Where an agent that is not installed yet puts itself, under a name of its own so that no running
/// file is overwritten.
pub fn staged_agent(digest: Sha256) -> WindowsPath {
    staged(&format!("wicd-{digest}.exe"))
}

/// Where compressed content with this digest (of the uncompressed bytes) waits.
pub fn staged_content(digest: Sha256) -> WindowsPath {
    staged(&format!("{digest}.zst"))
}

/// Where a [`HostPlan`](super::HostPlan) with this digest (of its JSON) waits.
pub fn staged_plan(digest: Sha256) -> WindowsPath {
    staged(&format!("plan-{digest}.json"))
}

#[expect(clippy::expect_used, reason = "constants and hexadecimal digits make a valid path")]
fn staged(name: &str) -> WindowsPath {
    format!(r"{}\{name}", host::STAGING).parse().expect("a staging path is a windows path")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_brought_is_run_from_where_commands_start() {
        let folder = FreshFolder::from_random([0xA5; 16]);
        let command = AgentCommand { agent: AgentLocation::Brought(folder), verb: Verb::Probe };
        let expected = format!(r".\wmco-{}\wicd.exe probe", "a5".repeat(16));
        assert_eq!(command.to_string(), expected);
    }

    #[test]
    fn apply_names_agent_and_plan_by_digest() {
        let digest = Sha256::of(b"x");
        let command =
            AgentCommand { agent: AgentLocation::Staged(digest), verb: Verb::Apply(digest) };
        assert_eq!(
            command.to_string(),
            format!(r"C:\k\staging\wicd-{digest}.exe apply C:\k\staging\plan-{digest}.json")
        );
    }
}
