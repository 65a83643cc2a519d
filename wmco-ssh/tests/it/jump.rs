//! Hosts behind a jump host: OpenSSH in front of a simulated host.

use std::sync::Arc;

use wmco_core::host_key::HostKey;
use wmco_core::protocol::{AgentLocation, staged_content};
use wmco_ssh::{
    Blob, ConnectError, Dialer, HostAgent, HostKeyPolicy, HostKeyVerdict, Options, Pool,
    PoolLimits, ProbeOutcome, Route, Session, SshHost, Target, TcpDialer, UploadProgress,
};

use crate::backend::{Backend, Does, HOST_NAME, Sim};
use crate::conformance::noise;
use crate::dialers::Everywhere;
use crate::sshd::Sshd;

struct Fixture {
    jump: Sshd,
    behind: Sim,
    agent: AgentLocation,
    options: Options,
}

async fn fixture() -> Fixture {
    let (jump, behind) = (Sshd::start(&["ed25519"]).await, Sim::start().await);
    let (agent, options) = (behind.stage(Does::Work), behind.options());
    Fixture { jump, behind, agent, options }
}

impl Fixture {
    fn route(&self) -> Route {
        self.behind.route().via(self.to_jump())
    }

    fn to_jump(&self) -> Route {
        self.jump.route(&self.jump.credentials())
    }

    async fn connect(&self, route: &Route) -> Result<SshHost, ConnectError> {
        Session::connect(route, &TcpDialer, &self.options).await.map(SshHost::new)
    }

    async fn refused(&self, route: &Route) -> ConnectError {
        let error = self.connect(route).await.unwrap_err();
        crate::hostile::all_closed(&self.options).await;
        error
    }

    fn behind_key(&self) -> HostKey {
        self.behind.host_keys().remove(0)
    }
}

