//! The election against the embedded cluster: never two leaders, and soon a next one.

use std::time::Duration;

use bin_operator::leader::{Leadership, Times, elect};
use k8s_openapi::api::coordination::v1::Lease;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use kube_testserver::TestServer;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::scenery::until;

/// For tests that wait until a Lease is over. A leader that a busy machine holds up for longer loses it.
const LEASE: Duration = Duration::from_secs(6);

fn times() -> Times {
    Times::new(LEASE, Duration::from_secs(4), Duration::from_millis(100)).unwrap()
}

/// Nobody loses such a Lease while the test runs.
fn long() -> Times {
    let (lease, deadline) = (Duration::from_secs(3000), Duration::from_secs(2000));
    Times::new(lease, deadline, Duration::from_millis(100)).unwrap()
}

struct Candidate {
    leadership: Leadership,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Candidate {
    /// A candidate that reaches the cluster through `port`.
    async fn stand(cluster: &TestServer, port: u16, name: &str) -> Self {
        Self::stand_with(cluster, port, name, times()).await
    }

    async fn stand_with(cluster: &TestServer, port: u16, name: &str, times: Times) -> Self {
        let kubeconfig = cluster.kubeconfig(name, &["system:masters"]).unwrap();
        let kubeconfig = Kubeconfig::from_yaml(&kubeconfig).unwrap();
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        config.cluster_url = format!("https://127.0.0.1:{port}").parse().unwrap();
        let leases: Api<Lease> = Api::namespaced(Client::try_from(config).unwrap(), "default");
        let stop = CancellationToken::new();
        let (leadership, task) = elect(leases, name.to_owned(), times, stop.clone());
        Self { leadership, stop, task }
    }

    fn leads(&self) -> bool {
        self.leadership.check().is_ok()
    }

    async fn retire(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

fn port(cluster: &TestServer) -> u16 {
    cluster.url().rsplit(':').next().unwrap().parse().unwrap()
}

/// A way to `target` that needs `lag` for each new connection, and keeps its connections but carries
/// nothing once `silent` is cancelled.
async fn line(target: u16, lag: Duration, silent: CancellationToken) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let silent = silent.clone();
            tokio::spawn(async move {
                tokio::time::sleep(lag).await;
                let mut far = TcpStream::connect(("127.0.0.1", target)).await.unwrap();
                tokio::select! {
                    _ = copy_bidirectional(&mut near, &mut far) => {}
                    () = silent.cancelled() => std::future::pending().await,
                }
            });
        }
    });
    port
}

#[tokio::test]
async fn a_leader_that_retires_lets_the_next_one_in() {
    let cluster = TestServer::start().await.unwrap();
    let first = Candidate::stand_with(&cluster, port(&cluster), "first", long()).await;
    until(|| first.leads().then_some(())).await;
    let second = Candidate::stand_with(&cluster, port(&cluster), "second", long()).await;
    let asked = |user: &str| {
        let requests = cluster.requests();
        requests.iter().filter(|r| r.user == user && matches!(&*r.verb, "get" | "update")).count()
    };
    let before = asked("first");
    until(|| (asked("first") > before + 20 && asked("second") > 20).then_some(())).await;
    assert!(first.leads() && !second.leads(), "a lease that is renewed is respected");
    first.retire().await;
    until(|| second.leads().then_some(())).await;
    let lease = &cluster.objects("coordination.k8s.io", "leases", "default")[0]["spec"];
    assert_eq!(lease["holderIdentity"], "second");
    assert_eq!(lease["leaseTransitions"], 1);
    second.retire().await;
}

#[tokio::test]
async fn a_leader_whose_api_server_is_silent_steps_down_before_another_one_leads() {
    let cluster = TestServer::start().await.unwrap();
    let silent = CancellationToken::new();
    let line = line(port(&cluster), Duration::ZERO, silent.clone()).await;
    let first = Candidate::stand(&cluster, line, "first").await;
    until(|| first.leads().then_some(())).await;
    let second = Candidate::stand(&cluster, port(&cluster), "second").await;
    silent.cancel();
    until(|| {
        assert!(!(first.leads() && second.leads()), "two lead");
        (!first.leads()).then_some(())
    })
    .await;
    until(|| second.leads().then_some(())).await;
    assert!(!first.leads());
    second.retire().await;
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the runtime is to stand still")]
async fn the_first_check_after_a_stop_refuses() {
    let cluster = TestServer::start().await.unwrap();
    let first = Candidate::stand(&cluster, port(&cluster), "first").await;
    until(|| first.leads().then_some(())).await;
    // This blocks the whole runtime, as if the process were stopped.
    std::thread::sleep(LEASE);
    assert!(!first.leads(), "nobody has told it yet, and it may not write");
}

#[tokio::test]
async fn a_slow_answer_does_not_age_a_lease() {
    let times = Times::new(LEASE, Duration::from_millis(5800), Duration::from_millis(100)).unwrap();
    let cluster = TestServer::start().await.unwrap();
    let silent = CancellationToken::new();
    let near = line(port(&cluster), Duration::ZERO, silent.clone()).await;
    let far = line(port(&cluster), Duration::from_millis(1300), CancellationToken::new()).await;
    let first = Candidate::stand_with(&cluster, near, "first", times).await;
    until(|| first.leads().then_some(())).await;
    let second = Candidate::stand_with(&cluster, far, "second", times).await;
    until(|| cluster.requests().iter().any(|request| request.user == "second").then_some(())).await;
    silent.cancel();
    until(|| {
        assert!(!(first.leads() && second.leads()), "two lead");
        second.leads().then_some(())
    })
    .await;
    second.retire().await;
}
