//! The whole story on one machine: an embedded cluster, simulated Windows hosts, and the same
//! operator as in a real cluster, over real HTTPS and real SSH.

mod dialer;
mod hosts;
mod options;
mod seed;
mod stand_in;
mod summary;
mod view;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio_util::sync::CancellationToken;
use wmco_sim::cluster::SimCluster;
use wmco_ssh::Options as SshOptions;

pub use options::Options;

use crate::config::Config;
use crate::progress::{Progress, Stage};
use crate::run::Operator;
use dialer::MappedDialer;
use hosts::Hosts;
use view::View;

/// How long all hosts together may take before the demo gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs the demo; `Ok(false)` when not every host became a settled node.
///
/// # Errors
/// When the stand-ins cannot be started, or the instances file cannot be used.
pub async fn run(options: Options) -> anyhow::Result<bool> {
    let cluster = SimCluster::start().await.context("the embedded cluster does not start")?;
    let key = stand_in::private_key()?;
    let listed = options.listed()?;
    let hosts = Hosts::start(&listed, &key, &options).await?;
    let version = crate::VERSION;
    let payload = stand_in::payload(version)?;
    seed::seed(&cluster, &key, &listed)?;
    let client = client(&cluster).await?;
    let ssh = SshOptions::default();
    let counters = Arc::clone(&ssh.counters);
    let dialer = Arc::new(MappedDialer::new(hosts.addresses()));
    let config = Config::from_env(version, false, seed::environment)?;

    println_line(&format!(
        "embedded cluster at {}, {} simulated Windows hosts, operator {version}",
        cluster.url(),
        hosts.len()
    ));
    let progress = Progress::new();
    let mut view = View::new(progress.watch(), hosts.addresses().into_keys());
    let stop = CancellationToken::new();
    let operator = |progress: Progress, stop: CancellationToken| {
        let operator = Operator {
            config: config.clone(),
            client: client.clone(),
            payload: payload.clone(),
            dialer: dialer.clone(),
            ssh: ssh.clone(),
            http: None,
            progress,
        };
        tokio::spawn(operator.run(stop))
    };
    let running = operator(progress.clone(), stop.clone());
    let done = view.until_all(Stage::Settled, hosts.expected(&options), PATIENCE).await;
    let first = hosts.counts();

    // A second operator process looks at everything anew: what costs one probe per host and changes
    // nothing was really finished.
    let (second, running) = if done && options.faults.is_empty() {
        stop.cancel();
        running.await.context("the operator panicked")??;
        hosts.reset_counts();
        let stop = CancellationToken::new();
        let progress = Progress::new();
        let mut view = View::quiet(progress.watch(), hosts.addresses().into_keys());
        let running = operator(progress, stop.clone());
        view.until_all(Stage::Settled, hosts.expected(&options), PATIENCE).await;
        (Some((hosts.counts(), view.changes())), (running, stop))
    } else {
        (None, (running, stop))
    };
    summary::print(&cluster, &hosts, &first, second.as_ref(), &counters.snapshot());
    if options.stay {
        stay(&cluster).await?;
    }
    let (running, stop) = running;
    stop.cancel();
    running.await.context("the operator panicked")??;
    hosts.shutdown().await;
    cluster.stop().await;
    let calm = second.is_none_or(|(counts, changes)| {
        changes == 0 && counts.iter().all(|host| host.executions.len() == 1)
    });
    Ok(done && calm)
}

async fn client(cluster: &SimCluster) -> anyhow::Result<kube::Client> {
    let kubeconfig = Kubeconfig::from_yaml(&cluster.kubeconfig("admin", &["system:masters"])?)?;
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(kube::Client::try_from(config)?)
}

/// Keeps everything running for kubectl until Ctrl-C.
async fn stay(cluster: &SimCluster) -> anyhow::Result<()> {
    let folder = tempfile::Builder::new().prefix("wmco-demo-").tempdir()?;
    let path = folder.path().join("kubeconfig");
    cluster.write_kubeconfig(&path, "admin", &["system:masters"])?;
    println_line("");
    println_line(&format!("export KUBECONFIG={}", path.display()));
    println_line("kubectl get nodes,csr,cm -A");
    println_line(&format!(
        "kubectl edit configmap {} -n {}   # remove an entry and watch its node go",
        wmco_core::names::objects::INSTANCES_CONFIG_MAP,
        wmco_core::names::objects::DEFAULT_NAMESPACE,
    ));
    println_line("Ctrl-C ends it all.");
    tokio::signal::ctrl_c().await?;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the demo talks to a person")]
fn println_line(text: &str) {
    println!("{text}");
}
