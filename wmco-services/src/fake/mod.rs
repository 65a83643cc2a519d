//! A whole Windows host in memory, for tests and simulations.
//!
//! ```
//! use wmco_services::fake::FakeWindows;
//! use wmco_services::windows::{ServiceConfig, StartType, Windows};
//!
//! let host = FakeWindows::new("winhost");
//! let first = host.snapshot();
//! let config = ServiceConfig {
//!     command: "demo".to_owned(),
//!     description: String::new(),
//!     dependencies: Vec::new(),
//!     start: StartType::Manual,
//!     recovery: None,
//! };
//! host.services().create(&"demo".parse()?, &config)?;
//! assert_ne!(host.snapshot(), first);
//! Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod control;
mod faults;
mod files;
mod logs;
mod machine;
mod scm;
mod snapshot;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wmco_core::digest::Sha256;
use wmco_core::names::host;
use wmco_core::protocol::{FeatureState, ServiceRunState};
use wmco_core::winpath::WindowsPath;

pub use faults::{Call, Fault};
pub use snapshot::{Snapshot, SnapshotEntry};
pub use tree::{Content, Node, Tree};

use crate::windows::{
    DefaultRoute, Environment, Files, HttpAnswer, HttpRequest, Interface, Logs, Machine,
    PowerShell, RootStore, ScriptOutput, ServiceManager, ServiceName, Windows, WindowsError,
};
use faults::{Fate, Faults};
use scm::Scm;

/// A Windows host in memory. Clones share the host.
///
/// Every clone stands for a program with its own file ([`FakeWindows::running_as`]); as on Windows, that file and the
/// programs of running services can be read but not replaced.
#[derive(Clone)]
pub struct FakeWindows {
    shared: Arc<Shared>,
    executable: WindowsPath,
    has_usable_path: bool,
    is_service: bool,
}

struct Shared {
    state: Mutex<State>,
    observers: Mutex<Vec<Observer>>,
    powershell: Mutex<ScriptAnswer>,
    http: Mutex<HttpAnswering>,
}

type Observer = Arc<dyn Fn(&FakeEvent) + Send + Sync>;
type ScriptAnswer = Arc<dyn Fn(&str) -> ScriptOutput + Send + Sync>;
type HttpAnswering = Arc<dyn Fn(&HttpRequest<'_>) -> Option<HttpAnswer> + Send + Sync>;

/// Something that happened on the host, reported to observers after the call that caused it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FakeEvent {
    /// The state of a service changed.
    ServiceChanged {
        /// Its name.
        name: ServiceName,
        /// Its new state.
        state: ServiceRunState,
        /// Its command line.
        command: String,
    },
    /// A restart was ordered; see [`FakeWindows::set_restart_by_hand`].
    RestartOrdered,
    /// The host has started again.
    Booted,
}

/// The state of a host.
struct State {
    tree: Tree,
    scm: Scm,
    environment: BTreeMap<String, (String, String)>,
    environment_at_boot: BTreeMap<String, (String, String)>,
    /// Values of variables before our programs changed them.
    environment_before: BTreeMap<String, Option<String>>,
    /// Values that services inherit, whatever is set.
    environment_given: BTreeMap<String, Option<String>>,
    roots: BTreeSet<Sha256>,
    roots_at_boot: BTreeSet<Sha256>,
    /// Certificates that Windows cannot decode.
    refused_roots: BTreeSet<Sha256>,
    host_name: String,
    next_host_name: Option<String>,
    os_build: String,
    /// Makers of the machine and its firmware.
    firmware: String,
    addresses: Vec<Ipv4Addr>,
    ipv6: Vec<Ipv6Addr>,
    /// Interfaces besides the one with these addresses.
    more_interfaces: Vec<Interface>,
    /// Default routes; `None`: a single one with all addresses.
    routes: Option<Vec<DefaultRoute>>,
    /// Routes to single addresses.
    host_routes: BTreeSet<Ipv4Addr>,
    free_bytes: u64,
    is_administrator: bool,
    /// TCP ports on which foreign programs listen.
    listening: BTreeSet<u16>,
    containers: FeatureState,
    boots: u64,
    up: bool,
    restart_by_hand: bool,
    networks: BTreeSet<String>,
    processes: Vec<WindowsPath>,
    faults: Faults,
    events: Vec<FakeEvent>,
}

