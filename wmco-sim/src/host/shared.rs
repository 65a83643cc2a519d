//! What the parts of one simulated host share.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::net::SocketAddr;
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

/// How long things take on a host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// From the order to restart to the end of all connections; `None`: some moment within
    /// [`LONGEST_RESTART_DELAY`].
    pub(super) restart_delay: Option<Duration>,
    /// From there until the host answers again.
    pub(super) restart_duration: Duration,
    /// Between two signs of life of the kubelet.
    pub(super) heartbeat: Duration,
}

/// How a host behaves as long as it runs.
#[derive(Clone, Debug)]
pub(super) struct Profile {
    pub(super) user: String,
    pub(super) shell: Shell,
    pub(super) timing: Timing,
    /// Where connections to these addresses are taken.
    pub(super) forwards: BTreeMap<String, SocketAddr>,
    /// Keys that the user may come in with at first.
    pub(super) authorized: Vec<PublicKey>,
}

/// Latest moment for a restart whose moment is left to chance.
const LONGEST_RESTART_DELAY: Duration = Duration::from_millis(200);

impl Timing {
    pub(super) fn restart_delay(&self) -> Duration {
        self.restart_delay.unwrap_or_else(|| {
            let chance = RandomState::new().hash_one(0);
            LONGEST_RESTART_DELAY * u32::try_from(chance % 1000).unwrap_or(0) / 1000
        })
    }
}

/// Host keys: the host's own, and those of a host that came in its place.
#[derive(Debug)]
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

/// One host, as seen by its parts.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) model: FakeWindows,
    pub(super) gates: Arc<Gates>,
    pub(super) user: String,
    pub(super) shell: Shell,
    pub(super) timing: Timing,
    pub(super) forwards: BTreeMap<String, SocketAddr>,
    pub(super) tally: Arc<Tally>,
    pub(super) conditions: watch::Sender<Conditions>,
    /// Counts changes of services, so that programs can wait for one.
    pub(super) changes: watch::Sender<u64>,
    /// Everything that runs for this host.
    pub(super) tasks: TaskTracker,
    /// Agents and passes of the daemon that work on the model now, each on a thread.
    pub(super) threads: TaskTracker,
    /// Ends everything for good.
    pub(super) stop: CancellationToken,
    keys: Mutex<HostKeys>,
    /// Ends what runs between two starts of the machine.
    power: Mutex<CancellationToken>,
    /// The last loss of power met processes at work.
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
        let Profile { user, shell, timing, forwards, authorized } = profile;
        // It was made when the user first logged in.
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

    /// Whether this person with this key may come in. Windows does not look at the case of names.
    pub(super) fn admits(&self, user: &str, key: &PublicKey) -> bool {
        user.eq_ignore_ascii_case(&self.user)
            && authorized_keys::read(&self.model).any(|known| known.key_data() == key.key_data())
    }

    /// The keys that the next connection sees.
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

    /// A token that ends with the next loss of power.
    pub(super) fn power(&self) -> CancellationToken {
        lock(&self.power).clone()
    }

    /// Ends everything that runs on the machine, connections too, and closes the port.
    pub(super) fn power_off(&self) {
        self.conditions.send_modify(|conditions| conditions.down = true);
        lock(&self.power).cancel();
        if !self.threads.is_empty() {
            // Processes die in the middle of what they do.
            self.cut.store(true, Ordering::SeqCst);
            self.model.cut_after(0);
        }
        self.model.power_off();
    }

    /// Starts the machine, once the processes of the time before are gone; the port opens when its
    /// services run.
    pub(super) async fn boot(&self) {
        self.threads.wait().await;
        if self.cut.swap(false, Ordering::SeqCst) {
            self.model.heal();
        }
        *lock(&self.power) = self.stop.child_token();
        self.model.boot();
        self.conditions.send_modify(|conditions| conditions.down = false);
    }

    /// The user's own folder, where sessions and commands start. One whose name the model cannot hold
    /// is called otherwise.
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
    // Each value is replaced as a whole, so a panic elsewhere cannot leave half of one.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
