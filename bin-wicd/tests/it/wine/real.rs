//! What only the real program on a real Service Control Manager and registry can show.

use std::fs::{self, DirEntry};
use std::io;
use std::net::{Ipv4Addr, TcpListener};

use jiff::SignedDuration;
use wicd_wine::hands::{Answer, Config, Order, Start};
use wicd_wine::journal::Event;
use wicd_wine::told;
use wmco_core::digest::Sha256;
use wmco_core::names::{self, host, objects};
use wmco_core::protocol::{
    Access, FeatureState, HostStep, Probe, RebootReason, ReportLine, ServiceRunState, staged_agent,
    staged_content,
};
use wmco_core::winpath::WindowsPath;

use super::Wine;
use super::windows::program;
use crate::bench::{
    Bench as _, ensure_daemon, filled, manifest, manifest_that_sets, plan, succeeded,
};
use crate::cluster::{Cluster, NAMESPACE, until};

const VERSION: &str = "1.2.3-a1b2c3d";

fn path(text: &str) -> WindowsPath {
    text.parse().unwrap()
}

async fn probe(wine: &Wine) -> Probe {
    match wine.agent("probe").await.pop() {
        Some(ReportLine::Probed(probe)) => *probe,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_describes_the_host() {
    let cluster = Cluster::start().await;
    let wine = Wine::new(&cluster).await;
    cluster.publish(VERSION, &manifest());
    assert!(wine.bootstrap(VERSION).await);
    let seen = probe(&wine).await;
    assert_eq!(seen.containers, FeatureState::Enabled);
    assert!(!seen.host_name.is_empty() && seen.os_build.split('.').count() == 3, "{seen:?}");
    assert!(!seen.addresses.iter().any(Ipv4Addr::is_loopback));
    assert!(seen.addresses.contains(&wine.address()));
    assert_eq!(seen.agent.installed, Some(seen.agent.sha256));
    let agent = Sha256::of(&fs::read(program("wicd")).unwrap());
    assert_eq!(seen.files[&path(host::AGENT)].sha256, agent);
    assert_eq!(seen.services.keys().collect::<Vec<_>>(), ["containerd", "kubelet"]);
    let kubelet = &seen.services["kubelet"];
    assert_eq!(kubelet.state, ServiceRunState::Running);
    assert_eq!(kubelet.dependencies, ["containerd"]);
    assert!(kubelet.command.ends_with(&format!("--node-ip={}", wine.address())), "{kubelet:?}");
    // The boot identity is that of one run of the host.
    assert_eq!(probe(&wine).await.boot_id, seen.boot_id);
    wine.windows.reboot().await;
    assert_ne!(probe(&wine).await.boot_id, seen.boot_id);
}

/// `docs/contract/wicd.md`, WICD15: who waits for a restart hears that one is due, and for what.
#[tokio::test(flavor = "multi_thread")]
async fn a_probe_tells_of_changed_roots_and_variables_until_the_restart() {
    let cluster = Cluster::start().await;
    let mut wine = Wine::new(&cluster).await;
    wine.put(host::CA_BUNDLE, cluster.sim.ca_pem().as_bytes());
    assert_eq!(probe(&wine).await.reboot, [].into());
    cluster.publish(VERSION, &manifest_that_sets(&[("WMCO_OURS", "1")]));
    cluster.join(wine.address(), VERSION);
    wine.start_daemon().await;
    until("a restart is asked for", async || {
        cluster.annotation(names::REBOOT_ANNOTATION).is_some()
    })
    .await;
    let reasons = [RebootReason::Environment, RebootReason::Roots];
    assert_eq!(probe(&wine).await.reboot, reasons.into());
    wine.reboot().await;
    assert_eq!(probe(&wine).await.reboot, [].into());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_where_people_look_for_it() {
    let cluster = Cluster::start().await;
    let mut wine = Wine::new(&cluster).await;
    wine.start_daemon().await;
    let log =
        wine.windows.path(&format!(r"{}\windows-instance-config-daemon.exe.INFO", host::WICD_LOGS));
    until("the log says something", async || {
        fs::read_to_string(&log).is_ok_and(|text| text.contains("service controller starting"))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_cannot_begin_says_that_it_has_stopped_and_how() {
    let cluster = Cluster::start().await;
    let wine = Wine::new(&cluster).await;
    let kubeconfig = host::WICD_KUBECONFIG;
    let good = format!("--windows-service --kubeconfig {kubeconfig} --namespace {NAMESPACE}");
    // A folder below a file cannot be made.
    for arguments in [format!("{good} --nonsense"), format!(r"{good} --log-dir {kubeconfig}\logs")]
    {
        let name = objects::WICD.to_owned();
        let config = Config {
            command: format!("{} controller {arguments}", host::AGENT),
            description: String::new(),
            dependencies: Vec::new(),
            start: Start::Manual,
        };
        wine.person(Order::Create { name: name.clone(), config }).await;
        let seen = async || {
            let mut services = wine.all_services().await.into_iter();
            services.find(|service| service.name.as_str() == name).unwrap()
        };
        until("it was started and has stopped", async || {
            let answer = wine.windows.person(&Order::Start { name: name.clone() }).await;
            until("it has stopped", async || seen().await.state == ServiceRunState::Stopped).await;
            // A process that is gone before Wine's SCM has looked counts as one that never
            // answered, and its own exit code is lost.
            let too_quick =
                matches!(&answer, Answer::Failed(error) if error.contains("os error 1053"));
            assert!(matches!(answer, Answer::Done) || too_quick, "{arguments}: {answer:?}");
            !too_quick
        })
        .await;
        assert_eq!(seen().await.exit_code, 1, "{arguments}");
        until("its process is gone", async || wine.daemon().is_none()).await;
        wine.person(Order::Delete { name }).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn services_get_the_words_of_their_command_lines() {
    let cluster = Cluster::start().await;
    let mut wine = Wine::new(&cluster).await;
    let manifest = manifest();
    cluster.publish(VERSION, &manifest);
    cluster.join(wine.address(), VERSION);
    wine.start_daemon().await;
    cluster.configured(VERSION).await;
    let mut started = 0;
    for event in wine.events() {
        let Event::Started { service, words, .. } = event else { continue };
        let wanted = manifest.service(&service.parse().unwrap()).unwrap();
        assert_eq!(words, filled(&wine, &wanted.command).split(' ').collect::<Vec<_>>());
        started += 1;
    }
    assert_eq!(started, manifest.services().len());
}

#[tokio::test(flavor = "multi_thread")]
async fn failure_actions_are_kept_as_windows_keeps_them() {
    let cluster = Cluster::start().await;
    let mut wine = Wine::new(&cluster).await;
    wine.start_daemon().await;
    let registry = wine.registry().await;
    let value = |name: &str| {
        registry.get(&format!(r"SYSTEM\CurrentControlSet\Services\{}\{name}", objects::WICD))
    };
    // 300 s, 4 actions from byte 20 on, each a restart after 10, 30, 60 and 120 s.
    let numbers = [300, 0, 0, 4, 20, 1, 10_000, 1, 30_000, 1, 60_000, 1, 120_000_u32];
    let bytes: Vec<u8> = numbers.into_iter().flat_map(u32::to_le_bytes).collect();
    assert_eq!(value("FailureActions"), Some(&format!("REG_BINARY {bytes:?}")));
    let flag = value("FailureActionsOnNonCrashFailures");
    assert_eq!(flag.map(String::as_str), Some("REG_DWORD [1, 0, 0, 0]"));
    let command = value("ImagePath").unwrap();
    assert!(command.starts_with(&format!("{} controller --windows-service", host::AGENT)));
    assert!(command.contains(&format!("--namespace {NAMESPACE} ")), "{command}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_disk_and_ports_of_the_host_are_told() {
    let cluster = Cluster::start().await;
    let wine = Wine::new(&cluster).await;
    // Wine's ports are those of this machine.
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, host::EXPORTER_PORT));
    let fitness = probe(&wine).await.fitness;
    if taken.is_ok() {
        assert!(fitness.taken_ports.contains(&host::EXPORTER_PORT), "{fitness:?}");
    }
    assert_eq!(fitness.is_administrator, Some(true), "{fitness:?}");
    assert!(fitness.free_bytes.is_some_and(|bytes| bytes > 0), "{fitness:?}");
    assert_eq!(fitness.foreign_kubelet, None);
}

/// What the operator has a new host do, in short.
fn configuration(content: &[u8]) -> Vec<HostStep> {
    let folder = |text: &str| HostStep::EnsureDirectory {
        path: path(text),
        access: Access::of_directory(&path(text)),
    };
    let file = HostStep::PlaceFile {
        path: path(r"C:\k\cni\win-overlay.exe"),
        sha256: Sha256::of(content),
        access: Access::Inherited,
    };
    let steps = [HostStep::InstallAgent, file, HostStep::EnableContainers];
    host::DIRECTORIES.into_iter().map(folder).chain(steps).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_configures_a_fresh_host_and_another_one_takes_all_away() {
    let cluster = Cluster::start().await;
    let wine = Wine::new(&cluster).await;
    wine.windows.write(&format!(r"{}\{}", wicd_wine::FOLDER, told::CONTAINERS), b"Disabled");
    fs::remove_dir_all(wine.windows.path(r"C:\var")).unwrap();
    fs::remove_file(wine.windows.path(host::AGENT)).unwrap();
    // As the operator uploads it.
    let agent = Sha256::of(&fs::read(program("wicd")).unwrap());
    let staged = staged_agent(agent);
    wine.windows.install("wicd", staged.as_str());
    let content = b"a cni plugin".as_slice();
    let place = staged_content(Sha256::of(content));
    wine.windows.write(place.as_str(), &zstd::encode_all(content, 0).unwrap());

    let apply = async |steps: Vec<HostStep>| {
        let (place, text) = plan(steps);
        wine.windows.write(place.as_str(), &text);
        let output = wine.windows.run(&format!("{staged} apply {place}")).await;
        succeeded(&String::from_utf8_lossy(&output.stdout))
    };
    let lines = apply(configuration(content)).await;
    let Some(ReportLine::Probed(probe)) = lines.last() else { panic!("{lines:?}") };
    assert_eq!(probe.agent.installed, Some(agent));
    assert_eq!(probe.containers, FeatureState::Pending);
    assert!(probe.reboot.contains(&RebootReason::Feature));
    assert_eq!(probe.files[&path(r"C:\k\cni\win-overlay.exe")].sha256, Sha256::of(content));
    assert!(wine.windows.path(r"C:\var\log\kubelet").is_dir());
    let steps = configuration(content);
    // Wine keeps no owner and no list of who may read, so our folders look open each time.
    let closed = |step: usize| {
        let access = Access::Administrators;
        matches!(&steps[step], HostStep::EnsureDirectory { access: a, .. } if *a == access)
    };
    let again = apply(steps.clone()).await;
    let changed = |line: &&ReportLine| matches!(line, ReportLine::Done { changed: true, step } if !closed(*step));
    assert_eq!(again.iter().find(changed), None, "{again:?}");

    let data = manifest().render();
    let up = vec![HostStep::Bootstrap { manifest: data.clone() }, ensure_daemon()];
    apply(up).await;
    assert!(wine.daemon().is_some());
    assert_eq!(wine.services().await.len(), 3);
    apply(vec![
        HostStep::RemoveDaemon,
        HostStep::RemoveServices { manifests: vec![data] },
        HostStep::RemoveInstallation,
    ])
    .await;
    assert_eq!((wine.services().await, wine.daemon()), (Vec::new(), None));
    for gone in [r"C:\k\cni\win-overlay.exe", r"C:\var", host::STATE_FILE] {
        assert!(!wine.windows.path(gone).exists(), "{gone}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_never_ends_goes_with_the_daemon() {
    let cluster = Cluster::start().await;
    let mut wine = Wine::new(&cluster).await;
    let hangs = told::Answer { hangs: true, ..told::Answer::default() };
    let answers = told::Answers::from([(String::new(), hangs)]);
    let place = format!(r"{}\{}", wicd_wine::FOLDER, told::POWERSHELL);
    wine.windows.write(&place, &serde_json::to_vec(&answers).unwrap());
    cluster.publish(VERSION, &manifest());
    cluster.join(wine.address(), VERSION);
    wine.start_daemon().await;
    let scripts = || wine.windows.processes(&["powershell.exe"]);
    until("a script runs", async || !scripts().is_empty()).await;
    wine.stop_daemon().await;
    until("the script is gone", async || wine.windows.processes(&["powershell.exe"]).is_empty())
        .await;
    assert_eq!(wine.moves(), []);
}

/// What Linux says of a process of Wine's.
struct Usage {
    /// All memory that is its own: heap and stacks, those too that Wine makes for the kernel's part.
    anonymous_kib: u64,
    /// All that lies in memory, shared libraries included.
    resident_kib: u64,
    threads: u64,
    /// How often its threads have gone to sleep: however slow the machine is, a program that looks around does that as
    /// often as it looks.
    sleeps: u64,
}

impl Usage {
    fn of(process: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let number = |name: &str| number_in(&status, name).unwrap();
        let of_thread = |thread: io::Result<DirEntry>| {
            // It may end meanwhile.
            let status =
                fs::read_to_string(thread.unwrap().path().join("status")).unwrap_or_default();
            number_in(&status, "voluntary_ctxt_switches").unwrap_or_default()
        };
        let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
        Self {
            anonymous_kib: number("RssAnon"),
            resident_kib: number("VmRSS"),
            threads: number("Threads"),
            sleeps: threads.map(of_thread).sum(),
        }
    }
}

/// The number in the line of this name.
fn number_in(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

/// With [`WICD`](super::windows::WICD) it measures the program that is shipped.
#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_at_rest_is_small_and_sleeps() {
    const REST: SignedDuration = SignedDuration::from_secs(25);
    let cluster = Cluster::start().await;
    let mut wine = Wine::new(&cluster).await;
    cluster.publish(VERSION, &manifest());
    cluster.join(wine.address(), VERSION);
    wine.start_daemon().await;
    cluster.configured(VERSION).await;
    cluster.whole_pass().await;
    let daemon = wine.daemon().unwrap();
    // Until the threads of that pass are gone.
    until("it rests", async || Usage::of(daemon).threads <= 3).await;
    let before = Usage::of(daemon);
    tokio::time::sleep(REST.unsigned_abs()).await;
    let after = Usage::of(daemon);
    let Usage { anonymous_kib, resident_kib, threads, .. } = after;
    let sleeps = after.sleeps.saturating_sub(before.sleeps);
    // It does nothing but wait for the service manager, so this is the share of Wine and Rust.
    let stand_in = Usage::of(wine.windows.processes(&["containerd.exe"]).pop().unwrap());
    eprintln!(
        "at rest: {resident_kib} KiB resident, {anonymous_kib} KiB anonymous, {threads} threads, \
         {sleeps} sleeps in {REST:#}, {} before; a service that does nothing: {} KiB resident, {} KiB \
         anonymous",
        before.sleeps, stand_in.resident_kib, stand_in.anonymous_kib
    );
    // A stack under Wine takes one of these mebibytes.
    assert!(anonymous_kib < 12 * 1024, "{anonymous_kib} KiB");
    // Two or three looks at the services; a look each 10 ms would add 2,500 and what it asks Wine.
    assert!(sleeps < 3_500, "a daemon that does nothing woke up {sleeps} times in {REST:#}");
}
