//! Runs a simulated Windows host with faults: one of the library, and one defined here.
//!
//! ```text
//! cargo run -p wmco-examples --example broken_host
//! ```
//!
//! A test would assert what this program prints.

#![allow(clippy::print_stdout, reason = "that is what it is for")]

use anyhow::Context as _;
use russh::keys::ssh_key::LineEnding;
use russh::keys::{Algorithm, PrivateKey as HostSideKey, key::safe_rng};
use wmco_core::names::host::AGENT;
use wmco_core::protocol::AgentLocation;
use wmco_core::secret::Secret;
use wmco_services::fake::{Call, Fault as WindowsFault};
use wmco_sim::host::{Fault, SimHost};
use wmco_ssh::{
    Credentials, HostAgent as _, NoReport, Options, PrivateKey, ProbeOutcome, Route, Session,
    SshHost, Target, TcpDialer,
};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let key = HostSideKey::random(&mut safe_rng(), Algorithm::Ed25519)?;
    let host = SimHost::builder()
        .host_name("win-1")
        .authorized_key(key.public_key().clone())
        .start()
        .await?;
    host.model().put_file(&AGENT.parse()?, SimHost::agent_binary("1.0.0"));

    let pem = Secret::new(key.to_openssh(LineEnding::LF)?.as_bytes());
    let credentials = Credentials::new(host.user(), PrivateKey::parse(&pem)?);
    let target = Target { address: "127.0.0.1".to_owned(), port: host.ssh_port() };
    let route = Route::new(target, credentials);

    println!("as it is:        {}", look(&route).await);

    // The connection ends after this many bytes.
    let dropped = Fault::DropConnection { after_bytes: 1_000 };
    host.set_fault(dropped);
    println!("{dropped}: {}", look(&route).await);
    host.clear_fault(dropped);

    // Windows denies the agent one call, whatever its object. Each call of the agent can fail like that.
    host.model().fail(Call::FilesWalk, "", 1, WindowsFault::AccessDenied);
    println!("access denied:   {}", look(&route).await);

    println!("as it was:       {}", look(&route).await);
    host.shutdown().await;
    Ok(())
}

/// Returns one line: the agent's report, or the reason why there is none.
async fn look(route: &Route) -> String {
    let probed = async {
        let session = Session::connect(route, &TcpDialer, &Options::default()).await?;
        let host = SshHost::new(session);
        let outcome = host.probe(AgentLocation::Installed).await.context("probe the host")?;
        host.close().await;
        anyhow::Ok(outcome)
    };
    match probed.await {
        Ok(ProbeOutcome::Reported(probe)) => format!("{} runs {}", probe.host_name, probe.os_build),
        Ok(ProbeOutcome::NoReport(NoReport::NoAgent { status, errors })) => {
            format!("the command ended with {status}: {errors}")
        }
        Ok(ProbeOutcome::NoReport(NoReport::Unusable { error, .. })) => error.to_string(),
        Err(error) => format!("{error:#}"),
    }
}
