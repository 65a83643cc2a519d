//! What a scenario needs of a host, whatever kind of host it is.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;

use wicd_wine::hands::Order;
use wicd_wine::told::Behaviour;
use wmco_core::digest::Sha256;
use wmco_core::names::{host, objects};
use wmco_core::protocol::{
    HostPlan, HostStep, PROTOCOL, ReportLine, ServiceRunState, read_report, staged_plan,
};
use wmco_core::render::wicd_arguments;
use wmco_core::winpath::WindowsPath;
use wmco_services::generate::{self, ManifestInputs};
use wmco_services::manifest::{Manifest, Parts};
use wmco_services::windows::Service;

use crate::cluster::{Cluster, NAMESPACE, NODE};

/// A Windows host with the daemon's program and files, the programs of all services, and none of the
/// services.
pub(crate) trait Bench: Sized {
    /// Whether trusted roots that are removed are gone. Wine keeps what is deleted from a store.
    const ROOTS_GO: bool;

    /// How much of logs is kept, as the operator tells the daemon.
    const LOG_SIZE: Option<&str>;

    /// Bytes that a service writes to its log without a pause.
    const STORM: u64;

    /// A fresh host that can reach the cluster.
    async fn new(cluster: &Cluster) -> Self;

    /// The address that others reach it by.
    fn address(&self) -> Ipv4Addr;

    /// All services but those of Windows, without their recovery actions.
    async fn services(&self) -> Vec<Service>;

    /// System-wide variables of proxies that are set.
    async fn variables(&self) -> BTreeMap<String, String>;

    /// Whether a system-wide variable is set.
    async fn has_variable(&self, name: &str) -> bool;

    /// Does what a person at the host does.
    async fn person(&self, order: Order);

    /// Ends a service's process from outside.
    async fn crash(&self, service: &str);

    /// Ends a service's process from outside, but not the program that it wraps, and returns the number of
    /// that one's process.
    async fn crash_leaving(&self, service: &str, program: &str) -> u32;

    /// Whether a process that was left behind still runs that program.
    fn runs(&self, program: &str, process: u32) -> bool;

    /// Tells a service how to behave from now on.
    fn tell(&self, service: &str, behaviour: &Behaviour);

    /// What services did so far, oldest first.
    fn moves(&self) -> Vec<Move>;

    /// What of a system-wide variable a service sees that was started last.
    fn sees(&self, service: &str, variable: &str) -> Option<String>;

    /// How many scripts were run so far.
    fn scripts(&self) -> usize;

    /// Everything of services, registry and files that somebody could leave behind, as text. Logs,
    /// certificates of the daemon and staged files are left out.
    async fn traces(&self) -> BTreeMap<String, String>;

    /// The files directly in a folder, without links, and their lengths.
    fn folder(&self, folder: &str) -> BTreeMap<String, u64>;

    /// Whether a file, links followed, ends with these words and a line break.
    fn ends_with(&self, file: &str, words: &str) -> bool;

    /// Replaces a file.
    fn put(&self, path: &str, content: &[u8]);

    /// Runs `wicd bootstrap`; tells whether it succeeded.
    async fn bootstrap(&self, version: &str) -> bool;

    /// Runs `wicd cleanup`; tells whether it left a restart to its caller, or `None` when it failed.
    async fn cleanup(&self) -> Option<bool>;

    /// Registers and starts the daemon's service as the operator does.
    async fn start_daemon(&mut self) {
        self.start_daemon_as(ensure_daemon()).await;
    }

    /// The same by this step.
    async fn start_daemon_as(&mut self, step: HostStep);

    /// Carries out a plan of the operator.
    async fn apply(&self, steps: Vec<HostStep>);

    /// Tells the daemon's service to stop, and waits until it has.
    async fn stop_daemon(&mut self);

    /// Ends the daemon's process in the middle of whatever it does.
    async fn kill_daemon(&mut self);

    /// Restarts the host.
    async fn reboot(&mut self);
}

/// Something that a service did.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Move {
    /// It was started.
    Start(String),
    /// It was told to stop.
    Stop(String),
}

/// The services that the operator generates for a cluster without a cloud.
pub(crate) fn manifest() -> Manifest {
    manifest_with(|_| {})
}

