//! An empty API server for kubectl and other programs, until Ctrl-C.
//!
//! ```text
//! cargo run -p kube-testserver --example serve
//! ```

#![allow(clippy::print_stdout, reason = "that is what it is for")]

use std::io::Write as _;

use kube_testserver::TestServer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = TestServer::start().await?;
    // Only its owner may read the file, which holds a private key. It goes with the server.
    let mut kubeconfig = tempfile::NamedTempFile::new()?;
    kubeconfig.write_all(server.kubeconfig("me", &["system:masters"])?.as_bytes())?;
    println!("export KUBECONFIG={}", kubeconfig.path().display());
    tokio::signal::ctrl_c().await?;
    server.stop().await;
    Ok(())
}
