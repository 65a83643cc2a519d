//! Asks the agent on a Windows host what it sees, and prints it as JSON.
//!
//! ```text
//! cargo run -p wmco-examples --example probe_host -- ADDRESS[:PORT] USER KEY_FILE [HOST_KEY [VIA]]
//! ```
//!
//! `HOST_KEY` is the base64 text that a first run prints; without it, or with `-`, whoever answers is
//! trusted. `VIA` is a jump host, `[USER@]HOST[:PORT]`, that the same key opens.

use anyhow::{Context as _, bail};
use wmco_core::instances::Jump;
use wmco_core::protocol::AgentLocation;
use wmco_core::secret::Secret;
use wmco_ssh::{
    Credentials, HostAgent as _, HostKeyPolicy, NoReport, Options, PrivateKey, ProbeOutcome, Route,
    Session, SshHost, Target, TcpDialer,
};

#[expect(clippy::print_stdout, reason = "that is what it is for")]
#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [address, user, file, rest @ ..] = arguments.as_slice() else {
        bail!("usage: probe_host ADDRESS[:PORT] USER KEY_FILE [HOST_KEY [VIA]]")
    };
    let pinned = rest.first().filter(|text| *text != "-");
    let pem = std::fs::read(file).with_context(|| format!("cannot read {file}"))?;
    let credentials = Credentials::new(user, PrivateKey::parse(&Secret::new(pem))?);
    let policy = match pinned {
        Some(text) => HostKeyPolicy::Pinned(text.parse()?),
        None => HostKeyPolicy::TrustOnFirstUse,
    };

    let to: Jump = address.parse()?;
    let target = Target { address: to.host.to_string(), port: to.port };
    let mut route = Route::new(target.clone(), credentials.clone()).host_key(policy);
    if let Some(text) = rest.get(1) {
        let jump: Jump = text.parse()?;
        let user = jump.username.unwrap_or_else(|| user.clone());
        let at = Target { address: jump.host.to_string(), port: jump.port };
        route = route.via(Route::new(at, Credentials { user, ..credentials }));
    }
    let session = Session::connect(&route, &TcpDialer, &Options::default()).await?;
    let key = &session.host_key().key;
    println!("host key {} {}\n{key}", key.algorithm(), key.fingerprint());
    if let Some(jump) = session.via() {
        println!("jump host key {}", jump.host_key().key.fingerprint());
    }

    let host = SshHost::new(session);
    let outcome = host.probe(AgentLocation::Installed).await?;
    host.close().await;
    match outcome {
        ProbeOutcome::Reported(probe) => println!("{}", serde_json::to_string_pretty(&probe)?),
        ProbeOutcome::NoReport(NoReport::NoAgent { status, .. }) => {
            bail!("there is no agent on {target} yet (its shell returned {status})")
        }
        ProbeOutcome::NoReport(NoReport::Unusable { error, .. }) => return Err(error.into()),
    }
    Ok(())
}
