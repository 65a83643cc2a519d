//! An embedded cluster with simulated hosts, and operators that work on it. The demo shows it, the
//! tests of this crate do their worst to it.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, OnceLock, Weak};

use anyhow::Context as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use wmco_core::names::{objects, platforms};
use wmco_core::secret::Secret;
use wmco_sim::cluster::SimCluster;
use wmco_sim::host::SimHostBuilder;
use wmco_sim::machines::{MachineApi, MachineApiBuilder};
use wmco_ssh::{Counters, Options as SshOptions};

use super::dialer::MappedDialer;
use super::hosts::Hosts;
use super::{seed, stand_in};
use crate::config::Config;
use crate::leader;
use crate::payload::Payload;
use crate::progress::Progress;
use crate::run::{Operator, sending_once};

/// Everything but an operator.
pub struct Stage {
    /// The cluster.
    pub cluster: SimCluster,
    /// Its Windows hosts.
    pub hosts: Hosts,
    /// The private key that the hosts let in.
    pub key: Secret,
    /// Makes Machines and their hosts, once it was started.
    machines: Arc<OnceLock<MachineApi>>,
    platform: String,
    config: Config,
    payload: Payload,
    dialer: Arc<MappedDialer>,
    ssh: SshOptions,
    network: tokio::task::JoinHandle<()>,
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

impl Stage {
    /// Starts the cluster, one host per entry of `listed`, and installs the operator's objects.
    /// `adjust` is asked about each host before it starts.
    ///
    /// # Errors
    /// When a stand-in cannot be started.
    pub async fn start(
        listed: &BTreeMap<String, String>,
        adjust: impl Fn(usize, SimHostBuilder) -> SimHostBuilder,
    ) -> anyhow::Result<Self> {
        Self::start_on(platforms::NONE, listed, adjust).await
    }

    /// The same on a platform, one of [`platforms`].
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn start_on(
        platform: &str,
        listed: &BTreeMap<String, String>,
        adjust: impl Fn(usize, SimHostBuilder) -> SimHostBuilder,
    ) -> anyhow::Result<Self> {
        let cluster = SimCluster::builder()
            .taint_nodes()
            .start()
            .await
            .context("the embedded cluster does not start")?;
        let key = stand_in::private_key()?;
        let hosts = Hosts::start(listed, &key, adjust).await?;
        seed::seed(&cluster, platform, &key, listed)?;
        let machines = Arc::<OnceLock<_>>::default();
        let network =
            tokio::spawn(super::network::assign_subnets(client(&admin(&cluster)?).await?));
        Ok(Self {
            network,
            dialer: Arc::new(MappedDialer::new(hosts.addresses(), Arc::clone(&machines))),
            machines,
            platform: platform.to_owned(),
            config: Config::from_env(crate::VERSION, false, 0, seed::environment)?,
            payload: stand_in::payload(crate::VERSION)?,
            ssh: SshOptions::default(),
            cluster,
            hosts,
            key,
        })
    }

    /// Starts the Machine API, whose hosts operators reach from then on; `adjust` is asked about it
    /// before.
    ///
    /// # Errors
    /// When it cannot be started, or was started before.
    pub async fn start_machines(
        &self,
        adjust: impl FnOnce(MachineApiBuilder) -> MachineApiBuilder,
    ) -> anyhow::Result<()> {
        let builder = adjust(MachineApi::builder().platform(&self.platform));
        let machines = builder.start(&self.cluster).await.context("no machine api")?;
        self.machines.set(machines).map_err(|_| anyhow::anyhow!("the machine api runs already"))
    }

    /// The Machine API, once it was started.
    pub fn machines(&self) -> Option<&MachineApi> {
        self.machines.get()
    }

    /// The same for whoever must not keep the stage, such as a hook of its cluster.
    pub fn weak_machines(&self) -> Weak<OnceLock<MachineApi>> {
        Arc::downgrade(&self.machines)
    }

