//! A Machine API: MachineSets make Machines, Machines boot simulated hosts, hosts become Nodes.
//!
//! It works on a [`SimCluster`] through its API, as any controller does.
//!
//! ```
//! use wmco_core::names::platforms;
//! use wmco_sim::cluster::SimCluster;
//! use wmco_sim::machines::{MachineApi, Oddity, machine_set};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let cluster = SimCluster::start().await?;
//! let machines = MachineApi::builder().platform(platforms::AZURE).start(&cluster).await?;
//! cluster.apply(&machine_set("winworker", 2))?;
//! // A second later, and with the Secret `windows-user-data`, there are two Machines, called
//! // `winworker-` and five characters.
//! machines.set_oddity("winworker-x7k2p", Oddity::NoAddresses);
//! machines.clear_oddities("winworker-x7k2p");
//! // A Machine shows 10.0.128.1; its host is reached there:
//! assert_eq!(machines.ssh_address("10.0.128.1".parse()?), None);
//! machines.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # What is real
//! Names, owners, labels, finalizers, phases, addresses and references of the objects, in the order in
//! which they change. Who may log in to a host, and whether it answers, is what the commands of its user
//! data do, see `spec/operator.md`, section 6.4.
//!
//! # What is left out
//!
//! | in a cloud | here |
//! | --- | --- |
//! | PowerShell runs the user data | its commands are looked for, conditions count as true, order and loops do not matter; a script with an error does nothing |
//! | user data runs again at later starts of a host | it runs once; firewall rules, routes and sshd's configuration are not looked at |
//! | a host that is shut down drains its Node first | nothing is drained, hooks and timeouts are not known |
//! | provider specifications are checked, images differ | only the name of the Secret counts; Azure refuses names that are too long; all images lack the SSH server and have the feature for containers |
//! | a MachineSet selects by expressions, has a scale sub-resource, is scaled by others | equal labels, `spec.replicas` |
//! | health checks replace Machines, instances vanish by themselves | they do not |
//! | a cloud's own rules for addresses, names and provider IDs | one subnet from 10.0.128.1, names by a few rules per platform |

mod boot;
mod cloud;
mod controller;
mod kinds;
mod link;
mod machine;
mod oddity;
mod pass;
mod resources;
mod scale;
mod sets;
mod shared;
mod status;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wmco_core::names::platforms;

use crate::cluster::SimCluster;
use crate::cluster::error::ApiError;
use crate::host::{SimHost, SimHostBuilder};
use shared::{Settings, Shared};

pub use kinds::{DELETE_ANNOTATION, definitions, machine_set};
pub use oddity::Oddity;

/// The user as whom it works.
const USER: &str = "system:serviceaccount:openshift-machine-api:machine-api-controllers";

/// Why there is no Machine API.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MachineApiError {
    /// There is no client.
    #[error("there is no client for the cluster")]
    Client {
        /// What was wrong.
        source: kube::Error,
    },
    /// The cluster's kubeconfig cannot be used.
    #[error("the cluster's kubeconfig cannot be used")]
    Kubeconfig {
        /// What was wrong.
        source: kube::config::KubeconfigError,
    },
    /// The cluster makes no certificate.
    #[error("there is no certificate for the cluster")]
    Certificate {
        /// What was wrong.
        source: rcgen::Error,
    },
    /// The cluster does not take the kinds.
    #[error("the cluster does not take the kinds of the machine api")]
    Definitions {
        /// What the API would answer.
        source: ApiError,
    },
}

/// Settings of a [`MachineApi`], see [`MachineApi::builder`].
#[derive(Clone, Debug)]
#[must_use = "nothing runs before `start`"]
pub struct MachineApiBuilder(Settings);

impl MachineApiBuilder {
    /// The cloud, one of [`platforms`]; `None` if not set. It decides names, users, and in which form
    /// user data is.
    pub fn platform(mut self, platform: impl Into<String>) -> Self {
        self.0.platform = platform.into();
        self
    }

    /// Time from a new Machine to its instance, which takes the user data of that moment; none if not
    /// set.
    pub fn provisioning(mut self, time: Duration) -> Self {
        self.0.provisioning = time;
        self
    }

