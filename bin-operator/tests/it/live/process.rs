//! The built operator as a process of its own, at work on the cluster of a stage.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use bin_operator::demo::Stage;
use kube_testserver::Request;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use wmco_core::digest::Sha256;
use wmco_core::{content, payload};

use super::scenery::until;
use crate::program::PROGRAM;

/// For so long others respect the Lease of such a process.
pub(super) const LEASE: Duration = Duration::from_secs(5);

/// The times of the election, for a test's patience.
const TIMES: [(&str, &str); 3] = [
    ("LEADER_ELECT_LEASE_DURATION", "5s"),
    ("LEADER_ELECT_RENEW_DEADLINE", "4s"),
    ("LEADER_ELECT_RETRY_PERIOD", "250ms"),
];

/// A running operator that the API server knows as `user`. Dropping it kills it.
pub(super) struct Process {
    user: String,
    child: Child,
    folder: TempDir,
}

impl Process {
    /// Starts one with these variables besides those that it needs.
    pub(super) fn start(stage: &Stage, user: &str, variables: &[(&str, &str)]) -> Self {
        Self::start_by(Command::new(PROGRAM), stage, user, variables)
    }

    /// Starts one that may have so many files and connections open.
    pub(super) fn start_with_descriptors(stage: &Stage, user: &str, count: u16) -> Self {
        let mut command = Command::new("sh");
        let limited = format!("ulimit -n {count} && exec \"$0\" \"$@\"");
        command.args(["-c", &limited, PROGRAM]);
        Self::start_by(command, stage, user, &[])
    }

    fn start_by(
        mut command: Command,
        stage: &Stage,
        user: &str,
        variables: &[(&str, &str)],
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        stage.cluster.write_kubeconfig(&kubeconfig, user, &["system:masters"]).unwrap();
        let mut list = String::new();
        for file in payload::all().filter(|file| !file.generated) {
            writeln!(list, "{}  {}", Sha256::of(file.name.as_bytes()), file.image_path()).unwrap();
        }
        fs::write(folder.path().join(content::DIGESTS), list).unwrap();
        let child = command
            .args(["run", "--metrics-bind-address", "127.0.0.1:0", "--payload"])
            .arg(folder.path())
            .arg("--cache")
            .arg(folder.path())
            .env_remove("POD_NAME")
            .env("WATCH_NAMESPACE", stage.namespace())
            .env("KUBECONFIG", kubeconfig)
            .envs(TIMES)
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(folder.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        Self { user: user.to_owned(), child, folder }
    }

    /// Sends it a signal.
    pub(super) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// What it has logged.
    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// Waits until it ends by itself.
    pub(super) async fn ended(&mut self) -> ExitStatus {
        until(|| self.child.try_wait().unwrap()).await
    }

    /// Where its metrics and its health are.
    pub(super) async fn http(&self) -> SocketAddr {
        until(|| {
            let log = self.log();
            let line = log.lines().find(|line| line.contains("serving metrics and health"))?;
            let line: Value = serde_json::from_str(line).ok()?;
            line["fields"]["address"].as_str()?.parse().ok()
        })
        .await
    }

    /// What it asked of the API server, from the `first` request on.
    pub(super) fn requests(&self, stage: &Stage, first: usize) -> Vec<Request> {
        let all = stage.cluster.requests();
        all.into_iter().skip(first).filter(|request| request.user == self.user).collect()
    }

    /// What it wrote, from the `first` request on.
    pub(super) fn writes(&self, stage: &Stage, first: usize) -> Vec<Request> {
        let mut requests = self.requests(stage, first);
        requests.retain(|request| !matches!(request.verb.as_str(), "get" | "list" | "watch"));
        requests
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
