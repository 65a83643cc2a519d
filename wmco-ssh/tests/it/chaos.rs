//! Runs 1,000 rounds with random faults against OpenSSH, and checks that no resources leak.
//!
//! `WMCO_SSH_ROUNDS` sets the number of rounds, `WMCO_SSH_SEED` the seed of the events.

use std::sync::Arc;
use std::time::Duration;

use wmco_core::names::host;
use wmco_core::protocol::AgentLocation;
use wmco_ssh::{
    Blob, Credentials, Dialer, HostAgent, HostKeyPolicy, Options, Pool, PoolGauges, PoolLimits,
    Route, Target, UploadProgress,
};

use crate::backend::{Backend, Does};
use crate::conformance::noise;
use crate::dialers::Everywhere;
use crate::proxy::{Network, Proxy};
use crate::sshd::Sshd;

/// Concurrent callers, and the hosts that they share.
const CALLERS: u64 = 4;
const HOSTS: u64 = 6;

/// Most connections of the pool, fewer than hosts.
const SESSIONS: usize = 3;

/// Time-out of a probe, above all of one that hangs.
const HANG: Duration = Duration::from_millis(500);

/// Most time until closed resources are released.
const PATIENCE: Duration = Duration::from_secs(120);

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

struct Chaos {
    server: Sshd,
    pool: Pool,
    proxy: Proxy,
    stranger: Credentials,
    other_key: HostKeyPolicy,
    working: AgentLocation,
    hanging: AgentLocation,
    failing: AgentLocation,
    talking: AgentLocation,
    blobs: Vec<Blob>,
}

/// Counts of round outcomes.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    fine: u64,
    wrong: u64,
    given_up: u64,
}

impl Chaos {
    async fn new(options: &Options, server: Sshd) -> Self {
        let proxy = Proxy::start(&server.target(), Network::default()).await;
        let dialer: Arc<dyn Dialer> = Arc::new(Everywhere(proxy.target()));
        let limits = PoolLimits {
            sessions: SESSIONS,
            idle: Duration::from_millis(200),
            ..PoolLimits::default()
        };
        let key = server.new_key(&["-t", "ecdsa"]);
        Self {
            pool: Pool::new(dialer, options.clone(), limits),
            proxy,
            stranger: Credentials::new(server.credentials().user, key),
            other_key: HostKeyPolicy::Pinned(Sshd::start(&["ed25519"]).await.host_key("ed25519")),
            working: server.stage(Does::Work),
            hanging: server.stage(Does::Hang),
            failing: server.stage(Does::Fail(3)),
            talking: server.stage(Does::Talk(1_000_000)),
            blobs: (0..40).map(|seed| Blob::from_bytes(noise(200_000, seed))).collect(),
            server,
        }
    }

    /// Runs a round; `draw` decides everything.
    async fn round(&self, draw: u64) -> Tally {
        let route =
            Route::new(Target::new(format!("host{}", draw % HOSTS)), self.server.credentials());
        let kind = draw / 7 % 16;
        let route = match kind {
            0 => Route { credentials: self.stranger.clone(), ..route },
            1 => route.host_key(self.other_key.clone()),
            _ => route,
        };
        // Half of the rounds are abandoned after a while, possibly before they begin.
        let limit = Duration::from_millis(if (draw / 211).is_multiple_of(2) {
            draw / 503 % 60
        } else {
            5_000
        });
        match tokio::time::timeout(limit, self.work(kind, &route, draw)).await {
            Ok(true) => Tally { fine: 1, ..Tally::default() },
            Ok(false) => Tally { wrong: 1, ..Tally::default() },
            Err(_) => Tally { given_up: 1, ..Tally::default() },
        }
    }

