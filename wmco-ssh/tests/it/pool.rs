//! The pool against a real server.

use std::sync::Arc;
use std::time::Duration;

use wmco_ssh::{
    Credentials, Dialer, HostAgent, HostKeyPolicy, Lease, Options, Pool, PoolGauges, PoolLimits,
    Route, Target, TcpDialer,
};

use crate::dialers::Everywhere;
use crate::sshd::{Sshd, keygen, private_key};

const LONG: Duration = Duration::from_secs(600);

struct Fixture {
    server: Sshd,
    pool: Pool,
    options: Options,
}

/// Returns a pool in which every host is the same server.
async fn fixture(sessions: usize, idle: Duration) -> Fixture {
    let server = Sshd::start(&["ed25519"]).await;
    let options = server.options();
    let dialer: Arc<dyn Dialer> = Arc::new(Everywhere(server.target()));
    let pool =
        Pool::new(dialer, options.clone(), PoolLimits { sessions, idle, patience: LONG, slow: 0 });
    Fixture { server, pool, options }
}

impl Fixture {
    async fn lease(&self, host: &str) -> Lease {
        self.lease_as(host, &self.server.credentials()).await
    }

    async fn lease_as(&self, host: &str, credentials: &Credentials) -> Lease {
        self.pool.lease(&route(host, credentials)).await.unwrap()
    }

    fn connects(&self) -> u64 {
        self.options.counters.snapshot().connects
    }

