//! A worker between a step and its rest.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Mutex;
use std::time::Duration;

use axum::http::{Request, Response};
use jiff::SignedDuration;
use kube::Client;
use kube::client::Body;
use kube::runtime::reflector;
use tower::service_fn;
use wmco_core::cluster_identity::ClusterIdentity;
use wmco_core::digest::Sha256;
use wmco_core::facts::NodeFacts;
use wmco_core::fleet;
use wmco_core::instances::{self, Resolutions};
use wmco_core::names;
use wmco_core::node::{Awaited, Desired, HostSeen, KnownAs, NodePatch, Release};
use wmco_core::reach::Unreachable;
use wmco_core::secret::Secret;
use wmco_ssh::{Blob, Options, Pool, PoolLimits, PrivateKey, TcpDialer};

use super::*;
use crate::announce::Announcer;
use crate::claims::Claims;
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

/// An Event as it was sent: its note, and how often it is counted.
type Sent = (String, u64);

/// An API server that takes Events, and the Events.
fn hearing() -> (Client, Arc<Mutex<Vec<Sent>>>) {
    let all = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&all);
    let answer = move |request: Request<Body>| {
        let heard = Arc::clone(&heard);
        async move {
            let body = request.into_body().collect_bytes().await.unwrap();
            let event: serde_json::Value = serde_json::from_slice(&body).unwrap();
            let note = event["note"].as_str().unwrap().to_owned();
            heard.lock().unwrap().push((note, event["series"]["count"].as_u64().unwrap_or(1)));
            Ok::<_, Infallible>(Response::new(Body::from(body.to_vec())))
        }
    };
    (Client::new(service_fn(answer), "ns"), all)
}

pub(crate) fn executor() -> Executor {
    executor_telling(client())
}

/// One whose Events go to `events`.
fn executor_telling(events: Client) -> Executor {
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
        announcer: Announcer::new(events, "ns", "test", metrics.clone()),
        metrics,
        pool,
        progress: Progress::new(),
        records: HostRecords::new(client(), "ns", leadership),
        host_reports: HostReports::new(),
        works: WorkStates::new(),
        nodes: Nodes::new(store, newest),
    }
}