    async fn work(&self, kind: u64, route: &Route, draw: u64) -> bool {
        let Ok(lease) = self.pool.lease(route).await else { return false };
        let quiet: fn(UploadProgress) = |_| {};
        let blob = &self.blobs[usize::try_from(draw / 11).unwrap() % self.blobs.len()];
        match kind {
            2 => {
                // The network fails under all connections.
                self.proxy.cut_all();
                lease.probe(self.working).await.is_ok()
            }
            3 => {
                lease.close().await;
                true
            }
            4 => lease.probe(self.hanging).await.is_ok(),
            5 => lease.probe(self.failing).await.is_ok(),
            6 => lease.probe(self.talking).await.is_ok(),
            7..=10 => {
                let _ = std::fs::remove_file(
                    self.server.file(&wmco_core::protocol::staged_content(blob.digest())),
                );
                lease.upload(std::slice::from_ref(blob), &quiet).await.is_ok()
            }
            11 => {
                let folders = [host::STAGING.parse().unwrap()];
                lease.remove_leftovers(&[], &folders).await.is_ok()
            }
            _ => lease.probe(self.working).await.is_ok(),
        }
    }
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

pub(crate) fn tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

/// Waits until `now` returns `wanted`; panics with its last value if it never does.
pub(crate) async fn becomes<T: PartialEq + std::fmt::Debug>(
    what: &str,
    wanted: T,
    now: impl Fn() -> T,
) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while now() != wanted {
        let found = now();
        assert!(tokio::time::Instant::now() < deadline, "{what}: {found:?}, not {wanted:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Runs in its own process, since it counts file descriptors.
#[test]
fn a_thousand_rounds_leave_nothing() {
    const ALONE: &str = "WMCO_SSH_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "chaos::a_thousand_rounds_leave_nothing", "--nocapture"])
            .env(ALONE, "1")
            .status();
        assert!(status.unwrap().success());
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(rounds(number("WMCO_SSH_ROUNDS", 1_000), number("WMCO_SSH_SEED", 1)));
}

async fn rounds(count: u64, seed: u64) {
    let server = Sshd::start(&["ed25519"]).await;
    let mut options = server.options();
    options.timeouts.probe = HANG;
    let chaos = Arc::new(Chaos::new(&options, server).await);
    // Runs once, to create what is created only once.
    drop(chaos.pool.lease(&Route::new(Target::new("a"), chaos.server.credentials())).await);
    chaos.pool.close_idle().await;
    becomes("sessions at first", 0, || chaos.server.sessions()).await;
    becomes("tasks at first", 2, tasks).await;
    let before = descriptors();

    let callers = (0..CALLERS).map(|caller| {
        let chaos = Arc::clone(&chaos);
        let rounds = count / CALLERS;
        let draws = noise(usize::try_from(rounds * 8).unwrap(), seed * CALLERS + caller);
        tokio::spawn(async move {
            let mut tally = Tally::default();
            for draw in draws.chunks_exact(8) {
                let one = chaos.round(u64::from_le_bytes(draw.try_into().unwrap())).await;
                assert!(chaos.pool.gauges().open <= SESSIONS);
                tally.fine += one.fine;
                tally.wrong += one.wrong;
                tally.given_up += one.given_up;
            }
            tally
        })
    });
    let mut all = Tally::default();
    for caller in futures::future::join_all(callers).await {
        let tally = caller.unwrap();
        all.fine += tally.fine;
        all.wrong += tally.wrong;
        all.given_up += tally.given_up;
    }
    // A seed that only fails, or never fails, would prove little.
    for part in [all.fine, all.wrong, all.given_up] {
        assert!(part > count / 20, "{all:?}");
    }

    let counts = || options.counters.snapshot();
    becomes("the pool", PoolGauges::default(), || chaos.pool.gauges()).await;
    becomes("open connections", (0, 0), || (counts().open, counts().uploading)).await;
    assert_eq!(options.uploads.available_permits(), Options::default().uploads.available_permits());
    becomes("sessions of the server", 0, || chaos.server.sessions()).await;
    becomes("tasks", 2, tasks).await;
    becomes("descriptors", before, descriptors).await;
}
