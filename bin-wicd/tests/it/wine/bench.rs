//! A host under Wine, with the real daemon and stub services.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::PathBuf;
use std::process::Command;

use wicd_wine::hands::{Answer, Order};
use wicd_wine::journal::{self, Event};
use wicd_wine::told::{self, Behaviour};
use wicd_wine::{FOLDER, told::Answers};
use wmco_core::names::{host, objects};
use wmco_core::protocol::{HostStep, ReportLine, ServiceRunState};
use wmco_services::windows::{Service, ServiceName};

use super::windows::Windows;
use crate::bench::{Bench, Move, SCRIPTS, UNTIDY, files, manifest, plan, programs, succeeded};
use crate::cluster::{Cluster, NAMESPACE, until};

/// Where the registry has the system-wide variables.
const VARIABLES: &str = r"SYSTEM\CurrentControlSet\Control\Session Manager\Environment";

/// A host under Wine.
pub(crate) struct Wine {
    pub(crate) windows: Windows,
    address: Ipv4Addr,
    /// Services that came with Wine.
    first: BTreeSet<ServiceName>,
}

impl Wine {
    /// The folder of the stand-ins' settings.
    fn stand_ins(&self) -> PathBuf {
        self.windows.path(FOLDER)
    }

    /// What stand-ins saw so far.
    pub(crate) fn events(&self) -> Vec<Event> {
        journal::read(&self.stand_ins()).unwrap()
    }

    /// Runs the agent in its final place and returns its report.
    pub(crate) async fn agent(&self, arguments: &str) -> Vec<ReportLine> {
        let output = self.windows.run(&format!("{} {arguments}", host::AGENT)).await;
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        succeeded(&said)
    }

    /// The daemon's process.
    pub(crate) fn daemon(&self) -> Option<u32> {
        self.windows.processes(&["windows-instance-config-daemon", "controller"]).pop()
    }

    /// Every service of the host.
    pub(crate) async fn all_services(&self) -> Vec<Service> {
        match self.windows.person(&Order::Services).await {
            Answer::Services(services) => {
                serde_json::from_value(serde_json::to_value(services).unwrap()).unwrap()
            }
            other => panic!("{other:?}"),
        }
    }

    /// The parts of the registry that daemon and services change.
    pub(crate) async fn registry(&self) -> BTreeMap<String, String> {
        match self.windows.person(&Order::Registry).await {
            Answer::Registry(values) => values,
            other => panic!("{other:?}"),
        }
    }

    /// Runs `wicd` with a kubeconfig and returns the last byte of its exit code, which is all that comes
    /// through.
    async fn wicd(&self, command: &str) -> i32 {
        let kubeconfig = host::WICD_KUBECONFIG;
        let line =
            format!("{} {command} --kubeconfig {kubeconfig} --namespace {NAMESPACE}", host::AGENT);
        let output = self.windows.run(&line).await;
        if !output.status.success() {
            eprintln!("{command}: {}", String::from_utf8_lossy(&output.stderr));
        }
        output.status.code().unwrap()
    }

    async fn daemon_state(&self) -> Option<ServiceRunState> {
        let services = self.all_services().await.into_iter();
        services.filter(|s| s.name.as_str() == objects::WICD).map(|s| s.state).next()
    }
}

/// The address from which this machine, and Wine with it, reaches others. Nothing is sent.
fn way_out() -> Ipv4Addr {
    /// An address that nobody has. Source: RFC 5737.
    const NOBODY: (Ipv4Addr, u16) = (Ipv4Addr::new(203, 0, 113, 1), 9);
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    socket.connect(NOBODY).expect("a machine with a default route");
    let IpAddr::V4(address) = socket.local_addr().unwrap().ip() else { panic!("it is IPv4") };
    address
}

impl Bench for Wine {
    const ROOTS_GO: bool = false;

    const LOG_SIZE: Option<&str> = None;
    const STORM: u64 = 1_000_000_000;