#[tokio::test]
async fn work_goes_through_and_both_keys_are_seen() {
    let fixture = fixture().await;
    let host = fixture.connect(&fixture.route()).await.unwrap();
    assert_eq!(host.host_key().key, fixture.behind_key());
    let jump_key = host.jump_key().unwrap();
    assert_eq!(jump_key.key, fixture.jump.host_key("ed25519"));
    assert_eq!(jump_key.verdict, HostKeyVerdict::FirstUse);

    let outcome = host.probe(fixture.agent).await.unwrap();
    let ProbeOutcome::Reported(probe) = outcome else { panic!("{outcome:?}") };
    assert_eq!(probe.host_name, HOST_NAME);
    let blob = Blob::from_bytes(noise(2_000_000, 41));
    let quiet: fn(UploadProgress) = |_| {};
    host.upload(std::slice::from_ref(&blob), &quiet).await.unwrap();
    assert!(fixture.behind.content(&staged_content(blob.digest())).is_some());

    assert_eq!(fixture.options.counters.snapshot().open, 2, "one to the jump host, one through");
    host.close().await;
    assert_eq!(fixture.options.counters.snapshot().open, 0);
    while fixture.jump.sessions() > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_dropped_session_ends_both_connections() {
    let fixture = fixture().await;
    drop(fixture.connect(&fixture.route()).await.unwrap());
    crate::hostile::all_closed(&fixture.options).await;
}

#[tokio::test]
async fn both_keys_are_pinned() {
    let fixture = fixture().await;
    let (jump_key, behind_key) = (fixture.jump.host_key("ed25519"), fixture.behind_key());
    let route = |jump: &HostKey, behind: &HostKey| {
        let pinned = |key: &HostKey| HostKeyPolicy::Pinned(key.clone());
        let to_jump = fixture.to_jump().host_key(pinned(jump));
        fixture.behind.route().host_key(pinned(behind)).via(to_jump)
    };
    let host = fixture.connect(&route(&jump_key, &behind_key)).await.unwrap();
    assert_eq!(host.host_key().verdict, HostKeyVerdict::Matches);
    assert_eq!(host.jump_key().unwrap().verdict, HostKeyVerdict::Matches);
    host.close().await;

    let connections = fixture.behind.host.counts().connections;
    let error = fixture.refused(&route(&behind_key, &behind_key)).await;
    let ConnectError::HostKeyMismatch { target, found, .. } = &error else { panic!("{error}") };
    assert_eq!(*target, fixture.jump.target().to_string(), "the error is about the jump host");
    assert_eq!(*found, jump_key.fingerprint());
    assert_eq!(fixture.behind.host.counts().connections, connections, "it goes no further");

    let error = fixture.refused(&route(&jump_key, &jump_key)).await;
    let ConnectError::HostKeyMismatch { target, found, .. } = &error else { panic!("{error}") };
    assert_eq!(*target, fixture.behind.target().to_string());
    assert_eq!(*found, behind_key.fingerprint());
    assert_eq!(fixture.behind.host.counts().authentications, 1, "nobody tried to log in there");
}

#[tokio::test]
async fn a_jump_host_that_does_not_connect_on_is_named() {
    let fixture = fixture().await;
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = nobody.local_addr().unwrap().port();
    drop(nobody);
    let route = Route { target: Target { port, ..fixture.behind.target() }, ..fixture.route() };
    let error = fixture.refused(&route).await;
    assert!(matches!(error, ConnectError::NotForwarded { .. }), "{error}");

    fixture.jump.configure("AllowTcpForwarding no");
    let error = fixture.refused(&fixture.route()).await;
    assert!(matches!(error, ConnectError::NotForwarded { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains(&fixture.jump.target().to_string()), "{text}");
}

#[tokio::test]
async fn a_jump_host_that_refuses_us_is_named() {
    let fixture = fixture().await;
    let to_jump = fixture.jump.route(&fixture.behind.credentials());
    let error = fixture.refused(&fixture.behind.route().via(to_jump)).await;
    let ConnectError::AuthenticationRefused { target, .. } = &error else { panic!("{error}") };
    assert_eq!(*target, fixture.jump.target().to_string());
}

/// The dialling side resolves a name for each connection: a host may move.
#[tokio::test]
async fn names_are_resolved_anew() {
    let fixture = fixture().await;
    let named = Target { address: "localhost".to_owned(), ..fixture.jump.target() };
    let to_jump = Route { target: named, ..fixture.to_jump() };
    fixture.connect(&fixture.behind.route().via(to_jump)).await.unwrap().close().await;

    let moving = |to: Target| {
        let route = Route { target: Target::new("moves.test"), ..fixture.to_jump() };
        async move { Session::connect(&route, &Everywhere(to), &Options::default()).await }
    };
    let other = Sshd::start(&["ed25519"]).await;
    let first = moving(fixture.jump.target()).await.unwrap();
    assert_eq!(first.host_key().key, fixture.jump.host_key("ed25519"));
    let error = moving(other.target()).await.unwrap_err();
    assert!(matches!(error, ConnectError::AuthenticationRefused { .. }), "{error}");
}

#[tokio::test]
async fn the_pool_keeps_what_goes_the_same_way() {
    let fixture = fixture().await;
    let dialer: Arc<dyn Dialer> = Arc::new(TcpDialer);
    let pool = Pool::new(dialer, fixture.options.clone(), PoolLimits::default());
    let connects = || fixture.options.counters.snapshot().connects;
    drop(pool.lease(&fixture.route()).await.unwrap());
    drop(pool.lease(&fixture.route()).await.unwrap());
    assert_eq!(connects(), 2);
    let pinned = HostKeyPolicy::Pinned(fixture.jump.host_key("ed25519"));
    let to_jump = fixture.to_jump().host_key(pinned);
    drop(pool.lease(&fixture.behind.route().via(to_jump)).await.unwrap());
    assert_eq!(connects(), 2, "the key that was seen is the pinned one");
    drop(pool.lease(&fixture.behind.route()).await.unwrap());
    assert_eq!(connects(), 3, "directly is another way");
    assert_eq!(pool.gauges().open, 1);
    pool.close_idle().await;
    assert_eq!(fixture.options.counters.snapshot().open, 0);
}
