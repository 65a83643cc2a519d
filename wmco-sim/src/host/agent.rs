//! Runs the agent's own code on the model.

use wmco_services::fake::FakeWindows;

use super::shell::Ended;

/// Runs the agent of `version` with these arguments; `line` takes each line that it writes.
pub(super) fn run(
    _host: &FakeWindows,
    _version: &str,
    _arguments: &[String],
    _protocol: Option<u32>,
    _line: impl Fn(String),
) -> Ended {
    Ended::default()
}