/// The same, one service with another command.
pub(crate) fn with_other_command(name: &str) -> Manifest {
    let manifest = manifest();
    let mut services = manifest.services().to_vec();
    let changed = services.iter_mut().find(|service| service.name.as_str() == name).unwrap();
    changed.command.push_str(" --changed");
    let watched = manifest.watched().to_vec();
    Manifest::new(Parts { services, watched, ..Parts::default() }).unwrap()
}

/// The same, with variables that it sets and does not watch.
pub(crate) fn manifest_that_sets(variables: &[(&str, &str)]) -> Manifest {
    let manifest = manifest();
    let pairs = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Manifest::new(Parts {
        services: manifest.services().to_vec(),
        environment: pairs.collect(),
        watched: manifest.watched().to_vec(),
        ..Parts::default()
    })
    .unwrap()
}

/// The same with other inputs.
pub(crate) fn manifest_with(change: impl FnOnce(&mut ManifestInputs)) -> Manifest {
    let mut inputs = ManifestInputs {
        platform: "None".to_owned(),
        api_server: "https://api-int.example.test:6443".to_owned(),
        ..ManifestInputs::default()
    };
    change(&mut inputs);
    generate::manifest(&inputs).unwrap()
}

/// Every program on the command lines of the manifest.
pub(crate) fn programs(manifest: &Manifest) -> Vec<String> {
    let words = manifest.services().iter().flat_map(|service| service.command.split(' '));
    let is_program = |word: &&str| Path::new(word).extension().is_some_and(|end| end == "exe");
    words.filter(is_program).map(str::to_owned).collect()
}

/// Part of each script that the manifest runs, with what it gives.
pub(crate) const SCRIPTS: [(&str, &str); 2] =
    [("windows-defender-exclusion.ps1", ""), ("network-conf.ps1", "")];

/// Files that the operator places for the daemon.
pub(crate) fn files(cluster: &Cluster) -> [(&'static str, Vec<u8>); 2] {
    [(host::WICD_KUBECONFIG, cluster.kubeconfig()), (host::CA_BUNDLE, Vec::new())]
}

/// Name, command line and state of each service but the daemon's, by name.
pub(crate) async fn seen<B: Bench>(bench: &B) -> BTreeMap<String, (String, ServiceRunState)> {
    let services = bench.services().await.into_iter();
    let others = services.filter(|service| service.name.as_str() != objects::WICD);
    others.map(|s| (s.name.to_string(), (s.config.command, s.state))).collect()
}

/// The commands of the manifest with all placeholders filled in, all running.
pub(crate) fn wanted<B: Bench>(
    bench: &B,
    manifest: &Manifest,
) -> BTreeMap<String, (String, ServiceRunState)> {
    let services = manifest.services().iter();
    services
        .map(|s| (s.name.to_string(), (filled(bench, &s.command), ServiceRunState::Running)))
        .collect()
}

/// A command line with all placeholders of the generated services filled in.
pub(crate) fn filled<B: Bench>(bench: &B, command: &str) -> String {
    command.replace("NODE_NAME", NODE).replace("NODE_IP", &bench.address().to_string())
}

/// The step that registers and starts the daemon's service with the operator's arguments.
pub(crate) fn ensure_daemon() -> HostStep {
    daemon_with_logs_of(None)
}

/// The same with a size of log files.
pub(crate) fn daemon_with_logs_of(size: Option<&str>) -> HostStep {
    HostStep::EnsureDaemon { arguments: wicd_arguments(NAMESPACE, size, None).unwrap() }
}

/// Folders in which others than the daemon tidy up.
pub(crate) const UNTIDY: [&str; 3] = [host::WICD_CERTIFICATES, host::WICD_LOGS, host::STAGING];

/// A plan of the operator and the place where it is staged.
pub(crate) fn plan(steps: Vec<HostStep>) -> (WindowsPath, Vec<u8>) {
    let text =
        serde_json::to_vec(&HostPlan { protocol: PROTOCOL, vacant_since: None, steps }).unwrap();
    (staged_plan(Sha256::of(&text)), text)
}

/// Fails when a step of the plan failed.
#[track_caller]
pub(crate) fn succeeded(report: &str) -> Vec<ReportLine> {
    let lines = read_report(report).unwrap();
    let wrong =
        |line: &ReportLine| matches!(line, ReportLine::Failed { .. } | ReportLine::Refused { .. });
    assert!(!lines.iter().any(wrong), "{lines:?}");
    lines
}