impl FakeWindows {
    /// Creates a freshly installed host: some services of Windows, no containers feature, nothing of ours.
    pub fn new(host_name: &str) -> Self {
        let roots = BTreeSet::from([Sha256::of(b"a root that came with windows")]);
        let state = State {
            tree: Tree::new(),
            scm: Scm::with_windows_services(),
            environment: BTreeMap::new(),
            environment_at_boot: BTreeMap::new(),
            environment_before: BTreeMap::new(),
            environment_given: BTreeMap::new(),
            roots_at_boot: roots.clone(),
            roots,
            refused_roots: BTreeSet::new(),
            host_name: host_name.to_owned(),
            next_host_name: None,
            os_build: "10.0.20348".to_owned(),
            firmware: "Microsoft Corporation".to_owned(),
            addresses: vec![Ipv4Addr::new(10, 0, 0, 10)],
            ipv6: Vec::new(),
            more_interfaces: Vec::new(),
            routes: None,
            host_routes: BTreeSet::new(),
            free_bytes: 64 << 30,
            is_administrator: true,
            listening: BTreeSet::new(),
            containers: FeatureState::Disabled,
            boots: 1,
            up: true,
            restart_by_hand: false,
            networks: BTreeSet::from(["nat".to_owned()]),
            processes: Vec::new(),
            faults: Faults::default(),
            events: Vec::new(),
        };
        let shared = Shared {
            state: Mutex::new(state),
            observers: Mutex::new(Vec::new()),
            powershell: Mutex::new(Arc::new(|_| ScriptOutput {
                code: 1,
                stdout: String::new(),
                stderr: "the term is not recognized as the name of a cmdlet".to_owned(),
            })),
            http: Mutex::new(Arc::new(|_| Some(HttpAnswer { status: 200, body: String::new() }))),
        };
        Self {
            shared: Arc::new(shared),
            executable: path(host::AGENT),
            has_usable_path: true,
            is_service: false,
        }
    }

    /// Returns the same host as seen by the program at `executable`.
    #[must_use]
    pub fn running_as(&self, executable: WindowsPath) -> Self {
        Self { executable, ..self.clone() }
    }

    /// The same as [`Self::running_as`], but the program's real path is one that no [`WindowsPath`] can hold.
    #[must_use]
    pub fn running_as_if_elsewhere(&self, executable: WindowsPath) -> Self {
        Self { executable, has_usable_path: false, ..self.clone() }
    }

    /// Returns the same host as seen by a program that the Service Control Manager started.
    #[must_use]
    pub fn running_as_service(&self) -> Self {
        Self { is_service: true, ..self.clone() }
    }

    /// Calls `observer` for every event from now on, on the thread that caused it and without a lock held.
    pub fn observe(&self, observer: impl Fn(&FakeEvent) + Send + Sync + 'static) {
        lock(&self.shared.observers).push(Arc::new(observer));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.shared.state)
    }

    /// Runs `work` unless a fault is planned, then notifies the observers.
    fn act<T>(
        &self,
        call: Call,
        object: &str,
        work: impl FnOnce(&mut State) -> Result<T, WindowsError>,
    ) -> Result<T, WindowsError> {
        self.act_or_die(call, object, work, |_| {})
    }

    /// Like [`Self::act`]; `die` applies the changes of a process that dies in the middle.
    fn act_or_die<T>(
        &self,
        call: Call,
        object: &str,
        work: impl FnOnce(&mut State) -> Result<T, WindowsError>,
        die: impl FnOnce(&mut State),
    ) -> Result<T, WindowsError> {
        let (answer, events) = {
            let mut state = self.state();
            let answer = match state.faults.fate(call, object) {
                Fate::Works => work(&mut state),
                Fate::Lost => match work(&mut state) {
                    Ok(_) => Err(Fault::Lost.error(object)),
                    Err(error) => Err(error),
                },
                Fate::Fails(error) => Err(error),
                Fate::Dies(error) => {
                    die(&mut state);
                    Err(error)
                }
            };
            (answer, std::mem::take(&mut state.events))
        };
        self.tell(&events);
        answer
    }

    /// Runs `work` as an event of the host, not as a call of a program.
    fn act_freely<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        let (answer, events) = {
            let mut state = self.state();
            let answer = work(&mut state);
            (answer, std::mem::take(&mut state.events))
        };
        self.tell(&events);
        answer
    }

    fn tell(&self, events: &[FakeEvent]) {
        if events.is_empty() {
            return;
        }
        let observers = lock(&self.shared.observers).clone();
        for event in events {
            for observer in &observers {
                observer(event);
            }
        }
    }
}

impl Windows for FakeWindows {
    fn files(&self) -> &dyn Files {
        self
    }

    fn logs(&self) -> &dyn Logs {
        self
    }

    fn services(&self) -> &dyn ServiceManager {
        self
    }

    fn environment(&self) -> &dyn Environment {
        self
    }

    fn roots(&self) -> &dyn RootStore {
        self
    }

    fn powershell(&self) -> &dyn PowerShell {
        self
    }

    fn machine(&self) -> &dyn Machine {
        self
    }
}

impl std::fmt::Debug for FakeWindows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeWindows")
            .field("host_name", &self.state().host_name)
            .field("executable", &self.executable)
            .finish_non_exhaustive()
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(clippy::expect_used, reason = "called with constants that a test of names checks")]
fn path(text: &str) -> WindowsPath {
    text.parse().expect("a constant path is valid")
}

#[cfg(test)]
mod tests;
