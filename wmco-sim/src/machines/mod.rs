//! A simulated Machine API: MachineSets create Machines, Machines boot simulated hosts, hosts become Nodes.
//!
//! It uses a [`TestServer`] through its API, like any controller.
//!
//! ```
//! use wmco_core::names::platforms;
//! use kube_testserver::TestServer;
//! use wmco_sim::machines::{MachineApi, Oddity, machine_set};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let cluster = TestServer::start().await?;
//!     let machines = MachineApi::builder().platform(platforms::AZURE).start(&cluster).await?;
//!     cluster.put(&machine_set("winworker", 2))?;
//!     // A second later, and with the Secret `windows-user-data`, there are two Machines, called
//!     // `winworker-` and five characters.
//!     machines.set_oddity("winworker-x7k2p", Oddity::NoAddresses);
//!     machines.clear_oddities("winworker-x7k2p");
//!     // A Machine shows 10.0.128.1; its host is reached there:
//!     assert_eq!(machines.ssh_address("10.0.128.1".parse()?), None);
//!     machines.shutdown().await;
//!     Ok(())
//! }
//! ```
//!
//! # Real parts
//! Names, owners, labels, finalizers, phases, addresses and references of the objects, and the order in which they
//! change. The commands of a host's user data decide who can log in and whether its SSH server runs, see
//! `docs/contract/user-data.md`, UD7.
//!
//! # Simplifications
//!
//! | in a cloud | here |
//! | --- | --- |
//! | PowerShell runs the user data | its commands are extracted, conditions count as true, order and loops do not matter; a script with an error does nothing |
//! | user data runs again at later starts of a host | it runs once; firewall rules, routes and sshd's configuration are ignored |
//! | a host that is shut down drains its Node first | nothing is drained, there are no hooks and timeouts |
//! | provider specifications are validated, images differ | only the name of the Secret is used; Azure refuses names that are too long; all images lack the SSH server and have the containers feature |
//! | a MachineSet selects by expressions, has a scale sub-resource, is scaled by others | it has equal labels and `spec.replicas` |
//! | health checks replace Machines, instances vanish | they do not |
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

use crate::host::{SimHost, SimHostBuilder};
use kube_testserver::TestServer;
use kube_testserver::error::ApiError;
use shared::{Settings, Shared};

pub use kinds::{DELETE_ANNOTATION, definitions, machine_set};
pub use oddity::Oddity;

/// The user for its API requests.
const USER: &str = "system:serviceaccount:openshift-machine-api:machine-api-controllers";

/// Why the Machine API could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MachineApiError {
    /// A client could not be created.
    #[error("there is no client for the cluster")]
    Client {
        /// The cause.
        source: kube::Error,
    },
    /// The cluster's kubeconfig is invalid.
    #[error("the cluster's kubeconfig cannot be used")]
    Kubeconfig {
        /// The cause.
        source: kube::config::KubeconfigError,
    },
    /// The cluster issues no certificate.
    #[error("there is no certificate for the cluster")]
    Certificate {
        /// The cause.
        source: kube_testserver::CertificateError,
    },
    /// The cluster refuses the definitions.
    #[error("the cluster does not take the kinds of the machine api")]
    Definitions {
        /// The API's error.
        source: ApiError,
    },
}

/// Settings of a [`MachineApi`], see [`MachineApi::builder`].
#[derive(Clone, Debug)]
#[must_use = "nothing runs before `start`"]
pub struct MachineApiBuilder(Settings);

impl MachineApiBuilder {
    /// The cloud, one of [`platforms`]; `None` if not set. It decides names, users, and the form of user data.
    pub fn platform(mut self, platform: impl Into<String>) -> Self {
        self.0.platform = platform.into();
        self
    }

    /// Time from a new Machine to its instance, which gets the user data of that moment; none if not set.
    pub fn provisioning(mut self, time: Duration) -> Self {
        self.0.provisioning = time;
        self
    }

    /// Time from an instance, whose Machine is `Provisioned`, to a running SSH server; none if not set.
    pub fn boot(mut self, time: Duration) -> Self {
        self.0.boot = time;
        self
    }

    /// Reuses the addresses of deleted Machines.
    pub fn reuse_addresses(mut self) -> Self {
        self.0.reuse_addresses = true;
        self
    }

    /// Sets a function that changes the settings of each Machine's host before its start, given the Machine's name.
    pub fn adjust(
        mut self,
        adjust: impl Fn(&str, SimHostBuilder) -> SimHostBuilder + Send + Sync + 'static,
    ) -> Self {
        self.0.adjust = Arc::new(adjust);
        self
    }

    /// Creates the [`definitions`] in the cluster and starts the controllers.
    ///
    /// # Errors
    /// [`MachineApiError`] when the cluster is unusable.
    pub async fn start(self, cluster: &TestServer) -> Result<MachineApi, MachineApiError> {
        for object in definitions() {
            cluster.put(&object).map_err(|source| MachineApiError::Definitions { source })?;
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

async fn client(cluster: &TestServer) -> Result<Client, MachineApiError> {
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

/// A running Machine API with its hosts. Dropping it stops it; [`shutdown`](Self::shutdown) also waits for the end.
#[derive(Debug)]
pub struct MachineApi {
    shared: Arc<Shared>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl MachineApi {
    /// Returns the settings of a new Machine API.
    pub fn builder() -> MachineApiBuilder {
        MachineApiBuilder(Settings {
            platform: platforms::NONE.to_owned(),
            provisioning: Duration::ZERO,
            boot: Duration::ZERO,
            reuse_addresses: false,
            adjust: Arc::new(|_, builder| builder),
        })
    }

    /// Returns the host of the Machine with this name, once it has booted.
    pub fn host(&self, machine: &str) -> Option<Arc<SimHost>> {
        let hosts = self.hosts().into_iter();
        hosts.filter(|(name, _)| name == machine).map(|(_, host)| host).next()
    }

    /// Returns all hosts, each with the name of its Machine.
    pub fn hosts(&self) -> Vec<(String, Arc<SimHost>)> {
        let state = self.shared.state();
        let all = state.cloud.instances.values();
        all.filter_map(|instance| Some((instance.machine.clone(), instance.host.clone()?)))
            .collect()
    }

    /// Returns the real SSH address of the host that has this address, whatever addresses Machines report.
    pub fn ssh_address(&self, address: Ipv4Addr) -> Option<SocketAddr> {
        self.shared.state().cloud.ssh_address(address)
    }

    /// Sets an oddity of the Machine with this name until it is cleared, replacing one of the same kind. The Machine
    /// may be created later.
    pub fn set_oddity(&self, machine: &str, oddity: Oddity) {
        let mut state = self.shared.state();
        oddity::set(state.oddities.entry(machine.to_owned()).or_default(), oddity);
        drop(state);
        self.shared.wake.notify_one();
    }

    /// Clears all oddities of a Machine.
    pub fn clear_oddities(&self, machine: &str) {
        self.shared.state().oddities.remove(machine);
        self.shared.wake.notify_one();
    }

    /// Stops the controllers and waits for their end; powers off all hosts.
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
