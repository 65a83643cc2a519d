//! State that the parts of a simulated host share.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use russh::keys::{PrivateKey, PublicKey};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wmco_core::winpath::WindowsPath;
use wmco_services::fake::FakeWindows;

use super::SimHostError;
use super::authorized_keys;
use super::counts::Tally;
use super::fault::{Conditions, Fault};
use super::gate::Gates;
use super::keys::HostKeyKind;
use super::shell::Shell;

/// Delays of a host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// From a restart order to the end of all connections; `None`: random up to [`LONGEST_RESTART_DELAY`].
    pub(super) restart_delay: Option<Duration>,
    /// From then until the host answers again.
    pub(super) restart_duration: Duration,
    /// Interval of the kubelet's heartbeats.
    pub(super) heartbeat: Duration,
}

/// Settings of a host that never change.
#[derive(Clone, Debug)]
pub(super) struct Profile {
    pub(super) user: String,
    pub(super) shell: Shell,
    pub(super) timing: Timing,
    /// Targets of connections that are forwarded to these addresses.
    pub(super) forwards: BTreeMap<String, SocketAddr>,
    /// Authorized keys of the user at first.
    pub(super) authorized: Vec<PublicKey>,
    /// Address that the cloud leads to the machine.
    pub(super) cloud_address: Option<IpAddr>,
}

/// Longest random delay of a restart.
const LONGEST_RESTART_DELAY: Duration = Duration::from_millis(200);

impl Timing {
    pub(super) fn restart_delay(&self) -> Duration {
        self.restart_delay.unwrap_or_else(|| {
            let chance = RandomState::new().hash_one(0);
            LONGEST_RESTART_DELAY * u32::try_from(chance % 1000).unwrap_or(0) / 1000
        })
    }
}

/// Host keys: the host's own, and those for [`Fault::ChangedHostKey`].
#[derive(Clone, Debug)]
pub(super) struct HostKeys {
    kinds: Vec<HostKeyKind>,
    own: Vec<PrivateKey>,
    other: Vec<PrivateKey>,
}

impl HostKeys {
    pub(super) fn generate(kinds: &[HostKeyKind]) -> Result<Self, SimHostError> {
        let set = || kinds.iter().map(|kind| kind.generate()).collect::<Result<Vec<_>, _>>();
        Ok(Self { kinds: kinds.to_vec(), own: set()?, other: set()? })
    }
}

/// The shared state of a host.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) model: FakeWindows,
    pub(super) gates: Arc<Gates>,
    pub(super) user: String,
    pub(super) shell: Shell,
    pub(super) timing: Timing,
    pub(super) forwards: BTreeMap<String, SocketAddr>,
    pub(super) cloud_address: Option<IpAddr>,
    pub(super) tally: Arc<Tally>,
    pub(super) conditions: watch::Sender<Conditions>,
    /// Counts changes of services, so that programs can wait for one.
    pub(super) changes: watch::Sender<u64>,
    /// All tasks of this host.
    pub(super) tasks: TaskTracker,
    /// Running agents and daemon passes that use the model, each on a thread.
    pub(super) threads: TaskTracker,
    /// Stops everything permanently.
    pub(super) stop: CancellationToken,
    keys: Mutex<HostKeys>,
    /// Cancelled when the machine loses power.
    power: Mutex<CancellationToken>,
    /// Whether the last loss of power interrupted such threads.
    cut: AtomicBool,
}

impl Shared {
    pub(super) fn new(
        model: FakeWindows,
        profile: Profile,
        keys: HostKeys,
        conditions: Conditions,
        gates: Arc<Gates>,
    ) -> Self {
        let Profile { user, shell, timing, forwards, authorized, cloud_address } = profile;
        // On Windows, the user's first login creates it.
        model.with_tree(|tree| tree.make_folders(&home(&user)));
        if !authorized.is_empty() {
            authorized_keys::write(&model, &authorized);
        }
        let stop = CancellationToken::new();
        let threads = TaskTracker::new();
        threads.close(); // so that one can wait for those that are there
        Self {
            model,
            gates,
            user,
            shell,
            timing,
            forwards,
            cloud_address,
            tally: Arc::default(),
            conditions: watch::Sender::new(conditions),
            changes: watch::Sender::new(0),
            tasks: TaskTracker::new(),
            threads,
            cut: AtomicBool::new(false),
            power: Mutex::new(stop.child_token()),
            stop,
            keys: Mutex::new(keys),
        }
    }

    /// Whether this user can log in with this key. Windows ignores the case of names.
    pub(super) fn admits(&self, user: &str, key: &PublicKey) -> bool {
        user.eq_ignore_ascii_case(&self.user)
            && authorized_keys::read(&self.model).any(|known| known.key_data() == key.key_data())
    }

    /// Returns the host keys for the next connection.
    pub(super) fn host_keys(&self) -> Vec<PrivateKey> {
        let keys = lock(&self.keys);
        let other = self.conditions.borrow().has(Fault::ChangedHostKey);
        if other { keys.other.clone() } else { keys.own.clone() }
    }

    pub(super) fn change_host_keys(&self) -> Result<(), SimHostError> {
        let kinds = lock(&self.keys).kinds.clone();
        let keys = HostKeys::generate(&kinds)?;
        *lock(&self.keys) = keys;
        Ok(())
    }

    pub(super) fn copy_host_keys(&self, other: &Self) {
        let keys = lock(&other.keys).clone();
        *lock(&self.keys) = keys;
    }

    /// Returns a token that is cancelled with the next loss of power.
    pub(super) fn power(&self) -> CancellationToken {
        lock(&self.power).clone()
    }

    /// Ends everything that runs on the machine, including connections, and closes the port.
    pub(super) fn power_off(&self) {
        self.conditions.send_modify(|conditions| conditions.down = true);
        lock(&self.power).cancel();
        if !self.threads.is_empty() {
            // Running processes are interrupted.
            self.cut.store(true, Ordering::SeqCst);
            self.model.cut_after(0);
        }
        self.model.power_off();
    }

    /// Starts the machine after the earlier processes have ended; the port opens when its services run.
    pub(super) async fn boot(&self) {
        self.threads.wait().await;
        if self.cut.swap(false, Ordering::SeqCst) {
            self.model.heal();
        }
        *lock(&self.power) = self.stop.child_token();
        self.model.boot();
        self.conditions.send_modify(|conditions| conditions.down = false);
    }

    /// Returns the user's home, where sessions and commands start. A user name that the model cannot hold gets another
    /// folder name.
    pub(super) fn home(&self) -> WindowsPath {
        home(&self.user)
    }
}

#[expect(clippy::expect_used, reason = "a constant path")]
fn home(user: &str) -> WindowsPath {
    let other = || r"C:\Users\user".parse().expect("a constant path is valid");
    format!(r"C:\Users\{user}").parse().unwrap_or_else(|_| other())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each value is replaced as a whole, so a panic elsewhere cannot leave a partial one.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
