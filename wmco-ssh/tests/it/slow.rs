//! Servers that are slow, or that allow little.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use tokio::io::AsyncReadExt as _;
use wmco_core::protocol::{AgentLocation, HostPlan, HostStep, PROTOCOL, staged_content};
use wmco_ssh::{
    ApplyOutcome, Blob, ByteStream, Dialer, HostAgent, HostKeyPolicy, Options, Pool, PoolGauges,
    PoolLimits, ProbeOutcome, Reached, Route, Session, Target, TcpDialer, Timeouts, UploadProgress,
};

use crate::backend::{Backend, Does};
use crate::conformance::noise;
use crate::sshd::{Sshd, tool};

const TRUST: HostKeyPolicy = HostKeyPolicy::TrustOnFirstUse;
const LONG: Duration = Duration::from_secs(600);

/// A server that waits in each login, before it looks at a key, until the gate is opened: it reads its banner from a
/// pipe.
struct Gated {
    server: Sshd,
    pipe: PathBuf,
}

impl Gated {
    async fn start() -> Self {
        let server = Sshd::start(&["ed25519"]).await;
        let pipe = server.path("banner");
        tool("mkfifo", &[pipe.to_str().unwrap()]);
        server.configure(&format!("Banner {}", pipe.display()));
        Self { server, pipe }
    }

    /// Lets one login go on; waits until it has come to the gate.
    async fn open(&self) -> File {
        let pipe = self.pipe.clone();
        let opening = move || OpenOptions::new().write(true).open(pipe);
        tokio::task::spawn_blocking(opening).await.unwrap().unwrap()
    }
}

#[tokio::test]
async fn a_slow_login_works() {
    assert!(Timeouts::default().authenticate >= Duration::from_secs(120), "as sshd waits");
    let gated = Gated::start().await;
    let credentials = gated.server.credentials();
    let connecting = gated.server.connect(&credentials, &TRUST);
    let (session, _gate) = tokio::join!(connecting, gated.open());
    session.unwrap().close().await;
}

#[tokio::test]
async fn a_login_without_an_answer_says_how_far_it_came() {
    let gated = Gated::start().await;
    let mut options = gated.server.options();
    options.timeouts.authenticate = Duration::from_millis(50);
    let credentials = gated.server.credentials();
    let route = gated.server.route(&credentials);
    let error = Session::connect(&route, &TcpDialer, &options).await.unwrap_err();
    let key = credentials.keys.first().unwrap().public().fingerprint();
    let told = error.to_string();
    assert!(
        told.contains(&format!("the keys were agreed and ssh-ed25519 {key} was offered")),
        "{told}"
    );
    assert!(told.contains("the login in time"), "{told}");
    assert!(told.contains("--login-timeout"), "{told}");
}

#[tokio::test]
async fn a_slow_login_holds_up_no_other_host() {
    let gated = Gated::start().await;
    let quick = Sshd::start(&["ed25519"]).await;
    let limits = PoolLimits { sessions: 1, idle: LONG, patience: Duration::ZERO, slow: 1 };
    let pool = Pool::new(Arc::new(TcpDialer), gated.server.options(), limits);
    let (slow, other) =
        (gated.server.route(&gated.server.credentials()), quick.route(&quick.credentials()));
    let mut slow = Box::pin(pool.lease(&slow));
    let lease = tokio::select! {
        biased;
        _ = &mut slow => panic!("the gate is closed"),
        lease = pool.lease(&other) => lease.unwrap(),
    };
    assert_eq!(pool.gauges(), PoolGauges { open: 1, idle: 0, waiting: 0 });
    // When it is done, it counts again, and waits for its place.
    let waiting = async {
        let _gate = gated.open().await;
        while pool.gauges().waiting == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(lease);
    };
    let (slow, ()) = tokio::join!(slow, waiting);
    assert!(!slow.unwrap().is_closed());
}

/// Counts connections that are being opened, none of which ever is.
#[derive(Default)]
struct Silent(AtomicUsize);

#[async_trait]
impl Dialer for Silent {
    async fn dial(&self, _: &str, _: u16) -> io::Result<ByteStream> {
        self.0.fetch_add(1, Ordering::SeqCst);
        std::future::pending().await
    }
}

