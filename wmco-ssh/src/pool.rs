//! Pools connections: at most one per host, kept for some time after use.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use wmco_core::limits;

use crate::dial::Dialer;
use crate::error::ConnectError;
use crate::host::{HostAgent as _, SshHost};
use crate::metrics::Counters;
use crate::options::Options;
use crate::route::{Route, Target};
use crate::session::Session;

/// The limits of a pool.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PoolLimits {
    /// Most connections at the same time, idle ones included. At least 1.
    pub sessions: usize,
    /// Time after which an unused connection is closed.
    pub idle: Duration,
    /// Time after which a host whose login is still going on no longer counts among the connections, so that hosts that
    /// are slow or silent hold up no others, up to [`Self::slow`] of them.
    pub patience: Duration,
    /// Most connections whose logins take longer than that; a slow login beyond them still counts among `sessions`.
    pub slow: usize,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self {
            sessions: limits::SSH_SESSIONS,
            idle: limits::CONNECTION_IDLE.unsigned_abs(),
            patience: limits::SLOW_LOGIN.unsigned_abs(),
            slow: limits::SLOW_LOGINS,
        }
    }
}

/// The current state of a pool.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PoolGauges {
    /// Connections that are open or being opened, except slow logins ([`PoolLimits::patience`]).
    pub open: usize,
    /// Open connections that are not in use.
    pub idle: usize,
    /// Callers that wait because the pool is full.
    pub waiting: usize,
}

/// Leases each host to one caller at a time. Clones share everything.
#[derive(Clone)]
pub struct Pool(Arc<Inner>);

struct Inner {
    dialer: Arc<dyn Dialer>,
    options: Options,
    limits: PoolLimits,
    permits: Arc<Semaphore>,
    /// Permits for slow logins.
    slow: Semaphore,
    waiting: AtomicUsize,
    slots: Mutex<HashMap<Target, Arc<Slot>>>,
}

/// The idle connection of a host. The holder of the lock owns the host.
type Slot = tokio::sync::Mutex<Option<Parked>>;

/// An idle connection.
struct Parked {
    connection: Connection,
    expiry: Expiry,
}

struct Connection {
    host: SshHost,
    _permit: OwnedSemaphorePermit,
}

/// The task that closes an idle connection after its time; dropping this aborts it.
#[derive(Default)]
struct Expiry(Option<AbortHandle>);

impl Drop for Expiry {
    fn drop(&mut self) {
        if let Some(task) = self.0.take() {
            task.abort();
        }
    }
}

impl Pool {
    /// Creates an empty pool.
    pub fn new(dialer: Arc<dyn Dialer>, options: Options, limits: PoolLimits) -> Self {
        let permits = Arc::new(Semaphore::new(limits.sessions.max(1)));
        let slow = Semaphore::new(limits.slow);
        let (waiting, slots) = (AtomicUsize::new(0), Mutex::default());
        Self(Arc::new(Inner { dialer, options, limits, permits, slow, waiting, slots }))
    }

    /// Leases a connection along `route`, reusing an idle one that fits. Waits while the host is leased, and while the
    /// pool is full of hosts in use; so a caller must hold only one lease at a time.
    ///
    /// # Errors
    /// [`ConnectError`] if a new connection is needed and fails.
    pub async fn lease(&self, route: &Route) -> Result<Lease, ConnectError> {
        let inner = &self.0;
        inner.forget_unused();
        let slot = Arc::clone(inner.slots().entry(route.target.clone()).or_default());
        let pool = Arc::downgrade(inner);
        let mut held = slot.lock_owned().await;
        if let Some(parked) = held.take() {
            let Parked { connection, expiry } = parked;
            drop(expiry);
            if connection.host.session().fits(route) {
                return Ok(Lease { connection: Some(connection), held: Some(held), pool });
            }
            connection.host.close().await;
        }
        let permit = inner.permit().await;
        let mut connecting = Box::pin(Session::connect(route, &*inner.dialer, &inner.options));
        let (session, permit) = match timeout(inner.limits.patience, &mut connecting).await {
            Ok(session) => (session?, permit),
            Err(_patience_is_over) => tokio::select! {
                biased;
                Ok(_slow_login) = inner.slow.acquire() => {
                    drop(permit);
                    (connecting.await?, inner.permit().await)
                }
                session = &mut connecting => (session?, permit),
            },
        };
        let connection = Connection { host: SshHost::new(session), _permit: permit };
        Ok(Lease { connection: Some(connection), held: Some(held), pool })
    }

