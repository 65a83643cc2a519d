//! Runs the program.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// What one run of the program did.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    /// Standard output as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// Asserts that it printed nothing, ended with `status`, and said these things.
    #[track_caller]
    pub(crate) fn is_refused(&self, status: i32, messages: &[&str]) {
        assert_eq!((self.status, self.out.as_str()), (status, ""), "{self:?}");
        for message in messages {
            assert!(self.err.contains(message), "{message} is not in {}", self.err);
        }
    }
}

/// Variables of the environment that commands read.
const READ: [&str; 11] = [
    "CONTAINERD_DEFAULT_RUNTIME",
    "CONTAINERD_LOG_LEVEL",
    "CONTAINERD_PAUSE_IMAGE",
    "CONTAINERD_RUNTIMES",
    "CONTAINERD_SNAPSHOTTER",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "SERVICES_LOG_FILE_AGE",
    "SERVICES_LOG_FILE_SIZE",
    "SERVICES_LOG_FLUSH_INTERVAL",
];

/// The built program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_wmco-operator");

/// Runs the program with `arguments` and `input` as standard input.
pub(crate) fn run(arguments: &[&str], input: &str) -> Run {
    run_in(&BTreeMap::new(), arguments, input)
}

/// The same with variables in its environment.
pub(crate) fn run_in(
    environment: &BTreeMap<String, String>,
    arguments: &[&str],
    input: &str,
) -> Run {
    let mut command = Command::new(PROGRAM);
    run_command(command.args(arguments), environment, input)
}

/// The same with `folder` as the current one, and without input.
pub(crate) fn run_at(folder: &Path, arguments: &[&str]) -> Run {
    let mut command = Command::new(PROGRAM);
    run_command(command.args(arguments).current_dir(folder), &BTreeMap::new(), "")
}

/// The same with 512 MiB of address space: what needs more ends by a signal.
pub(crate) fn run_small(arguments: &[&str], input: &str) -> Run {
    let mut command = Command::new("sh");
    let limited = "ulimit -v 524288 && exec \"$0\" \"$@\"";
    run_command(command.args(["-c", limited, PROGRAM]).args(arguments), &BTreeMap::new(), input)
}

/// The same as [`run_at`], ended by a signal after `seconds` of processor time, which is the error then.
pub(crate) fn run_within(
    seconds: Option<&str>,
    folder: &Path,
    arguments: &[&str],
) -> Result<Run, String> {
    let limited = format!("ulimit -t {} && exec \"$0\" \"$@\"", seconds.unwrap_or("unlimited"));
    let mut command = Command::new("sh");
    let command = command.args(["-c", &limited, PROGRAM]).args(arguments).current_dir(folder);
    let output = output_of(command, &BTreeMap::new(), "");
    let status = output.status.code().ok_or_else(|| output.status.to_string())?;
    Ok(run_of(status, output))
}

fn run_command(command: &mut Command, environment: &BTreeMap<String, String>, input: &str) -> Run {
    let output = output_of(command, environment, input);
    let status = output.status.code().expect("no signal ends the program");
    run_of(status, output)
}

fn run_of(status: i32, output: Output) -> Run {
    Run {
        status,
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn output_of(command: &mut Command, environment: &BTreeMap<String, String>, input: &str) -> Output {
    for name in READ {
        command.env_remove(name);
    }
    let mut child = command
        .envs(environment)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // A program that refuses its arguments does not read its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}