    async fn new(cluster: &Cluster) -> Self {
        let windows = Windows::start().await;
        for folder in host::DIRECTORIES {
            fs::create_dir_all(windows.path(folder)).unwrap();
        }
        for program in programs(&manifest()) {
            windows.install_copy("stub-service", &program);
        }
        windows.install("wicd", host::AGENT);
        for (file, content) in files(cluster) {
            windows.write(file, &content);
        }
        let mut wine = Self { windows, address: way_out(), first: BTreeSet::new() };
        fs::create_dir_all(journal::place(&wine.stand_ins())).unwrap();
        fs::write(wine.stand_ins().join(told::CONTAINERS), "Enabled").unwrap();
        let answer = |(part, stdout): (&str, &str)| {
            (part.to_owned(), told::Answer { stdout: stdout.to_owned(), ..told::Answer::default() })
        };
        let answers: Answers = SCRIPTS.into_iter().map(answer).collect();
        let answers = serde_json::to_vec(&answers).unwrap();
        fs::write(wine.stand_ins().join(told::POWERSHELL), answers).unwrap();
        wine.first = wine.all_services().await.into_iter().map(|service| service.name).collect();
        assert!(!wine.first.is_empty(), "Wine has services of its own: the list was not read");
        wine
    }

    fn address(&self) -> Ipv4Addr {
        self.address
    }

    async fn services(&self) -> Vec<Service> {
        let services = self.all_services().await.into_iter();
        services.filter(|service| !self.first.contains(&service.name)).collect()
    }

    async fn variables(&self) -> BTreeMap<String, String> {
        let registry = self.registry().await;
        let value = |name: &str| {
            let value = registry.get(&format!(r"{VARIABLES}\{name}"))?;
            Some((name.to_owned(), value.clone()))
        };
        host::PROXY_VARIABLES.into_iter().filter_map(value).collect()
    }

    async fn has_variable(&self, name: &str) -> bool {
        self.registry().await.contains_key(&format!(r"{VARIABLES}\{name}"))
    }

    async fn person(&self, order: Order) {
        let answer = self.windows.person(&order).await;
        assert!(matches!(answer, Answer::Done), "{order:?}: {answer:?}");
    }

    async fn crash(&self, service: &str) {
        let log = format!(r"\{service}.log");
        let processes = self.windows.processes(&[&log]);
        assert_eq!(processes.len(), 1, "{service}");
        end(processes[0]);
        until("it is gone", async || self.windows.processes(&[&log]).is_empty()).await;
    }

    async fn crash_leaving(&self, service: &str, program: &str) -> u32 {
        let wrapped = self.windows.processes(&[program, told::WRAPPED]);
        assert_eq!(wrapped.len(), 1, "{service}");
        self.crash(service).await;
        assert!(self.runs(program, wrapped[0]));
        wrapped[0]
    }

    fn runs(&self, program: &str, process: u32) -> bool {
        self.windows.processes(&[program, told::WRAPPED]).contains(&process)
    }

    fn tell(&self, service: &str, behaviour: &Behaviour) {
        let text = serde_json::to_vec(behaviour).unwrap();
        // A service that looks at this moment sees the old or the new.
        let new = self.stand_ins().join(format!("{service}.new"));
        fs::write(&new, text).unwrap();
        fs::rename(new, self.stand_ins().join(format!("{service}.json"))).unwrap();
    }

    fn moves(&self) -> Vec<Move> {
        let moved = |event| match event {
            Event::Started { service, .. } => Some(Move::Start(service)),
            Event::StopAsked { service } => Some(Move::Stop(service)),
            Event::Script { .. } | Event::Dism { .. } => None,
        };
        self.events().into_iter().filter_map(moved).collect()
    }

    fn folder(&self, folder: &str) -> BTreeMap<String, u64> {
        let entries = fs::read_dir(self.windows.path(folder)).into_iter().flatten().flatten();
        // What goes away meanwhile is not there.
        let length = |entry: fs::DirEntry| {
            Some((entry.path().display().to_string(), entry.metadata().ok()?.len()))
        };
        entries.filter_map(length).collect()
    }

