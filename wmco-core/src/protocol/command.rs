//! The only command lines that are run on a host.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::digest::Sha256;
use crate::names::host;
use crate::protocol::FreshFolder;
use crate::winpath::WindowsPath;

/// The copy of the agent to run.
#[derive(Clone, Copy, Debug, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum AgentLocation {
    /// The installed copy, [`host::AGENT`].
    Installed,
    /// The copy with this digest that our agent put into the closed staging folder; see [`staged_agent`].
    Staged(Sha256),
    /// The copy that was uploaded in this connection, into its own folder in the login user's profile.
    Brought(#[schemars(with = "String")] FreshFolder),
}

/// The command for the agent.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Verb {
    /// Describe the host.
    Probe,
    /// Carry out the plan with this digest, see [`staged_plan`].
    Apply(Sha256),
}

/// A remote command. It is composed of constants and digests, so it means the same to `cmd` and to PowerShell, and
/// contains no user input.
///
/// ```
/// use wmco_core::protocol::{AgentCommand, AgentLocation, Verb};
///
/// let command = AgentCommand { agent: AgentLocation::Installed, verb: Verb::Probe };
/// assert_eq!(command.to_string(), r"C:\k\windows-instance-config-daemon.exe probe");
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct AgentCommand {
    /// The copy to run.
    pub agent: AgentLocation,
    /// The command.
    pub verb: Verb,
}

impl fmt::Display for AgentCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.agent {
            AgentLocation::Installed => f.write_str(host::AGENT)?,
            AgentLocation::Staged(digest) => fmt::Display::fmt(&staged_agent(digest), f)?,
            // Relative to the folder where commands start; the form means the same to `cmd` and to PowerShell.
            AgentLocation::Brought(folder) => {
                write!(f, r".\{folder}\{}", host::UPLOADED_AGENT)?;
            }
        }
        match self.verb {
            Verb::Probe => f.write_str(" probe"),
            Verb::Apply(plan) => write!(f, " apply {}", staged_plan(plan)),
        }
    }
}

/// A word that no other program prints on a line of its own, and a command of every shell that prints it.
///
/// A server that answers otherwise runs another program in place of our commands. Source: `docs/contract/ssh.md`, SSH56.
pub const ECHO_WORD: &str = "wmco-runs-commands";
/// See [`ECHO_WORD`].
pub const ECHO_COMMAND: &str = "echo wmco-runs-commands";

/// Path to which an uninstalled agent copies itself, with its own name so that no running file is overwritten.
pub fn staged_agent(digest: Sha256) -> WindowsPath {
    staged(&format!("wicd-{digest}.exe"))
}

/// Path of compressed content with this digest (of the uncompressed bytes).
pub fn staged_content(digest: Sha256) -> WindowsPath {
    staged(&format!("{digest}.zst"))
}

/// Path of a [`HostPlan`](super::HostPlan) with this digest (of its JSON).
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
    fn a_shell_prints_the_word_of_the_echo() {
        assert_eq!(ECHO_COMMAND, format!("echo {ECHO_WORD}"));
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
