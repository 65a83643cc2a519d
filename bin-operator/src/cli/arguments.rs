//! Options of `run` from the environment, as a Subscription of the Operator Lifecycle Manager sets them.
//!
//! Source: `docs/contract/cluster.md`, CLU9.

use std::ffi::OsString;
use std::path::{Component, Path};

use anyhow::{Context as _, anyhow, bail};
use clap::Parser as _;
use clap::error::ErrorKind;
use wmco_core::manifests::{self, CACHE_FOLDER};
use wmco_core::names::monitoring::EXPORTER_PORT;

use super::{Args, Command};

const RUN: &str = "run";

/// The command line `given`, with the options in `more` after those of `run`. Other commands know none of these.
pub(super) fn with_environment(
    given: impl IntoIterator<Item = OsString>,
    more: Option<&str>,
) -> Vec<OsString> {
    let mut all: Vec<OsString> = given.into_iter().collect();
    if all.get(1).is_some_and(|command| command == RUN) {
        all.extend(split(more.unwrap_or_default()).map(OsString::from));
    }
    all
}

/// Whether `run` understands these options.
///
/// # Errors
/// What it says of them.
pub(super) fn check(more: &str) -> anyhow::Result<()> {
    if split(more).any(|option| option == "--") {
        bail!("--args: leave -- out, for all of it are options");
    }
    if more.contains(char::is_control) || more.contains("$(") {
        bail!(
            "--args: write options with blanks between them, without other blanks and without $(...)"
        );
    }
    let line = ["wmco-operator"].into_iter().chain(manifests::RUN).chain(split(more));
    match Args::try_parse_from(line) {
        Ok(args) => check_run(&args.command),
        Err(error)
            if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) =>
        {
            Err(anyhow!("--args: --help and --version run nothing, leave them out"))
        }
        Err(error) => {
            let error = error.to_string();
            let first = error.lines().next().unwrap_or_default();
            Err(anyhow!("--args: {}", first.strip_prefix("error: ").unwrap_or(first)))
        }
    }
}

/// Whether it runs with them, and probes and Prometheus reach the endpoints.
fn check_run(command: &Command) -> anyhow::Result<()> {
    let Command::Run(run) = command else { return Ok(()) };
    run.check_election().context("--args")?;
    let address = run.metrics_bind_address();
    if address.port() != EXPORTER_PORT || !address.ip().is_unspecified() {
        bail!(
            "--args: leave --metrics-bind-address={address} out, for the Deployment's probes and the Service ask port \
             {EXPORTER_PORT} of the Pod's address"
        );
    }
    if run.kubeconfig().is_some() {
        bail!("--args: leave --kubeconfig out, for the Pod uses its service account");
    }
    let leads_out = |path: &Path| {
        !path.starts_with(CACHE_FOLDER) || path.components().any(|it| it == Component::ParentDir)
    };
    if let Some(cache) = run.cache().filter(|cache| leads_out(cache)) {
        bail!(
            "--args: leave --cache={} out, for the container can write below {CACHE_FOLDER} only",
            cache.display()
        );
    }
    Ok(())
}

fn split(more: &str) -> impl Iterator<Item = &str> {
    more.split(' ').filter(|option| !option.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(given: &[&str], more: Option<&str>) -> Vec<OsString> {
        with_environment(given.iter().map(OsString::from), more)
    }

    #[test]
    fn options_of_the_environment_come_after_those_of_run() {
        let all = line(&["wmco", "run", "--cache", "/c"], Some("--debugLogging  --deny-requests "));
        assert_eq!(all, ["wmco", "run", "--cache", "/c", "--debugLogging", "--deny-requests"]);
        assert_eq!(line(&["wmco", "run"], None), ["wmco", "run"]);
        assert_eq!(line(&["wmco", "run"], Some("")), ["wmco", "run"]);
    }

    #[test]
    fn other_commands_have_their_own_options() {
        let all = line(&["wmco", "check", "cluster", "--live"], Some("--debugLogging"));
        assert_eq!(all, ["wmco", "check", "cluster", "--live"]);
    }

    #[test]
    fn what_run_does_not_know_is_found_before_it_is_deployed() {
        assert!(check("--debugLogging --drain-timeout=2h").is_ok());
        assert!(check("").is_ok());
        assert!(
            check("--metrics-bind-address=[::]:9182").is_ok(),
            "as the Go operator's samples write it"
        );
        assert!(
            check("--debugLogging=true --metrics-bind-address :9182").is_ok(),
            "as Go reads them"
        );
        let error = check("--leader-elect-lease-duration=10s").unwrap_err();
        assert!(format!("{error:#}").starts_with("--args: --leader-elect-"), "{error:#}");
        assert!(check("--cache=/cache/b").is_ok(), "it counts more than what the container says");
        for wrong in ["--help", "--cache=/a\nb", "--cache=$(POD_NAME)", "--", "-- --debugLogging"] {
            assert!(check(wrong).unwrap_err().to_string().starts_with("--args: "), "{wrong}");
        }
        for wrong in [
            "--debug-logging",
            "--drain-timeout=1",
            "demo",
            "--metrics-bind-address=0.0.0.0:9999",
            "--metrics-bind-address=127.0.0.1:9182",
            "--metrics-bind-address=10.0.0.1:9182",
            "--kubeconfig=config",
            "--cache=/other",
            "--cache=/cache/../other",
        ] {
            let error = check(wrong).unwrap_err().to_string();
            assert!(
                error.starts_with("--args: ") && error.contains(wrong.split('=').next().unwrap()),
                "{error}"
            );
        }
    }
}