    fn ends_with(&self, file: &str, words: &str) -> bool {
        let Ok(mut file) = fs::File::open(self.windows.path(file)) else { return false };
        let end = format!("{words}\n");
        let mut found = String::new();
        file.seek(SeekFrom::End(-i64::try_from(end.len()).unwrap())).is_ok()
            && file.read_to_string(&mut found).is_ok()
            && found == end
    }

    fn put(&self, file: &str, content: &[u8]) {
        self.windows.write(file, content);
    }

    async fn bootstrap(&self, version: &str) -> bool {
        self.wicd(&format!("bootstrap --desired-version {version}")).await == bin_wicd::DONE
    }

    async fn cleanup(&self) -> Option<bool> {
        match self.wicd("cleanup").await {
            bin_wicd::DONE => Some(false),
            code if code == bin_wicd::RESTART_NEEDED & 0xff => Some(true),
            _ => None,
        }
    }

    fn sees(&self, of: &str, variable: &str) -> Option<String> {
        let seen = |event| match event {
            Event::Started { service, mut variables, .. } if service == of => {
                Some(variables.remove(variable))
            }
            _ => None,
        };
        self.events().into_iter().filter_map(seen).next_back().flatten()
    }

    fn scripts(&self) -> usize {
        let is_script = |event: &&Event| matches!(event, Event::Script { .. });
        self.events().iter().filter(is_script).count()
    }

    async fn traces(&self) -> BTreeMap<String, String> {
        let mut traces = self.registry().await;
        for service in self.services().await {
            traces.insert(service.name.to_string(), format!("{service:?}"));
        }
        // A name of the daemon's log, for Wine makes no symbolic links.
        let growing = self.windows.path(host::WICD_LOG_LINK);
        let untidy = UNTIDY.map(|folder| self.windows.path(folder));
        let mut folders = vec![self.windows.path(host::ROOT), self.windows.path(r"C:\var")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path == growing {
                    traces.insert(path.display().to_string(), "a log".to_owned());
                    continue;
                }
                if untidy.contains(&path) {
                    continue;
                }
                let content = if path.is_dir() {
                    folders.push(path.clone());
                    "folder".to_owned()
                } else {
                    // Programs are big, and this is quick in a debug build, too.
                    let mut digest = DefaultHasher::new();
                    fs::read(&path).unwrap().hash(&mut digest);
                    format!("{:x}", digest.finish())
                };
                traces.insert(path.display().to_string(), content);
            }
        }
        traces
    }

    async fn apply(&self, steps: Vec<HostStep>) {
        let (place, text) = plan(steps);
        self.windows.write(place.as_str(), &text);
        self.agent(&format!("apply {place}")).await;
    }

    async fn start_daemon_as(&mut self, step: HostStep) {
        let state = self.daemon_state().await;
        let alive = state.is_some_and(|state| state != ServiceRunState::Stopped);
        if alive && self.daemon().is_none() {
            // Wine neither sees that the process is gone nor restarts it; this is what Windows does.
            self.person(Order::Start { name: objects::WICD.to_owned() }).await;
        } else {
            self.apply(vec![step]).await;
        }
    }

    async fn stop_daemon(&mut self) {
        self.person(Order::Stop { name: objects::WICD.to_owned() }).await;
        until("the daemon has stopped", async || {
            self.daemon_state().await == Some(ServiceRunState::Stopped) && self.daemon().is_none()
        })
        .await;
    }

    async fn kill_daemon(&mut self) {
        end(self.daemon().expect("a running daemon"));
        until("the process is gone", async || self.daemon().is_none()).await;
    }

    async fn reboot(&mut self) {
        self.windows.reboot().await;
    }
}

impl Drop for Wine {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let logs = self.windows.path(host::WICD_LOGS);
            for log in fs::read_dir(logs).into_iter().flatten().flatten() {
                let text = fs::read_to_string(log.path()).unwrap_or_default();
                eprintln!("{}:\n{text}", log.path().display());
            }
        }
    }
}

/// Ends a process by the number that Linux gives it.
fn end(process: u32) {
    assert!(Command::new("kill").args(["-9", &process.to_string()]).status().unwrap().success());
}