    /// Has a MachineSet make so many Machines, or delete some.
    ///
    /// # Errors
    /// What the API would answer.
    pub fn scale(&self, machine_set: &str, replicas: u32) -> anyhow::Result<()> {
        self.cluster.apply(&wmco_sim::machines::machine_set(machine_set, replicas))?;
        Ok(())
    }

    /// The same operator as in a real cluster, as another process would run it.
    ///
    /// # Errors
    /// When there is no runtime for it.
    pub fn operate(&self, progress: Progress) -> anyhow::Result<Running> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .context("no runtime for the operator")?;
        let stop = CancellationToken::new();
        let (end, ended) = tokio::sync::oneshot::channel();
        let operating = self.operator(progress)?;
        let http = operating.http.local_addr().context("its port is unknown")?;
        let until = stop.clone();
        runtime.spawn(async move {
            let result = async { operating.connect().await?.run(until).await }.await;
            // Whoever does not wait does not care.
            let _ = end.send(result);
        });
        Ok(Running { http, stop, runtime: Some(runtime), ended })
    }

    /// Runs an operator in the current runtime until `stop`.
    ///
    /// # Errors
    /// As [`Operator::run`].
    pub async fn operate_here(
        &self,
        progress: Progress,
        stop: CancellationToken,
    ) -> anyhow::Result<()> {
        self.operator(progress)?.connect().await?.run(stop).await
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

    /// What connections to hosts did.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.ssh.counters
    }

    /// Changes the list of instances.
    ///
    /// # Errors
    /// What the API would answer.
    pub fn list(&self, listed: &BTreeMap<String, String>) -> anyhow::Result<()> {
        Ok(seed::list(&self.cluster, listed)?)
    }

    /// Replaces the private key's Secret by any text.
    ///
    /// # Errors
    /// What the API would answer.
    pub fn give_key(&self, pem: &[u8]) -> anyhow::Result<()> {
        Ok(seed::give_key(&self.cluster, pem)?)
    }

    /// The same with the key that comes next beside it.
    ///
    /// # Errors
    /// As [`give_key`](Self::give_key).
    pub fn give_keys(&self, pem: &[u8], next: &[u8]) -> anyhow::Result<()> {
        Ok(seed::give_keys(&self.cluster, pem, next)?)
    }

    /// Lets the Lease of an operator that was killed run out, as if the time had passed.
    ///
    /// # Errors
    /// What the API would answer.
    pub fn let_lease_run_out(&self) -> anyhow::Result<()> {
        Ok(seed::let_lease_run_out(&self.cluster)?)
    }

    /// The operator's namespace.
    pub const fn namespace(&self) -> &'static str {
        objects::DEFAULT_NAMESPACE
    }

    /// Ends everything and waits for that.
    pub async fn shutdown(self) {
        self.network.abort();
        self.hosts.shutdown().await;
        // Whoever dials still may hold it, too; its hosts lose their power with the last one.
        drop(self.machines);
        self.cluster.stop().await;
    }

    fn operator(&self, progress: Progress) -> anyhow::Result<ToConnect> {
        let process = getrandom::u64().context("no random number for a name")?;
        let identity = leader::identity(objects::OPERATOR, process);
        Ok(ToConnect {
            // The same rights as in a real cluster, and no others.
            kubeconfig: self.cluster.kubeconfig(
                &format!("system:serviceaccount:{}:{}", self.namespace(), objects::OPERATOR),
                &["system:serviceaccounts"],
            )?,
            config: Config { identity, ..self.config.clone() },
            payload: self.payload.clone(),
            dialer: Arc::clone(&self.dialer),
            ssh: self.ssh.clone(),
            http: TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port for its metrics")?,
            progress,
        })
    }
}

fn admin(cluster: &SimCluster) -> anyhow::Result<String> {
    Ok(cluster.kubeconfig("admin", &["system:masters"])?)
}

async fn client(kubeconfig: &str) -> anyhow::Result<kube::Client> {
    Ok(kube::Client::try_from(client_config(kubeconfig).await?)?)
}

async fn client_config(kubeconfig: &str) -> anyhow::Result<kube::Config> {
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
