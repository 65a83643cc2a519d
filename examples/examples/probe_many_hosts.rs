//! Logs in to many hosts at the same time and prints a line about each.
//!
//! ```text
//! cargo run -p wmco-examples --example probe_many_hosts -- USER KEY_FILE ADDRESS[:PORT]...
//! ```
//!
//! Each host has one connection, and all together at most as many as the limits of the pool. Host keys are not checked
//! but printed, to compare them and to pin them in the ConfigMap.

#![allow(clippy::print_stderr, clippy::print_stdout, reason = "that is what it is for")]

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use tokio::task::JoinSet;
use wmco_core::instances::Jump;
use wmco_core::protocol::AgentLocation;
use wmco_core::secret::Secret;
use wmco_core::text::chain;
use wmco_ssh::{
    Credentials, HostAgent as _, Options, Pool, PoolLimits, PrivateKey, ProbeOutcome, Route,
    Target, TcpDialer,
};

const USAGE: &str = "usage: probe_many_hosts USER KEY_FILE ADDRESS[:PORT]...";

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match probe_all(&arguments).await {
        Ok(0) => ExitCode::SUCCESS,
        Ok(failed) => {
            eprintln!("probe_many_hosts: {failed} of the hosts gave no report");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("probe_many_hosts: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the number of hosts that gave no report.
async fn probe_all(arguments: &[String]) -> anyhow::Result<usize> {
    let [user, file, addresses @ ..] = arguments else { bail!(USAGE) };
    if addresses.is_empty() {
        bail!(USAGE);
    }
    let pem = std::fs::read(file).with_context(|| format!("cannot read the key file {file}"))?;
    let key = PrivateKey::parse(&Secret::new(pem)).with_context(|| file.clone())?;
    let credentials = Credentials::new(user, key);
    let pool = Pool::new(Arc::new(TcpDialer), Options::default(), PoolLimits::default());

    let mut probes = JoinSet::new();
    for address in addresses {
        let to: Jump = address.parse().with_context(|| format!("{address} is no address"))?;
        let target = Target { address: to.host.to_string(), port: to.port };
        let route = Route::new(target, credentials.clone());
        let (pool, address) = (pool.clone(), address.clone());
        probes.spawn(async move { (address, probe(&pool, &route).await) });
    }
    let mut failed = 0;
    while let Some(finished) = probes.join_next().await {
        let (address, result) = finished?;
        match result {
            Ok(line) => println!("{address}: {line}"),
            Err(reason) => {
                failed += 1;
                println!("{address}: {reason}");
            }
        }
    }
    Ok(failed)
}

/// Returns a line about the host, or the reason why there is none.
async fn probe(pool: &Pool, route: &Route) -> Result<String, String> {
    let lease = pool.lease(route).await.map_err(|error| chain(&error))?;
    let key = lease.session().host_key().key.fingerprint();
    match lease.probe(AgentLocation::Installed).await {
        Ok(ProbeOutcome::Reported(probe)) => Ok(format!(
            "{}, Windows {}, {} services of ours, host key {key}",
            probe.host_name,
            probe.os_build,
            probe.services.len()
        )),
        Ok(ProbeOutcome::NoReport(_)) => Err(format!("no agent yet, host key {key}")),
        Err(error) => Err(chain(&error)),
    }
}
