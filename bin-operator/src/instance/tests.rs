//! A worker between a step and its rest.

use std::convert::Infallible;
use std::time::Duration;

use axum::http::{Request, Response};
use kube::Client;
use kube::client::Body;
use kube::runtime::reflector;
use tower::service_fn;
use wmco_core::cluster_identity::ClusterIdentity;
use wmco_core::digest::Sha256;
use wmco_core::facts::NodeFacts;
use wmco_core::node::{Awaited, Desired, HostSeen, KnownAs, Release};
use wmco_core::reach::Unreachable;
use wmco_core::secret::Secret;
use wmco_ssh::{Blob, Options, Pool, PoolLimits, PrivateKey, TcpDialer};

use super::*;
use crate::announce::Announcer;
use crate::host_reports::HostReports;
use crate::leader::Leadership;
use crate::metrics::Metrics;
use crate::nodes::Nodes;
use crate::progress::Progress;
use crate::release::Contents;
use crate::work::WorkStates;

const LIST: &str = r#"{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}"#;

/// An API server that has nothing.
fn client() -> Client {
    let answer = |_: Request<Body>| async {
        Ok::<_, Infallible>(Response::new(Body::from(LIST.as_bytes().to_vec())))
    };
    Client::new(service_fn(answer), "ns")
}

fn executor() -> Executor {
    let pool = Pool::new(Arc::new(TcpDialer), Options::default(), PoolLimits::default());
    let (store, _) = reflector::store();
    let (_, newest) = watch::channel(0);
    let leadership = Leadership::unchallenged();
    let metrics = Metrics::new(pool.clone());
    Executor {
        client: client(),
        once: client(),
        namespace: "ns".into(),
        leadership: leadership.clone(),
        announcer: Announcer::new(client(), "ns", "test", metrics.clone()),
        metrics,
        pool,
        progress: Progress::new(),
        records: HostRecords::new(client(), "ns", leadership),
        host_reports: HostReports::new(),
        works: WorkStates::new(),
        nodes: Nodes::new(store, newest),
    }
}

fn inputs(intent: Intent) -> Arc<WorkerInputs> {
    let release = Release::new("2.0.0", Sha256::of(b"agent"), ClusterIdentity::new("this one"));
    let pem = rcgen::KeyPair::generate().unwrap().serialize_pem();
    Arc::new(WorkerInputs {
        instance: InstanceInputs {
            machine: None,
            address: "10.0.0.1".into(),
            desired: Desired::new(Arc::new(release), intent, KnownAs::default(), None),
            node: None,
            reach: Err(Unreachable::NoAddress { host: "10.0.0.1".into() }),
            keys: vec![Sha256::of(b"key")],
            record: None,
            on_record: false,
        },
        keys: [Arc::new(PrivateKey::parse(&Secret::new(pem)).unwrap())].into(),
        contents: Arc::new(Contents { agent: Blob::from_bytes("agent"), files: [].into() }),
    })
}

/// Whether a worker sleeps on after a `step` during which people asked for something else.
async fn rests_after(step: Outcome) -> bool {
    let (sender, receiver) = watch::channel(inputs(Intent::Configure(None)));
    let mut worker = Worker::new(receiver, executor(), Claims::new());
    let before = Arc::clone(&worker.inputs.borrow_and_update());
    let deadline = Timestamp::now() + limits::VERSION_MARK;
    let plan = Plan::wait(Awaited::VersionMark, deadline);
    // Somebody takes the entry off the list while the step is under way.
    sender.send_replace(inputs(Intent::Remove(None)));
    worker.catch_up(&step).await;
    let rest = worker.rest_after(&plan, &before.instance).unwrap();
    let woken = worker.sleep(rest, &before.instance);
    tokio::time::timeout(Duration::from_secs(1), woken).await.is_err()
}

#[tokio::test]
async fn what_people_ask_during_a_step_ends_the_rest_after_it() {
    assert!(!rests_after(Outcome::Pods(Vec::new())).await);
    // Though it came together with our own write.
    assert!(!rests_after(Outcome::NodeChanged { resource_version: 0, is_ours: true }).await);
    // Though the Machine that was to be deleted is another one by now.
    assert!(!rests_after(Outcome::MachineKept { uid: "u-1".into() }).await);
}

/// The Node's change that a step does not wait for is no less one.
#[tokio::test]
async fn what_happens_to_the_node_during_a_look_ends_the_rest_after_it() {
    let (sender, receiver) = watch::channel(inputs(Intent::Configure(None)));
    let mut worker = Worker::new(receiver, executor(), Claims::new());
    let before = Arc::clone(&worker.inputs.borrow_and_update());
    let mut appeared = WorkerInputs::clone(&before);
    appeared.instance.node = Some(NodeFacts::default());
    sender.send_replace(Arc::new(appeared));
    worker.catch_up(&Outcome::Looked(HostSeen::NoAgent)).await;
    let plan = Plan::wait(Awaited::NodeAppears, Timestamp::now() + limits::NODE_APPEARS);
    let rest = worker.rest_after(&plan, &before.instance).unwrap();
    let woken = worker.sleep(rest, &before.instance);
    assert!(tokio::time::timeout(Duration::from_secs(1), woken).await.is_ok(), "it sleeps on");
}
