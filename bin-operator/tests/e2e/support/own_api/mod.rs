//! An API server of our own: etcd and kube-apiserver from a folder, on loopback, with nothing else of a
//! cluster, as envtest has it.

mod arguments;
pub(crate) mod audit;
mod process;

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use kube_testserver::Authority;
use rcgen::KeyPair;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use arguments::{Files, Ports};
use process::Process;

/// How long both may take until the API answers.
const PATIENCE: Duration = Duration::from_secs(120);

/// Names of the programs.
const ETCD: &str = "etcd";
const KUBE_APISERVER: &str = "kube-apiserver";

/// Running programs. Dropping it ends them.
pub(crate) struct OwnApi {
    /// Whom the API server believes, and who signed its certificate.
    pub(crate) authority: Arc<Authority>,
    // In the order in which they end: the API server would complain about a lost etcd.
    api_server: Process,
    etcd: Process,
    url: String,
    audit_log: PathBuf,
    _folder: TempDir,
}

impl OwnApi {
    /// Starts both, and waits until the API is ready.
    ///
    /// # Errors
    /// When a program is missing or ends, with the end of its log.
    pub(crate) async fn start(assets: &Path) -> anyhow::Result<Self> {
        let program = |name| executable(assets, name);
        let (etcd, api_server) = (program(ETCD)?, program(KUBE_APISERVER)?);
        let folder = tempfile::Builder::new().prefix("wmco-e2e-").tempdir()?;
        let authority = Arc::new(Authority::new()?);
        let files = write_files(folder.path(), &authority)?;
        let ports = Ports { etcd: free_port()?, etcd_peers: free_port()?, api: free_port()? };
        let log = |name: &str| folder.path().join(format!("{name}.log"));
        let data = folder.path().join("etcd");
        let etcd = Process::start(&etcd, &arguments::etcd(&ports, &data), &log(ETCD))?;
        let arguments = arguments::api_server(&ports, &files);
        let api_server = Process::start(&api_server, &arguments, &log(KUBE_APISERVER))?;
        let url = format!("https://{}:{}", Ipv4Addr::LOCALHOST, ports.api);
        let audit_log = files.audit_log;
        let mut own = Self { authority, api_server, etcd, url, audit_log, _folder: folder };
        own.ready().await?;
        Ok(own)
    }

    /// For an administrator.
    ///
    /// # Errors
    /// When there is no randomness for a key.
    pub(crate) fn kubeconfig(&self) -> anyhow::Result<Kubeconfig> {
        let text = self.authority.kubeconfig(&self.url, "admin", &["system:masters"])?;
        Ok(Kubeconfig::from_yaml(&text)?)
    }

    /// # Errors
    /// When one of the programs has ended, with the end of its log.
    pub(crate) fn has_not_ended(&mut self) -> anyhow::Result<()> {
        self.etcd.has_not_ended()?;
        self.api_server.has_not_ended()
    }

    /// What was refused to a user, one line each.
    ///
    /// # Errors
    /// When the log cannot be read, or knows nothing of the user.
    pub(crate) fn refused(&self, user: &str) -> anyhow::Result<Vec<String>> {
        audit::refused(&std::fs::read_to_string(&self.audit_log)?, user)
    }

    async fn ready(&mut self) -> anyhow::Result<()> {
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(self.kubeconfig()?, &options).await?;
        let client = Client::try_from(config)?;
        let end = Instant::now() + PATIENCE;
        loop {
            // Its RBAC rules are part of being ready.
            let request = Request::get("/readyz").body(Vec::new())?;
            let Err(error) = client.request_text(request).await else { return Ok(()) };
            self.has_not_ended()?;
            if Instant::now() > end {
                let log = self.api_server.end_of_log();
                return Err(error)
                    .with_context(|| format!("{KUBE_APISERVER} does not get ready: {log}"));
            }
            sleep(Duration::from_millis(200)).await;
        }
    }
}

fn executable(assets: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let path = assets.join(name);
    anyhow::ensure!(
        path.is_file(),
        "{} does not exist; KUBEBUILDER_ASSETS names a folder with {ETCD} and {KUBE_APISERVER}",
        path.display()
    );
    Ok(path)
}

/// A port that nobody uses now.
fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

fn write_files(folder: &Path, authority: &Authority) -> anyhow::Result<Files> {
    let server = authority.server()?;
    let accounts = KeyPair::generate()?;
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).map(|()| path)
    };
    Ok(Files {
        ca: write("ca.crt", authority.pem())?,
        certificate: write("server.crt", &server.certificate)?,
        key: write("server.key", &server.key)?,
        accounts_key: write("accounts.key", &accounts.serialize_pem())?,
        accounts_public_key: write("accounts.pub", &accounts.public_key_pem())?,
        audit_policy: write("audit-policy.json", audit::POLICY)?,
        audit_log: folder.join("audit.log"),
    })
}