    /// Returns the counters of all its connections, and of others with the same [`Options`].
    pub fn counters(&self) -> &Counters {
        &self.0.options.counters
    }

    /// Returns the current state.
    pub fn gauges(&self) -> PoolGauges {
        let slots = self.0.slots();
        // A locked slot is in use.
        let idle = slots.values().filter(|slot| slot.try_lock().is_ok_and(|slot| slot.is_some()));
        PoolGauges {
            open: self.0.limits.sessions.max(1) - self.0.permits.available_permits(),
            idle: idle.count(),
            waiting: self.0.waiting.load(Ordering::SeqCst),
        }
    }

    /// Closes all idle connections and waits for their end.
    pub async fn close_idle(&self) {
        // Who only looks at a slot has the map locked, too.
        let idle = |slot: &Arc<Slot>| slot.try_lock().ok()?.take();
        let parked: Vec<_> = self.0.slots().values().filter_map(idle).collect();
        for Parked { connection, .. } in parked {
            connection.host.close().await;
        }
        self.0.forget_unused();
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pool").field(&self.gauges()).finish()
    }
}

impl Inner {
    fn slots(&self) -> MutexGuard<'_, HashMap<Target, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a permit for another connection; closes an idle one if the pool is full.
    async fn permit(&self) -> OwnedSemaphorePermit {
        /// Counts a waiting caller.
        struct Waiting<'a>(&'a AtomicUsize);
        impl Drop for Waiting<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return permit;
        }
        // First count, then look for an idle connection: `park` does it in the other order, so that one of the two sees
        // the other.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let _waiting = Waiting(&self.waiting);
        self.end_one_idle();
        #[expect(clippy::expect_used, reason = "nobody closes this semaphore")]
        Arc::clone(&self.permits).acquire_owned().await.expect("the semaphore is open")
    }

    fn end_one_idle(&self) {
        let slots = self.slots();
        let parked = slots.values().find_map(|slot| slot.try_lock().ok()?.take());
        drop(slots);
        drop(parked);
    }

    /// Removes the entries of hosts that are not in use and have no connection.
    fn forget_unused(&self) {
        self.slots().retain(|_, slot| {
            // New users need the map, which is locked here.
            Arc::strong_count(slot) > 1 || slot.try_lock().is_ok_and(|slot| slot.is_some())
        });
    }
}

/// Keeps `connection` until it expires or is leased.
fn park(pool: &Weak<Inner>, connection: Connection, mut held: OwnedMutexGuard<Option<Parked>>) {
    let (Some(pool), Ok(runtime)) = (pool.upgrade(), Handle::try_current()) else { return };
    if connection.host.is_closed() {
        return;
    }
    let slot = Arc::downgrade(OwnedMutexGuard::mutex(&held));
    let expiring = runtime.spawn(expire(slot, pool.limits.idle));
    *held = Some(Parked { connection, expiry: Expiry(Some(expiring.abort_handle())) });
    drop(held);
    if pool.waiting.load(Ordering::SeqCst) > 0 {
        pool.end_one_idle();
    }
}

async fn expire(slot: Weak<Slot>, idle: Duration) {
    tokio::time::sleep(idle).await;
    let Some(slot) = slot.upgrade() else { return };
    // A user of the host takes the connection out, which aborts this task; who only looks holds the lock for a moment.
    let parked = slot.lock().await.take();
    let Some(Parked { connection, mut expiry }) = parked else { return };
    // Prevents the task from aborting itself.
    expiry.0 = None;
    connection.host.close().await;
}

/// The exclusive use of a host; dereferences to it. On drop, an open connection returns to the pool.
pub struct Lease {
    connection: Option<Connection>,
    held: Option<OwnedMutexGuard<Option<Parked>>>,
    pool: Weak<Inner>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let (Some(connection), Some(held)) = (self.connection.take(), self.held.take()) {
            park(&self.pool, connection, held);
        }
    }
}

impl Deref for Lease {
    type Target = SshHost;

    #[expect(clippy::expect_used, reason = "it is taken in `drop` only")]
    fn deref(&self) -> &SshHost {
        &self.connection.as_ref().expect("a lease has a connection").host
    }
}
