//! WICD, the daemon on each Windows node: adapters of `wmco_services::windows` for the real Windows,
//! and the commands around `wmco_services`.
//!
//! # What belongs here
//! - [`args`]: the command line; [`report`]: `probe` and `apply`; [`bootstrap`](mod@bootstrap).
//! - `windows`: adapters, the only place for `cfg(windows)` and `unsafe`.
//! - [`dism`], [`hns`], [`sddl`]: what Windows answers, read on every platform.
//!
//! # Not here
//! Decisions about services, nodes and certificates: `wmco-services`.

pub mod args;
pub mod bootstrap;
pub mod dism;
pub mod hns;
pub mod report;
pub mod sddl;
mod windows;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use args::{Args, Command};

/// Version of this build, as the operator's; a build for an image sets `WMCO_VERSION`.
///
/// Source: `spec/operator.md`, section 11.
pub const VERSION: &str = match option_env!("WMCO_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};

/// Runs the program; `arguments` start with its name.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let args = match Args::try_parse_from(arguments) {
        Ok(args) => args,
        Err(error) => {
            // Without anywhere to write to, only the exit code is left.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
    };
    match perform(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // Standard output is the operator's; people read standard error.
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Tells whether all was done.
fn perform(args: Args) -> anyhow::Result<bool> {
    let host = windows::host()?;
    match args.command {
        Command::Probe => report::probe(&*host, VERSION, &mut std::io::stdout().lock()),
        Command::Apply { plan } => {
            report::apply(&*host, VERSION, &plan, &mut std::io::stdout().lock())
        }
        Command::Bootstrap { kubeconfig, namespace, desired_version } => {
            bootstrap::bootstrap(&*host, &kubeconfig, &namespace, &desired_version)
        }
    }
}
