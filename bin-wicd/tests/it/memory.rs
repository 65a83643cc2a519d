//! A host in memory: the daemon's own code on a thread of this process.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use bin_wicd::args::{self, Args, Command};
use bin_wicd::controller::{self, Settings, Site};
use bin_wicd::{bootstrap, cleanup, report};
use clap::Parser as _;
use tokio_util::sync::CancellationToken;
use wicd_wine::hands::Order;
use wicd_wine::told::{Behaviour, Storm};
use wmco_core::limits;
use wmco_core::names::{host, objects};
use wmco_core::protocol::{FeatureState, HostStep, ServiceRunState};
use wmco_core::winpath::WindowsPath;
use wmco_services::fake::{Call, Content, FakeEvent, FakeWindows, Node};
use wmco_services::windows::{
    Environment as _, Inherited, Service, ServiceManager as _, ServiceName, Wait, Windows,
};

use crate::bench::{Bench, Move, SCRIPTS, UNTIDY, files, manifest, plan, programs, succeeded};
use crate::cluster::{Cluster, NAMESPACE};

/// How long it takes until the process of a service that ignores to be stopped is ended.
const STUBBORN: Duration = Duration::from_secs(3);

/// A host in memory.
pub(crate) struct Memory {
    pub(crate) host: FakeWindows,
    /// Services of Windows.
    first: BTreeSet<ServiceName>,
    moves: Arc<Mutex<Vec<Move>>>,
    daemon: Option<Daemon>,
}

/// A running daemon.
struct Daemon {
    stop: CancellationToken,
    kill: CancellationToken,
    thread: JoinHandle<()>,
}

fn path(text: &str) -> WindowsPath {
    text.parse().unwrap()
}

fn wicd() -> ServiceName {
    objects::WICD.parse().unwrap()
}

fn cluster_arguments() -> args::Cluster {
    args::Cluster { kubeconfig: path(host::WICD_KUBECONFIG), namespace: NAMESPACE.to_owned() }
}

/// Writes a log as its service would: in a second about two files, as a fast program would of real ones.
fn write_log(host: FakeWindows, storm: Storm) {
    const LINES: u64 = 10;
    const PAUSE: Duration = Duration::from_millis(5);
    tokio::spawn(async move {
        let log = path(&storm.log);
        for number in 0..storm.lines() {
            host.append(&log, Storm::line(number).as_bytes()).unwrap();
            if number % LINES == 0 {
                tokio::time::sleep(PAUSE).await;
            }
        }
        // The log may be cut just then, and the line with it.
        loop {
            host.append(&log, format!("{}\n", Storm::LAST).as_bytes()).unwrap();
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
}

impl Memory {
    /// What the Service Control Manager does when it starts the daemon's program.
    pub(crate) fn spawn(&mut self) {
        let command = self.host.query(&wicd()).unwrap().unwrap().config.command;
        let Command::Controller(arguments) =
            Args::try_parse_from(command.split(' ')).unwrap().command
        else {
            panic!("{command}")
        };
        let settings = Settings {
            ca_bundle: arguments.bundle().cloned(),
            logs: arguments.log_bounds(),
            certificates: arguments.cert_dir,
            lifetime: arguments.cert_duration,
            cluster: arguments.cluster,
        };
        let (stop, kill) = (CancellationToken::new(), CancellationToken::new());
        let host = Arc::new(self.host.running_as_service());
        let site = Site { host, stop: stop.clone(), ready: &|| {} };
        let killed = kill.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                tokio::select! {
                    () = controller::run(&site, &settings) => {}
                    () = killed.cancelled() => {}
                }
            });
        });
        self.daemon = Some(Daemon { stop, kill, thread });
    }

    async fn on_the_host<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Windows) -> T + Send + 'static,
    ) -> T {
        let host = self.host.clone();
        tokio::task::spawn_blocking(move || work(&host)).await.unwrap()
    }

    async fn ended(&mut self, end: impl FnOnce(&Daemon)) {
        if let Some(daemon) = self.daemon.take() {
            end(&daemon);
            tokio::task::spawn_blocking(|| daemon.thread.join().unwrap()).await.unwrap();
        }
    }
}

