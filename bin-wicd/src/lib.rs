//! WICD, the daemon on each Windows node: adapters of `wmco_services::windows` for the real Windows,
//! and the commands around `wmco_services`.
//!
//! # What belongs here
//! - [`args`]: the command line; [`report`]: `probe` and `apply`; [`bootstrap`](mod@bootstrap) and
//!   [`cleanup`](mod@cleanup); [`controller`]; [`cluster`]: clients for the cluster.
//! - [`http`]: a question to an HTTP server; [`service`]: what a Windows service reports; [`logs`]: its files.
//! - `windows`: adapters, the only place for `unsafe`.
//! - [`block`], [`dism`], [`failure_actions`], [`hns`], [`sddl`]: what Windows answers, read on every
//!   platform.
//!
//! # Not here
//! Decisions about services, nodes and certificates: `wmco-services`.

pub mod args;
pub mod block;
pub mod bootstrap;
pub mod cleanup;
pub mod cluster;
pub mod controller;
pub mod dism;
pub mod failure_actions;
pub mod hns;
pub mod http;
pub mod logs;
mod own_node;
pub mod report;
pub mod sddl;
pub mod service;
mod windows;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser as _;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use wmco_services::limits;
use wmco_services::windows::Windows;

use args::{Args, Command};
use controller::{Settings, Site};
use logs::Detail;
use service::{Outcome, Signals};