    async fn gauges_become(&self, wanted: PoolGauges) {
        while self.pool.gauges() != wanted {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn route(host: &str, credentials: &Credentials) -> Route {
    Route::new(Target::new(host), credentials.clone())
}

fn gauges(open: usize, idle: usize, waiting: usize) -> PoolGauges {
    PoolGauges { open, idle, waiting }
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let fixture = fixture(4, LONG).await;
    let lease = fixture.lease("a").await;
    assert_eq!(fixture.pool.gauges(), gauges(1, 0, 0));
    drop(lease);
    assert_eq!(fixture.pool.gauges(), gauges(1, 1, 0));
    drop(fixture.lease("a").await);
    assert_eq!(fixture.connects(), 1);
    drop(fixture.lease("b").await);
    assert_eq!(fixture.pool.gauges(), gauges(2, 2, 0));
    fixture.pool.close_idle().await;
    assert_eq!(fixture.pool.gauges(), gauges(0, 0, 0));
    assert_eq!(fixture.options.counters.snapshot().open, 0);
}

#[tokio::test]
async fn a_host_has_one_user_at_a_time() {
    let fixture = fixture(4, LONG).await;
    let first = fixture.lease("a").await;
    let second = fixture.lease("a");
    tokio::pin!(second);
    tokio::select! {
        biased;
        _ = &mut second => panic!("two users of one host"),
        other = fixture.lease("b") => drop(other),
    }
    drop(first);
    drop(second.await);
    assert_eq!(fixture.connects(), 2, "the second user got the first one's connection");
}

#[tokio::test]
async fn idle_connections_end() {
    let fixture = fixture(4, Duration::from_millis(50)).await;
    drop(fixture.lease("a").await);
    fixture.gauges_become(gauges(0, 0, 0)).await;
    crate::hostile::all_closed(&fixture.options).await;
    drop(fixture.lease("a").await);
    assert_eq!(fixture.connects(), 2);
}

/// Whoever counts them looks into the slots, also at the moment when a connection expires.
#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_end_while_they_are_counted() {
    let fixture = fixture(4, Duration::from_millis(20)).await;
    let counting = Arc::new(());
    let threads = [0; 2].map(|_| {
        let (pool, goes_on) = (fixture.pool.clone(), Arc::downgrade(&counting));
        std::thread::spawn(move || {
            while goes_on.strong_count() > 0 {
                pool.gauges();
            }
        })
    });
    for round in 0..10 {
        drop(fixture.lease("a").await);
        let all_end = crate::hostile::all_closed(&fixture.options);
        let ended = tokio::time::timeout(LONG / 10, all_end).await;
        assert!(ended.is_ok(), "in round {round}");
    }
    drop(counting);
    for thread in threads {
        thread.join().unwrap();
    }
}

#[tokio::test]
async fn a_closed_connection_is_not_kept() {
    let fixture = fixture(4, LONG).await;
    let lease = fixture.lease("a").await;
    lease.close().await;
    drop(lease);
    assert_eq!(fixture.pool.gauges(), gauges(0, 0, 0));
    drop(fixture.lease("a").await);
    assert_eq!(fixture.connects(), 2);
}

#[tokio::test]
async fn another_key_or_pin_needs_another_connection() {
    let fixture = fixture(4, LONG).await;
    drop(fixture.lease("a").await);
    let file = fixture.server.path("rotated");
    keygen(&file, &["-t", "ed25519"]);
    let rotated = fixture.server.admit(private_key(&file));
    drop(fixture.lease_as("a", &rotated).await);
    assert_eq!(fixture.connects(), 2);

    let stranger = Sshd::start(&["ed25519"]).await;
    let pinned = HostKeyPolicy::Pinned(stranger.host_key("ed25519"));
    let refused = fixture.pool.lease(&route("a", &rotated).host_key(pinned)).await;
    assert_eq!(refused.err().unwrap().verb(), "host-key-mismatch");
    assert_eq!(fixture.pool.gauges().open, 0);
}

#[tokio::test]
async fn a_full_pool_ends_idle_connections_first() {
    let fixture = fixture(2, LONG).await;
    drop(fixture.lease("a").await);
    let busy = fixture.lease("b").await;
    drop(fixture.lease("c").await);
    assert_eq!(fixture.pool.gauges(), gauges(2, 1, 0), "`a` made room for `c`");
    drop(busy);
}

#[tokio::test]
async fn a_full_pool_waits_for_one_to_be_given_back() {
    let fixture = fixture(1, LONG).await;
    let busy = fixture.lease("a").await;
    let (other, ()) = tokio::join!(fixture.lease("b"), async {
        fixture.gauges_become(gauges(1, 0, 1)).await;
        drop(busy);
    });
    assert_eq!(fixture.pool.gauges(), gauges(1, 0, 0));
    assert!(!other.is_closed());
    assert_eq!(fixture.connects(), 2);
}

#[tokio::test]
async fn a_failed_connect_gives_its_place_back() {
    let server = Sshd::start(&["ed25519"]).await;
    let limits = PoolLimits { sessions: 1, idle: LONG, patience: LONG, slow: 0 };
    let pool = Pool::new(Arc::new(TcpDialer), server.options(), limits);
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = Target { port: closed.local_addr().unwrap().port(), ..server.target() };
    drop(closed);
    let refused = pool.lease(&Route::new(nobody, server.credentials())).await;
    assert_eq!(refused.err().unwrap().verb(), "refused");
    let lease = pool.lease(&server.route(&server.credentials())).await.unwrap();
    let host: &dyn HostAgent = &*lease;
    assert!(!host.is_closed());
}

#[tokio::test]
async fn many_users_of_few_hosts_stay_within_the_bound() {
    let fixture = Arc::new(fixture(3, LONG).await);
    let mut users = tokio::task::JoinSet::new();
    for user in 0..24 {
        let fixture = Arc::clone(&fixture);
        users.spawn(async move {
            let lease = fixture.lease(&format!("host{}", user % 6)).await;
            assert!(fixture.pool.gauges().open <= 3);
            tokio::task::yield_now().await;
            drop(lease);
        });
    }
    users.join_all().await;
    let left = fixture.pool.gauges();
    assert!(left.idle == left.open && left.open <= 3, "{left:?}");
    let options = fixture.options.clone();
    drop(fixture);
    crate::hostile::all_closed(&options).await;
}
