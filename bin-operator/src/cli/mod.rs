//! The command line.
//!
//! Commands here touch no cluster: they read files and print. Each gives an [`Answer`]; what keeps it
//! from answering is an error. That makes the exit status: 0 for yes, 1 for no, 2 for wrong usage
//! or unreadable input. Results go to standard output, everything else to standard error.

mod arguments;
mod bundle_folder;
mod check;
mod check_bundle;
mod check_cluster;
mod check_host;
mod check_machine_sets;
mod check_registries;
mod check_services;
mod cluster_facts;
mod explain;
mod explain_mirror;
mod guard;
mod installation;
mod live;
mod machine_set;
mod output;
mod plan;
mod platform;
mod registries;
mod render;
mod render_bundle;
mod render_credential_provider;
mod render_manifests;
mod render_registries;
mod render_services;
mod render_user_data;
mod schema;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use wmco_core::manifests::ARGUMENTS;
use wmco_core::text::for_terminals;

use crate::VERSION;
pub use guard::GuardOption;
pub use output::{Format, Output};

/// Makes Windows machines nodes of a Kubernetes cluster.
#[derive(Debug, Parser)]
#[command(name = "wmco-operator", version = VERSION, arg_required_else_help = true)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check configuration, hosts and clusters for mistakes.
    #[command(subcommand)]
    Check(check::Check),
    /// Run the operator on an embedded cluster with simulated Windows hosts.
    #[cfg(feature = "demo")]
    Demo(crate::demo::Options),
    /// Explain a decision of the operator; changes nothing.
    #[command(subcommand)]
    Explain(explain::Explain),
    /// Print a MachineSet whose Machines become Windows nodes; changes nothing.
    #[command(name = "machineset")]
    MachineSet(Box<machine_set::MachineSet>),
    /// Print what the operator would do for the objects in files; changes nothing.
    Plan(plan::Plan),
    /// Print a file as the operator would write it to a host or a cluster.
    #[command(subcommand)]
    Render(render::Render),
    /// Run the controllers.
    Run(live::Run),
    /// Print the JSON Schema of a format.
    Schema(schema::Schema),
    /// Print the version.
    Version,
}

/// The result of a command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use = "the answer is the exit status"]
pub enum Answer {
    /// All is fine.
    Yes,
    /// The input was understood, and it is wrong.
    No,
}

/// Exit status for wrong usage and unreadable input; clap's as well.
const USAGE: u8 = 2;

/// Reads the command line of this process, with what the environment adds to it; ends the process if it is wrong.
pub fn parse() -> Args {
    let more = std::env::var(ARGUMENTS).ok();
    Args::parse_from(arguments::with_environment(std::env::args_os(), more.as_deref()))
}

/// Runs one command and gives the exit status of the program.
pub fn run(args: Args) -> ExitCode {
    let answer = match args.command {
        Command::Check(check) => check.run(),
        #[cfg(feature = "demo")]
        Command::Demo(options) => live::demo(options),
        Command::Explain(explain) => explain.run(),
        Command::MachineSet(machine_set) => machine_set.run(),
        Command::Plan(plan) => plan.run(),
        Command::Render(render) => render.run(),
        Command::Run(run) => live::run(&run),
        Command::Schema(schema) => schema.run(),
        Command::Version => version(),
    };
    match answer {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::FAILURE,
        Err(error) => {
            tell("error", &crate::chain(error.as_ref()));
            ExitCode::from(USAGE)
        }
    }
}

fn version() -> anyhow::Result<Answer> {
    output::print(&format!("wmco-operator version: \"{VERSION}\"\n"))?;
    Ok(Answer::Yes)
}

/// The answer "no", with its reason on standard error.
fn no(reason: impl Into<anyhow::Error>) -> Answer {
    tell("error", &format!("{:#}", reason.into()));
    Answer::No
}

/// "No" with each of `errors` on standard error; "yes" without one.
fn yes_without(errors: &[String]) -> Answer {
    for error in errors {
        tell("error", error);
    }
    if errors.is_empty() { Answer::Yes } else { Answer::No }
}

/// Writes a message for people to standard error: one line, and others indented, so that no foreign text begins one.
fn tell(label: &str, text: &str) {
    let text = for_terminals(text.trim_end()).replace('\n', "\n  ");
    // Nobody is left to be told if standard error is gone.
    let _ = writeln!(io::stderr(), "{label}: {text}");
}