impl Bench for Memory {
    const ROOTS_GO: bool = true;

    const LOG_SIZE: Option<&str> = Some("1M");
    const STORM: u64 = 10_000_000;

    async fn new(cluster: &Cluster) -> Self {
        let host = FakeWindows::new("winhost");
        host.set_containers(FeatureState::Enabled);
        host.answer_scripts(&SCRIPTS);
        for program in programs(&manifest()).iter().map(String::as_str).chain([host::AGENT]) {
            host.put_file(&path(program), "MZ");
        }
        for (file, content) in files(cluster) {
            host.put_file(&path(file), content);
        }
        let first: BTreeSet<_> = host.list().unwrap().into_iter().map(|s| s.name).collect();
        let moves = Arc::<Mutex<Vec<Move>>>::default();
        let (seen, known) = (Arc::clone(&moves), first.clone());
        host.observe(move |event| {
            let FakeEvent::ServiceChanged { name, state, .. } = event else { return };
            if known.contains(name) || *name == wicd() {
                return;
            }
            let mut seen = seen.lock().unwrap();
            let of = |moved: &&Move| matches!(moved, Move::Start(of) | Move::Stop(of) if *of == name.as_str());
            match state {
                ServiceRunState::Running => seen.push(Move::Start(name.to_string())),
                // The stop of a service that was stopping is counted already.
                _ if matches!(seen.iter().rfind(of), Some(Move::Stop(_))) => {}
                _ => seen.push(Move::Stop(name.to_string())),
            }
        });
        Self { host, first, moves, daemon: None }
    }

    fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, 10)
    }

    async fn services(&self) -> Vec<Service> {
        let mut services = self.host.list().unwrap();
        services.retain(|service| !self.first.contains(&service.name));
        for service in &mut services {
            service.config.recovery = None;
        }
        services
    }

    async fn variables(&self) -> BTreeMap<String, String> {
        let value = |name: &str| Some((name.to_owned(), self.host.get(name).unwrap()?));
        host::PROXY_VARIABLES.into_iter().filter_map(value).collect()
    }

    async fn has_variable(&self, name: &str) -> bool {
        self.host.get(name).unwrap().is_some()
    }

    async fn person(&self, order: Order) {
        let named = |name: String| name.parse::<ServiceName>().unwrap();
        match order {
            Order::Create { name, config } => {
                let config = serde_json::from_value(serde_json::to_value(config).unwrap());
                let stopped = ServiceRunState::Stopped;
                self.host.add_service(&named(name), &config.unwrap(), stopped);
            }
            Order::Command { name, command } => {
                let mut config = self.host.query(&named(name.clone())).unwrap().unwrap().config;
                config.command = command;
                self.host.configure(&named(name), &config).unwrap();
            }
            Order::Show { name, shown } => self.host.change_service(&named(name), |service| {
                service.display_name = shown;
                service.errors_ignored = false;
            }),
            Order::Variable { name, value } => self.host.change_variable(&name, value.as_deref()),
            Order::Number { variable } => self.host.set_variable_unreadable(&variable),
            Order::Start { name } => {
                self.host.start(&named(name), Wait::at_most(limits::SERVICE_START)).unwrap();
            }
            Order::Stop { name } => {
                self.host.stop(&named(name), Wait::at_most(limits::SERVICE_STOP)).unwrap();
            }
            Order::Delete { name } => {
                self.host.delete(&named(name), Wait::at_most(limits::SERVICE_STOP)).unwrap();
            }
            Order::Services | Order::Registry => panic!("ask the bench"),
        }
    }

    async fn crash(&self, service: &str) {
        self.host.crash(&service.parse().unwrap(), 1);
    }

    async fn crash_leaving(&self, service: &str, program: &str) -> u32 {
        self.crash(service).await;
        assert!(self.runs(program, 0));
        0
    }

    fn runs(&self, program: &str, _process: u32) -> bool {
        self.host.processes().contains(&path(program))
    }

    fn tell(&self, service: &str, behaviour: &Behaviour) {
        if let Some(port) = behaviour.port {
            self.host.set_http_status(port, Some(behaviour.health));
        }
        if let Some(storm) = behaviour.storm.as_ref().filter(|storm| !storm.held_back) {
            write_log(self.host.clone(), storm.clone());
        }
        let name = service.parse().unwrap();
        let code = behaviour.ends_after_ms.map(|_| behaviour.code);
        self.host.set_ends_on_start(&name, code);
        self.host.set_leaves_a_child(&name, behaviour.wraps);
        self.host.set_stop_takes(&name, behaviour.ignores_stop.then_some(STUBBORN));
    }

    fn moves(&self) -> Vec<Move> {
        self.moves.lock().unwrap().clone()
    }

    fn folder(&self, folder: &str) -> BTreeMap<String, u64> {
        let folder = path(folder);
        self.host.with_tree(|tree| {
            let length = |(path, node): (&WindowsPath, &Node)| match &node.content {
                Content::File(bytes) => Some((path.to_string(), bytes.len() as u64)),
                Content::Directory | Content::Link(_) => None,
            };
            tree.children(&folder).filter_map(length).collect()
        })
    }

    fn ends_with(&self, file: &str, words: &str) -> bool {
        let content = self.host.file(&path(file));
        content.is_some_and(|content| content.ends_with(format!("{words}\n").as_bytes()))
    }

    fn put(&self, file: &str, content: &[u8]) {
        self.host.put_file(&path(file), content);
    }

    async fn bootstrap(&self, version: &str) -> bool {
        let version = version.to_owned();
        self.on_the_host(move |host| {
            bootstrap::bootstrap(host, &cluster_arguments(), &version).is_ok_and(|all| all)
        })
        .await
    }

    async fn cleanup(&self) -> Option<bool> {
        self.on_the_host(|host| cleanup::cleanup(host, &cluster_arguments(), &mut Vec::new()).ok())
            .await
    }

    fn sees(&self, _service: &str, variable: &str) -> Option<String> {
        match self.host.running_as_service().inherited(variable).unwrap() {
            Inherited::Value(value) => Some(value),
            Inherited::Nothing | Inherited::Unknown => None,
        }
    }

    fn scripts(&self) -> usize {
        let is_script = |(call, _): &(Call, String)| *call == Call::PowerShellRun;
        self.host.changes().iter().filter(|change| is_script(change)).count()
    }

    async fn traces(&self) -> BTreeMap<String, String> {
        let mut snapshot = self.host.snapshot();
        for folder in UNTIDY {
            snapshot = snapshot.without(&path(folder));
        }
        let files =
            snapshot.files.iter().map(|(path, entry)| (path.to_string(), format!("{entry:?}")));
        let services =
            snapshot.services.iter().map(|(name, seen)| (name.to_string(), format!("{seen:?}")));
        let variables = snapshot.environment.into_iter();
        let roots = snapshot.roots.iter().map(|root| (root.to_string(), "root".to_owned()));
        files.chain(services).chain(variables).chain(roots).collect()
    }

    async fn apply(&self, steps: Vec<HostStep>) {
        let (place, text) = plan(steps);
        self.host.put_file(&place, text);
        let report = self
            .on_the_host(move |host| {
                let mut out = Vec::new();
                report::apply(host, "1.2.3", &place, &mut out).unwrap();
                String::from_utf8(out).unwrap()
            })
            .await;
        succeeded(&report);
    }

    async fn start_daemon_as(&mut self, step: HostStep) {
        self.apply(vec![step]).await;
        self.spawn();
    }

    async fn stop_daemon(&mut self) {
        self.ended(|daemon| daemon.stop.cancel()).await;
        self.host.stop(&wicd(), Wait::at_most(limits::SERVICE_STOP)).unwrap();
    }

    async fn kill_daemon(&mut self) {
        let host = self.host.clone();
        self.ended(|daemon| {
            host.cut_after(0);
            daemon.kill.cancel();
        })
        .await;
        self.host.heal();
        self.host.set_service_state(&wicd(), ServiceRunState::Stopped);
    }

    async fn reboot(&mut self) {
        self.kill_daemon().await;
        self.host.power_off();
        self.host.boot();
        if self.host.query(&wicd()).unwrap().is_some() {
            self.spawn();
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(daemon) = &self.daemon {
            daemon.kill.cancel();
        }
    }
}
