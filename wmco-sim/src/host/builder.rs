//! Settings of a simulated host.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use russh::keys::PublicKey;
use tokio::sync::mpsc;
use wmco_core::protocol::FeatureState;
use wmco_services::fake::FakeWindows;
use wmco_services::windows::{HttpAnswer, Machine as _, ScriptOutput};

use super::fault::{Conditions, Fault};
use super::gate::Gates;
use super::keys::HostKeyKind;
use super::port::Port;
use super::shared::{HostKeys, Profile, Shared, Timing};
use super::shell::Shell;
use super::{SimHost, SimHostError, power, supervisor};

/// Settings of a [`SimHost`], see [`SimHost::builder`].
#[derive(Clone, Debug)]
#[must_use = "nothing runs before `start`"]
pub struct SimHostBuilder {
    host_name: String,
    metadata_name: Option<String>,
    firmware: Option<String>,
    containers: Option<FeatureState>,
    address: Option<Ipv4Addr>,
    ipv6: Option<Ipv6Addr>,
    model: Option<FakeWindows>,
    profile: Profile,
    host_keys: Vec<HostKeyKind>,
    conditions: Conditions,
}

impl SimHostBuilder {
    pub(super) fn new() -> Self {
        Self {
            host_name: "winhost".to_owned(),
            metadata_name: None,
            firmware: None,
            containers: None,
            address: None,
            ipv6: None,
            model: None,
            profile: Profile {
                user: "Administrator".to_owned(),
                shell: Shell::Cmd,
                timing: Timing {
                    restart_delay: None,
                    restart_duration: Duration::from_secs(2),
                    heartbeat: Duration::from_secs(10),
                },
                forwards: BTreeMap::new(),
                authorized: Vec::new(),
                cloud_address: None,
            },
            host_keys: vec![HostKeyKind::EcdsaP256],
            conditions: Conditions::default(),
        }
    }

    /// The computer's name; `winhost` if not set. A given [`model`](Self::model) has its own.
    pub fn host_name(mut self, name: impl Into<String>) -> Self {
        self.host_name = name.into();
        self
    }

    /// Name of the machine in the cloud's metadata service; the computer's name if not set. A given
    /// [`model`](Self::model) has its own.
    pub fn metadata_name(mut self, name: impl Into<String>) -> Self {
        self.metadata_name = Some(name.into());
        self
    }

    /// Makers that the machine's firmware names, for example `Amazon EC2`; the model's if not set.
    pub fn firmware(mut self, makers: impl Into<String>) -> Self {
        self.firmware = Some(makers.into());
        self
    }

    /// State of the containers feature; the model's if not set.
    pub const fn containers(mut self, state: FeatureState) -> Self {
        self.containers = Some(state);
        self
    }

    /// The machine's own address, which its Node reports; the model's if not set. Connections always use
    /// [`SimHost::ssh_address`].
    pub fn address(mut self, address: Ipv4Addr) -> Self {
        self.address = Some(address);
        self
    }

    /// The machine's IPv6 address, which its Node shows as well; the model's if not set.
    pub fn ipv6(mut self, address: Ipv6Addr) -> Self {
        self.ipv6 = Some(address);
        self
    }

    /// A public address that the cloud leads to the machine, which does not know of it; none if not set. Its Node shows
    /// it as `ExternalIP`, and its kubelet asks for a certificate with it.
    pub const fn cloud_address(mut self, address: IpAddr) -> Self {
        self.profile.cloud_address = Some(address);
        self
    }

    /// The model of the machine; a new one if not set.
    pub fn model(mut self, model: FakeWindows) -> Self {
        self.model = Some(model);
        self
    }

    /// The only user who can log in; `Administrator` if not set.
    pub fn user(mut self, name: impl Into<String>) -> Self {
        self.profile.user = name.into();
        self
    }

    /// Adds an authorized key of the user.
    pub fn authorized_key(mut self, key: PublicKey) -> Self {
        self.profile.authorized.push(key);
        self
    }

    /// Kinds of the host keys; one P-256 key if not set.
    pub fn host_keys(mut self, kinds: &[HostKeyKind]) -> Self {
        self.host_keys = kinds.to_vec();
        self
    }

