//! A Windows host that speaks SSH and SFTP, over a model of the machine.
//!
//! ```
//! use wmco_sim::host::{Fault, SimHost};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let host = SimHost::builder().host_name("winhost-1").user("Administrator").start().await?;
//! let address = host.ssh_address(); // connect here, with a key that `authorized_key` was given
//! assert!(address.ip().is_loopback());
//! host.set_fault(Fault::BlackHole);
//! host.clear_faults();
//! assert_eq!(host.counts().connections, 0);
//! host.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # What is real
//! SSH and SFTP on the wire, the agent's own code and the daemon's own decisions, which work on
//! [`FakeWindows`], and every certificate request and API call of the kubelet and the daemon.
//!
//! # What is left out
//!
//! | on a Windows host | here |
//! | --- | --- |
//! | any remote command | programs by their full path or from the user's own folder; of these only agents run, see [`AgentFile`] |
//! | an agent whose connection is cut may be ended with it | it finishes its plan unseen, unless the power is cut |
//! | passwords, certificates of users, several users | one user, with the keys in the file for administrators that have no options, unless everybody may write to it |
//! | file modes, owners, times, ACLs over SFTP | accepted and forgotten; folders have the model's access only |
//! | names with blanks and other characters | only names that a [`WindowsPath`](wmco_core::winpath::WindowsPath) holds |
//! | PowerShell | the questions of the generated services ConfigMap are answered, all other scripts succeed without effect |
//! | the kubelet runs pods, serves its API, rotates certificates | it registers its Node, keeps it alive and asks for its certificates once |
//! | a node controller notices that a kubelet is silent | the host itself marks its Node when the kubelet or the power ends |
//! | other services do something | they are running or not |

mod agent;
mod agent_file;
mod authorized_keys;
mod backoff;
mod builder;
mod command_line;
mod counts;
mod daemon;
mod disk;
mod exec;
mod fault;
mod gate;
mod identity;
mod keys;
mod kubelet;
mod port;
mod power;
mod programs;
mod sftp;
mod shared;
mod shell;
mod ssh;
mod supervisor;
mod wire;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use russh::keys::PublicKey;
use wmco_services::fake::FakeWindows;
use wmco_services::windows::{Machine as _, ScriptOutput};

use port::Port;
use shared::Shared;

pub use agent_file::{AgentFile, AgentNature};
pub use builder::SimHostBuilder;
pub use counts::HostCounts;
pub use fault::{BadFault, Fault};
pub use keys::HostKeyKind;
pub use shell::Shell;

/// Why a host could not be started or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimHostError {
    /// No key of that kind could be made.
    #[error("no {kind:?} host key could be made, choose another kind")]
    HostKey {
        /// The kind.
        kind: HostKeyKind,
        /// What was wrong.
        source: russh::keys::ssh_key::Error,
    },
    /// The runtime ended meanwhile.
    #[error("the runtime ended before the host ran, keep it until the host is stopped")]
    Interrupted {
        /// What the runtime says.
        source: tokio::task::JoinError,
    },
    /// There is no free port on the loopback interface.
    #[error("no port could be opened on the loopback interface, end programs that hold many")]
    Port {
        /// What the system says.
        source: std::io::Error,
    },
}

/// A running host. It stops when it is dropped; [`shutdown`](Self::shutdown) also waits for that.
#[derive(Debug)]
pub struct SimHost {
    shared: Arc<Shared>,
    port: Arc<Port>,
    /// The model answers scripts as this module taught it.
    own_model: bool,
}

impl SimHost {
    /// A host to be.
    pub fn builder() -> SimHostBuilder {
        SimHostBuilder::new()
    }

    /// A file that works as the agent of `version`; [`AgentFile`] makes others.
    pub fn agent_binary(version: &str) -> Vec<u8> {
        AgentFile::new(version).bytes()
    }

