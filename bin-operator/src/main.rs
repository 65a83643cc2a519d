//! The operator's program: reads the command line, the library does the rest.

use std::process::ExitCode;

use bin_operator::cli;
use clap::Parser as _;

fn main() -> ExitCode {
    cli::run(cli::Args::parse())
}