    /// Forwards clients' connections to `address`, at any port, to `to`; other addresses are refused.
    pub fn forward(mut self, address: impl Into<String>, to: SocketAddr) -> Self {
        self.profile.forwards.insert(address.into(), to);
        self
    }

    /// The shell of remote commands; `cmd` if not set.
    pub const fn shell(mut self, shell: Shell) -> Self {
        self.profile.shell = shell;
        self
    }

    /// Additional time of each round trip; none if not set.
    pub const fn latency(mut self, latency: Duration) -> Self {
        self.conditions.latency = latency;
        self
    }

    /// Sets a fault before the start.
    pub fn fault(mut self, fault: Fault) -> Self {
        self.conditions.set(fault);
        self
    }

    /// Time from a restart order to the end of all connections; random up to 200 ms if not set.
    pub const fn restart_delay(mut self, delay: Duration) -> Self {
        self.profile.timing.restart_delay = Some(delay);
        self
    }

    /// Duration of a restart, without the delay before it; 2 s if not set.
    pub const fn restart_duration(mut self, duration: Duration) -> Self {
        self.profile.timing.restart_duration = duration;
        self
    }

    /// Interval of the kubelet's heartbeats; 10 s if not set.
    pub const fn heartbeat(mut self, pause: Duration) -> Self {
        self.profile.timing.heartbeat = pause;
        self
    }

    /// Starts the host. Needs a Tokio runtime.
    ///
    /// # Errors
    /// [`SimHostError`] when there is no free port or a key could not be generated.
    pub async fn start(self) -> Result<SimHost, SimHostError> {
        let kinds = self.host_keys;
        let keys = tokio::task::spawn_blocking(move || HostKeys::generate(&kinds))
            .await
            .map_err(|source| SimHostError::Interrupted { source })??;
        let port = Arc::new(Port::reserve().map_err(|source| SimHostError::Port { source })?);
        let own_model = self.model.is_none();
        let model = self.model.unwrap_or_else(|| new_model(&self.host_name, self.metadata_name));
        if let Some(address) = self.address {
            model.set_addresses(vec![address]);
        }
        if let Some(makers) = &self.firmware {
            model.set_firmware(makers);
        }
        if let Some(address) = self.ipv6 {
            model.set_ipv6(vec![address]);
        }
        if let Some(state) = self.containers {
            model.set_containers(state);
        }
        model.set_restart_by_hand(true);
        let (events, observed) = mpsc::unbounded_channel();
        let gates = Arc::new(Gates::default());
        let behind = Arc::clone(&gates);
        model.observe(move |event| {
            behind.observe(event);
            // The model may outlive its host, without an observer.
            let _ = events.send(event.clone());
        });
        let mut conditions = self.conditions;
        let faults = conditions.faults().to_vec();
        conditions.down = !model.is_up();
        let open = conditions.listens().then(|| port.listen()).transpose();
        let open = open.map_err(|source| SimHostError::Port { source })?;
        let host = Arc::new(Shared::new(model, self.profile, keys, conditions, gates));
        let host = SimHost::new(host, port, own_model);
        for fault in faults {
            host.set_fault(fault);
        }
        let shared = host.shared();
        let stop = shared.stop.clone();
        let serve = power::serve(Arc::clone(shared), host.port(), open);
        shared.tasks.spawn(stop.clone().run_until_cancelled_owned(serve));
        shared.tasks.spawn(supervisor::supervise(Arc::clone(shared), observed));
        Ok(host)
    }
}

/// Creates a machine that answers the scripts and requests of the services ConfigMap for its name. All others succeed
/// with empty output.
///
/// Source: `docs/contract/services.md`, SVC44.
fn new_model(host_name: &str, metadata_name: Option<String>) -> FakeWindows {
    let model = FakeWindows::new(host_name);
    let machine = model.clone();
    let told = move |question: &str| {
        let questions = ["local-hostname", "gcp-get-hostname", "instance/hostname"];
        let asks = questions.iter().any(|part| question.contains(part));
        let own_name = || machine.host_name().unwrap_or_default();
        if asks { metadata_name.clone().unwrap_or_else(own_name) } else { String::new() }
    };
    let told_by_script = told.clone();
    model.set_powershell(move |script| ScriptOutput {
        stdout: told_by_script(script),
        ..ScriptOutput::default()
    });
    model.set_http(move |request| Some(HttpAnswer { status: 200, body: told(request.path) }));
    model
}
