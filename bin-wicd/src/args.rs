//! What was typed.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use wmco_core::winpath::WindowsPath;

/// Brings a Windows host to what the operator asks of it.
///
/// Source: `spec/wicd.md`, section 2.
#[derive(Clone, Debug, Parser)]
#[command(name = "wicd", version = crate::VERSION, disable_help_subcommand = true)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Describe this host in one line of JSON.
    Probe,
    /// Carry out a plan of the operator; one line of JSON for each event.
    Apply {
        /// The plan, as the operator staged it.
        plan: WindowsPath,
    },
    /// Create and start the bootstrap services of one services ConfigMap.
    Bootstrap {
        /// Kubeconfig with the needed rights.
        #[arg(long)]
        kubeconfig: PathBuf,
        /// Namespace of the services ConfigMaps.
        #[arg(long)]
        namespace: String,
        /// Version that ends the name of the ConfigMap.
        #[arg(long)]
        desired_version: String,
    },
}

#[cfg(test)]
mod tests {
    use wmco_core::digest::Sha256;
    use wmco_core::protocol::{AgentCommand, AgentLocation, Verb};

    use super::*;

    fn parse(line: &str) -> Result<Args, String> {
        Args::try_parse_from(line.split(' ')).map_err(|error| error.to_string())
    }

    #[test]
    fn the_definition_is_sound() {
        use clap::CommandFactory as _;
        Args::command().debug_assert();
    }

    #[test]
    fn the_operators_command_lines_are_understood() {
        let digest = Sha256::of(b"plan");
        for verb in [Verb::Probe, Verb::Apply(digest)] {
            let command = AgentCommand { agent: AgentLocation::Staged(digest), verb };
            assert!(parse(&command.to_string()).is_ok(), "{command}");
        }
    }

    #[test]
    fn bootstrap_names_the_flag_that_is_missing() {
        let line = "wicd bootstrap --kubeconfig k --namespace n";
        assert!(parse(line).unwrap_err().contains("--desired-version"));
        assert!(parse(&format!("{line} --desired-version 1.2.3")).is_ok());
    }

    #[test]
    fn a_plan_is_an_absolute_path() {
        assert!(parse("wicd apply plan.json").unwrap_err().contains("windows path"));
    }
}
