//! WICD, the daemon on each Windows node.

use std::process::ExitCode;

fn main() -> ExitCode {
    bin_wicd::run(std::env::args_os())
}
