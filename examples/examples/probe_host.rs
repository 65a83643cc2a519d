//! Runs the agent on a Windows host, and prints its description of the host as JSON.
//!
//! ```text
//! cargo run -p wmco-examples --example probe_host -- ADDRESS[:PORT] USER KEY_FILE [HOST_KEY [VIA]]
//! ```
//!
//! `HOST_KEY` is a line of the host's public key file, or the base64 text that a first run prints; without it, or with
//! `-`, any host key is trusted. `VIA` is a jump host, `[USER@]HOST[:PORT]`, that accepts the same key. The state goes
//! to standard output, everything else to standard error.

#![allow(clippy::print_stderr, clippy::print_stdout, reason = "that is what it is for")]

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use wmco_core::instances::Jump;
use wmco_core::names::objects::INSTANCES_CONFIG_MAP;
use wmco_core::protocol::{AgentLocation, Probe};
use wmco_core::secret::Secret;
use wmco_ssh::{
    Credentials, HostAgent as _, HostKeyPolicy, NoReport, Options, PrivateKey, ProbeOutcome, Route,
    SeenHostKey, Session, SshHost, Target, TcpDialer,
};

const USAGE: &str = "usage: probe_host ADDRESS[:PORT] USER KEY_FILE [HOST_KEY [VIA]]";

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let probed = async { Ok(serde_json::to_string_pretty(&probe(&arguments).await?)?) };
    match probed.await {
        Ok(state) => {
            println!("{state}");
            ExitCode::SUCCESS
        }
        // Prints all causes in one line; each error ends with its remedy.
        Err::<_, anyhow::Error>(error) => {
            eprintln!("probe_host: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn probe(arguments: &[String]) -> anyhow::Result<Box<Probe>> {
    let [address, user, file, rest @ ..] = arguments else { bail!(USAGE) };
    let pem = std::fs::read(file).with_context(|| format!("cannot read the key file {file}"))?;
    let key = PrivateKey::parse(&Secret::new(pem)).with_context(|| file.clone())?;
    let credentials = Credentials::new(user, key);
    let policy = match rest.first().filter(|text| *text != "-") {
        Some(text) => HostKeyPolicy::Pinned(text.parse().context("the host key is wrong")?),
        None => HostKeyPolicy::TrustOnFirstUse,
    };
    let to: Jump = address.parse().context("the address is wrong")?;
    let target = Target { address: to.host.to_string(), port: to.port };
    let mut route = Route::new(target.clone(), credentials.clone()).host_key(policy);
    if let Some(text) = rest.get(1) {
        let jump: Jump = text.parse().context("the jump host is wrong")?;
        let user = jump.username.unwrap_or_else(|| user.clone());
        let at = Target { address: jump.host.to_string(), port: jump.port };
        route = route.via(Route::new(at, Credentials { user, ..credentials }));
    }

    let session = Session::connect(&route, &TcpDialer, &Options::default()).await?;
    if let Some(jump) = session.via() {
        tell("jump host key", jump.host_key());
    }
    tell("host key", session.host_key());
    let host = SshHost::new(session);
    let outcome = host.probe(AgentLocation::Installed).await?;
    host.close().await;
    match outcome {
        ProbeOutcome::Reported(probe) => Ok(probe),
        ProbeOutcome::NoReport(NoReport::NoAgent { status, .. }) => bail!(
            "the login on {target} works, but there is no agent yet (its shell returned {status}), \
             list the host in ConfigMap {INSTANCES_CONFIG_MAP} and the operator brings one"
        ),
        ProbeOutcome::NoReport(NoReport::Unusable { error, .. }) => Err(error.into()),
    }
}

fn tell(whose: &str, seen: &SeenHostKey) {
    let key = &seen.key;
    eprintln!("{whose}: {} {}\n  {key}", key.algorithm(), key.fingerprint());
}