/// Version of this build, as the operator's; a build for an image sets `WMCO_VERSION`.
///
/// Source: `docs/contract/nodes.md`, NODE7.
pub const VERSION: &str = match option_env!("WMCO_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};

/// Exit code when all was done.
pub const DONE: i32 = 0;

/// Exit code when something was not done; standard error says what.
pub const FAILED: i32 = 1;

/// Exit code of `cleanup` when all was done and the host must restart, but has no Node to say so, as
/// installers for Windows use it. With a Node it is [`DONE`], which the original operator expects.
///
/// Source: Windows documentation, `ERROR_SUCCESS_REBOOT_REQUIRED`.
pub const RESTART_NEEDED: i32 = 3010;

/// Runs the program and returns its exit code; `arguments` start with its name.
pub fn run(arguments: impl Iterator<Item = OsString>) -> i32 {
    let arguments: Vec<OsString> = arguments.collect();
    let args = match Args::try_parse_from(&arguments) {
        Ok(args) => args,
        Err(error) => {
            if args::ask_for_a_service(&arguments) {
                // The service manager waits for a report, unless a person typed this by hand.
                let _ = windows::run_service(Box::new(|_| Outcome::Failed));
            }
            // Without anywhere to write to, only the exit code is left.
            let _ = error.print();
            return if error.use_stderr() { FAILED } else { DONE };
        }
    };
    match perform(args) {
        Ok(code) => code,
        Err(error) => {
            // Standard output is the operator's; people read standard error.
            let _ = writeln!(io::stderr(), "error: {error:#}");
            FAILED
        }
    }
}

/// Returns the exit code.
fn perform(args: Args) -> anyhow::Result<i32> {
    windows::trust_system_libraries_only().context("cannot choose where libraries come from")?;
    let detail = match args.verbose {
        0 => Detail::Usual,
        1 => Detail::More,
        _ => Detail::Everything,
    };
    // A person who types the option gets no further than to the manager, which did not start this process.
    let as_service = matches!(&args.command, Command::Controller(c) if c.windows_service);
    let host = windows::host(as_service)?;
    if let Command::Controller(controller) = args.command {
        return control(host, *controller, detail).map(all_or_failed);
    }
    logs::to_console(detail);
    let out = &mut io::stdout();
    let all = match args.command {
        Command::Probe => report::probe(&*host, VERSION, out)?,
        Command::Apply { plan } => report::apply(&*host, VERSION, &plan, out)?,
        Command::Bootstrap { cluster, desired_version } => {
            bootstrap::bootstrap(&*host, &cluster, &desired_version)?
        }
        Command::Cleanup { cluster } => {
            let restart_needed = cleanup::cleanup(&*host, &cluster, out)?;
            return Ok(if restart_needed { RESTART_NEEDED } else { DONE });
        }
        Command::Controller(_) => false,
    };
    Ok(all_or_failed(all))
}

const fn all_or_failed(all: bool) -> i32 {
    if all { DONE } else { FAILED }
}

/// Runs the controller as a service or from a console.
fn control(
    host: Arc<dyn Windows>,
    arguments: args::Controller,
    detail: Detail,
) -> anyhow::Result<bool> {
    let as_a_service = arguments.windows_service;
    // In here, so that a service also says that it has stopped when there is nowhere to log to.
    let work = move |signals: Signals| {
        if let Err(error) = open_logs(&arguments, detail) {
            let _ = writeln!(io::stderr(), "error: {error:#}");
            return Outcome::Failed;
        }
        let settings = Settings {
            ca_bundle: arguments.bundle().cloned(),
            logs: arguments.log_bounds(),
            certificates: arguments.cert_dir,
            lifetime: arguments.cert_duration,
            cluster: arguments.cluster,
        };
        work(host, &settings, &signals)
    };
    let outcome = if as_a_service {
        windows::run_service(Box::new(work))?
    } else {
        let stop = CancellationToken::new();
        interrupts(stop.clone())?;
        let signals = Signals { stop, ready: Box::new(|| {}), goes_on: Box::new(|| false) };
        work(signals)
    };
    Ok(outcome == Outcome::Stopped)
}

fn open_logs(arguments: &args::Controller, detail: Detail) -> anyhow::Result<()> {
    let Some(folder) = arguments.log_folder() else {
        logs::to_console(detail);
        return Ok(());
    };
    let bounds = arguments.log_bounds();
    logs::to_files(folder, bounds, detail)
        .with_context(|| format!("cannot log to {}, check --log-dir", folder.display()))?;
    tracing::info!(
        folder = %folder.display(),
        file_bytes = bounds.file_bytes,
        age = bounds.age.map(tracing::field::display),
        version = VERSION,
        "service controller starting"
    );
    Ok(())
}

/// Runs the controller until its signals say so, and some seconds longer at most.
fn work(host: Arc<dyn Windows>, settings: &Settings, signals: &Signals) -> Outcome {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "the controller cannot start");
            return Outcome::Failed;
        }
    };
    let site = Site { host, stop: signals.stop.clone(), ready: &*signals.ready };
    runtime.block_on(async {
        let limit = async {
            signals.stop.cancelled().await;
            tokio::time::sleep(limits::DAEMON_STOP.unsigned_abs()).await;
        };
        tokio::select! {
            () = controller::run(&site, settings) => {}
            // What is half done is found by the next start: every step may be repeated.
            () = limit => tracing::warn!("the current step is abandoned, since it takes too long"),
            () = signals.report() => {}
        }
    });
    runtime.shutdown_background();
    Outcome::Stopped
}

/// Cancels `stop` at the first Ctrl-C and ends the process at the second.
fn interrupts(stop: CancellationToken) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::spawn(move || {
        runtime.block_on(async {
            while tokio::signal::ctrl_c().await.is_ok() {
                if stop.is_cancelled() {
                    std::process::exit(1);
                }
                tracing::info!("stopping, press Ctrl-C again to end at once");
                stop.cancel();
            }
        });
    });
    Ok(())
}

/// How long a thread for work on the host waits for more of it.
const IDLE_THREAD: Duration = Duration::from_secs(1);

/// Where requests to the cluster run.
fn runtime() -> anyhow::Result<Runtime> {
    // Every TLS client of this process uses the same library; a second call changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    // An idle daemon needs a thread for a moment now and then, and not its memory in between.
    Ok(runtime.thread_keep_alive(IDLE_THREAD).enable_all().build()?)
}
