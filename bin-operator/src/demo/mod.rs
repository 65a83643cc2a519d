//! The whole story on one machine: an embedded cluster, simulated Windows hosts, and the same
//! operator as in a real cluster, over real HTTPS and real SSH.

mod access;
mod dialer;
mod hosts;
pub mod kinds;
mod launcher;
mod lifecycle;
pub mod network;
mod options;
pub mod seed;
mod stage;
pub mod stand_in;
mod summary;
mod unfit;
mod view;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kube_testserver::TestServer;
use kube_testserver::error::ApiError;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use wmco_core::instances::Called;
use wmco_core::machines::key;
use wmco_core::names::objects;
use wmco_sim::host::{HostCounts, SimHost, SimHostBuilder};

pub use access::ACCESS_FOLDER;
pub use hosts::Hosts;
pub use launcher::{Launcher, Running};
pub use options::Options;
pub use stage::Stage;

use crate::progress::{Progress, Stage as Rest};
use view::View;

/// How long all hosts together may take before the demo gives up.
const PATIENCE: Duration = Duration::from_secs(300);

/// The MachineSet of the demo.
const MACHINE_SET: &str = "winworker";

/// Runs the demo until it is through, or `stop`; `Ok(false)` when not every host became a settled
/// node.
///
/// # Errors
/// When the stand-ins cannot be started, or the instances file cannot be used.
pub async fn run(options: Options, stop: CancellationToken) -> anyhow::Result<bool> {
    let stage = Stage::start_on(options.platform(), &options.listed()?, |number, host| {
        let faults = options.faults.iter().filter(|_| number == 0);
        faults.fold(host.latency(options.latency), |host, fault| host.fault(*fault))
    })
    .await?;
    if options.machines > 0 {
        let Options { latency, successor_fault, .. } = options;
        let (first, started) = (usize::from(options.machines), AtomicUsize::new(0));
        let adjust = move |_: &str, host: SimHostBuilder| {
            let is_successor = started.fetch_add(1, Ordering::Relaxed) >= first;
            let fault = successor_fault.filter(|_| is_successor);
            fault.into_iter().fold(host.latency(latency), SimHostBuilder::fault)
        };
        stage.start_machines(|machines| machines.adjust(adjust)).await?;
        stage.scale(MACHINE_SET, options.machines.into())?;
    }
    let addresses: Vec<String> = stage.hosts.iter().map(|(ip, _)| ip.to_owned()).collect();
    let expected = options.expected(addresses.len());
    println_line(&format!(
        "embedded cluster at {}, {} simulated Windows hosts and {} machines, operator {}",
        stage.cluster.url(),
        addresses.len(),
        options.machines,
        crate::VERSION
    ));
    let progress = Progress::new();
    let mut view = View::new(progress.subscribe(), addresses.iter().cloned());
    if options.cluster.is_some() {
        apply(&stage.cluster, &seed::broken_networks())?;
    }
    let mut running = stage.operate(progress)?;
    if options.cluster.is_some() {
        unfit::show(&stage, &stop).await?;
        apply(&stage.cluster, &seed::networks())?;
    }
    let done = view.until_all(Rest::Settled, expected, PATIENCE, &stop).await;
    let first = counts(&stage);

    // A second operator process looks at everything anew: what costs one probe per host and changes
    // nothing was really finished.
    let mut second = None;
    if done && options.faults.is_empty() {
        running.stop().await?;
        all_hosts(&stage, |_, host| host.reset_counts());
        let progress = Progress::new();
        let mut view = View::quiet(progress.subscribe(), addresses.into_iter());
        running = stage.operate(progress)?;
        view.until_all(Rest::Settled, expected, PATIENCE, &stop).await;
        second = Some((counts(&stage), view.changes()));
    }
    if done && options.faults.is_empty() {
        lifecycle::until_upgradeable(&stage.cluster).await;
    }
    let counters = stage.counters().snapshot();
    let latency = options.latency;
    summary::print(&stage.cluster, &first, second.as_ref(), &counters, latency);
    if options.stay && !stop.is_cancelled() {
        stay(&stage.cluster, &stop).await?;
    }
    running.stop().await?;
    stage.shutdown().await;
    let calm = second.is_none_or(|(counts, changes)| {
        changes == 0 && counts.values().all(|host| host.executions.len() == 1)
    });
    Ok(done && calm)
}

fn apply(cluster: &TestServer, objects: &[Value; 2]) -> Result<(), ApiError> {
    objects.iter().try_for_each(|object| cluster.put(object).map(drop))
}

/// Calls `with` for every host, with the address that it is listed by or what people call its Machine.
fn all_hosts(stage: &Stage, mut with: impl FnMut(String, &SimHost)) {
    for (address, host) in stage.hosts.iter() {
        with(address.to_owned(), host);
    }
    for (machine, host) in stage.machines().iter().flat_map(|machines| machines.hosts()) {
        with(Called(&key(&machine)).to_string(), &host);
    }
}

/// What all hosts counted.
fn counts(stage: &Stage) -> BTreeMap<String, HostCounts> {
    let mut counts = BTreeMap::new();
    all_hosts(stage, |name, host| drop(counts.insert(name, host.counts())));
    counts
}

/// Keeps everything running for kubectl until `stop`.
async fn stay(cluster: &TestServer, stop: &CancellationToken) -> anyhow::Result<()> {
    let folder = tempfile::Builder::new().prefix("wmco-demo-").tempdir()?;
    let path = folder.path().join("kubeconfig");
    cluster.write_kubeconfig(&path, "admin", &["system:masters"])?;
    println_line("");
    println_line(&format!("export KUBECONFIG={}", path.display()));
    println_line("kubectl get nodes,csr,cm -A");
    println_line(&format!(
        "kubectl edit configmap {} -n {}   # remove an entry and watch its node go",
        objects::INSTANCES_CONFIG_MAP,
        objects::DEFAULT_NAMESPACE,
    ));
    println_line("Ctrl-C ends it all.");
    stop.cancelled().await;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the demo talks to a person")]
fn println_line(text: &str) {
    println!("{text}");
}