    fn new(shared: Arc<Shared>, port: Arc<Port>, own_model: bool) -> Self {
        Self { shared, port, own_model }
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    fn port(&self) -> Arc<Port> {
        Arc::clone(&self.port)
    }

    /// The first address that the machine believes to have; its Node shows it.
    pub fn address(&self) -> Ipv4Addr {
        let addresses = self.shared.model.addresses().unwrap_or_default();
        addresses.first().copied().unwrap_or(Ipv4Addr::UNSPECIFIED)
    }

    /// Where its SSH server is really reached; the same for the host's whole life.
    pub fn ssh_address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Port of [`Self::ssh_address`].
    pub fn ssh_port(&self) -> u16 {
        self.port.address().port()
    }

    /// The user who may come in.
    pub fn user(&self) -> &str {
        &self.shared.user
    }

    /// The machine, to look at and to change by hand.
    pub fn model(&self) -> &FakeWindows {
        &self.shared.model
    }

    /// Public halves of the host keys that the next connection sees.
    pub fn host_keys(&self) -> Vec<PublicKey> {
        self.shared.host_keys().iter().map(|key| key.public_key().clone()).collect()
    }

    /// Gives the host new host keys of the same kinds for good, as a reinstallation does.
    ///
    /// # Errors
    /// [`SimHostError::HostKey`].
    pub fn change_host_keys(&self) -> Result<(), SimHostError> {
        self.shared.change_host_keys()
    }

    /// Lets the user come in with these keys and no other from now on: they are the new content of
    /// [`AUTHORIZED_KEYS`](wmco_core::names::host::AUTHORIZED_KEYS), which each login reads.
    pub fn authorize_only(&self, keys: impl IntoIterator<Item = PublicKey>) {
        authorized_keys::write(&self.shared.model, &keys.into_iter().collect::<Vec<_>>());
    }

    /// What the host has seen so far.
    pub fn counts(&self) -> HostCounts {
        self.shared.tally.counts()
    }

    /// Starts counting anew.
    pub fn reset_counts(&self) {
        self.shared.tally.reset();
    }

    /// Lets something be wrong until it is cleared; another fault of that kind is replaced.
    pub fn set_fault(&self, fault: Fault) {
        if let Fault::DiskFull { after_bytes } = fault {
            let used = self.shared.model.used_bytes();
            self.shared.model.set_disk_bytes(Some(used.saturating_add(after_bytes)));
        }
        self.shared.conditions.send_modify(|conditions| conditions.set(fault));
    }

    /// Takes away the fault of the kind of `fault`, whatever its number is.
    pub fn clear_fault(&self, fault: Fault) {
        if matches!(fault, Fault::DiskFull { .. }) {
            self.shared.model.set_disk_bytes(None);
        }
        self.shared.conditions.send_modify(|conditions| conditions.clear(fault));
    }

    /// Takes away all faults.
    pub fn clear_faults(&self) {
        self.shared.model.set_disk_bytes(None);
        self.shared.conditions.send_modify(fault::Conditions::clear_all);
    }

    /// What is wrong now.
    pub fn faults(&self) -> Vec<Fault> {
        self.shared.conditions.borrow().faults().to_vec()
    }

    /// Sets the time that one round trip takes more, on connections that exist, too.
    pub fn set_latency(&self, latency: Duration) {
        self.shared.conditions.send_modify(|conditions| conditions.latency = latency);
    }

    /// Cuts the power: everything ends at once, the port is closed. If that meets an agent at work,
    /// faults that were planned for the model are forgotten.
    pub fn power_off(&self) {
        if self.shared.model.is_up() {
            self.shared.power_off();
        }
    }

    /// Switches the machine on again.
    pub async fn power_on(&self) {
        if !self.shared.model.is_up() {
            self.shared.boot().await;
        }
    }

    /// Stops the host and waits until nothing of it runs any more.
    pub async fn shutdown(self) {
        self.shared.stop.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
        self.shared.threads.wait().await;
    }
}

impl Drop for SimHost {
    fn drop(&mut self) {
        self.shared.stop.cancel();
        if self.own_model {
            // The answers hold on to the model, which would never be freed.
            self.shared.model.set_powershell(|_| ScriptOutput::default());
            self.shared.model.set_http(|_| None);
        }
    }
}
