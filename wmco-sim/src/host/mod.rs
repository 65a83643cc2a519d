//! A simulated Windows host with SSH and SFTP, on a model of the machine.
//!
//! ```
//! use wmco_sim::host::{Fault, SimHost};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let host = SimHost::builder().host_name("winhost-1").user("Administrator").start().await?;
//!     let address = host.ssh_address(); // connect here, with a key that `authorized_key` was given
//!     assert!(address.ip().is_loopback());
//!     host.set_fault(Fault::BlackHole);
//!     host.clear_faults();
//!     assert_eq!(host.counts().connections, 0);
//!     host.shutdown().await;
//!     Ok(())
//! }
//! ```
//!
//! # Real parts
//! SSH and SFTP on the wire, the agent's code and the daemon's decisions, which use [`FakeWindows`], and every
//! certificate request and API call of the kubelet and the daemon.
//!
//! # Simplifications
//!
//! | on a Windows host | here |
//! | --- | --- |
//! | any remote command | programs by their full path or from the user's home; of these only agents run, see [`AgentFile`] |
//! | an agent whose connection is cut may be ended with it | it finishes its plan without a client, unless the power is cut |
//! | passwords, certificates of users, several users | one user, with the keys without options in the administrators' file, unless everybody may write to it |
//! | file modes, owners, times, ACLs over SFTP | accepted and ignored; folders have only the model's access |
//! | names with blanks and other characters | only names that a [`WindowsPath`](wmco_core::winpath::WindowsPath) holds |
//! | PowerShell | the scripts of the generated services ConfigMap are answered, all others succeed without effect |
//! | the kubelet runs pods, serves its API, rotates certificates | it registers its Node, renews its Lease and requests its certificates once |
//! | a node controller detects that a kubelet is silent | the host itself marks its Node when the kubelet or the power ends |
//! | other services have programs | they only have a state |

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
    /// A key of that kind could not be generated.
    #[error("no {kind:?} host key could be made, choose another kind")]
    HostKey {
        /// The kind.
        kind: HostKeyKind,
        /// The cause.
        source: russh::keys::ssh_key::Error,
    },
    /// The runtime ended during the start.
    #[error("the runtime ended before the host ran, keep it until the host is stopped")]
    Interrupted {
        /// The cause.
        source: tokio::task::JoinError,
    },
    /// There is no free port on the loopback interface.
    #[error("no port could be opened on the loopback interface, end programs that hold many")]
    Port {
        /// The cause.
        source: std::io::Error,
    },
}

/// A running host. Dropping it stops it; [`shutdown`](Self::shutdown) also waits for the end.
#[derive(Debug)]
pub struct SimHost {
    shared: Arc<Shared>,
    port: Arc<Port>,
    /// Whether the model's script answers come from this module.
    own_model: bool,
}

impl SimHost {
    /// Returns the settings of a new host.
    pub fn builder() -> SimHostBuilder {
        SimHostBuilder::new()
    }

    /// Returns a file that works as the agent of `version`; [`AgentFile`] creates others.
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

    /// Returns the machine's first own address, which its Node reports.
    pub fn address(&self) -> Ipv4Addr {
        let addresses = self.shared.model.addresses().unwrap_or_default();
        addresses.first().copied().unwrap_or(Ipv4Addr::UNSPECIFIED)
    }

    /// Returns the real address of its SSH server, which never changes.
    pub fn ssh_address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Returns the port of [`Self::ssh_address`].
    pub fn ssh_port(&self) -> u16 {
        self.port.address().port()
    }

    /// Returns the user who can log in.
    pub fn user(&self) -> &str {
        &self.shared.user
    }

    /// Returns the machine's model, for inspection and changes.
    pub fn model(&self) -> &FakeWindows {
        &self.shared.model
    }

    /// Returns the public halves of the host keys for the next connection.
    pub fn host_keys(&self) -> Vec<PublicKey> {
        self.shared.host_keys().iter().map(|key| key.public_key().clone()).collect()
    }

    /// Permanently replaces the host keys with new ones of the same kinds, like a reinstallation.
    ///
    /// # Errors
    /// [`SimHostError::HostKey`].
    pub fn change_host_keys(&self) -> Result<(), SimHostError> {
        self.shared.change_host_keys()
    }

    /// Shows the host keys of another one from now on, as a copy of its disk does.
    pub fn copy_host_keys(&self, other: &Self) {
        self.shared.copy_host_keys(&other.shared);
    }

    /// Authorizes only these keys from now on: they replace the content of
    /// [`AUTHORIZED_KEYS`](wmco_core::names::host::AUTHORIZED_KEYS), which each login reads.
    pub fn authorize_only(&self, keys: impl IntoIterator<Item = PublicKey>) {
        authorized_keys::write(&self.shared.model, &keys.into_iter().collect::<Vec<_>>());
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> HostCounts {
        self.shared.tally.counts()
    }

    /// Resets the counts.
    pub fn reset_counts(&self) {
        self.shared.tally.reset();
    }

    /// Sets a fault until it is cleared, replacing one of the same kind.
    pub fn set_fault(&self, fault: Fault) {
        if let Fault::DiskFull { after_bytes } = fault {
            let used = self.shared.model.used_bytes();
            self.shared.model.set_disk_bytes(Some(used.saturating_add(after_bytes)));
        }
        self.shared.conditions.send_modify(|conditions| conditions.set(fault));
    }

    /// Clears the fault of the kind of `fault`, whatever its number.
    pub fn clear_fault(&self, fault: Fault) {
        if matches!(fault, Fault::DiskFull { .. }) {
            self.shared.model.set_disk_bytes(None);
        }
        self.shared.conditions.send_modify(|conditions| conditions.clear(fault));
    }

    /// Clears all faults.
    pub fn clear_faults(&self) {
        self.shared.model.set_disk_bytes(None);
        self.shared.conditions.send_modify(fault::Conditions::clear_all);
    }

    /// Returns the current faults.
    pub fn faults(&self) -> Vec<Fault> {
        self.shared.conditions.borrow().faults().to_vec()
    }

    /// Sets the additional time of each round trip, also for existing connections.
    pub fn set_latency(&self, latency: Duration) {
        self.shared.conditions.send_modify(|conditions| conditions.latency = latency);
    }

    /// Cuts the power: everything ends at once, and the port is closed. If an agent or a pass of the daemon is running,
    /// planned faults of the model are removed at the next start.
    pub fn power_off(&self) {
        if self.shared.model.is_up() {
            self.shared.power_off();
        }
    }

    /// Sets whether a restart stays between its two halves: everything has ended, and nothing starts until this is
    /// `false` again. Restarts that began earlier are held as well.
    pub fn hold_down(&self, held: bool) {
        self.shared.conditions.send_modify(|conditions| conditions.held_down = held);
    }

    /// Starts the machine again.
    pub async fn power_on(&self) {
        if !self.shared.model.is_up() {
            self.shared.boot().await;
        }
    }

    /// Stops the host and waits until all its tasks have ended.
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
            // The answers reference the model, which would never be freed.
            self.shared.model.set_powershell(|_| ScriptOutput::default());
            self.shared.model.set_http(|_| None);
        }
    }
}
