//! What a simulated host is to be like.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
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
    containers: Option<FeatureState>,
    address: Option<Ipv4Addr>,
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
            containers: None,
            address: None,
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

    /// What the cloud's metadata service calls the machine; the computer's name if not set. A given
    /// [`model`](Self::model) knows its own answer.
    pub fn metadata_name(mut self, name: impl Into<String>) -> Self {
        self.metadata_name = Some(name.into());
        self
    }

    /// Whether the image of the machine has the feature for containers; as the model has it if not set.
    pub const fn containers(mut self, state: FeatureState) -> Self {
        self.containers = Some(state);
        self
    }

    /// The address that the machine believes to have, and that its Node will show. The model's own
    /// if not set. Connections go to [`SimHost::ssh_address`] in any case.
    pub fn address(mut self, address: Ipv4Addr) -> Self {
        self.address = Some(address);
        self
    }

    /// The machine itself; a new one if not set.
    pub fn model(mut self, model: FakeWindows) -> Self {
        self.model = Some(model);
        self
    }

    /// The only user who may come in; `Administrator` if not set.
    pub fn user(mut self, name: impl Into<String>) -> Self {
        self.profile.user = name.into();
        self
    }

    /// One more key that the user may come in with.
    pub fn authorized_key(mut self, key: PublicKey) -> Self {
        self.profile.authorized.push(key);
        self
    }

    /// Kinds of host key that the host has; one P-256 key if not set.
    pub fn host_keys(mut self, kinds: &[HostKeyKind]) -> Self {
        self.host_keys = kinds.to_vec();
        self
    }

    /// Lets clients connect on to `address`, any port, which leads to `to`; to others they cannot.
    pub fn forward(mut self, address: impl Into<String>, to: SocketAddr) -> Self {
        self.profile.forwards.insert(address.into(), to);
        self
    }

    /// The shell of remote commands; `cmd` if not set.
    pub const fn shell(mut self, shell: Shell) -> Self {
        self.profile.shell = shell;
        self
    }

    /// Time that one round trip takes more; none if not set.
    pub const fn latency(mut self, latency: Duration) -> Self {
        self.conditions.latency = latency;
        self
    }

    /// A fault from the start on.
    pub fn fault(mut self, fault: Fault) -> Self {
        self.conditions.set(fault);
        self
    }

    /// Time from an order to restart to the end of all connections; a moment within 200 ms that
    /// nobody knows if not set.
    pub const fn restart_delay(mut self, delay: Duration) -> Self {
        self.profile.timing.restart_delay = Some(delay);
        self
    }

    /// Time that a restart takes, without the delay before; 2 s if not set.
    pub const fn restart_duration(mut self, duration: Duration) -> Self {
        self.profile.timing.restart_duration = duration;
        self
    }

    /// Time between two signs of life of the kubelet; 10 s if not set.
    pub const fn heartbeat(mut self, pause: Duration) -> Self {
        self.profile.timing.heartbeat = pause;
        self
    }

    /// Switches the host on. Needs a Tokio runtime.
    ///
    /// # Errors
    /// [`SimHostError`] when there is no free port or no key could be made.
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
        if let Some(state) = self.containers {
            model.set_containers(state);
        }
        model.set_restart_by_hand(true);
        let (events, observed) = mpsc::unbounded_channel();
        let gates = Arc::new(Gates::default());
        let behind = Arc::clone(&gates);
        model.observe(move |event| {
            behind.observe(event);
            // After the host is gone its model may live on, unobserved.
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

/// A machine that tells its name to the scripts and requests of the services ConfigMap that ask for it.
/// All others succeed and say nothing.
///
/// Source: `spec/services.md`, section 6.4.
fn new_model(host_name: &str, metadata_name: Option<String>) -> FakeWindows {
    let model = FakeWindows::new(host_name);
    let machine = model.clone();
    let told = move |question: &str| {
        let asks =
            ["local-hostname", "gcp-get-hostname"].iter().any(|part| question.contains(part));
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