pub(crate) fn inputs(intent: Intent) -> Arc<WorkerInputs> {
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

fn claim() -> Claim {
    Claims::new().of("10.0.0.1")
}

/// Whether a worker sleeps on after a `step` during which people asked for something else.
async fn rests_after(step: Outcome) -> bool {
    let (sender, receiver) = watch::channel(inputs(Intent::Configure(None)));
    let mut worker = Worker::new(receiver, executor(), claim());
    let before = Arc::clone(&worker.inputs.borrow_and_update());
    let deadline = Timestamp::now() + limits::VERSION_MARK;
    let plan = Plan::wait(Awaited::VersionMark, deadline);
    // Somebody takes the entry off the list while the step is under way.
    sender.send_replace(inputs(Intent::Remove(None)));
    worker.catch_up(&step).await;
    let rest = worker.rest_after(&plan, &before.instance).unwrap();
    let woken = worker.sleep(rest, &before.instance);
    tokio::time::timeout(Duration::from_secs(20), woken).await.is_err()
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
    let mut worker = Worker::new(receiver, executor(), claim());
    let before = Arc::clone(&worker.inputs.borrow_and_update());
    let mut appeared = WorkerInputs::clone(&before);
    appeared.instance.node = Some(NodeFacts::default());
    sender.send_replace(Arc::new(appeared));
    worker.catch_up(&Outcome::Looked(HostSeen::NoAgent)).await;
    let plan = Plan::wait(Awaited::NodeAppears, Timestamp::now() + limits::NODE_APPEARS);
    let rest = worker.rest_after(&plan, &before.instance).unwrap();
    let woken = worker.sleep(rest, &before.instance);
    assert!(tokio::time::timeout(Duration::from_secs(20), woken).await.is_ok(), "it sleeps on");
}

/// What the claims show as being taken each time when the API server is asked for something, while a worker takes a step of
/// a plan that is older than its intent.
async fn taking_while(patch: NodePatch, intent: Intent) -> Vec<BTreeSet<String>> {
    let (claims, asked) = (Claims::new(), Arc::new(Mutex::new(Vec::new())));
    let (seen, at_work) = (Arc::clone(&asked), claims.clone());
    let answer = move |_: Request<Body>| {
        seen.lock().unwrap().push(at_work.taking());
        async { Ok::<_, Infallible>(Response::new(Body::from(LIST.as_bytes().to_vec()))) }
    };
    let client = Client::new(service_fn(answer), "ns");
    let executor = Executor { client: client.clone(), once: client, ..executor() };
    let mut now = WorkerInputs::clone(&inputs(intent));
    now.instance.node = Some(NodeFacts { name: "win-1".into(), ..NodeFacts::default() });
    let now = Arc::new(now);
    let (_sender, receiver) = watch::channel(Arc::clone(&now));
    let mut worker = Worker::new(receiver, executor, claims.of("10.0.0.1"));
    let plan = Plan::step(Action::PatchNode(patch), Because::MetadataDiffers);
    let _ = worker.carry_out(&plan, &now).await;
    assert_eq!(claims.taking(), BTreeSet::new(), "it is taken as long as that lasts");
    asked.lock().unwrap().clone()
}

/// An intent with a permit for the Node `win-1`.
pub(crate) fn permitted() -> Intent {
    let entries = instances::parse([("10.0.0.1", "username=core")], &Resolutions::default());
    let os = (names::OS_LABEL.to_owned(), names::OS_WINDOWS.to_owned());
    let node = NodeFacts {
        name: "win-1".into(),
        addresses: vec!["10.0.0.1".into()],
        labels: [os, (names::BYOH_LABEL.to_owned(), names::TRUE.to_owned())].into(),
        ready: true,
        ..NodeFacts::default()
    };
    let (nodes, claims) = ([node], ["win-1".to_owned()].into());
    let desired = fleet::Desired::new(Some(&entries), "2.0.0");
    let observed = fleet::Observed { claims: &claims, ..fleet::Observed::new(&nodes) };
    let intent = fleet::reconcile(&desired, &observed).instances[0].intent.clone();
    assert!(intent.permit().is_some());
    intent
}

/// Another node may have it by now.
#[tokio::test]
async fn a_slot_is_taken_with_a_permit_of_that_moment_and_the_fleet_knows() {
    let text = || Some(names::TRUE.to_owned());
    let slot = [(names::UPGRADING_LABEL.to_owned(), text())].into();
    let slot = NodePatch { labels: slot, ..NodePatch::default() };
    let version = [(names::DESIRED_VERSION_ANNOTATION.to_owned(), text())].into();
    let version = NodePatch { annotations: version, ..NodePatch::default() };
    let without = Intent::Configure(None);
    assert!(taking_while(slot.clone(), without.clone()).await.is_empty());
    let all_are = |asked: Vec<BTreeSet<String>>, expected: &[&str]| {
        assert!(!asked.is_empty() && asked.iter().all(|taking| taking.iter().eq(expected)));
    };
    all_are(taking_while(version, without).await, &[]);
    all_are(taking_while(slot, permitted()).await, &["win-1"]);
}

/// A failure: when it was reported, when the worker was done with that, and until when it rests.
struct Failed {
    reported: Timestamp,
    done: Timestamp,
    rests_until: Timestamp,
}

/// How long a worker rests after failures like this one, and its Events.
async fn fail_often(times: usize, error: impl Fn() -> StepError) -> (Vec<Failed>, Vec<Sent>) {
    let (client, sent) = hearing();
    let (_sender, receiver) = watch::channel(inputs(Intent::Configure(None)));
    let mut worker = Worker::new(receiver, executor_telling(client), claim());
    let instance = worker.inputs.borrow().instance.clone();
    let mut failures = Vec::new();
    for _ in 0..times {
        let reported = clock::now();
        let rests_until = worker.failed(error().into(), &instance).await.until;
        failures.push(Failed { reported, done: clock::now(), rests_until });
    }
    worker.executor.announcer.sent(Duration::from_secs(240)).await;
    let sent = sent.lock().unwrap().clone();
    (failures, sent)
}

fn no_address() -> StepError {
    StepError::Route(Unreachable::NoAddress { host: "10.0.0.1".into() })
}

fn busy() -> StepError {
    let (target, said) = ("10.0.0.1:22".to_owned(), "Exceeded MaxStartups".to_owned());
    StepError::Connect(wmco_ssh::ConnectError::Busy { target, said })
}

/// Source: `docs/contract/lifecycle.md`, LIFE40.
#[tokio::test]
async fn attempts_of_ten_minutes_are_seventeen_at_most() {
    for error in [no_address, busy] {
        let (failures, _) = fail_often(17, error).await;
        let rests = failures.iter().map(|it| it.rests_until.duration_since(it.reported));
        let all = rests.fold(SignedDuration::ZERO, |all, rest| all + rest);
        assert!(all > SignedDuration::from_mins(10), "{all}");
    }
}

/// The pauses differ, and the Event stays the same one, so its words fit each of them.
#[tokio::test]
async fn repeated_failures_are_one_event_that_is_counted_up() {
    for (error, expected) in
        [(no_address as fn() -> StepError, [1, 2, 4, 8, 16, 32]), (busy, [17, 17, 17, 17, 17, 32])]
    {
        let (failures, sent) = fail_often(expected.len(), error).await;
        for (failed, seconds) in failures.iter().zip(expected) {
            let within = SignedDuration::from_secs(seconds);
            let least = within.mul_f64(1.0 - limits::RETRY_JITTER);
            assert!(failed.rests_until >= failed.reported + least, "{seconds} s");
            assert!(failed.rests_until <= failed.done + within, "{seconds} s");
            assert!(within <= limits::RETRY_MOST);
        }
        let counts: Vec<_> = sent.iter().map(|(_, count)| *count).collect();
        // What is left of a minute's Events is for hosts that nobody has heard of.
        assert!(counts.len() >= 5, "{sent:#?}");
        assert!(counts.iter().copied().eq(1..=counts.len() as u64), "{sent:#?}");
        let note = &sent[0].0;
        assert!(note.ends_with("; it is tried again, after 60 s at most"), "{note}");
        assert!(sent.iter().all(|(other, _)| other == note), "{sent:#?}");
    }
}

/// They all hang on the list of instances.
#[tokio::test]
async fn each_host_that_fails_has_an_event_however_often_others_fail() {
    let (client, sent) = hearing();
    let announcer = executor_telling(client).announcer;
    let mut instance = inputs(Intent::Configure(None)).instance.clone();
    let mut fails = |host: usize, error: &str| {
        instance.address = format!("10.0.0.{host}");
        let reason = names::events::INSTANCE_SETUP_FAILURE;
        announcer.failed(&instance, reason, error);
    };
    for time in 0..100 {
        fails(0, &format!("it fails for the {time}th time"));
    }
    (1..5).for_each(|host| fails(host, "it fails"));
    announcer.sent(Duration::from_secs(240)).await;
    let sent = sent.lock().unwrap();
    for host in 0..5 {
        let has_one = |(note, _): &Sent| note.starts_with(&format!("10.0.0.{host}: "));
        assert!(sent.iter().any(has_one), "host {host}: {sent:#?}");
    }
}

/// They hang on the list of instances, too.
#[tokio::test]
async fn an_object_that_is_put_right_again_and_again_hides_no_other() {
    let (client, sent) = hearing();
    let announcer = executor_telling(client).announcer;
    for time in 0..100 {
        announcer.put_right("Secret ns/one", &format!("one was put right for the {time}th time"));
    }
    announcer.put_right("ConfigMap ns/other", "the other was put right");
    announcer.sent(Duration::from_secs(240)).await;
    let sent = sent.lock().unwrap();
    assert!(sent.iter().any(|(note, _)| note == "the other was put right"), "{sent:#?}");
    assert!((25..=27).contains(&sent.len()), "{}", sent.len());
}
