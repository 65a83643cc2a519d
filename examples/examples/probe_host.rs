//! Asks the agent on a Windows host what it sees, and prints it as JSON.
//!
//! ```text
//! cargo run -p wmco-examples --example probe_host -- ADDRESS USER KEY_FILE [HOST_KEY]
//! ```
//!
//! `HOST_KEY` is the base64 text that a first run prints. Without it, whoever answers is trusted.

use anyhow::{Context as _, bail};
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
    let (address, user, file, pinned) = match arguments.as_slice() {
        [address, user, file] => (address, user, file, None),
        [address, user, file, pinned] => (address, user, file, Some(pinned)),
        _ => bail!("usage: probe_host ADDRESS USER KEY_FILE [HOST_KEY]"),
    };
    let pem = std::fs::read(file).with_context(|| format!("cannot read {file}"))?;
    let credentials = Credentials::new(user, PrivateKey::parse(&Secret::new(pem))?);
    let policy = match pinned {
        Some(text) => HostKeyPolicy::Pinned(text.parse()?),
        None => HostKeyPolicy::TrustOnFirstUse,
    };

    let target = Target::new(address);
    let route = Route::new(target.clone(), credentials).host_key(policy);
    let session = Session::connect(&route, &TcpDialer, &Options::default()).await?;
    let key = &session.host_key().key;
    println!("host key {} {}\n{key}", key.algorithm(), key.fingerprint());

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
