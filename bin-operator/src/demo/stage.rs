//! An embedded cluster with simulated hosts, and operators that work on it. The demo shows it, the
//! tests of this crate do their worst to it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};

use anyhow::Context as _;
use kube_testserver::TestServer;
use tokio_util::sync::CancellationToken;
use wmco_core::names::{objects, platforms};
use wmco_core::secret::Secret;
use wmco_sim::host::SimHostBuilder;
use wmco_sim::machines::{MachineApi, MachineApiBuilder};
use wmco_ssh::Counters;

use super::hosts::Hosts;
use super::launcher::{Launcher, Running, client_config};
use super::{access, seed, stand_in};
use crate::config::Config;
use crate::progress::Progress;

/// Everything but an operator.
pub struct Stage {
    /// The cluster.
    pub cluster: TestServer,
    /// Its Windows hosts.
    pub hosts: Hosts,
    /// The private key that the hosts let in.
    pub key: Secret,
    /// Makes Machines and their hosts, once it was started.
    machines: Arc<OnceLock<MachineApi>>,
    platform: String,
    launcher: Launcher,
    network: tokio::task::JoinHandle<()>,
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
        let cluster = TestServer::builder()
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
            launcher: Launcher::with_machines(&hosts, Arc::clone(&machines))?,
            machines,
            platform: platform.to_owned(),
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

    /// The same for holders that must not keep the stage alive, such as a hook of its cluster.
    pub fn weak_machines(&self) -> Weak<OnceLock<MachineApi>> {
        Arc::downgrade(&self.machines)
    }

    /// Has a MachineSet make so many Machines, or delete some.
    ///
    /// # Errors
    /// What the API would answer.
    pub fn scale(&self, machine_set: &str, replicas: u32) -> anyhow::Result<()> {
        self.cluster.put(&wmco_sim::machines::machine_set(machine_set, replicas))?;
        Ok(())
    }

    /// The same operator as in a real cluster, as another process would run it.
    ///
    /// # Errors
    /// When there is no runtime for it.
    pub fn operate(&self, progress: Progress) -> anyhow::Result<Running> {
        self.launcher.launch(self.operators_kubeconfig()?, progress)
    }

    /// Runs an operator in the current runtime until `stop`.
    ///
    /// # Errors
    /// As [`Launcher::run_here`].
    pub async fn operate_here(
        &self,
        progress: Progress,
        stop: CancellationToken,
    ) -> anyhow::Result<()> {
        self.launcher.run_here(self.operators_kubeconfig()?, progress, stop).await
    }

    /// Gives operators that start from now on another configuration.
    pub fn reconfigure(&mut self, change: impl FnOnce(&mut Config)) {
        self.launcher.reconfigure(change);
    }

    /// Lets operators that start from now on be of another version, with an agent of their own.
    ///
    /// # Errors
    /// When there is no payload for it.
    pub fn upgrade(&mut self, version: &str) -> anyhow::Result<()> {
        self.launcher.upgrade(version)
    }

    /// Counters of the connections to hosts.
    pub fn counters(&self) -> &Arc<Counters> {
        self.launcher.counters()
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
        let user = self.user();
        self.network.abort();
        self.hosts.shutdown().await;
        // A connection attempt may still hold it, too; its hosts lose power with the last holder.
        drop(self.machines);
        if let Err(error) = access::keep(&self.cluster, &user) {
            tracing::error!(error = format!("{error:#}"), "what was asked is not kept");
        }
        self.cluster.stop().await;
    }

    /// Who the operator is.
    fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace(), objects::OPERATOR)
    }

    /// The same rights as in a real cluster, and no others.
    fn operators_kubeconfig(&self) -> anyhow::Result<String> {
        Ok(self.cluster.kubeconfig(&self.user(), &["system:serviceaccounts"])?)
    }
}

fn admin(cluster: &TestServer) -> anyhow::Result<String> {
    Ok(cluster.kubeconfig("admin", &["system:masters"])?)
}

async fn client(kubeconfig: &str) -> anyhow::Result<kube::Client> {
    Ok(kube::Client::try_from(client_config(kubeconfig).await?)?)
}
