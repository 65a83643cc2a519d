//! Commands that talk to a cluster and to hosts.

use std::net::{AddrParseError, SocketAddr, TcpListener};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::{ArgAction, Args};
use jiff::SignedDuration;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use wmco_core::fleet::MaxUnavailable;
use wmco_core::limits;
use wmco_ssh::{Options as SshOptions, TcpDialer};

use super::{Answer, GuardOption};
use crate::VERSION;
use crate::config::Config;
use crate::leader::{Times, TimesArgs};
use crate::payload::Payload;
use crate::progress::Progress;
use crate::resolver::Dns;
use crate::run::{Operator, sending_once};

/// Options of `wmco-operator run`. The names of the first two are those of the original.
#[derive(Args, Debug)]
// So that `ARGS` can change what the Deployment says.
#[command(args_override_self = true)]
pub struct Run {
    /// Enable debug logs of the operator and of the services on nodes
    #[arg(long = "debugLogging", value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_value_t = false, default_missing_value = "true", action = ArgAction::Set)]
    debug: bool,
    /// Kubeconfig of the cluster; default: that of KUBECONFIG, or the cluster of the pod
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Deny certificate requests that break a rule, instead of leaving them pending
    #[arg(long)]
    deny_requests: bool,
    #[command(flatten)]
    guard: GuardOption,
    /// Most nodes that are disrupted at the same time, for example 2 or 25%
    #[arg(long, value_name = "N|P%", default_value_t)]
    max_unavailable: MaxUnavailable,
    /// How long a drain may take before the node is uncordoned and another one gets its turn, for
    /// example 90m
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = drain_timeout)]
    drain_timeout: SignedDuration,
    /// How long a host may take for TCP and the SSH handshake
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = host_timeout)]
    connect_timeout: SignedDuration,
    /// How long a host may take for a login after that; 2m is what its own SSH server allows by default
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = host_timeout)]
    login_timeout: SignedDuration,
    /// Address of the metrics and health endpoints; `:PORT` is a port of all addresses
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:9182", value_parser = bind_address)]
    metrics_bind_address: SocketAddr,
    /// Folder of the payload
    #[arg(long, value_name = "FOLDER", default_value = "/payload")]
    payload: PathBuf,
    /// Folder for the compressed payload; default: a temporary folder
    #[arg(long, value_name = "FOLDER")]
    cache: Option<PathBuf>,
    #[command(flatten)]
    election: TimesArgs,
}

/// As Go's programs read it.
fn bind_address(text: &str) -> Result<SocketAddr, AddrParseError> {
    let of_all = || text.strip_prefix(':').map(|port| format!("0.0.0.0:{port}"));
    of_all().as_deref().unwrap_or(text).parse()
}

fn drain_timeout(text: &str) -> Result<SignedDuration, String> {
    time_within(text, limits::DRAIN_TIMEOUT_LEAST..=limits::DRAIN_TIMEOUT_MOST, "90m")
}

fn host_timeout(text: &str) -> Result<SignedDuration, String> {
    time_within(text, limits::CONNECT_LEAST..=limits::CONNECT_MOST, "45s")
}

/// Reads a time within the limits.
fn time_within(
    text: &str,
    limits: RangeInclusive<SignedDuration>,
    example: &str,
) -> Result<SignedDuration, String> {
    let time = text.parse().map_err(|error| format!("{error}, write for example {example}"))?;
    if !limits.contains(&time) {
        let (least, most) = (limits.start(), limits.end());
        return Err(format!("it has to be between {least:#} and {most:#}"));
    }
    Ok(time)
}

impl Run {
    /// Address of the metrics and health endpoints.
    pub(super) const fn metrics_bind_address(&self) -> SocketAddr {
        self.metrics_bind_address
    }

    /// File of the cluster's address and of who we are there; `None`: that of the environment.
    pub(super) fn kubeconfig(&self) -> Option<&Path> {
        self.kubeconfig.as_deref()
    }

    /// Folder of the compressed payload; `None`: a temporary one.
    pub(super) fn cache(&self) -> Option<&Path> {
        self.cache.as_deref()
    }