#[tokio::test]
async fn silent_hosts_hold_a_limited_number_of_connections() {
    const HOSTS: usize = 20;
    let silent = Arc::new(Silent::default());
    let limits = PoolLimits { sessions: 2, idle: LONG, patience: Duration::ZERO, slow: 3 };
    let mut options = Options::default();
    options.timeouts.connect = LONG;
    let pool = Pool::new(Arc::clone(&silent) as Arc<dyn Dialer>, options, limits);
    let credentials = crate::hostile::credentials();
    let routes: Vec<Route> = (0..HOSTS)
        .map(|host| Route::new(Target::new(format!("host-{host}")), credentials.clone()))
        .collect();
    let opened = || silent.0.load(Ordering::SeqCst);
    let all_wait = async {
        while opened() < 5 || opened() + pool.gauges().waiting < HOSTS {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // No other one follows.
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        (opened(), pool.gauges().waiting)
    };
    let found = tokio::select! {
        _ = join_all(routes.iter().map(|route| pool.lease(route))) => panic!("nobody answers"),
        found = all_wait => found,
    };
    assert_eq!(found, (5, HOSTS - 5));
}

/// Puts a text in front of what a server says.
struct Talkative(String);

#[async_trait]
impl Dialer for Talkative {
    async fn dial(&self, address: &str, port: u16) -> io::Result<ByteStream> {
        let (reads, writes) = tokio::io::split(TcpDialer.dial(address, port).await?);
        let reads = io::Cursor::new(self.0.clone().into_bytes()).chain(reads);
        Ok(Box::new(tokio::io::join(reads, writes)))
    }
}

/// Source: RFC 4253, section 4.2; OpenSSH's client reads as many.
#[tokio::test]
async fn a_thousand_lines_before_the_version_are_read() {
    let server = Sshd::start(&["ed25519"]).await;
    let route = server.route(&server.credentials());
    for (lines, works) in [(21, true), (1024, true), (1025, false)] {
        let dialer = Talkative("Authorized use only.\r\n".repeat(lines));
        match Session::connect(&route, &dialer, &server.options()).await {
            Ok(session) => {
                assert!(works, "{lines}");
                session.close().await;
            }
            Err(error) => {
                assert!(!works && error.verb() == "protocol", "{lines}: {error}");
                let cause = std::error::Error::source(&error).unwrap().to_string();
                assert!(cause.contains("1024 lines") && cause.contains("Authorized"), "{cause}");
            }
        }
    }
}

#[tokio::test]
async fn one_channel_at_a_time_is_enough() {
    let server = Sshd::start(&["ed25519"]).await;
    server.configure("MaxSessions 1");
    let quiet: fn(UploadProgress) = |_| {};
    let options = server.options();
    let host = server.host(&TcpDialer, &options).await;
    let agent = server.stage(Does::Work);
    server.put_home("wmco-00000000000000000000000000000000/wicd.exe", b"left");
    for _ in 0..2 {
        let ours = server.program(Does::Work);
        let outcome = host.probe_with(&ours, server.fresh_folder(), &quiet).await.unwrap();
        assert!(matches!(outcome, ProbeOutcome::Reported(_)), "{outcome:?}");
        assert_eq!(server.home(), Vec::<String>::new(), "folders of contacts are removed");
        let blob = Blob::from_bytes(noise(300_000, 3));
        let digest = blob.digest();
        host.upload(&[blob], &quiet).await.unwrap();
        assert!(server.content(&staged_content(digest)).is_some());
        let outcome = host.probe(agent).await.unwrap();
        assert!(matches!(outcome, ProbeOutcome::Reported(_)), "{outcome:?}");
        applies(&host, agent).await;
        let outcome = host.probe(agent).await.unwrap();
        assert!(matches!(outcome, ProbeOutcome::Reported(_)), "{outcome:?}");
        let staged = staged_content(digest);
        assert_eq!(host.remove_leftovers(&[staged], &[]).await.unwrap(), []);
    }
    let counts = options.counters.snapshot();
    assert_eq!((counts.connects, counts.executions), (1, 8));
    host.close().await;
}

async fn applies(host: &dyn HostAgent, agent: AgentLocation) {
    let steps = vec![HostStep::InstallAgent];
    let plan = HostPlan { protocol: PROTOCOL, vacant_since: None, steps };
    let outcome = host.apply(agent, &plan, &mut |_| {}).await.unwrap();
    assert!(matches!(outcome, ApplyOutcome::Finished { .. }), "{outcome:?}");
}

#[test]
fn each_step_of_a_connection_has_its_words() {
    let steps = [
        (Reached::Nothing, "tcp was not connected"),
        (Reached::Tcp { line: None }, "tcp was connected, but no version of an ssh server came"),
        (
            Reached::Tcp { line: Some("220 ftp".into()) },
            "tcp was connected, but no version of an ssh server came, only a text that begins with `220 ftp`",
        ),
        (
            Reached::Version { version: "SSH-2.0-x".into() },
            "the server said `SSH-2.0-x`, but the keys were not agreed",
        ),
        (Reached::KeysAgreed, "the keys were agreed, but no key was offered yet"),
        (
            Reached::Offered { key: "ssh-ed25519 SHA256:x".into() },
            "the keys were agreed and ssh-ed25519 SHA256:x was offered, but no answer came",
        ),
    ];
    for (reached, words) in steps {
        assert_eq!(reached.to_string(), words);
    }
}
