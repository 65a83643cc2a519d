//! Starts operators, each as another process would run it.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use wmco_core::names::objects;
use wmco_sim::machines::MachineApi;
use wmco_ssh::{Counters, Options as SshOptions};

use super::dialer::MappedDialer;
use super::{Hosts, seed, stand_in};
use crate::config::Config;
use crate::leader;
use crate::payload::Payload;
use crate::progress::Progress;
use crate::resolver::Dns;
use crate::run::{Operator, sending_once};

/// What operators are made of, but for their cluster.
pub struct Launcher {
    config: Config,
    payload: Payload,
    dialer: Arc<MappedDialer>,
    ssh: SshOptions,
}

/// A running operator, in a runtime of its own: killing it leaves nothing of it behind, as the end
/// of a process does.
pub struct Running {
    /// Where its metrics and its health are.
    pub http: SocketAddr,
    stop: CancellationToken,
    runtime: Option<Runtime>,
    ended: tokio::sync::oneshot::Receiver<anyhow::Result<()>>,
}

impl Launcher {
    /// For operators of this version that reach `hosts`.
    ///
    /// # Errors
    /// When there is no payload for it.
    pub fn new(hosts: &Hosts) -> anyhow::Result<Self> {
        Self::with_machines(hosts, Arc::default())
    }

    /// The same, with the hosts of Machines, once there is a Machine API.
    pub(super) fn with_machines(
        hosts: &Hosts,
        machines: Arc<OnceLock<MachineApi>>,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            config: Config::from_env(crate::VERSION, false, 0, seed::environment)?,
            payload: stand_in::payload(crate::VERSION)?,
            dialer: Arc::new(MappedDialer::new(hosts.addresses(), machines)),
            ssh: SshOptions::default(),
        })
    }

    /// The same operator as in a real cluster, as another process would run it.
    ///
    /// # Errors
    /// When there is no runtime for it.
    pub fn launch(&self, kubeconfig: String, progress: Progress) -> anyhow::Result<Running> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .context("no runtime for the operator")?;
        let stop = CancellationToken::new();
        let (end, ended) = tokio::sync::oneshot::channel();
        let operating = self.operator(kubeconfig, progress)?;
        let http = operating.http.local_addr().context("its port is unknown")?;
        let until = stop.clone();
        runtime.spawn(async move {
            let result = async { operating.connect().await?.run(until).await }.await;
            // Fails when nobody waits for the result, which is fine.
            let _ = end.send(result);
        });
        Ok(Running { http, stop, runtime: Some(runtime), ended })
    }

    /// Runs an operator in the current runtime until `stop`.
    ///
    /// # Errors
    /// As [`Operator::run`].
    pub async fn run_here(
        &self,
        kubeconfig: String,
        progress: Progress,
        stop: CancellationToken,
    ) -> anyhow::Result<()> {
        self.operator(kubeconfig, progress)?.connect().await?.run(stop).await
    }

    /// Gives operators that start from now on another configuration.
    pub fn reconfigure(&mut self, change: impl FnOnce(&mut Config)) {
        change(&mut self.config);
    }

    /// Lets operators that start from now on be of another version, with an agent of their own.
    ///
    /// # Errors
    /// When there is no payload for it.
    pub fn upgrade(&mut self, version: &str) -> anyhow::Result<()> {
        self.payload = stand_in::payload(version)?;
        version.clone_into(&mut self.config.version);
        Ok(())
    }

    /// Counters of the connections to hosts.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.ssh.counters
    }

    fn operator(&self, kubeconfig: String, progress: Progress) -> anyhow::Result<ToConnect> {
        let process = getrandom::u64().context("no random number for a name")?;
        let identity = leader::identity(objects::OPERATOR, process);
        Ok(ToConnect {
            kubeconfig,
            config: Config { identity, ..self.config.clone() },
            payload: self.payload.clone(),
            dialer: Arc::clone(&self.dialer),
            ssh: self.ssh.clone(),
            http: TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port for its metrics")?,
            progress,
        })
    }
}

/// A configuration for clients.
pub(super) async fn client_config(kubeconfig: &str) -> anyhow::Result<kube::Config> {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig)?;
    Ok(kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?)
}

/// An operator before it has a client, which belongs to the runtime that it runs in.
struct ToConnect {
    kubeconfig: String,
    config: Config,
    payload: Payload,
    dialer: Arc<MappedDialer>,
    ssh: SshOptions,
    http: TcpListener,
    progress: Progress,
}

impl ToConnect {
    async fn connect(self) -> anyhow::Result<Operator> {
        let cluster = client_config(&self.kubeconfig).await?;
        Ok(Operator {
            config: self.config,
            once: sending_once(&cluster)?,
            client: kube::Client::try_from(cluster)?,
            payload: self.payload,
            dialer: self.dialer,
            dns: Dns::none(),
            ssh: self.ssh,
            http: Some(self.http),
            progress: self.progress,
        })
    }
}

impl Running {
    /// Tells it to stop and waits until it has.
    ///
    /// # Errors
    /// What ended it, if it was not this call.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.stop.cancel();
        let result = (&mut self.ended).await.context("the operator panicked")?;
        self.kill();
        result
    }

    /// Ends it at once, wherever it is.
    pub fn kill(mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