    /// Whether the times of the leader election fit each other.
    ///
    /// # Errors
    /// Which do not.
    pub(super) fn check_election(&self) -> anyhow::Result<()> {
        Times::try_from(self.election).map(drop).map_err(Into::into)
    }

    fn ssh(&self) -> SshOptions {
        let mut ssh = SshOptions::default();
        ssh.timeouts.connect = self.connect_timeout.unsigned_abs();
        ssh.timeouts.authenticate = self.login_timeout.unsigned_abs();
        ssh
    }
}

/// Runs the controllers until a signal.
pub(super) fn run(options: &Run) -> anyhow::Result<Answer> {
    let process = getrandom::u64().context("no random number for the name of this process")?;
    let lookup = |name: &str| std::env::var(name).ok();
    let mut config = Config::from_env(VERSION, options.debug, process, lookup)?;
    config.deny_requests = options.deny_requests;
    config.guard_removals = options.guard.most();
    config.max_unavailable = options.max_unavailable;
    config.election = options.election.try_into()?;
    config.drain_timeout = options.drain_timeout;
    let level = if options.debug { "debug" } else { "info" };
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_from_default_env().unwrap_or_else(|_| level.into()))
        .with_writer(std::io::stderr)
        .json()
        .init();
    runtime()?.block_on(async {
        let cluster =
            wmco_kubeconfig::infer_from(options.kubeconfig.as_deref()).context("no cluster")?;
        let once = sending_once(&cluster)?;
        let client = wmco_kubeconfig::client(cluster)?;
        let cache = options.cache.clone().unwrap_or_else(std::env::temp_dir);
        let payload = Payload::load(&options.payload, &cache)?;
        let address = options.metrics_bind_address;
        let http = TcpListener::bind(address).with_context(|| {
            format!("cannot listen on {address}, choose another --metrics-bind-address")
        })?;
        let operator = Operator {
            config,
            client,
            once,
            payload,
            dialer: Arc::new(TcpDialer),
            dns: Dns::system(),
            ssh: options.ssh(),
            http: Some(http),
            progress: Progress::new(),
        };
        operator.run(stopped_by_signal()).await
    })?;
    Ok(Answer::Yes)
}

/// Runs the demo.
#[cfg(feature = "demo")]
pub(super) fn demo(options: crate::demo::Options) -> anyhow::Result<Answer> {
    // The screen shows the progress; the log is off unless RUST_LOG asks for it.
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_from_default_env().unwrap_or_else(|_| "off".into()))
        .with_writer(std::io::stderr)
        .init();
    let done = runtime()?
        .block_on(async { Box::pin(crate::demo::run(options, stopped_by_signal())).await })?;
    Ok(if done { Answer::Yes } else { Answer::No })
}

pub(super) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    // Every TLS client and server of this process uses the same library.
    let _ = rustls::crypto::ring::default_provider().install_default();
    tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no runtime")
}

/// Cancelled by the first Ctrl-C or SIGTERM.
fn stopped_by_signal() -> CancellationToken {
    let stopped = CancellationToken::new();
    let stop = stopped.clone();
    tokio::spawn(async move {
        let interrupt = tokio::signal::ctrl_c();
        let terminate = async {
            use tokio::signal::unix::{SignalKind, signal};
            match signal(SignalKind::terminate()) {
                Ok(mut signal) => signal.recv().await,
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = interrupt => {}
            _ = terminate => {}
        }
        stop.cancel();
    });
    stopped
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        run: Run,
    }

    fn timeouts(arguments: &[&str]) -> (u64, u64) {
        let line = Line::try_parse_from([&["run"], arguments].concat()).unwrap();
        let timeouts = line.run.ssh().timeouts;
        (timeouts.connect.as_secs(), timeouts.authenticate.as_secs())
    }

    #[test]
    fn times_for_hosts_are_those_of_the_options() {
        let defaults = SshOptions::default().timeouts;
        let defaults = (defaults.connect.as_secs(), defaults.authenticate.as_secs());
        assert_eq!(timeouts(&[]), defaults, "the help shows the defaults of the limits");
        assert_eq!(timeouts(&["--connect-timeout=45s", "--login-timeout", "5m"]), (45, 300));
    }
}
