//! The operator's program: reads the command line, the library does the rest.

use std::process::ExitCode;

use bin_operator::cli;

fn main() -> ExitCode {
    cli::run(cli::parse())
}