    /// Time from an instance, whose Machine is `Provisioned`, to a host that answers; none if not set.
    pub fn boot(mut self, time: Duration) -> Self {
        self.0.boot = time;
        self
    }

    /// Gives addresses of Machines that are gone to new ones.
    pub fn reuse_addresses(mut self) -> Self {
        self.0.reuse_addresses = true;
        self
    }

    /// Is asked about the host of each Machine, by the Machine's name, before it starts.
    pub fn adjust(
        mut self,
        adjust: impl Fn(&str, SimHostBuilder) -> SimHostBuilder + Send + Sync + 'static,
    ) -> Self {
        self.0.adjust = Arc::new(adjust);
        self
    }

    /// Puts the [`definitions`] into the cluster and starts the controllers.
    ///
    /// # Errors
    /// [`MachineApiError`] when the cluster cannot be worked with.
    pub async fn start(self, cluster: &SimCluster) -> Result<MachineApi, MachineApiError> {
        for object in definitions() {
            cluster.apply(&object).map_err(|source| MachineApiError::Definitions { source })?;
        }
        let client = client(cluster).await?;
        let shared = Arc::new(Shared::new(self.0));
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let run = controller::run(Arc::clone(&shared), client);
        tasks.spawn(stop.clone().run_until_cancelled_owned(run));
        tasks.close();
        Ok(MachineApi { shared, stop, tasks })
    }
}

async fn client(cluster: &SimCluster) -> Result<Client, MachineApiError> {
    let text = cluster
        .kubeconfig(USER, &["system:masters"])
        .map_err(|source| MachineApiError::Certificate { source })?;
    let broken = |source| MachineApiError::Kubeconfig { source };
    let kubeconfig = Kubeconfig::from_yaml(&text).map_err(broken)?;
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(broken)?;
    config.proxy_url = None;
    Client::try_from(config).map_err(|source| MachineApiError::Client { source })
}

/// A running Machine API with its hosts. It stops when it is dropped; [`shutdown`](Self::shutdown) also
/// waits for that.
#[derive(Debug)]
pub struct MachineApi {
    shared: Arc<Shared>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl MachineApi {
    /// A Machine API to be.
    pub fn builder() -> MachineApiBuilder {
        MachineApiBuilder(Settings {
            platform: platforms::NONE.to_owned(),
            provisioning: Duration::ZERO,
            boot: Duration::ZERO,
            reuse_addresses: false,
            adjust: Arc::new(|_, builder| builder),
        })
    }

    /// The host of a Machine, by the Machine's name, once it has booted.
    pub fn host(&self, machine: &str) -> Option<Arc<SimHost>> {
        let hosts = self.hosts().into_iter();
        hosts.filter(|(name, _)| name == machine).map(|(_, host)| host).next()
    }

    /// All hosts, each with the name of its Machine.
    pub fn hosts(&self) -> Vec<(String, Arc<SimHost>)> {
        let state = self.shared.state();
        let all = state.cloud.instances.values();
        all.filter_map(|instance| Some((instance.machine.clone(), instance.host.clone()?)))
            .collect()
    }

    /// Where the host that really has this address listens; what Machines show does not matter.
    pub fn ssh_address(&self, address: Ipv4Addr) -> Option<SocketAddr> {
        self.shared.state().cloud.ssh_address(address)
    }

    /// Lets something be odd about a Machine, by its name, until it is cleared; another oddity of that
    /// kind is replaced. The Machine may come later.
    pub fn set_oddity(&self, machine: &str, oddity: Oddity) {
        let mut state = self.shared.state();
        oddity::set(state.oddities.entry(machine.to_owned()).or_default(), oddity);
        drop(state);
        self.shared.wake.notify_one();
    }

    /// Lets nothing be odd about a Machine any more.
    pub fn clear_oddities(&self, machine: &str) {
        self.shared.state().oddities.remove(machine);
        self.shared.wake.notify_one();
    }

    /// Stops the controllers and waits for that; all hosts lose their power.
    pub async fn shutdown(self) {
        self.stop.cancel();
        self.tasks.wait().await;
    }
}

impl Drop for MachineApi {
    fn drop(&mut self) {
        self.stop.cancel();
        for (_, host) in self.hosts() {
            host.power_off();
        }
    }
}
